"""The ranking of the pairs of features of an Explanation of interactions."""

from __future__ import annotations

import numpy as np

from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.interactions.indices import pairs_of
from shapley_adapters.interactions.ranking import PairRanking, rank_pairs

from ..argument_types import Explanation


def rank_interactions(
    explanation: Explanation, *, output: int | None = None, rate: float = 0.05
) -> PairRanking:
    """Rank pairs of features by their interactions over all rows, with q-values.

    A pair interacts if its interaction is not 0 in some row. Its p-value is the smallest of its
    rows times their number, which is right however the errors of the rows depend on each other.
    The q-values bound the rate of false discoveries (Benjamini and Hochberg).

    Parameters
    ----------
    explanation : shap.Explanation
        Interactions with standard errors: `explainer(X, interactions=True, error_bounds=True)`.
    output : int, optional
        The output, for explanations of several outputs.
    rate : float
        The rate of false discoveries, between 0 and 1.

    Returns
    -------
    PairRanking
        The pairs, those with the largest mean size first. `to_frame()` returns a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.OddGPExplainer(model, np.zeros((1, 3)), feature_names=["a", "b", "c"])
    >>> rows = np.random.default_rng(0).normal(size=(5, 3))
    >>> ranking = shap_ext.rank_interactions(explainer(rows, interactions=True, error_bounds=True))
    >>> ranking.names[0], ranking.n_discoveries
    (('a', 'b'), 1)
    """
    values, errors = explanation.values, explanation.error_std
    if errors is None:
        raise InvalidArgumentError(
            "explanation has no standard errors, which p-values need. Call the explainer with "
            "interactions=True and error_bounds=True."
        )
    if output is None and np.ndim(values) == 4 and values.shape[3] == 1:
        output = 0
    if output is not None and np.ndim(values) == 4:
        values, errors = values[..., output], errors[..., output]
    if np.ndim(values) != 3 or values.shape[1] != values.shape[2]:
        raise InvalidArgumentError(
            f"explanation must hold interactions of the same features in all rows, (R, M, M); its "
            f"values have the shape {np.shape(values)}. Call the explainer with interactions=True, "
            "and pass output= where the model has several outputs."
        )
    first, second = pairs_of(values.shape[1])
    names = explanation.feature_names
    return rank_pairs(2 * values[:, first, second], 2 * errors[:, first, second], names, rate)
