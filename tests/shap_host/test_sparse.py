"""Sparse rows and backgrounds."""

import numpy as np
import pytest
import scipy.sparse
import shap

import shap_ext
from shapley_adapters.errors import ShapleyExtWarning
from tests.shap_host.games import ROUNDING, Seen, curved, network, of_module, oracle, rows

pytestmark = pytest.mark.versions

NAMES = ["enumeration", "shear"]


def holes(x, seed=0):
    """Return numbers of which half are zero."""
    # No products with 0: these make -0.0, which a sparse matrix holds as 0.0.
    return np.where(np.random.default_rng(seed).random(x.shape) < 0.5, x, 0.0)


X, BACKGROUND = holes(rows(4, 6)), holes(rows(3, 6, seed=1), seed=2)


def of_sparse(x):
    return curved(x.toarray())


FORMATS = [
    scipy.sparse.csr_matrix,
    scipy.sparse.csc_matrix,
    scipy.sparse.coo_matrix,
    scipy.sparse.lil_matrix,
    scipy.sparse.csr_array,
    scipy.sparse.dok_array,
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMATS)
def test_sparse_rows_reach_the_model_sparse(name, form):
    seen = Seen(of_sparse)
    sv = shap.Explainer(seen, form(BACKGROUND), algorithm=name, seed=0)(form(X))
    np.testing.assert_allclose(sv.values, oracle(curved, X, BACKGROUND), **ROUNDING)
    np.testing.assert_array_equal(sv.data, X)
    kind = scipy.sparse.csr_array if "array" in form.__name__ else scipy.sparse.csr_matrix
    assert {type(call) for call in seen.calls} == {kind}
    assert all(call.has_canonical_format for call in seen.calls)


def test_sparse_rows_without_a_masker_are_compared_with_zeros():
    explainer = shap.Explainer(of_sparse, algorithm="enumeration")
    with pytest.warns(ShapleyExtWarning, match="absent features are zero"):
        sv = explainer(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(sv.values, oracle(curved, X, np.zeros((1, 6))), **ROUNDING)
    # What is not stored in a row is zero in both, and costs nothing.
    stored = (X != 0).sum(axis=1)
    np.testing.assert_array_equal(explainer.last_estimate.evaluations, 2**stored)


def test_stored_zeros_and_repeated_entries_mean_what_they_say():
    places = (np.array([0, 0, 0, 1]), np.array([1, 1, 3, 2]))
    x = scipy.sparse.coo_matrix((np.array([1.0, 2.0, 0.0, -1.0]), places), shape=(2, 4))
    sv = shap.Explainer(of_sparse, np.zeros((1, 4)), algorithm="enumeration")(x)
    dense = np.array([[0, 3.0, 0, 0], [0, 0, -1.0, 0]])
    np.testing.assert_allclose(sv.values, oracle(curved, dense, np.zeros((1, 4))), **ROUNDING)
    assert x.nnz == 4  # the user's own is left as it was


def test_torch_modules_get_dense_batches():
    net = network(6)
    sv = shap.Explainer(net, scipy.sparse.csr_matrix(BACKGROUND), algorithm="shear", seed=0)(
        scipy.sparse.csr_matrix(X)
    )
    wanted = oracle(lambda x: of_module(net)(x)[:, 0], X, BACKGROUND)
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


def test_many_columns_need_no_dense_matrix():
    """200,000 columns, dense in one batch of 64 rows, would be 100 MB."""
    n_columns = 200_000
    x = scipy.sparse.random(2, n_columns, density=4e-5, random_state=0, format="csr")
    seen = Seen(lambda x: np.asarray(x.sum(axis=1)).ravel() ** 2)
    explainer = shap.Explainer(
        seen, scipy.sparse.csr_matrix((1, n_columns)), algorithm="enumeration"
    )
    sv = explainer(x, max_evals=2**9)
    assert explainer.last_estimate.evaluations.tolist() == (2 ** np.diff(x.indptr)).tolist()
    assert max(call.nnz for call in seen.calls) < 2**16
    total = sv.values.sum(axis=1) + sv.base_values
    np.testing.assert_allclose(total, np.asarray(x.sum(axis=1)).ravel() ** 2, **ROUNDING)


def test_many_sparse_background_rows_are_announced():
    background = scipy.sparse.csr_matrix(holes(rows(101, 3)))
    with pytest.warns(ShapleyExtWarning, match=r"101 rows.*max_samples=101"):
        shap_ext.EnumerationExplainer(of_sparse, background)
    masker = shap.maskers.Independent(background, max_samples=101)
    sv = shap_ext.EnumerationExplainer(of_sparse, masker)(scipy.sparse.csr_matrix(X[:, :3]))
    np.testing.assert_allclose(
        sv.values, oracle(curved, X[:, :3], background.toarray()), **ROUNDING
    )


def test_zeros_of_both_signs_are_the_same_in_sparse_rows():
    """toarray() gives 0.0 for a stored -0.0, so that models cannot tell them apart."""
    stored = scipy.sparse.csr_matrix((np.array([-0.0, 2.0]), ([0, 0], [0, 1])), shape=(1, 3))
    assert np.signbit(stored.data).any() and not np.signbit(stored.toarray()).any()
    background = np.array([[0.0, 1.0, 1.0]])
    explainer = shap.Explainer(
        of_sparse, scipy.sparse.csr_matrix(background), algorithm="enumeration"
    )
    found = explainer(stored).values
    assert found[0, 0] == 0.0
    assert explainer.last_estimate.evaluations.tolist() == [4]
    np.testing.assert_allclose(found, oracle(curved, stored.toarray(), background), **ROUNDING)
