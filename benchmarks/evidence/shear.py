"""Figures 2 to 5 of the SHEAR paper (Wang et al., ICML 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import scipy.special
import scipy.stats
from coalition_games import FloatArray, TabulatedGame
from metrics import absolute_error, faithfulness, monotonicity, ranking_accuracy
from scores import paired_ratio, standard_error

from .items import Comparison, Item, Outcome, Setting
from .shear_baselines import (
    Estimate,
    kernel_shap,
    kernel_shap_welford,
    permutations,
    shear,
    shear_random_cooperators,
    shear_unpaired,
)
from .shear_tables import BANK, CENSUS, ExplainedTable, TableFile, explained_table

mpl.use("Agg")
import matplotlib.pyplot as plt

_PER_PLAYER = (8, 16, 32, 64)
_SHEAR, _AS_RELEASED, _ANTITHETIC = "SHEAR", "APS, authors' indices", "APS, all pairs"
_RIVALS = ("KS-WF", "PS", _AS_RELEASED)
_ERROR, _RANKING = "absolute error", "accuracy of the ranking"

_SETS = 40
"""Number of random sets of cooperators for each row and feature."""

PUBLISHED = {
    "census": {
        _ERROR: {
            _SHEAR: (0.019, 0.013, 0.009, 0.006),
            "KS-WF": (0.185, 0.128, 0.089, 0.063),
            "PS": (0.111, 0.078, 0.056, 0.039),
            _AS_RELEASED: (0.057, 0.030, 0.016, 0.009),
        },
        _RANKING: {
            _SHEAR: (0.983, 0.989, 0.992, 0.995),
            "KS-WF": (0.803, 0.859, 0.894, 0.923),
            "PS": (0.900, 0.927, 0.946, 0.961),
            _AS_RELEASED: (0.944, 0.972, 0.983, 0.991),
        },
    },
    "bank": {
        _ERROR: {
            _SHEAR: (0.050, 0.035, 0.026, 0.019),
            "KS-WF": (0.400, 0.276, 0.192, 0.136),
            "PS": (0.238, 0.166, 0.118, 0.084),
            _AS_RELEASED: (0.124, 0.065, 0.035, 0.019),
        },
        _RANKING: {
            _SHEAR: (0.949, 0.964, 0.973, 0.980),
            "KS-WF": (0.655, 0.726, 0.783, 0.833),
            "PS": (0.808, 0.858, 0.893, 0.922),
            _AS_RELEASED: (0.888, 0.937, 0.966, 0.979),
        },
    },
}
"""Means over the rows of the files that the authors released, N = 8, 16, 32, 64."""


@dataclass(frozen=True)
class _Run:
    """The games of a table, and the scores of all estimators.

    Attributes
    ----------
    scores : dict of (str, str) to arrays, (budgets, seeds, rows)
        (metric, estimator) to scores.
    """

    explained: ExplainedTable
    game: TabulatedGame
    settings: dict[str, str]
    scores: Mapping[tuple[str, str], FloatArray]

    def means(self, metric: str, name: str) -> FloatArray:
        """Return the mean score at each budget."""
        means: FloatArray = self.scores[metric, name].mean(axis=(1, 2))
        return means

    def ratio(self, metric: str, name: str, index: int) -> tuple[float, float]:
        """Return the score over that of SHEAR at one budget, and its standard error."""
        return paired_ratio(self.scores[metric, name][index], self.scores[metric, _SHEAR][index])

    def lead(self, metric: str, name: str, index: int) -> tuple[float, float]:
        """Return how much SHEAR's score is above another's, and its standard error."""
        lead = self.scores[metric, _SHEAR][index] - self.scores[metric, name][index]
        return float(lead.mean()), standard_error(lead)


@cache
def _run(table: TableFile, setting: Setting, n_rows: int) -> _Run:
    n_rows, n_seeds = (10, 2) if setting.is_quick else (n_rows, 10)
    explained = explained_table(table, setting.data, setting.cache, n_rows)
    game = explained.game()
    exact, scores_of_pairs = game.shapley_values(), explained.cross_contributions()
    estimates: dict[str, Estimate] = {
        _SHEAR: shear(scores_of_pairs),
        "SHEAR, no antithetic draws": shear_unpaired(scores_of_pairs),
        "SHEAR, random cooperators": shear_random_cooperators,
        "KS": kernel_shap(paired=False),
        "KS-WF": kernel_shap_welford,
        "KS-Pair": kernel_shap(paired=True),
        "PS": permutations(None),
        _AS_RELEASED: permutations(1),
        _ANTITHETIC: permutations(0),
    }
    scores: dict[tuple[str, str], FloatArray] = {}
    for name, estimate in estimates.items():
        of_budgets = [_scores(estimate, game, exact, n, n_seeds) for n in _PER_PLAYER]
        for metric in of_budgets[0]:
            scores[metric, name] = np.array([one[metric] for one in of_budgets])
    settings = {
        "data": table.title,
        "network": f"softplus, accuracy {explained.accuracy:.3f}, logit of class 1",
        "rows": str(n_rows),
        "seeds": str(n_seeds),
    }
    return _Run(explained, game, settings, scores)


def _scores(
    estimate: Estimate, game: TabulatedGame, exact: FloatArray, per_player: int, n_seeds: int
) -> dict[str, FloatArray]:
    """Return the scores of all seeds and rows, (S, R), by metric."""
    found = [estimate(game, per_player, np.random.default_rng(seed)) for seed in range(n_seeds)]
    return {
        "absolute error": np.array([absolute_error(one, exact) for one in found]),
        "accuracy of the ranking": np.array([ranking_accuracy(one, exact) for one in found]),
        "faithfulness": np.array([faithfulness(one, game) for one in found]),
        "monotonicity": np.array([monotonicity(one, game) for one in found]),
    }


def _figure_2(table: TableFile, n_rows: int, setting: Setting) -> Outcome:
    """Compare absolute errors, over that of SHEAR."""
    run = _run(table, setting, n_rows)
    published = PUBLISHED[table.name][_ERROR]
    comparisons = []
    for name in _RIVALS:
        for index, per_player in enumerate(_PER_PLAYER):
            ratio, error = run.ratio(_ERROR, name, index)
            theirs = published[name][index] / published[_SHEAR][index]
            quantity = f"error of {name} over that of SHEAR, N = {per_player}"
            comparisons.append(Comparison(quantity, theirs, ratio, error=error))
    right = [run.ratio(_ERROR, _ANTITHETIC, index)[0] for index in range(len(_PER_PLAYER))]
    note = (
        "**The lead over antithetic permutation sampling (APS) comes from an index.** The authors' "
        "code reverses one order too few, so that two of the N orders have no reverse. With these "
        "indices the published lead is there. With every order reversed, the error of APS over "
        "that of SHEAR is "
        + ", ".join(f"{ratio:.2f}" for ratio in right)
        + " at N = 8, 16, 32, 64."
    )
    return Outcome(
        comparisons,
        run.settings,
        _table(run, _ERROR),
        (note,),
        partial(_draw, run, _ERROR),
    )


def _ranking(table: TableFile, n_rows: int, setting: Setting) -> Outcome:
    run = _run(table, setting, n_rows)
    published = PUBLISHED[table.name][_RANKING]
    comparisons = []
    for name in _RIVALS:
        for index in range(len(_PER_PLAYER)):
            theirs = published[_SHEAR][index] - published[name][index]
            comparisons.append(_lead(run, _RANKING, name, index, theirs))
    return Outcome(
        comparisons,
        run.settings,
        _table(run, _RANKING),
        draw=partial(_draw, run, _RANKING),
    )


def _figure_3(table: TableFile, n_rows: int, setting: Setting) -> Outcome:
    """Compare faithfulness and monotonicity; the paper has pictures without numbers."""
    run = _run(table, setting, n_rows)
    comparisons = [
        _lead(run, metric, name, index)
        for metric in ("faithfulness", "monotonicity")
        for name in _RIVALS
        for index in range(len(_PER_PLAYER))
    ]
    return Outcome(
        comparisons,
        run.settings,
        _table(run, "monotonicity"),
        draw=partial(_draw, run, "monotonicity"),
    )


def _lead(run: _Run, metric: str, name: str, index: int, theirs: float | None = None) -> Comparison:
    """Return SHEAR's score less another's; the paper says that SHEAR leads."""
    ours, error = run.lead(metric, name, index)
    quantity = f"{metric} of SHEAR less that of {name}, N = {_PER_PLAYER[index]}"
    leads = "below" if metric == _ERROR else "above"
    return Comparison(quantity, theirs, ours, neutral=0.0, leads=leads, is_ratio=False, error=error)


def _ablation(setting: Setting) -> Outcome:
    """Compare four metrics at N = 16, without antithetic draws and without the cooperators."""
    run = _run(CENSUS, setting, 200)
    comparisons = [
        _lead(run, metric, name, _PER_PLAYER.index(16))
        for metric in (_ERROR, _RANKING, "faithfulness", "monotonicity")
        for name in ("SHEAR, no antithetic draws", "SHEAR, random cooperators")
    ]
    note = (
        "The antithetic draws matter most. The cooperators lower the error of the attributions by "
        "a fifth here; faithfulness and monotonicity are close to their largest values with any."
    )
    return Outcome(comparisons, run.settings, notes=(note,))


def _figure_4e(setting: Setting) -> Outcome:
    """Correlate errors with random cooperators with the sum of their cross-contributions."""
    explained, game, settings = _census(setting)
    scores = explained.cross_contributions()
    exact = game.shapley_values()
    n_rows, n_players = exact.shape
    rng = np.random.default_rng(0)
    sums, errors = np.zeros((2, n_players, n_rows, _SETS))
    for player, row in np.ndindex(n_players, n_rows):
        others = np.delete(np.arange(n_players), player)
        for index in range(_SETS):
            cooperators = rng.choice(others, size=3, replace=False)
            sums[player, row, index] = scores[row, player, cooperators].sum()
            value = _value_among(game.table[row], player, cooperators)
            errors[player, row, index] = abs(value - exact[row, player])
    over_rows = [_rank_correlation(sums[i, :, 0], errors[i, :, 0]) for i in range(n_players)]
    within = [
        _rank_correlation(sums[player, row], errors[player, row])
        for player, row in np.ndindex(n_players, n_rows)
    ]
    quantities = {
        "rank correlation over rows, a random set for each (the paper's picture)": over_rows,
        "rank correlation over random sets, for one row and feature": within,
    }
    comparisons = [
        Comparison(
            quantity,
            None,
            float(np.mean(found)),
            0.0,
            "below",
            False,
            float(scipy.stats.sem(found)),
        )
        for quantity, found in quantities.items()
    ]
    note = (
        "Over rows, both numbers grow with the strength of the row's interactions, which hides the "
        "relation that the theorem is about: for one row and feature, sets with larger "
        "cross-contributions leave smaller errors."
    )
    draw = partial(_scatter, sums[:, :, 0].ravel(), errors[:, :, 0].ravel())
    return Outcome(comparisons, settings, notes=(note,), draw=draw)


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    return float(scipy.stats.spearmanr(x, y).statistic)


def _figure_4f(setting: Setting) -> Outcome:
    """The error of Eq. 13 with SHEAR's cooperators, and with random ones, against N."""
    explained, game, settings = _census(setting)
    scores = explained.cross_contributions()
    rng = np.random.default_rng(0)
    exact = game.shapley_values()
    n_rows, n_players = exact.shape
    errors = np.zeros((2, n_players))
    for n_cooperators in range(n_players):
        for row in range(n_rows):
            for player in range(n_players):
                others = np.delete(np.arange(n_players), player)
                ranked = others[np.argsort(-scores[row, player, others], kind="stable")]
                for kind, order in enumerate((ranked, rng.permutation(others))):
                    value = _value_among(game.table[row], player, order[:n_cooperators])
                    errors[kind, n_cooperators] += abs(value - exact[row, player])
    errors /= n_rows * n_players
    comparisons = [
        Comparison(
            f"error with SHEAR's cooperators over that with random ones, K = {n}",
            None,
            float(errors[0, n] / errors[1, n]),
            leads="below",
        )
        for n in range(1, n_players - 1)
    ]
    return Outcome(comparisons, settings, draw=partial(_draw_4f, errors))


@cache
def _census(setting: Setting) -> tuple[ExplainedTable, TabulatedGame, dict[str, str]]:
    n_rows = 5 if setting.is_quick else 40
    explained = explained_table(CENSUS, setting.data, setting.cache, n_rows)
    settings = {
        "data": CENSUS.title,
        "network": f"softplus, accuracy {explained.accuracy:.3f}, logit of class 1",
        "rows": str(n_rows),
    }
    return explained, explained.game(), settings


def _value_among(table: FloatArray, player: int, cooperators: FloatArray) -> float:
    """Return the Shapley value of a player in the game of it and its cooperators (Eq. 13)."""
    n = len(cooperators)
    subsets = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    indices = subsets @ (1 << np.asarray(cooperators, dtype=np.intp)) if n else np.zeros(1, np.intp)
    sizes = subsets.sum(axis=1)
    weights = 1 / ((n + 1) * scipy.special.comb(n, sizes))
    gains = table[indices | (1 << player)] - table[indices]
    return float(weights @ gains)


def _figure_5(setting: Setting) -> Outcome:
    """The bars of one row: SHEAR at N = 16 beside the exact values."""
    explained, game, settings = _census(setting)
    exact = game.shapley_values()
    empty, grand = game.ends()
    row = int(np.argmin(np.abs(grand - empty - 3.61)))  # the sum of the paper's example
    found = shear(explained.cross_contributions())(game, 16, np.random.default_rng(0))[row]
    order = np.argsort(-np.abs(exact[row]))
    top = [explained.players[player] for player in order[:3]]
    table = {"": ["exact", "SHEAR, N = 16"]}
    for player in order:
        table[explained.players[player]] = [f"{exact[row, player]:.3f}", f"{found[player]:.3f}"]
    comparisons = [
        Comparison(
            "sum of the bars over v(N) − v(∅)",
            1.0,
            float(found.sum() / (grand[row] - empty[row])),
            neutral=None,
        ),
        Comparison(
            "rank correlation of SHEAR's bars with the exact ones",
            1.0,
            float(scipy.stats.spearmanr(found, exact[row]).statistic),
            neutral=None,
            is_ratio=False,
        ),
    ]
    note = (
        f"The paper's row is not named; this one has the sum nearest to its 3.61. The three "
        f"longest bars here: {', '.join(top)}; in the paper: education, marital status, occupation."
    )
    return Outcome(
        comparisons,
        settings,
        table,
        (note,),
        partial(_draw_bars, exact[row][order], found[order], [explained.players[p] for p in order]),
    )


def _table(run: _Run, metric: str) -> dict[str, list[str]]:
    names = [name for kind, name in run.scores if kind == metric]
    rows = {name: [f"{score:.4f}" for score in run.means(metric, name)] for name in names}
    return {"": [f"{metric}, N = {n}" for n in _PER_PLAYER], **rows}


def _draw(run: _Run, metric: str, path: Path) -> None:
    figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for kind, name in run.scores:
        if kind == metric and not (metric == "absolute error" and name in ("KS", "KS-Pair")):
            panel.plot(_PER_PLAYER, run.means(kind, name), marker="o", label=name)
    if metric == "absolute error":
        panel.set_yscale("log")
    panel.set_xscale("log", base=2)
    panel.set_xlabel("N, evaluations per player")
    panel.set_ylabel(metric)
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _scatter(sums: FloatArray, errors: FloatArray, path: Path) -> None:
    figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
    panel.scatter(sums, errors, s=6, alpha=0.5)
    panel.set_xscale("symlog", linthresh=1e-3)
    panel.set_yscale("symlog", linthresh=1e-3)
    panel.set_xlabel("sum of the cross-contributions of the cooperators")
    panel.set_ylabel("absolute error of Eq. 13")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_4f(errors: FloatArray, path: Path) -> None:
    figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
    for line, name in zip(errors, ("SHEAR's cooperators", "random cooperators"), strict=True):
        panel.plot(2.0 ** np.arange(1, len(line) + 1), line, marker="o", label=name)
    panel.set_xscale("log", base=2)
    panel.set_xlabel("N, evaluations per player")
    panel.set_ylabel("mean absolute error of Eq. 13")
    panel.grid(alpha=0.3)
    panel.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_bars(exact: FloatArray, found: FloatArray, names: Sequence[str], path: Path) -> None:
    figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
    positions = np.arange(len(names))
    panel.barh(positions - 0.2, exact, height=0.4, label="exact")
    panel.barh(positions + 0.2, found, height=0.4, label="SHEAR, N = 16")
    panel.set_yticks(positions, names)
    panel.invert_yaxis()
    panel.set_xlabel("contribution to the logit of class 1")
    panel.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


_PAPER = "SHEAR (Wang et al., 2022)"

ITEMS = (
    Item(
        "shear-2a", "Absolute error on Census Income", f"{_PAPER}, Figure 2a",
        (CENSUS.file,), 1, partial(_figure_2, CENSUS, 200),
    ),
    Item(
        "shear-2d", "Accuracy of the ranking on Census Income", f"{_PAPER}, Figure 2d",
        (CENSUS.file,), 1, partial(_ranking, CENSUS, 200),
    ),
    Item(
        "shear-2b", "Absolute error on bank marketing (“German Credit”)",
        f"{_PAPER}, Figure 2b", (BANK.file,), 2, partial(_figure_2, BANK, 40),
    ),
    Item(
        "shear-2e", "Accuracy of the ranking on bank marketing", f"{_PAPER}, Figure 2e",
        (BANK.file,), 2, partial(_ranking, BANK, 40),
    ),
    Item(
        "shear-3a", "Faithfulness and monotonicity on Census Income",
        f"{_PAPER}, Figures 3a and 3d", (CENSUS.file,), 1, partial(_figure_3, CENSUS, 200),
    ),
    Item(
        "shear-3b", "Faithfulness and monotonicity on bank marketing",
        f"{_PAPER}, Figures 3b and 3e", (BANK.file,), 2, partial(_figure_3, BANK, 40),
    ),
    Item("shear-4d", "Ablation at N = 16", f"{_PAPER}, Figure 4d", (CENSUS.file,), 1, _ablation),
    Item(
        "shear-4e", "Error against cross-contribution", f"{_PAPER}, Figure 4e",
        (CENSUS.file,), 0.5, _figure_4e,
    ),
    Item(
        "shear-4f", "Error against the number of cooperators", f"{_PAPER}, Figure 4f",
        (CENSUS.file,), 1.5, _figure_4f,
    ),
    Item(
        "shear-5", "The bars of one person", f"{_PAPER}, Figure 5", (CENSUS.file,), 0.5, _figure_5
    ),
)  # fmt: skip
