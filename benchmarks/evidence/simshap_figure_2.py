"""Figure 2 and Table 4 of SimSHAP: errors against evaluations on three tables, and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from coalition_games import FloatArray
from scipy.stats import sem
from scores import paired_ratio

import shap_ext
from shap_ext.explainers.amortized_explainer import AmortizedExplainer

from .items import Comparison, Item, Outcome, Setting
from .simshap_tables import FILES, TITLES, Explained, explained

mpl.use("Agg")
import matplotlib.pyplot as plt

_PER_PLAYER = (4, 8, 16, 32)
_ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "KernelSHAP": ("leastsquares", {"paired": False}),
    "KernelSHAP, paired": ("leastsquares", {"paired": True}),
    "permutations": ("randomorder", {"antithetic": False}),
    "permutations, antithetic": ("randomorder", {"antithetic": True}),
}
_PAIRED = {"KernelSHAP": "KernelSHAP, paired", "permutations": "permutations, antithetic"}
_SIM, _FAST = "SimSHAP", "FastSHAP"

_INFERENCE = {"census": (0.002, 0.004), "news": (0.001, 0.004), "bankruptcy": (0.001, 0.005)}
_TRAINING = {"census": (7.466, 11.098), "news": (7.603, 16.223), "bankruptcy": (1.206, 2.005)}
_KERNEL = {"census": 43.560, "news": 67.002, "bankruptcy": 101.053}
"""Table 4: of SimSHAP and FastSHAP, in seconds and minutes, and of KernelSHAP-S."""


@dataclass(frozen=True)
class _Run:
    """Errors, (R,), and times of the processor.

    Attributes
    ----------
    errors : dict of (str, int) to arrays
        (estimator, evaluations a player) to l1 distances; networks have 0 evaluations.
    training, inference : dict of str to float
        Seconds of training, and microseconds a row, of the networks.
    """

    explained: Explained
    settings: Mapping[str, str]
    errors: Mapping[tuple[str, int], FloatArray]
    training: Mapping[str, float]
    inference: Mapping[str, float]


@cache
def _run(name: str, setting: Setting) -> _Run:
    quick = setting.is_quick
    of_table = explained(
        name, setting.data, n_training=200 if quick else 2000, n_rows=4 if quick else 20,
        epochs=3 if quick else 20, n_evaluations=2000 if quick else 0,
    )  # fmt: skip
    errors: dict[tuple[str, int], FloatArray] = {}
    for estimator, (algorithm, options) in _ESTIMATORS.items():
        for per_player in _PER_PLAYER:
            explainer = of_table.explainer(algorithm, **options)
            budget = per_player * of_table.n_players + 2
            found = explainer(of_table.rows, max_evals=budget, silent=True).values
            errors[estimator, per_player] = of_table.l1(found)
    training, inference = {}, {}
    n_samples, epochs = (8, 3) if quick else (32, 30)
    for network, (kind, options) in _networks().items():
        started = time.process_time()
        explainer = kind(
            of_table.surrogate, of_table.surrogate.reference, training_data=of_table.training,
            evaluations=n_samples, epochs=epochs, learning_rate=3e-3,
            student_options={"widths": (128,) * 3}, seed=0, **options,
        ).fit(silent=True)  # fmt: skip
        training[network] = time.process_time() - started
        errors[network, 0] = of_table.l1(explainer(of_table.rows, silent=True).values)
        inference[network] = _pace(explainer, of_table)
    settings = {
        **of_table.settings, "samples a row and epoch": str(n_samples), "epochs": str(epochs),
    }  # fmt: skip
    return _Run(of_table, settings, errors, training, inference)


def _networks() -> dict[str, tuple[type[AmortizedExplainer], dict[str, Any]]]:
    as_printed = {"labels": "simsemivalue", "efficient": False}
    return {
        _SIM: (shap_ext.SimShapExplainer, as_printed),
        _FAST: (shap_ext.FastShapExplainer, {}),
    }


def _pace(explainer: AmortizedExplainer, of_table: Explained) -> float:
    """Return the microseconds of the processor for a row; FastSHAP's with the correction."""
    many = np.tile(of_table.rows, (10, 1))
    times = []
    for _ in range(5):
        started = time.process_time()
        explainer(many, silent=True)
        times.append(time.process_time() - started)
    return float(np.median(times)) / len(many) * 1e6


def _figure_2(name: str, setting: Setting) -> Outcome:
    """Compare pairs with single draws, and SimSHAP with FastSHAP."""
    run = _run(name, setting)
    comparisons = []
    for single, paired in _PAIRED.items():
        for per_player in _PER_PLAYER:
            ratio, error = _ratio(run.errors[single, per_player], run.errors[paired, per_player])
            quantity = f"l1 of {single} over that of {paired}, N = {per_player}"
            comparisons.append(Comparison(quantity, None, ratio, leads="above", error=error))
    ratio, error = _ratio(run.errors[_SIM, 0], run.errors[_FAST, 0])
    comparable = "l1 of SimSHAP over that of FastSHAP (the paper: comparable)"
    comparisons.append(Comparison(comparable, 1.0, ratio, None, error=error))
    table = {"": [f"N = {n}" for n in _PER_PLAYER]}
    for estimator in _ESTIMATORS:
        table[estimator] = [f"{run.errors[estimator, n].mean():.3f}" for n in _PER_PLAYER]
    for network in (_SIM, _FAST):
        table[network] = [f"{run.errors[network, 0].mean():.3f}"] * len(_PER_PLAYER)
    note = (
        "Mean l1 distance to the values of the surrogate. N: evaluations for each feature; the "
        "networks explain in one pass. Theirs were trained for 1,000 epochs on all rows."
    )
    return Outcome(comparisons, run.settings, table, (note,), partial(_draw, name, run))


def _ratio(others: FloatArray, own: FloatArray) -> tuple[float, float]:
    return paired_ratio(others[None], own[None])


def _table_4(setting: Setting) -> Outcome:
    """Compare the times of the processor, as ratios: theirs are of a graphics card."""
    comparisons, table = [], {"": ["training, s", "inference, µs a row"]}
    for name, title in TITLES.items():
        run = _run(name, setting)
        pace = run.inference
        for quantity, theirs, ours in (
            ("inference of SimSHAP over that of FastSHAP", _INFERENCE[name], pace),
            ("training of SimSHAP over that of FastSHAP", _TRAINING[name], run.training),
        ):
            published = theirs[0] / theirs[1]
            comparisons.append(
                Comparison(f"{title}: {quantity}", published, ours[_SIM] / ours[_FAST])
            )
        kernel = run.explained.seconds_of_values * 1e6 / pace[_SIM]
        comparisons.append(
            Comparison(
                f"{title}: KernelSHAP-S to convergence over SimSHAP",
                _KERNEL[name] / _INFERENCE[name][0],
                kernel,
            )
        )
        for network in (_SIM, _FAST):
            table[f"{title}, {network}"] = [f"{run.training[network]:.1f}", f"{pace[network]:.1f}"]
    notes = (
        "Times of the processor, one thread; both networks were trained for equally many epochs. "
        "FastSHAP's inference includes the correction of the sums. The values of Census come from "
        "all coalitions, the others from least squares.",
    )
    return Outcome(comparisons, {"data": "three tables, as for Figure 2"}, table, notes)


def _draw(name: str, run: _Run, path: Path) -> None:
    figure, panel = plt.subplots(figsize=(6.5, 4.3), layout="constrained")
    for estimator in _ESTIMATORS:
        errors = [run.errors[estimator, n] for n in _PER_PLAYER]
        means, spread = [one.mean() for one in errors], [sem(one) for one in errors]
        panel.errorbar(_PER_PLAYER, means, spread, marker="o", capsize=2, label=estimator)
    for network, style in ((_SIM, "-"), (_FAST, "--")):
        panel.axhline(run.errors[network, 0].mean(), color="black", linestyle=style, label=network)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("evaluations for each feature")
    panel.set_ylabel("mean l1 distance")
    panel.set_title(TITLES[name])
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _item(name: str) -> Item:
    run: Callable[[Setting], Outcome] = partial(_figure_2, name)
    title = f"Errors against evaluations on {TITLES[name]}"
    return Item(f"simshap-2-{name}", title, "SimSHAP (2023), Figure 2", (FILES[name],), 3, run)


ITEMS = (
    *(_item(name) for name in FILES),
    Item(
        "simshap-4", "Times of training and of inference", "SimSHAP (2023), Table 4",
        tuple(FILES.values()), 8, _table_4,
    ),
)  # fmt: skip
