"""Figures 2 to 5 of the SHEAR paper (Wang et al., ICML 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import scipy.special
import scipy.stats
from games import FloatArray, TabulatedGame, core_game

from shapley_adapters.criteria import absolute_error, faithfulness, monotonicity, ranking_accuracy

from .items import Claim, Comparison, Item, Outcome, Setting
from .pictures import draw_budgets, picture
from .shear_baselines import (
    Estimate,
    kernel_shap,
    kernel_shap_welford,
    permutations,
    shear,
    shear_random_cooperators,
)
from .shear_tables import BANK, CENSUS, ExplainedTable, TableFile, explained_table

_PER_PLAYER = (8, 16, 32, 64)
_SHEAR, _AS_RELEASED, _ANTITHETIC = "SHEAR", "APS, authors' indices", "APS, all pairs"
_PLAIN = "PS"
_RIVALS = ("KS-WF", _PLAIN, _AS_RELEASED)
_ERROR, _RANKING = "absolute error", "accuracy of the ranking"

_ROWS, _BANK_ROWS = 60, 20
_SUM = 3.61
_TOP = {"education", "marital_status", "occupation"}
"""Of the bars in Figure 5: their sum, and the three longest."""

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

    def ratio(self, name: str, other: str, index: int) -> float:
        """Return the absolute error over that of another estimator at one budget."""
        errors = [self.scores[_ERROR, one][index].mean() for one in (name, other)]
        return float(errors[0] / errors[1])

    def lead(self, metric: str, name: str, other: str, index: int) -> float:
        """Return how much the score is above another's at one budget."""
        scores = [self.scores[metric, one][index].mean() for one in (name, other)]
        return float(scores[0] - scores[1])


@cache
def _run(table: TableFile, setting: Setting, n_rows: int) -> _Run:
    n_rows, n_seeds = (10, 2) if setting.is_quick else (n_rows, 4)
    explained = explained_table(table, setting, n_rows)
    game = explained.game()
    exact, scores_of_pairs = game.shapley_values(), explained.cross_contributions()
    estimates: dict[str, Estimate] = {
        _SHEAR: shear(scores_of_pairs),
        "SHEAR, no antithetic draws": shear(scores_of_pairs, antithetic=False),
        "SHEAR, random cooperators": shear_random_cooperators,
        "KS": kernel_shap(paired=False),
        "KS-WF": kernel_shap_welford,
        "KS-Pair": kernel_shap(paired=True),
        _PLAIN: permutations(None),
        _AS_RELEASED: permutations(1),
        _ANTITHETIC: permutations(0),
    }
    scores: dict[tuple[str, str], FloatArray] = {}
    for name, estimate in estimates.items():
        of_budgets = [_scores(estimate, game, exact, n, n_seeds) for n in _PER_PLAYER]
        for metric in of_budgets[0]:
            scores[metric, name] = np.array([one[metric] for one in of_budgets])
    return _Run(explained, game, {**explained.settings, "draws": str(n_seeds)}, scores)


def _scores(
    estimate: Estimate, game: TabulatedGame, exact: FloatArray, per_player: int, n_seeds: int
) -> dict[str, FloatArray]:
    """Return the scores of all seeds and rows, (S, R), by metric."""
    found = [estimate(game, per_player, np.random.default_rng(seed)) for seed in range(n_seeds)]
    games, n_players = core_game(game), game.n_players
    return {
        "absolute error": np.array([absolute_error(one, exact) for one in found]),
        "accuracy of the ranking": np.array([ranking_accuracy(one, exact) for one in found]),
        "faithfulness": np.array(
            [faithfulness(one, games, subset_size=1, n_subsets=n_players) for one in found]
        ),
        "monotonicity": np.array([monotonicity(one, games) for one in found]),
    }


def _figure_2(table: TableFile, n_rows: int, setting: Setting) -> Outcome:
    """Compare absolute errors, over that of SHEAR."""
    run = _run(table, setting, n_rows)
    published = PUBLISHED[table.name][_ERROR]
    comparisons = [
        Comparison(
            f"error of {name} over that of SHEAR, N = {per_player}",
            published[name][index] / published[_SHEAR][index],
            run.ratio(name, _SHEAR, index),
            run.ratio(name, _PLAIN, index),
        )
        for name in _RIVALS
        for index, per_player in enumerate(_PER_PLAYER)
    ]
    return Outcome(comparisons, run.settings, draw=partial(_draw, run, _ERROR))


def _ranking(table: TableFile, n_rows: int, setting: Setting) -> Outcome:
    run = _run(table, setting, n_rows)
    published = PUBLISHED[table.name][_RANKING]
    comparisons = []
    for name in _RIVALS:
        for index in range(len(_PER_PLAYER)):
            theirs = published[_SHEAR][index] - published[name][index]
            comparisons.append(_lead(run, _RANKING, name, index, theirs))
    return Outcome(comparisons, run.settings, draw=partial(_draw, run, _RANKING))


def _antithetic(setting: Setting) -> Outcome:
    """Compare antithetic orders, all of them in pairs, with SHEAR."""
    runs = {CENSUS: _run(CENSUS, setting, _ROWS), BANK: _run(BANK, setting, _BANK_ROWS)}
    comparisons = [
        Comparison(
            f"{table.title}: error of APS over that of SHEAR, N = {per_player}",
            None,
            run.ratio(_ANTITHETIC, _SHEAR, index),
            run.ratio(_AS_RELEASED, _SHEAR, index),
            leads="below",
        )
        for table, run in runs.items()
        for index, per_player in enumerate(_PER_PLAYER)
    ]
    return Outcome(comparisons, runs[CENSUS].settings)


def _figure_3(table: TableFile, n_rows: int, setting: Setting) -> Outcome:
    """Compare faithfulness and monotonicity; the paper has pictures without numbers."""
    run = _run(table, setting, n_rows)
    metrics = ("faithfulness", "monotonicity")
    comparisons = [
        _lead(run, metric, name, index)
        for metric in metrics
        for name in _RIVALS
        for index in range(len(_PER_PLAYER))
    ]
    return Outcome(comparisons, run.settings, draw=partial(_draw, run, "monotonicity"))


def _lead(
    run: _Run,
    metric: str,
    name: str,
    index: int,
    theirs: float | None = None,
    claim: int = 0,
) -> Comparison:
    """Return SHEAR's score less another's; the paper says that SHEAR leads."""
    return Comparison(
        f"{metric} of SHEAR less that of {name}, N = {_PER_PLAYER[index]}",
        theirs,
        run.lead(metric, _SHEAR, name, index),
        run.lead(metric, _PLAIN, name, index),
        neutral=0.0,
        leads="below" if metric == _ERROR else "above",
        is_ratio=False,
        claim=claim,
    )


def _ablation(setting: Setting) -> Outcome:
    """Compare four metrics at N = 16, without antithetic draws and without the cooperators."""
    run = _run(CENSUS, setting, _ROWS)
    index = _PER_PLAYER.index(16)
    metrics = (_ERROR, _RANKING, "faithfulness", "monotonicity")
    without = ("SHEAR, no antithetic draws", "SHEAR, random cooperators")
    comparisons = [
        _lead(run, metric, name, index, claim=claim)
        for claim, name in enumerate(without)
        for metric in metrics
    ]
    return Outcome(comparisons, run.settings)


def _figure_4e(setting: Setting) -> Outcome:
    """Correlate errors with random cooperators with the sum of their cross-contributions."""
    explained, game = _census(setting)
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
    both = sums, np.roll(sums, 1, axis=2)  # the control has the sums of another set
    over_rows, within = (
        [float(np.mean([_rank_correlation(*pair) for pair in pairs])) for pairs in kinds]
        for kinds in (
            [[(some[i, :, 0], errors[i, :, 0]) for i in range(n_players)] for some in both],
            [[(some[at], errors[at]) for at in np.ndindex(n_players, n_rows)] for some in both],
        )
    )
    quantities = {
        "rank correlation over rows, a random set for each (the paper's picture)": over_rows,
        "rank correlation over random sets, for one row and feature": within,
    }
    comparisons = [
        Comparison(quantity, None, ours, control, 0.0, "below", is_ratio=False)
        for quantity, (ours, control) in quantities.items()
    ]
    note = (
        "Over rows, both numbers grow with the strength of the row's interactions, which hides the "
        "relation that the theorem is about: for one row and feature, sets with larger "
        "cross-contributions leave smaller errors."
    )
    draw = partial(_scatter, sums[:, :, 0].ravel(), errors[:, :, 0].ravel())
    return Outcome(comparisons, explained.settings, notes=(note,), draw=draw)


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    return float(scipy.stats.spearmanr(x, y).statistic)


def _figure_4f(setting: Setting) -> Outcome:
    """The error of Eq. 13 with SHEAR's cooperators, and with random ones, against N."""
    explained, game = _census(setting)
    scores = explained.cross_contributions()
    rng = np.random.default_rng(0)
    exact = game.shapley_values()
    n_rows, n_players = exact.shape
    errors = np.zeros((3, n_players))
    for n_cooperators in range(n_players):
        for row in range(n_rows):
            for player in range(n_players):
                others = np.delete(np.arange(n_players), player)
                ranked = others[np.argsort(-scores[row, player, others], kind="stable")]
                for kind, order in enumerate(
                    (ranked, rng.permutation(others), rng.permutation(others))
                ):
                    value = _value_among(game.table[row], player, order[:n_cooperators])
                    errors[kind, n_cooperators] += abs(value - exact[row, player])
    errors /= n_rows * n_players
    comparisons = [
        Comparison(
            f"error with SHEAR's cooperators over that with random ones, K = {n}",
            None,
            float(errors[0, n] / errors[1, n]),
            float(errors[2, n] / errors[1, n]),
            leads="below",
        )
        for n in range(1, n_players - 1)
    ]
    return Outcome(comparisons, explained.settings, draw=partial(_draw_4f, errors[:2]))


@cache
def _census(setting: Setting, is_margin: bool = False) -> tuple[ExplainedTable, TabulatedGame]:
    n_rows = 5 if setting.is_quick else 40
    explained = explained_table(CENSUS, setting, n_rows, is_margin=is_margin)
    return explained, explained.game()


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
    """The bars of one row: SHEAR at N = 16 beside the exact values and plain orders."""
    explained, game = _census(setting, is_margin=True)
    exact = game.shapley_values()
    empty, grand = game.ends()
    row = int(np.argmin(np.abs(grand - empty - _SUM)))
    found = shear(explained.cross_contributions())(game, 16, np.random.default_rng(0))[row]
    plain = permutations(None)(game, 16, np.random.default_rng(0))[row]
    players = explained.players
    order = np.argsort(-np.abs(exact[row]))

    def in_top(values: FloatArray) -> float:
        top = np.argsort(-np.abs(values))[:3]
        return float(sum(players[player] in _TOP for player in top))

    shuffled = np.random.default_rng(setting.seed).permutation(exact[row])
    sex = exact[:, players.index("sex")]
    is_man = explained.rows[:, explained.player_of_column == players.index("sex")].argmax(1) == 1
    total = grand[row] - empty[row]
    comparisons = [
        Comparison(
            "sum of SHEAR's bars over v(N) − v(∅)", 1.0,
            float(found.sum() / total), float(plain.sum() / total), None,
        ),
        Comparison(
            "rank correlation of SHEAR's bars with the exact ones", 1.0,
            _rank_correlation(found, exact[row]), _rank_correlation(plain, exact[row]), None,
            is_ratio=False, claim=1,
        ),
        Comparison(
            "how many of the three are the longest bars", 3.0,
            in_top(found), in_top(shuffled), None, claim=2,
        ),
        Comparison(
            "mean contribution of sex among men", None,
            float(sex[is_man].mean()), float(sex[~is_man].mean()), 0.0, "above", False, claim=3,
        ),
    ]  # fmt: skip
    note = f"The paper's row is not named; this one has the sum nearest to its {_SUM}."
    draw = partial(_draw_bars, exact[row][order], found[order], [players[p] for p in order])
    return Outcome(comparisons, explained.settings, (note,), draw)


def _draw(run: _Run, metric: str, path: Path) -> None:
    means = {
        name: run.means(kind, name)
        for kind, name in run.scores
        if kind == metric and not (metric == _ERROR and name in ("KS", "KS-Pair"))
    }
    draw_budgets(path, (7, 4.5), 100, _PER_PLAYER, means, metric)


def _scatter(sums: FloatArray, errors: FloatArray, path: Path) -> None:
    names = "sum of the cross-contributions of the cooperators", "absolute error of Eq. 13"
    with picture(path, (6, 4), *names, has_grid=False, legend=None) as panel:
        panel.scatter(sums, errors, s=6, alpha=0.5)
        panel.set_xscale("symlog", linthresh=1e-3)
        panel.set_yscale("symlog", linthresh=1e-3)


def _draw_4f(errors: FloatArray, path: Path) -> None:
    names = "N, evaluations per player", "mean absolute error of Eq. 13"
    with picture(path, (6, 4), *names) as panel:
        for line, name in zip(errors, ("SHEAR's cooperators", "random cooperators"), strict=True):
            panel.plot(2.0 ** np.arange(1, len(line) + 1), line, marker="o", label=name)
        panel.set_xscale("log", base=2)


def _draw_bars(exact: FloatArray, found: FloatArray, names: Sequence[str], path: Path) -> None:
    positions = np.arange(len(names))
    xlabel = "contribution to the logit of class 1"
    with picture(path, (7, 4.5), xlabel, has_grid=False) as panel:
        panel.barh(positions - 0.2, exact, height=0.4, label="exact")
        panel.barh(positions + 0.2, found, height=0.4, label="SHEAR, N = 16")
        panel.set_yticks(positions, names)
        panel.invert_yaxis()


_PAPER = "SHEAR"
_PLAIN_ORDERS = "plain orders (PS) in SHEAR's place"
LEAST_ERROR = Claim(
    "SHEAR achieves the least absolute estimation error and the most accurate feature importance "
    "ranking",
    "Section 5.2",
    _PLAIN_ORDERS,
)
_LARGER = Claim(
    "SHEAR achieves larger Faithfulness and Monotonicity than baseline methods under the same "
    "times of model evaluation",
    "Section 5.3",
    _PLAIN_ORDERS,
)


ITEMS = (
    *(
        Item(
            f"shear-{name}", f"{title} on {table.title}", f"{_PAPER}, {number}", (claim,),
            (table.file,), 0.4, partial(figure, table, n_rows),
        )
        for name, number, title, claim, figure, table, n_rows in (
            ("2a", "Figure 2a", "Absolute error", LEAST_ERROR, _figure_2, CENSUS, _ROWS),
            ("2d", "Figure 2d", "Accuracy of the ranking", LEAST_ERROR, _ranking, CENSUS, _ROWS),
            ("2b", "Figure 2b", "Absolute error", LEAST_ERROR, _figure_2, BANK, _BANK_ROWS),
            ("2e", "Figure 2e", "Accuracy of the ranking", LEAST_ERROR, _ranking, BANK, _BANK_ROWS),
            ("3a", "Figures 3a and 3d", "Faithfulness and monotonicity", _LARGER, _figure_3,
             CENSUS, _ROWS),
            ("3b", "Figures 3b and 3e", "Faithfulness and monotonicity", _LARGER, _figure_3,
             BANK, _BANK_ROWS),
        )
    ),
    Item(
        "shear-antithetic", "SHEAR and antithetic orders, every one reversed",
        "This project's finding",
        (Claim("With every order reversed, antithetic sampling has a smaller error than SHEAR",
               "docs/errata.md", "the authors' indices, with which two orders have no reverse"),),
        (CENSUS.file, BANK.file), 0.8, _antithetic,
    ),
    Item(
        "shear-4d", "Ablation at N = 16", f"{_PAPER}, Figure 4d",
        (Claim("SHEAR outperforms SHEAR w/o AS", "Section 5.5", _PLAIN_ORDERS),
         Claim("SHEAR w/o CCS shows considerable interpretation degradation across the four "
               "evaluation metrics", "Section 5.5", _PLAIN_ORDERS)),
        (CENSUS.file,), 0.4, _ablation,
    ),
    Item(
        "shear-4e", "Error against cross-contribution", f"{_PAPER}, Figure 4e",
        (Claim("Approximately negative relationship between the absolute error […] and the feature "
               "cross-contribution", "Section 5.5", "the cross-contributions of another set"),),
        (CENSUS.file,), 0.1, _figure_4e,
    ),
    Item(
        "shear-4f", "Error against the number of cooperators", f"{_PAPER}, Figure 4f",
        (Claim("SHEAR achieves the lower bound of absolute error", "Section 5.5",
               "other random cooperators in the place of SHEAR's"),),
        (CENSUS.file,), 0.2, _figure_4f,
    ),
    Item(
        "shear-5", "The bars of one person", f"{_PAPER}, Figure 5",
        (Claim("The summation of the M feature contributions equals the distance between base "
               "value and model output", "Section 5.6", "plain orders (PS), N = 16"),
         Claim("the GT-Shapley value is also shown for comparison", "Section 5.6",
               "plain orders (PS), N = 16"),
         Claim("The top-three key features for the income prediction are education, "
               "martial-status and occupation", "Section 5.6", "the exact bars, shuffled"),
         Claim("gender=male has positive contribution to the prediction", "Section 5.6",
               "women")),
        (CENSUS.file,), 0.1, _figure_5,
    ),
)  # fmt: skip
