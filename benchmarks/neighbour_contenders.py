"""Who explains in the benchmark on features with neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import shap
import torch
from large_contenders import halving_tree
from neighbour_models import Case, Item
from torch import nn

import captum_ext

FloatArray = npt.NDArray[np.float64]
Contender = Callable[[nn.Module, Item, int, int], tuple[FloatArray, int]]
"""Takes model, input, budget and seed; returns attributions, (M,), and the evaluations spent."""


def contenders(case: Case) -> dict[str, Contender]:
    """Return the contenders that the budget of 4 d evaluations allows."""
    found = {
        "C-Shapley, regression": ours(captum_ext.CShapley, variant="regression"),
        "C-Shapley, regression, equal weights": ours(
            captum_ext.CShapley, variant="regression", kernel="equal"
        ),
        "KernelSHAP (ours, paired)": ours(captum_ext.LeastSquares),
        "permutation (ours, antithetic)": ours(captum_ext.RandomOrder),
        "oddgp": ours(captum_ext.OddGP, weights="equal"),
        "Partition (shap)": _partition,
        "at random": _at_random,
    }
    if case.is_text:  # of pixels, order 1 takes 21 d; of words, it is C-Shapley's sum, too
        found = {
            "L-Shapley": ours(captum_ext.LShapley),
            "C-Shapley, components": ours(captum_ext.CShapley, marginals="components"),
            **found,
        }
    return found


def ours(kind: type[Any], **options: Any) -> Contender:
    """Return a contender by one of our attributions of captum."""

    def explain(model: nn.Module, item: Item, budget: int, seed: int) -> tuple[FloatArray, int]:
        attribution = kind(model, seed=seed, value_function="log_probability", **options)
        attribution.attribute(
            item.inputs, baselines=item.baseline, feature_mask=item.mask, n_samples=budget
        )
        made = attribution.last_estimate
        return made.values[0, :, 0], int(made.evaluations[0])

    return explain


def masked(item: Item, present: npt.NDArray[np.bool_]) -> torch.Tensor:
    """Return the input with absent players at the baseline, for each coalition, (P, M)."""
    where = torch.from_numpy(present)[:, item.mask[0].flatten()]
    spread = where.reshape(-1, *item.mask.shape[1:])
    return torch.where(spread, item.inputs, item.baseline)


def log_probabilities(
    model: nn.Module, item: Item, present: npt.NDArray[np.bool_], target: int
) -> FloatArray:
    """Return the log-probability of a class for each coalition, (P,)."""
    with torch.no_grad():
        parts = [
            torch.log_softmax(model(masked(item, some)).double(), dim=1)[:, target]
            for some in np.array_split(present, -(-len(present) // 256))
        ]
    return torch.cat(parts).numpy()


def log_odds(
    model: nn.Module, item: Item, present: npt.NDArray[np.bool_], target: int
) -> FloatArray:
    """Return the log-odds of a class for each coalition, (P,)."""
    logs = log_probabilities(model, item, present, target)
    odds: FloatArray = logs - np.log(np.maximum(-np.expm1(logs), 1e-15))
    return odds


def _partition(model: nn.Module, item: Item, budget: int, seed: int) -> tuple[FloatArray, int]:
    """Owen values on halves of the line, or of the grid along its longer side, by shap."""
    del seed
    everyone = np.ones((1, item.n_players), dtype=bool)
    with torch.no_grad():
        target = int(model(masked(item, everyone)).argmax())
    spent = [0]

    class Masker(shap.maskers.Masker):  # type: ignore[misc] # shap is untyped
        """Hands the mask itself on to the model."""

        shape = (1, item.n_players)
        clustering = halving_tree(item.shape)
        immutable_outputs = True

        def __call__(self, mask: Any, *_: Any) -> Any:
            return (np.broadcast_to(mask, (1, item.n_players)).astype(float),)

    def values(masks: FloatArray) -> FloatArray:
        spent[0] += len(masks)
        return log_probabilities(model, item, masks > 0.5, target)

    explainer = shap.PartitionExplainer(values, Masker())
    made = explainer(everyone.astype(float), max_evals=budget, silent=True)
    return np.asarray(made.values[0]), spent[0]


def _at_random(model: nn.Module, item: Item, budget: int, seed: int) -> tuple[FloatArray, int]:
    """Say nothing."""
    del model, budget
    return np.random.default_rng(seed).random(item.n_players), 0
