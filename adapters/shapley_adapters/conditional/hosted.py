"""Distributions of absent features as the hosts' users name them: options and text, once.

A host has a class that reads its data, and joins it with these by inheritance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from ..constructors import docstring_of, docstring_sections
from ..graphs.causal_graph import CausalEdges, CausalOrder
from . import forest, gaussian, weighted_rows
from .draws import ConditionalDistribution, ConditionalDraws, SamplingFunction
from .draws import Sampled as SampledRows
from .gaussian import CausalGaussian, Confounded

DataT = TypeVar("DataT")


class DrawnFeatures(Generic[DataT]):
    """Draws absent features given the present ones; its subclasses say from which distribution.

    Attributes
    ----------
    draws : ConditionalDraws
        The distribution, with its random numbers.
    are_rows_drawn : bool
        Whether absent features come together from one row of the data, of any type.
    are_values_of_data : bool
        Whether present and absent features have no other values than those of the data.
    """

    draws: ConditionalDraws
    are_rows_drawn = False
    are_values_of_data = False

    _data = "array, (N, D)"
    """How the host describes data."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Complete the summary of a host's class by the text of the class here, and examples."""
        super().__init_subclass__(**options)
        declared = docstring_sections(cls.__bases__[0])
        if "{data}" in declared.get("Parameters", ""):
            text = declared | docstring_sections(cls) | {"": declared[""]}
            cls.__doc__ = docstring_of(text).replace("{data}", cls._data)

    def _fit(
        self,
        data: DataT,
        fitted: Callable[..., ConditionalDistribution],
        draws: int,
        seed: int | None,
    ) -> None:
        """Read data, and fit a distribution by `fitted(values, names of columns)`."""
        raise NotImplementedError


class _Fitted(DrawnFeatures[DataT]):
    """A distribution that is fitted without options."""

    _distribution: ClassVar[Any]

    def __init__(self, data: DataT, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, self._distribution.fitted, draws, seed)


class Gaussian(_Fitted[DataT]):
    """Draws absent features from a normal distribution, given the present ones.

    The value of a coalition is the mean of the model over these draws. Features that follow from
    present ones keep to them, so that the model sees likely rows only; a feature that the model
    does not use shares the attribution of those that it tells. Its closed form costs little: about
    a microsecond for each row of the model.

    Parameters
    ----------
    data : {data}
        Rows from which mean and covariance are computed: numbers without missing values, more rows
        than columns.
    draws : int
        Rows of the model for each coalition. They are scrambled Sobol points with a random shift
        for each coalition, whose errors are .3 to .5 of those of 16 independent draws, and .14 to
        .35 of those of 64. Powers of 2 are best.
    seed : int, optional
        Seed of the shifts. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, or too few.

    Notes
    -----
    Each evaluation costs `draws` rows of the model. A part of the coalitions is drawn twice, so
    that standard errors and intervals hold the noise of the draws, of enumeration, too. They also
    hold the error of the fit to a sample of rows, which `last_estimate.fit_errors` states apart, at
    no evaluations and some 2 µs for each row of the model: by the multiplier bootstrap, to first
    order. Values do not depend on the order of rows, on batches, or on threads.

    The mean over draws is unbiased, but a loss, a link or a logarithm of it has a bias that falls
    with their number: take 64 draws or more for these.

    Missing values of an explained row stay missing for the model, and say nothing about the other
    features.

    References
    ----------
    Aas, Jullum and Løland (2021), Explaining individual predictions when features are dependent.
    Artificial Intelligence 298, section 3.1.
    """

    _distribution = gaussian.Gaussian


class Causal(DrawnFeatures[DataT]):
    """Draws absent features as they would be if the present ones were set by an intervention.

    Setting a feature changes its effects and not its causes, so that a feature gets credit for its
    effects on others only, where the order of causes is known. The distribution is normal: the
    notes of `Gaussian` apply.

    Parameters
    ----------
    data : {data}
        Rows of numbers without missing values, more than columns.
    order : list of columns, or of lists of columns, optional
        Causes before effects: `["age", ["income", "rent"], "savings"]`. Columns whose order is not
        known are in one list. By name, or by index; each column once.
    confounded : bool, list of bool, or list of nodes
        For each entry of an order, for some nodes of a graph, or for all: whether columns together
        are related by common causes that are not observed, so that setting one does not change the
        others. Otherwise they influence each other. One list of all columns with True gives
        marginal values, with False conditional ones.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    graph : networkx.DiGraph, or list of pairs, optional
        In place of an order: edges from causes to effects, such as
        `[("age", "income"), ("income", ("rent", "savings"))]`. Columns whose order is not known are
        a node together, a tuple. Each node depends on its direct causes only; columns without
        edges are independent of all others.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the order does not hold each column once, the graph has a cycle, or the data are not
        numbers, or too few.

    References
    ----------
    Heskes, Sijben, Bucur and Claassen (2020), Causal Shapley values: exploiting causal knowledge to
    explain individual predictions of complex models. NeurIPS 33, equation 6.
    """

    def __init__(
        self,
        data: DataT,
        order: CausalOrder | None = None,
        confounded: Confounded = False,
        draws: int = 16,
        seed: int | None = 0,
        *,
        graph: CausalEdges | None = None,
    ) -> None:
        fit = CausalGaussian.fitted_to_graph
        fitted = partial(fit, order=order, graph=graph, confounded=confounded)
        self._fit(data, fitted, draws, seed)


class Copula(_Fitted[DataT]):
    """Draws absent features given the present ones: any margins, which depend like normal ones.

    For continuous features whose distributions are skewed or have heavy tails. Otherwise as
    `Gaussian`: its notes apply. Errors of the fit hold the first two moments of ranks: intervals of
    95 % hold true values of 90 % and less where tails count.

    Parameters
    ----------
    data : {data}
        Rows of numbers without missing values, more than columns. Draws lie between the least and
        the largest value of each column.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, or too few.

    References
    ----------
    Aas, Jullum and Løland (2021), section 3.2.
    """

    _distribution = gaussian.Copula


class Empirical(DrawnFeatures[DataT]):
    """Draws the absent features of rows of the data that are near to the present ones.

    Absent features come together from one row, so that they fit each other whatever their
    distribution is. With many present features, few rows are near: the estimates then have less
    noise and more bias, which their errors leave out: far from all rows, where one has all the
    weight, errors are close to 0. The cost is about that of a hundred passes over the data for each
    coalition and row.

    Parameters
    ----------
    data : {data}
        Rows of numbers without missing values, more than columns.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    sigma : float, optional
        Width of the kernel, in units of the Mahalanobis distance over the root of the number of
        present features. By default it falls with the number of rows and of present features, by
        Scott's rule. shapr takes .1.
    eta : float
        Share of the weights that is kept: rows with the least weights are left out.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, or too few.

    Warns
    -----
    ShapleyExtWarning
        If present features are far from all rows; the nearest are taken.

    References
    ----------
    Aas, Jullum and Løland (2021), section 3.3.
    """

    are_rows_drawn = True

    def __init__(
        self,
        data: DataT,
        draws: int = 16,
        seed: int | None = 0,
        *,
        sigma: float | None = None,
        eta: float = 0.95,
    ) -> None:
        fitted = partial(weighted_rows.Empirical.fitted, sigma=sigma, eta=eta)
        self._fit(data, fitted, draws, seed)


class Categorical(_Fitted[DataT]):
    """Draws the absent features of rows of the data that have the same present values.

    For tables of categories. All such rows are equally likely: this is the conditional
    distribution of the data, without any assumption.

    Parameters
    ----------
    data : {data}
        Rows of categories: texts, numbers or types of pandas, of which missing ones are one. No
        column may have more different values than half of the rows.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.

    Raises
    ------
    InvalidArgumentError
        If a column has too many different values.

    Warns
    -----
    ShapleyExtWarning
        If no row has all present values; those with most of them are taken.
    """

    _distribution = weighted_rows.Categorical
    are_rows_drawn = are_values_of_data = True


class Forest(_Fitted[DataT]):
    """Draws the absent features of rows that share leaves of a forest with the present ones.

    For tables of numbers and categories, with or without missing values, whatever depends on what.
    Absent features come together from one row. For each coalition, 20 trees predict the absent
    features from the present ones, by splits that pass a test on rows of their own, so that
    independent features are drawn from all rows. Fitting takes some 30 ms for each coalition and
    1,000 rows of few columns, .7 s with 2,000 rows of 100, once for all explained rows, and .2 ms
    for each coalition of a row. Errors leave out what the choice of trees adds.

    Parameters
    ----------
    data : {data}
        Rows of numbers, texts or types of pandas. Columns that hold a text, or cannot be converted
        to numbers, are categories. Missing values are a value of their own.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the draws. None draws one. Trees depend on the coalition only.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there are fewer than 12 rows, or columns of dates.

    References
    ----------
    Meinshausen (2006), Quantile regression forests, Journal of Machine Learning Research 7. Tested
    as in the conditional inference trees of Redelmeier, Jullum and Aas (2020), by t-tests.
    """

    _distribution = forest.Forest
    are_rows_drawn = True


class Sampled(DrawnFeatures[DataT]):
    """Draws absent features by a function of yours, such as a generative model.

    Parameters
    ----------
    function : callable
        `function(mask, row, n, rng)` returns `n` rows, (n, D), whose absent values, where `mask` is
        False, are drawn given the present values of `row`. All its random numbers must come from
        `rng`, a NumPy Generator, so that results can be repeated.
    data : {data}
        Any rows, for the types and the names of columns.
    draws : int
        Rows of the model for each coalition.
    seed : int, optional
        Seed of the generators. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the function is none, or returns rows of another shape.
    """

    are_rows_drawn = True

    def __init__(
        self,
        function: SamplingFunction,
        data: DataT,
        draws: int = 16,
        seed: int | None = 0,
    ) -> None:
        sampled = SampledRows.checked(function)
        self._fit(data, lambda *_: sampled, draws, seed)
