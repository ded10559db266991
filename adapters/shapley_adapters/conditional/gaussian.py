"""Absent features of a normal distribution, given the present ones or set by an intervention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.special

from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError, warn_user
from ..graphs.causal_graph import CausalEdges, CausalGraph, CausalOrder, read_causal_graph
from ..workers import one_blas_thread
from .draws import CoalitionCache, Filled, LogRatios, checked_numbers
from .refits import moments_of_fits

_LEAST_EIGENVALUE = 1e-8
"""Correlation matrices with less than that are taken for singular."""

_RIDGE = 1e-6
"""Added to the diagonal of a singular correlation matrix. Half of the digits remain exact."""

_NUMBERS_AT_ONCE = 2**22
"""Numbers of conditional matrices that are in memory at a time."""


@dataclass
class Gaussian:
    """A normal distribution: its conditional distributions have a closed form.

    Given the values of present features S, those of the absent ones T are normally distributed
    (Aas, Jullum and Løland, 2021, equations 12 and 13):

        mean = μ_T + Σ_TS Σ_SS⁻¹ (x_S − μ_S),    covariance = Σ_TT − Σ_TS Σ_SS⁻¹ Σ_ST.

    Both matrices depend on the coalition only: they are computed once, for many coalitions at a
    time, and shared by all rows.

    Attributes
    ----------
    mean, covariance : arrays, (D,) and (D, D)
        μ and Σ. Features without variance are independent of all others.
    centred : array, (N, D)
        The rows that it was fitted to, less their mean.
    """

    mean: FloatArray
    covariance: FloatArray
    centred: FloatArray
    _matrices: CoalitionCache = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._matrices = CoalitionCache(self._conditional_matrices)

    @classmethod
    @one_blas_thread()
    def fitted(cls, data: npt.NDArray[Any], names: Sequence[Any] | None = None) -> Gaussian:
        """Return the distribution with the mean and the covariance of rows, (N, D).

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If the rows are not finite numbers, or too few for a covariance. The error names the
            column, by `names` if they are given.
        """
        data = checked_numbers(data, names)
        n_rows, n_columns = data.shape
        if n_rows <= n_columns:
            raise InvalidArgumentError(
                f"data has {n_rows} rows and {n_columns} columns; a covariance needs more rows "
                f"than columns, so at least {n_columns + 1}, and better ten times as many. Pass "
                "more rows."
            )
        covariance = np.cov(data.T).reshape(n_columns, n_columns)
        scales = np.sqrt(np.diag(covariance))
        scales[data.min(axis=0) == data.max(axis=0)] = 0.0  # not a rounding error
        covariance *= np.outer(scales > 0, scales > 0)
        mean = data.mean(axis=0)
        return cls(mean, _regular(covariance, scales), data - mean)

    @one_blas_thread()
    def fill(self, row: FloatArray, masks: BoolArray, points: FloatArray) -> Filled:
        """Return rows whose absent values are drawn given the present ones, (P, K, D).

        And their distances from the mean. Missing present values stay missing, and say nothing
        about the others.

        Parameters
        ----------
        row : array, (D,)
            Present values.
        masks : array, (P, D)
            True where the feature is present.
        points : array, (P, K, D)
            Uniform random numbers.
        """
        known = masks & ~np.isnan(row)
        matrices = self._matrices(np.concatenate([known, ~masks], axis=1))
        # Feature by feature, so that normal numbers are made of neighbours in memory.
        by_feature = points.swapaxes(1, 2)  # (P, D, K)
        sources, of_known = np.empty(by_feature.shape), np.where(known, row - self.mean, 0.0)
        sources[:] = of_known[:, :, None]
        absent, n_draws = np.flatnonzero(~masks), points.shape[1]
        uniform = by_feature.reshape(-1, n_draws).take(absent, axis=0)
        sources.reshape(-1, n_draws)[absent] = scipy.special.ndtri(uniform)
        centred = sources.swapaxes(1, 2) @ matrices.swapaxes(1, 2)
        filled = np.where(masks[:, None], row, centred + self.mean)
        return filled, np.where(known[:, None], of_known[:, None], centred)

    def refitted(self, rng: np.random.Generator) -> RefittedNormal:
        """Return the log-ratios of draws by fits to other rows."""
        return RefittedNormal(self, *moments_of_fits(self.centred, rng))

    def factors(self, known: BoolArray, absent: BoolArray) -> Iterator[tuple[BoolArray, BoolArray]]:
        """Yield what the density of draws is a product of: features drawn given others, (P, D)."""
        yield known, absent

    @one_blas_thread()
    def means(self, rows: FloatArray, present: BoolArray) -> FloatArray:
        """Return rows, (n, D), whose absent values are their means given the present ones."""
        centred = np.where(present, rows - self.mean, 0.0)[:, :, None]
        n_parts = 1 + rows.size * rows.shape[1] // _NUMBERS_AT_ONCE
        for part in np.array_split(np.arange(len(rows)), n_parts):
            keys = np.concatenate([present[part], ~present[part]], axis=1)
            centred[part] = self._matrices(keys) @ centred[part]
        return np.where(present, rows, centred[..., 0] + self.mean)

    def _conditional_matrices(self, keys: npt.NDArray[Any]) -> FloatArray:
        """Return the matrices, (n, D, D), of known and of absent features, (n, 2 D).

        Their product with the distances of known features from the mean, and with normal numbers in
        the places of absent ones, are the distances of draws. So their columns are slopes of known
        features, and a root of the covariance of absent ones. Other features have rows and columns
        of zeros, so that all coalitions are solved together.
        """
        known, absent = np.split(keys, 2, axis=1)
        identity = np.eye(known.shape[1])
        # Features without variance, and those left out, get an equation of their own: 1 · 0 = 0.
        varies = np.diag(self.covariance) > 0
        known, drawn = known & varies, absent & varies
        of_known = _both(known, known)
        inner = np.where(of_known, self.covariance, identity)
        cross = np.where(_both(drawn, known), self.covariance, 0.0)
        slopes = np.linalg.solve(inner, cross.swapaxes(1, 2)).swapaxes(1, 2)
        left = np.where(_both(drawn, drawn), self.covariance, 0.0) - slopes @ cross.swapaxes(1, 2)
        roots = np.linalg.cholesky(np.where(_both(drawn, drawn), left, identity))
        roots = np.where(_both(drawn, drawn), roots, 0.0)
        return np.asarray(slopes + roots)


@dataclass(frozen=True)
class RefittedNormal:
    """The log-ratios of draws by fits of a normal distribution to other rows.

    With y = Σ⁻¹ (z − μ), the density of z by μ + δ and Σ + Δ has to first order y·δ + ½ yᵀ Δ y more
    in its logarithm, up to a constant.

    Attributes
    ----------
    normal : Gaussian
    means, covariances : arrays, (F, D) and (F, D, D)
        δ and Δ of the fits.
    """

    normal: Gaussian
    means: FloatArray
    covariances: FloatArray

    @one_blas_thread()
    def __call__(self, row: FloatArray, masks: BoolArray, centred: FloatArray) -> FloatArray:
        """Return the log-ratios of draws, (P, K, F), given their distances from the mean."""
        known = masks & ~np.isnan(row)
        ratios = np.zeros((*centred.shape[:2], len(self.means)))
        for given, drawn in self.normal.factors(known, ~masks):
            ratios += self._of_features(centred, given | drawn)
            if (given & ~known).any():  # else a constant
                ratios -= self._of_features(centred, given)
        return ratios

    def _of_features(self, centred: FloatArray, chosen: BoolArray) -> FloatArray:
        """Return those of the joint density of some features, (P, D), of draws, (P, K, D)."""
        covariance = self.normal.covariance
        chosen = chosen & (np.diag(covariance) > 0)
        if (chosen == chosen[0]).all():
            chosen = chosen[:1]
        inner = np.where(_both(chosen, chosen), covariance, np.eye(len(covariance)))
        precisions = np.where(_both(chosen, chosen), np.linalg.inv(inner), 0.0)
        y = (centred @ precisions).reshape(-1, len(covariance))
        ratios = y @ self.means.T
        for fit, changes in enumerate(self.covariances):
            ratios[:, fit] += np.einsum("ij,ij->i", y @ changes, y) / 2
        return ratios.reshape(*centred.shape[:2], -1)


def _both(first: BoolArray, second: BoolArray) -> BoolArray:
    return first[:, :, None] & second[:, None, :]


def _regular(covariance: FloatArray, scales: FloatArray) -> FloatArray:
    """Return a covariance that can be inverted, with a warning if it had to be changed."""
    varies = np.flatnonzero(scales)
    if len(varies) == 0:
        return covariance
    own = np.ix_(varies, varies)
    correlations = covariance[own] / np.outer(scales[varies], scales[varies])
    if np.linalg.eigvalsh(correlations)[0] >= _LEAST_EIGENVALUE:
        return covariance
    warn_user(
        "data has columns that follow from others, such as sums or copies of them, so that its "
        f"covariance is singular. The variances are raised by {_RIDGE:g} of themselves. Leave such "
        "columns out, or put them into one group with those that they follow from."
    )
    regular = covariance.copy()
    regular[varies, varies] *= 1 + _RIDGE
    return regular


@dataclass
class Copula:
    """A Gaussian copula with the margins of the data.

    The ranks of each feature are made normal; there, conditional distributions are those of
    `Gaussian`, and their draws are brought back by the quantiles of the data (Aas, Jullum and
    Løland, 2021, section 3.2).

    Attributes
    ----------
    ordered : array, (N, D)
        The values of each feature, in ascending order.
    scores : Gaussian
        The distribution of the normal scores of ranks.
    """

    ordered: FloatArray
    scores: Gaussian

    @classmethod
    def fitted(cls, data: npt.NDArray[Any], names: Sequence[Any] | None = None) -> Copula:
        """Return the copula of rows, (N, D), of numbers; see `Gaussian.fitted`."""
        numbers = checked_numbers(data, names)
        ordered = np.sort(numbers, axis=0)
        return cls(ordered, Gaussian.fitted(_normal_scores(numbers, ordered)))

    def refitted(self, rng: np.random.Generator) -> LogRatios:
        """Return the log-ratios of draws by fits to other rows, whose scores have other moments."""
        return partial(self._log_ratios, self.scores.refitted(rng))

    def _log_ratios(
        self, of_scores: LogRatios, row: FloatArray, masks: BoolArray, scores: FloatArray
    ) -> FloatArray:
        return of_scores(self._scores_of(row), masks, scores)

    def _scores_of(self, row: FloatArray) -> FloatArray:
        return np.where(np.isnan(row), np.nan, _normal_scores(row[None], self.ordered)[0])

    def fill(self, row: FloatArray, masks: BoolArray, points: FloatArray) -> Filled:
        """Return rows whose absent values are drawn given the present ones, (P, K, D).

        And their scores.
        """
        scores, known = self.scores.fill(self._scores_of(row), masks, points)
        filled = scipy.special.ndtr(scores)
        n_rows = len(self.ordered)
        levels = np.arange(1, n_rows + 1) / (n_rows + 1)
        for column, values in enumerate(self.ordered.T):
            filled[..., column] = np.interp(filled[..., column], levels, values)
        return np.where(masks[:, None], row, filled), known


def _normal_scores(values: FloatArray, ordered: FloatArray) -> FloatArray:
    """Return the normal quantiles of the ranks of values, (n, D), among ordered ones, (N, D).

    Equal values have the mean of their ranks. Values beyond all others have the first or last rank.
    """
    n_rows = len(ordered)
    ranks = np.empty(values.shape)
    for column, (own, others) in enumerate(zip(values.T, ordered.T, strict=True)):
        below = np.searchsorted(others, own, side="left")
        until = np.searchsorted(others, own, side="right")
        ranks[:, column] = (below + 1 + np.maximum(until, below + 1)) / 2
    return scipy.special.ndtri(np.clip(ranks, 1, n_rows) / (n_rows + 1))


Confounded: TypeAlias = "bool | Sequence[Any]"
"""For all components, or True and False for each entry of an order, or some nodes of a graph."""


@dataclass
class CausalGaussian(Gaussian):
    """A normal distribution in which setting a feature does not change its causes.

    Features are drawn one component after the other, each given the features of the components that
    are its causes. Present features of the same component count, too, if these influence each
    other; not if all of them have a common cause that is not observed (Heskes et al., 2020, section
    4, equation 6). Draws are linear in the present features and in normal numbers, so that the
    matrices of `Gaussian` are composed.

    Attributes
    ----------
    graph : CausalGraph
        The components of features and their causes.
    is_confounded : array of bool, (components,)
        Whether the features of a component have a common cause that is not observed.
    """

    graph: CausalGraph = field(kw_only=True)
    is_confounded: BoolArray = field(kw_only=True)

    @classmethod
    def fitted_to_graph(
        cls,
        data: npt.NDArray[Any],
        names: Sequence[Any] | None = None,
        *,
        order: CausalOrder | None,
        graph: CausalEdges | None,
        confounded: Confounded,
    ) -> CausalGaussian:
        """Return the distribution with the mean and the covariance of rows, (N, D).

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If the order does not hold each column once, the graph has a cycle, or as in
            `Gaussian.fitted`.
        """
        normal = Gaussian.fitted(data, names)
        n_columns = data.shape[1]
        causal = read_causal_graph(order, graph, n_columns, names)
        flags = _flags(confounded, causal, order is not None, names)
        moments = normal.mean, normal.covariance, normal.centred
        return cls(*moments, graph=causal, is_confounded=flags)

    def factors(self, known: BoolArray, absent: BoolArray) -> Iterator[tuple[BoolArray, BoolArray]]:
        """Yield the drawn features of each component, and those that they depend on, (P, D)."""
        for component, causes in enumerate(self.graph.causes):
            is_own = self.graph.members([component])
            given = (known | absent) & self.graph.members(causes)
            if not self.is_confounded[component]:
                given |= known & is_own
            yield given, absent & is_own

    def _conditional_matrices(self, keys: npt.NDArray[Any]) -> FloatArray:
        known, absent = np.split(keys, 2, axis=1)
        identity = np.eye(known.shape[1])
        matrices = np.where(known[:, None], identity, 0.0)
        for given, drawn in self.factors(known, absent):
            own = super()._conditional_matrices(np.concatenate([given, drawn], axis=1))
            matrices = matrices + own @ (matrices + np.where(drawn[:, None], identity, 0.0))
        return matrices


def _flags(
    confounded: Confounded, graph: CausalGraph, is_order: bool, names: Sequence[Any] | None
) -> BoolArray:
    """Return which components have a common cause that is not observed."""
    n_components = len(graph.components)
    if isinstance(confounded, (bool, np.bool_)):
        return np.full(n_components, bool(confounded))
    if is_order:
        given = list(confounded)
        if len(given) == n_components and all(isinstance(flag, (bool, np.bool_)) for flag in given):
            return np.array(given, dtype=bool)
        raise InvalidArgumentError(
            f"confounded must be True or False, for all components of order or for each of the "
            f"{n_components}; got {confounded!r}."
        )
    numbers = {name: index for index, name in enumerate(() if names is None else names)}
    members = [set(component) for component in graph.components]
    flags = np.zeros(n_components, dtype=bool)
    for node in confounded if isinstance(confounded, (list, tuple, set)) else [confounded]:
        features = {
            numbers.get(f, f) for f in (node if isinstance(node, (list, tuple)) else [node])
        }
        if features not in members:
            raise InvalidArgumentError(
                f"confounded holds {node!r}, which is no node of graph. Pass True, False, or a "
                "list of nodes, each a tuple of features."
            )
        flags[members.index(features)] = True
    return flags
