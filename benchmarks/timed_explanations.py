"""The explanations whose overhead is measured: ours, shap's and captum's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import shap
import torch
from adult import AdultBenchmark
from captum.attr import KernelShap, ShapleyValueSampling
from coalition_games import FloatArray

import captum_ext
import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms
from shapley_adapters import Estimate


@dataclass(frozen=True)
class Work:
    """What is to be explained.

    Attributes
    ----------
    benchmark : AdultBenchmark
        The players, the reference, and all rows.
    model : torch.nn.Module
        The model to call, which may count.
    n_rows : int
        How many of the rows.
    n_evaluations : int
        Evaluations for each row, the two end points apart.
    """

    benchmark: AdultBenchmark
    model: torch.nn.Module
    n_rows: int
    n_evaluations: int

    @property
    def rows(self) -> npt.NDArray[np.float32]:
        """The rows to explain."""
        return self.benchmark.rows[: self.n_rows]


@dataclass(frozen=True)
class Explanation:
    """A call that explains all rows.

    Attributes
    ----------
    run : callable
        The call.
    last_estimate : callable, optional
        What ours says it spent.
    """

    run: Callable[[], Any]
    last_estimate: Callable[[], Estimate] | None = None


@dataclass(frozen=True)
class Kind:
    """How to make an explanation.

    Attributes
    ----------
    make : callable
        Work to `Explanation`.
    most_rows : int
        How many rows to explain at most, where all would take too long.
    """

    make: Callable[[Work], Explanation]
    most_rows: int = 10**9


class CountingModel(torch.nn.Module):
    """A model that counts the rows it is run on."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.n_rows_run = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the model."""
        self.n_rows_run += len(x)
        output: torch.Tensor = self.model(x)
        return output


def spent(kind: Kind, work: Work) -> tuple[float, float]:
    """Return the evaluations and the backward passes that an explanation makes for each row."""
    counting = CountingModel(work.model)
    explanation = kind.make(Work(work.benchmark, counting, work.n_rows, work.n_evaluations))
    explanation.run()
    if explanation.last_estimate is None:
        return counting.n_rows_run / work.n_rows, 0.0
    estimate = explanation.last_estimate()  # forward passes for derivatives are not evaluations
    return float(estimate.evaluations.mean()), float(estimate.backward_passes.mean())


def _shap_ext(algorithm: str, work: Work, **options: Any) -> Explanation:
    explainer = shap.Explainer(
        work.model,
        work.benchmark.reference,
        algorithm=algorithm,
        seed=0,
        feature_names=work.benchmark.column_names,
        groups=work.benchmark.groups,
        **options,
    )
    run = partial(explainer, work.rows, max_evals=work.n_evaluations + 2, silent=True)
    return Explanation(run, lambda: explainer.last_estimate)


def _captum_ext(method: str, work: Work, **options: Any) -> Explanation:
    attribution = getattr(captum_ext, method)(work.model, seed=0, **options)
    run = partial(attribution.attribute, n_samples=work.n_evaluations + 2, **_captum_inputs(work))
    return Explanation(run, lambda: attribution.last_estimate)


def _shap_permutation(work: Work) -> Explanation:
    table, background = _named_rows(work)
    masker = shap.maskers.Independent(background)
    explainer = shap.PermutationExplainer(_function_of_named_rows(work), masker, seed=0)
    n_permutations = round(work.n_evaluations / (2 * work.benchmark.n_players))
    max_evals = n_permutations * (2 * work.benchmark.n_players + 1)
    return Explanation(partial(explainer, table, max_evals=max_evals, silent=True))


def _shap_kernel(work: Work) -> Explanation:
    table, background = _named_rows(work)
    explainer = shap.KernelExplainer(_function_of_named_rows(work), background)
    explain = partial(explainer.shap_values, nsamples=work.n_evaluations, l1_reg=False, silent=True)
    return Explanation(partial(explain, table))


def _named_rows(work: Work) -> tuple[FloatArray, FloatArray]:
    """Return a table with a column for each player, and its background.

    shap's explainers have no groups of columns. They get the number of the row, counted from 1, as
    the value of each of its players; 0 says absent.
    """
    n_players = work.benchmark.n_players
    numbers = np.arange(1.0, work.n_rows + 1)[:, None]
    return np.repeat(numbers, n_players, axis=1), np.zeros((1, n_players))


def _function_of_named_rows(work: Work) -> Callable[[FloatArray], FloatArray]:
    benchmark = work.benchmark

    def function(table: FloatArray) -> FloatArray:
        row_of = np.maximum(table.max(axis=1).astype(np.intp) - 1, 0)
        filled = benchmark.rows[row_of]
        absent = np.take(table == 0, benchmark.player_of_column, axis=1)
        np.copyto(filled, benchmark.reference, where=absent)
        with torch.no_grad():
            output: npt.NDArray[np.float32] = work.model(torch.from_numpy(filled)).numpy()
        return output.astype(np.float64)

    return function


def _captum_sampling(work: Work) -> Explanation:
    explain = ShapleyValueSampling(work.model).attribute
    return Explanation(partial(explain, **_captum_inputs(work), **_sampling_options(work)))


def _captum_sampling_by_row(work: Work) -> Explanation:
    method = ShapleyValueSampling(work.model)
    inputs = _captum_inputs(work)
    rows = inputs.pop("inputs")
    explain = partial(method.attribute, **inputs, **_sampling_options(work))
    return Explanation(lambda: [explain(row[None]) for row in rows])


def _captum_kernel(work: Work) -> Explanation:
    warnings.filterwarnings("ignore", message="You are providing multiple inputs for Lime")
    explain = partial(KernelShap(work.model).attribute, **_captum_inputs(work))
    n_samples = work.n_evaluations + 2
    return Explanation(partial(explain, n_samples=n_samples, perturbations_per_eval=n_samples))


def _sampling_options(work: Work) -> dict[str, int]:
    n_players = work.benchmark.n_players
    return {
        "n_samples": work.n_evaluations // n_players,
        "perturbations_per_eval": n_players,  # it puts no more into a batch
    }


def _captum_inputs(work: Work) -> dict[str, Any]:
    return {
        "inputs": torch.as_tensor(work.rows),
        "baselines": torch.as_tensor(work.benchmark.reference),
        "feature_mask": work.benchmark.feature_mask,
    }


KINDS = {
    "shap_ext shear": Kind(partial(_shap_ext, "shear")),
    "shap_ext shear, random cooperators": Kind(partial(_shap_ext, "shear", cooperators="random")),
    "shap_ext randomorder": Kind(partial(_shap_ext, "randomorder")),
    "shap_ext leastsquares": Kind(partial(_shap_ext, "leastsquares")),
    "captum_ext Shear": Kind(partial(_captum_ext, "Shear")),
    "captum_ext Shear, random cooperators": Kind(
        partial(_captum_ext, "Shear", cooperators="random")
    ),
    "captum_ext RandomOrder": Kind(partial(_captum_ext, "RandomOrder")),
    "captum_ext LeastSquares": Kind(partial(_captum_ext, "LeastSquares")),
    "shap permutation": Kind(_shap_permutation),
    "shap kernel": Kind(_shap_kernel),
    "captum ShapleyValueSampling": Kind(_captum_sampling),
    "captum ShapleyValueSampling, row loop": Kind(_captum_sampling_by_row, most_rows=20),
    "captum KernelShap": Kind(_captum_kernel, most_rows=5),
}
"""All contenders of the overhead benchmark, by name."""
