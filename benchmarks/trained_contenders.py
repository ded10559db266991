"""Networks that explain: which are trained, and what their training costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from amortized_cases import AmortizedCase
from coalition_games import FloatArray, ModelGame
from fastshap_recipe import LEARNING_RATES, Recipe, table_network, train_recipe
from torch import Tensor, nn

import shap_ext
from shap_ext.explainers.amortized_explainer import AmortizedExplainer
from shapley_adapters.amortized import amortized as of_trainings
from shapley_adapters.amortized import training as of_networks
from shapley_adapters.amortized.networks import build

FASTSHAP = "FastSHAP"
RECIPE = "FastSHAP, authors' recipe"
TENTH = "SimSHAP, oddgp labels, 1/10"
MIXED = "SimSHAP, oddgp labels, mixed rows"

_MANY = 4096

_DEFAULT_EPOCHS = 100
"""Of our trainings; those with labels evaluate as much in 30."""


@dataclass(frozen=True)
class Explainer:
    """A trained network.

    Attributes
    ----------
    explain : callable
        Attributions, (R, M), of the test rows.
    stream : callable
        Attributions of all training rows at once, by the network alone.
    evaluations, validation_evaluations : int
        All evaluations of the training, and those of them that validation took.
    seconds, validation_seconds : float
        Time of the processor for the training, and for validation in it.
    """

    explain: Callable[[], FloatArray]
    stream: Callable[[], object]
    evaluations: int
    validation_evaluations: int
    seconds: float
    validation_seconds: float


Trainer = Callable[[AmortizedCase, int], Explainer]
"""A case and a seed to a trained network."""


def contenders(amortized: AmortizedCase, epochs: int) -> dict[str, Trainer]:
    """Return the contenders by their names; those without a share spend the same.

    On tables, all are dense layers.
    """
    sim, fast = shap_ext.SimShapExplainer, shap_ext.FastShapExplainer
    per_epoch = _evaluations_per_epoch(amortized, epochs)
    in_all = per_epoch * epochs
    paper = {"labels": "simsemivalue", "evaluations": per_epoch}
    tenth = {"evaluations": in_all // 10}
    wide = {"student_options": {"widths": (512,) * 3}}
    ours: dict[str, tuple[type[AmortizedExplainer], dict[str, Any]]] = {
        FASTSHAP: (fast, {"evaluations": per_epoch}),
        "SimSHAP as in the paper": (sim, paper),
        "SimSHAP, control variate": (sim, paper | {"labels": "controlled"}),
        "SimSHAP, oddgp labels": (sim, {"evaluations": in_all}),
        MIXED: (sim, tenth | {"n_mixed_rows": 8 * len(amortized.rows)}),
        TENTH: (sim, tenth),
        f"{TENTH}, {_DEFAULT_EPOCHS} epochs": (sim, tenth | {"epochs": _DEFAULT_EPOCHS}),
        "SimSHAP, all defaults": (sim, {"epochs": _DEFAULT_EPOCHS}),
        "SimSHAP, least-squares labels, 1/10": (sim, tenth | {"labels": "leastsquares"}),
        "labels 1/10, learning rate 3e-4": (sim, tenth | {"learning_rate": 3e-4}),
        "paper, not in pairs": (sim, paper | {"paired": False}),
        "paper, 8 coalitions a row and epoch": (sim, paper | {"evaluations": 8}),
        "paper, 256 rows a step": (sim, paper | {"rows_per_step": 256}),
        "paper, learning rate 3e-4": (sim, paper | {"learning_rate": 3e-4}),
    }
    if not amortized.is_image:
        ours["labels 1/10, three layers of 512"] = sim, tenth | wide
    n_evaluations = len(amortized.rows) * in_all
    theirs: dict[str, Trainer] = {
        f"{RECIPE}, {rate:g}": partial(_recipe, learning_rate=rate, n_evaluations=n_evaluations)
        for rate in LEARNING_RATES
    }
    shared = {"epochs": epochs, "student": "mlp"} | amortized.options
    made = {
        name: partial(_trained, kind=kind, options=shared | options)
        for name, (kind, options) in ours.items()
    }
    return theirs | made


def _evaluations_per_epoch(amortized: AmortizedCase, epochs: int) -> int:
    """Return 32, or as many as make a tenth of all enough for least squares."""
    least = 2 * amortized.case.explained.n_players + 4
    return max(32, -(-10 * least // epochs))


def _trained(
    amortized: AmortizedCase,
    seed: int,
    *,
    kind: type[AmortizedExplainer],
    options: dict[str, Any],
) -> Explainer:
    explained = amortized.case.explained
    clock = _Clock()
    started = time.process_time()
    with _validation_timed(clock):
        explainer = kind(
            explained.model,
            explained.reference,
            feature_names=explained.column_names,
            groups=explained.groups,
            training_data=amortized.rows,
            seed=seed,
            **options,
        ).fit(silent=True)
    seconds = time.process_time() - started
    trained = explainer.trained
    return Explainer(
        lambda: explainer(explained.rows, silent=True).values,
        lambda: explainer.stream(amortized.rows[:_MANY], silent=True),
        trained.evaluations,
        trained.validation_evaluations,
        seconds,
        clock.seconds,
    )


@dataclass
class _Clock:
    """Time of the processor that validation takes."""

    seconds: float = 0.0
    started: float = field(default_factory=time.process_time)

    def start(self) -> None:
        self.started = time.process_time()

    def stop(self) -> None:
        self.seconds += time.process_time() - self.started

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same function, whose time is added."""

        def run(*args: Any, **options: Any) -> Any:
            self.start()
            try:
                return function(*args, **options)
            finally:
                self.stop()

        return run


@contextmanager
def _validation_timed(clock: _Clock) -> Iterator[None]:
    """Time the values of held-out rows, and what is learned from them and from shifted rows."""
    parts = (
        (of_networks, "held_out_values"),
        (of_trainings, "stated_errors"),
        (of_networks.Objective, "validate"),
        (of_trainings, "_shifted_rows"),
    )
    with ExitStack() as stack:
        for module, name in parts:
            timed = clock.timed(getattr(module, name))
            stack.enter_context(patch.object(module, name, timed))
        yield


def _recipe(
    amortized: AmortizedCase, seed: int, *, learning_rate: float, n_evaluations: int
) -> Explainer:
    explained = amortized.case.explained
    rows, reference = amortized.rows, explained.reference
    game = ModelGame(explained.model.predict, rows, reference, explained.player_of_column)
    read = _Standardised(amortized)
    recipe = train_recipe(
        game, read(rows), read.network,
        learning_rate=learning_rate, n_evaluations=n_evaluations, seed=seed,
    )  # fmt: skip
    return Explainer(
        lambda: _explained(recipe, amortized, read),
        lambda: recipe.network(read(rows[:_MANY])),
        recipe.evaluations,
        recipe.validation_evaluations,
        recipe.seconds,
        recipe.validation_seconds,
    )


def _explained(recipe: Recipe, amortized: AmortizedCase, read: _Standardised) -> FloatArray:
    explained = amortized.case.explained
    predict = explained.model.predict
    rises = predict(explained.rows) - predict(explained.reference)
    return recipe.explain(read(explained.rows), rises.reshape(-1))


class _Standardised:
    """What the authors' network sees: columns of mean 0 and spread 1, images with one of each."""

    def __init__(self, amortized: AmortizedCase) -> None:
        self.amortized = amortized
        inputs = self._features(amortized.rows)
        axes = None if amortized.is_image else 0
        self.centre, self.spread = inputs.mean(axis=axes), inputs.std(axis=axes)
        self.spread = np.where(self.spread > 0, self.spread, 1.0)
        self.shape = inputs.shape[1:]

    def __call__(self, rows: Any) -> Tensor:
        scaled = (self._features(rows) - self.centre) / self.spread
        return torch.as_tensor(scaled, dtype=torch.float32)

    def network(self) -> nn.Module:
        """Return a new network: the authors' own for tables, for images the U-Net of ours."""
        n_players, options = self.amortized.case.explained.n_players, self.amortized.options
        if self.amortized.is_image:
            grid = options["student_options"]
            return build(options["student"], self.shape, n_players, 1, grid)
        return table_network(self.shape[0], n_players)

    def _features(self, rows: Any) -> FloatArray:
        features = self.amortized.options.get("features", np.asarray)
        return np.asarray(features(rows), dtype=np.float64)
