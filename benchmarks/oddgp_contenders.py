"""The contenders of the benchmark of `oddgp`, for any model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from captum.attr import KernelShap, ShapleyValueSampling
from coalition_games import FloatArray
from contenders import Estimator, by_our_explainer, by_shap_kernel, by_shap_permutation
from explained_models import Clock, ExplainedModel
from peers import Answer
from shapiq_contenders import (
    APPROXIMATORS,
    Approximator,
    ShapiqWorker,
    UnusableBudgetError,
)

ODDGP = "oddgp"


@dataclass(frozen=True)
class Rival:
    """An estimator that takes part.

    Attributes
    ----------
    name : str
        What tables call it.
    estimate : callable
        Budget and seed to an `Answer` for all rows, or for the first few.
    is_slow : bool
        Whether it takes part with one seed only.
    """

    name: str
    estimate: Estimator
    is_slow: bool = False


def rivals(
    explained: ExplainedModel, variants: Sequence[dict[str, Any]], worker: ShapiqWorker | None
) -> list[Rival]:
    """Return all that can explain the model, `oddgp` first.

    Parameters
    ----------
    explained : ExplainedModel
        The model and its rows.
    variants : sequence of dict
        Options of `oddgp` other than the defaults, each a rival of its own.
    worker : ShapiqWorker, optional
        The process that runs approximators of shapiq; without it, they take no part.
    """
    found = [Rival(ODDGP, partial(by_our_explainer, explained, "oddgp", {}))]
    for options in variants:
        name = " ".join([ODDGP, *(f"{key}={value}" for key, value in options.items())])
        found.append(Rival(name, partial(by_our_explainer, explained, "oddgp", options)))
    found += _ours(explained)
    game = explained.evaluated()
    found.append(Rival("shap permutation", partial(by_shap_permutation, game)))
    found.append(Rival("shap kernel, l1_reg=False", partial(by_shap_kernel, game)))
    if explained.is_network:
        for name, attribute in (
            ("captum ShapleyValueSampling", _captum_sampling),
            ("captum KernelShap", _captum_kernel),
        ):
            found.append(Rival(name, partial(_by_captum, explained, attribute)))
    if worker is not None:
        for approximator in APPROXIMATORS:
            estimate = partial(_by_shapiq, explained, worker, approximator)
            is_slow = approximator.most_rows is not None
            found.append(Rival(approximator.name, estimate, is_slow))
    return found


def _ours(explained: ExplainedModel) -> list[Rival]:
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "SHEAR (ours)": ("shear", {}),
        "leastsquares, kernel (ours)": ("leastsquares", {}),
        "leastsquares, leverage (ours)": ("leastsquares", {"sizes": "leverage"}),
        "randomorder (ours)": ("randomorder", {}),
    }
    return [
        Rival(name, partial(by_our_explainer, explained, algorithm, of_it))
        for name, (algorithm, of_it) in options.items()
    ]


def _by_captum(
    explained: ExplainedModel,
    attribute: Callable[[torch.nn.Module, int, int, dict[str, Any]], torch.Tensor],
    budget: int,
    seed: int,
) -> Answer:
    """Explain all rows by captum, whose counts know no end points."""
    torch.manual_seed(seed)  # it draws from the global generators
    np.random.seed(seed)  # noqa: NPY002
    clock = Clock()
    counted = clock.timed(explained)
    inputs = {
        "inputs": torch.as_tensor(explained.rows),
        "baselines": torch.as_tensor(explained.reference),
        "feature_mask": explained.feature_mask,
    }
    found = attribute(counted.model, explained.n_players, budget, inputs)
    attributions: FloatArray = found.numpy().astype(np.float64)
    # All columns of a player have its value.
    first = [int(np.argmax(explained.player_of_column == i)) for i in range(explained.n_players)]
    return Answer(attributions[:, first], clock.n_rows_run / len(explained.rows))


def _captum_sampling(
    model: torch.nn.Module, n_players: int, budget: int, inputs: dict[str, Any]
) -> torch.Tensor:
    attributions: torch.Tensor = ShapleyValueSampling(model).attribute(
        **inputs,
        n_samples=(budget - 2) // n_players,
        perturbations_per_eval=n_players,  # it puts no more into a batch
    )
    return attributions


def _captum_kernel(
    model: torch.nn.Module, n_players: int, budget: int, inputs: dict[str, Any]
) -> torch.Tensor:
    warnings.filterwarnings("ignore", message="You are providing multiple inputs for Lime")
    attributions: torch.Tensor = KernelShap(model).attribute(
        **inputs, n_samples=budget, perturbations_per_eval=budget
    )
    return attributions


def _by_shapiq(
    explained: ExplainedModel,
    worker: ShapiqWorker,
    approximator: Approximator,
    budget: int,
    seed: int,
) -> Answer:
    """Explain row by row, each with draws of its own."""
    n_players, game = explained.n_players, explained.evaluated()
    most = approximator.most_per_player
    if most is not None and budget - 2 > most * n_players:
        raise UnusableBudgetError(f"beyond {most} evaluations a player it takes too long")
    n_rows = len(explained.rows[: approximator.most_rows])

    def values_of(row: int) -> Callable[[Any], FloatArray]:
        return lambda coalitions: game.of_row(row, coalitions)

    found = [
        worker.explain(approximator, values_of(row), n_players, budget, seed * 10_000 + row)
        for row in range(n_rows)
    ]
    values = np.array([values for values, _, _ in found])
    return Answer(values, float(np.mean([n_asked for _, n_asked, _ in found])))
