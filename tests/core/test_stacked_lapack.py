"""Factors of stacks of matrices beside NumPy's."""

import numpy as np
import pytest

from shapley_adapters.estimators.odd_gp.factors import LowerFactors, inverses_of_lower


def covariances(n_games, n):
    roots = np.random.default_rng(n).normal(size=(n_games, n, n))
    return roots @ roots.swapaxes(1, 2) + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 17, 70])
def test_factors_and_equations_are_those_of_numpy(n):
    matrices, rows = covariances(3, n), np.random.default_rng(1).normal(size=(3, 4, n))
    lower, before = np.linalg.cholesky(matrices), rows.copy()
    factors = LowerFactors.from_covariances(matrices.copy())
    np.testing.assert_allclose(np.triu(factors.transposed), lower.swapaxes(1, 2), atol=1e-12)
    solved = factors.whitened(rows).swapaxes(1, 2)
    np.testing.assert_allclose(lower @ solved, rows.swapaxes(1, 2), atol=1e-12)
    solved = factors.whitened(rows, by_transpose=True).swapaxes(1, 2)
    np.testing.assert_allclose(lower.swapaxes(1, 2) @ solved, rows.swapaxes(1, 2), atol=1e-12)
    np.testing.assert_array_equal(rows, before)
    meaningless = np.triu(np.full((n, n), np.nan), 1)
    np.testing.assert_allclose(
        inverses_of_lower(lower + meaningless), np.linalg.inv(lower), atol=1e-12
    )
    inverses = np.triu(factors.upper_inverses())
    np.testing.assert_allclose(inverses, np.triu(np.linalg.inv(matrices)), atol=1e-12)


def test_a_matrix_has_the_same_result_alone_and_in_a_stack():
    matrices, rows = covariances(5, 40), np.random.default_rng(1).normal(size=(5, 7, 40))
    together, alone = (
        LowerFactors.from_covariances(matrices.copy()),
        LowerFactors.from_covariances(matrices[3:4].copy()),
    )
    np.testing.assert_array_equal(together.whitened(rows)[3], alone.whitened(rows[3:4])[0])
    found = together.upper_inverses()[3], alone.upper_inverses()[0]
    np.testing.assert_array_equal(*map(np.triu, found))


def test_matrices_without_factors_are_refused():
    indefinite, singular = np.diag([1.0, -1.0])[None], np.diag([1.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        LowerFactors.from_covariances(indefinite)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        inverses_of_lower(singular)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        LowerFactors(singular[None]).upper_inverses()
