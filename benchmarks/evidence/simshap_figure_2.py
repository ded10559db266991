"""Figure 2 and Table 4 of SimSHAP: errors against evaluations on three tables, and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from games import FloatArray

import shap_ext
from shap_ext.explainers.amortized_explainer import AmortizedExplainer

from .items import Claim, Comparison, Item, Outcome, Setting
from .pictures import picture
from .simshap_tables import FILES, TITLES, Explained, explained

_PER_PLAYER = (4, 8, 16, 32)
_ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "KernelSHAP": ("leastsquares", {"paired": False}),
    "KernelSHAP, paired": ("leastsquares", {"paired": True}),
    "permutations": ("randomorder", {"antithetic": False}),
    "permutations, antithetic": ("randomorder", {"antithetic": True}),
}
_PAIRED = {"KernelSHAP": "KernelSHAP, paired", "permutations": "permutations, antithetic"}
_SIM, _FAST, _MEAN = "SimSHAP", "FastSHAP", "the mean of the rows"

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
        name, setting, n_training=200 if quick else 800, n_rows=4 if quick else 20,
        epochs=3 if quick else 12, n_evaluations=2000 if quick else 10_000,
    )  # fmt: skip
    errors: dict[tuple[str, int], FloatArray] = {}
    for estimator, (algorithm, options) in _ESTIMATORS.items():
        for per_player in _PER_PLAYER:
            explainer = of_table.explainer(algorithm, **options)
            budget = per_player * of_table.n_players + 2
            found = explainer(of_table.rows, max_evals=budget, silent=True).values
            errors[estimator, per_player] = of_table.l1(found)
            if estimator in _PAIRED:
                again = of_table.explainer(algorithm, seed=1, **options)
                found = again(of_table.rows, max_evals=budget, silent=True).values
                errors[f"{estimator}, again", per_player] = of_table.l1(found)
    same_for_all = np.broadcast_to(of_table.exact.mean(axis=0), of_table.exact.shape)
    errors[_MEAN, 0] = of_table.l1(same_for_all)
    training, inference = {}, {}
    n_samples, epochs = (8, 3) if quick else (16, 20)
    for network, (kind, options) in _networks().items():
        started = time.process_time()
        explainer = kind(
            of_table.surrogate, of_table.surrogate.reference, training_data=of_table.training,
            evaluations=n_samples, epochs=epochs, learning_rate=3e-3,
            student="mlp", student_options={"widths": (128,) * 3}, seed=setting.seed, **options,
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
    for claim, (single, paired) in enumerate(_PAIRED.items()):
        for per_player in _PER_PLAYER:
            alone, pairs, again = (
                run.errors[one, per_player].mean() for one in (single, paired, f"{single}, again")
            )
            quantity = f"l1 of {single} over that of {paired}, N = {per_player}"
            ratios = float(alone / pairs), float(alone / again)
            comparisons.append(Comparison(quantity, None, *ratios, leads="above", claim=claim))
    sim, fast, mean = (run.errors[one, 0].mean() for one in (_SIM, _FAST, _MEAN))
    ratios = float(sim / fast), float(mean / fast)
    comparisons.append(
        Comparison("l1 of SimSHAP over that of FastSHAP", 1.0, *ratios, None, claim=2)
    )
    note = (
        "Mean l1 distance to the values of the surrogate. N: evaluations for each feature; the "
        "networks explain in one pass. Theirs were trained for 1,000 epochs on all rows."
    )
    return Outcome(comparisons, run.settings, (note,), partial(_draw, name, run))


def _table_4(setting: Setting) -> Outcome:
    """Compare the times of the processor, as ratios: theirs are of a graphics card."""
    comparisons = []
    for name, title in TITLES.items():
        run = _run(name, setting)
        pace = run.inference
        for quantity, theirs, ours in (
            ("inference of SimSHAP over that of FastSHAP", _INFERENCE[name], pace),
            ("training of SimSHAP over that of FastSHAP", _TRAINING[name], run.training),
        ):
            published = theirs[0] / theirs[1]
            ratio = ours[_SIM] / ours[_FAST]
            claim = int(ours is run.training)
            comparisons.append(
                Comparison(f"{title}: {quantity}", published, ratio, 1.0, claim=claim)
            )
        kernel = run.explained.seconds_of_values * 1e6
        comparisons.append(
            Comparison(
                f"{title}: KernelSHAP-S to convergence over SimSHAP",
                _KERNEL[name] / _INFERENCE[name][0],
                kernel / pace[_SIM],
                kernel / pace[_FAST],
            )
        )
    notes = (
        "Times of the processor, one thread; both networks were trained for equally many epochs. "
        "FastSHAP's inference includes the correction of the sums. The values of Census come from "
        "all coalitions, the others from least squares.",
    )
    return Outcome(comparisons, {"data": "three tables, as for Figure 2"}, notes)


def _draw(name: str, run: _Run, path: Path) -> None:
    names = "evaluations for each feature", "mean l1 distance"
    with picture(path, (6.5, 4.3), *names, dpi=90, legend=8, title=TITLES[name]) as panel:
        for estimator in _ESTIMATORS:
            means = [run.errors[estimator, n].mean() for n in _PER_PLAYER]
            panel.plot(_PER_PLAYER, means, marker="o", label=estimator)
        for network, style in ((_SIM, "-"), (_FAST, "--")):
            mean = run.errors[network, 0].mean()
            panel.axhline(mean, color="black", linestyle=style, label=network)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")


_PAIRS = "single draws again, with another seed, in the place of pairs"
_CLAIMS_2 = (
    Claim("pair sampling proves to be more effective in two KernelSHAP estimations",
          "Section 4.1.2", _PAIRS),
    Claim("antithetical sampling is also effective than Monte Carlo permutation method",
          "Section 4.1.2", _PAIRS),
    Claim("SimSHAP achieves comparable accuracy to FastSHAP across different datasets",
          "Section 4.1.2", "the mean values of the rows for each row, in SimSHAP's place"),
)  # fmt: skip


def _item(name: str) -> Item:
    run: Callable[[Setting], Outcome] = partial(_figure_2, name)
    title = f"Errors against evaluations on {TITLES[name]}"
    return Item(
        f"simshap-2-{name}", title, "SimSHAP, Figure 2", _CLAIMS_2, (FILES[name],), 1.5, run
    )


_RIVAL = "FastSHAP in SimSHAP's place"

ITEMS = (
    *(_item(name) for name in FILES),
    Item(
        "simshap-4", "Times of training and of inference", "SimSHAP, Table 4",
        (Claim("SimSHAP outperforms all the baseline methods in terms of inference speed",
               "Section 4.2.4", _RIVAL),
         Claim("SimSHAP requires less training time (but more epochs) than FastSHAP in order to "
               "reach FastSHAP’s accuracy", "Section 4.2.4", _RIVAL)),
        tuple(FILES.values()), 4, _table_4,
    ),
)  # fmt: skip
