"""All public estimators on the same games: error, time, intervals and failures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from coalition_games import BoolArray, FloatArray, TabulatedGame
from explained_models import ExplainedModel
from tree_models import breast_cancer
from zoo_games import tabulated

from .items import Claim, Comparison, Item, Outcome, Setting
from .public_estimators import OneGame, PublicEstimator, public_estimators
from .shear_tables import CENSUS, explained_table

mpl.use("Agg")
import matplotlib.pyplot as plt

_OWN = "oddgp (ours)"
_RIVAL = "captum ShapleyValueSampling"
_ROWS = 2
_PER_PLAYER = (16, 64)
_ZOO_PLAYERS = 12


@dataclass(frozen=True)
class _Games:
    """Games of one kind, one for each row, and their Shapley values, (R, M)."""

    title: str
    values_of: Sequence[Callable[[BoolArray], FloatArray]]
    exact: FloatArray


@dataclass
class _Score:
    """What an estimator reached on games of one kind with one budget.

    Attributes
    ----------
    errors : array, (R,)
        Σ|φ̂ − φ|; NaN where the estimator failed.
    failures : list of str
        What went wrong.
    """

    errors: FloatArray
    seconds: list[float] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all values are finite."""
        return bool(np.isfinite(self.errors).all())


_Cell = tuple[str, int]
"""The title of games, and N."""


def _everybody(setting: Setting) -> Outcome:
    """Run all estimators on all games."""
    seed, rows = setting.seed, slice(setting.seed * _ROWS, (setting.seed + 1) * _ROWS)
    games = [_census(setting), _zoo("vote", rows), _trees(rows)]
    estimators = public_estimators()
    scores: dict[str, dict[_Cell, _Score]] = {}
    for one in estimators:
        if one.explain is not None:
            scores[one.name] = {
                (of_kind.title, per_player): _score(one, of_kind, per_player, seed)
                for of_kind in games
                for per_player in _PER_PLAYER[: 1 if setting.is_quick else None]
            }
    comparisons = [
        comparison
        for name, cells in scores.items()
        if (comparison := _comparison(name, cells, scores)) is not None
    ]
    settings = {
        "games": "; ".join(of_kind.title for of_kind in games),
        "budget": "N evaluations for each player, and the two ends",
        "rows": str(_ROWS),
    }
    notes = _notes(estimators, scores, games)
    return Outcome(comparisons, settings, _table(estimators, scores), notes, partial(_draw, scores))


def _census(setting: Setting) -> _Games:
    return _of_table("Census network", explained_table(CENSUS, setting, _ROWS).game())


def _zoo(kind: str, rows: slice) -> _Games:
    table = tabulated(kind, _ZOO_PLAYERS, rows.stop)[rows]
    return _of_table(kind, TabulatedGame(table, _ZOO_PLAYERS))


def _of_table(title: str, game: TabulatedGame) -> _Games:
    def values_of(row: int, coalitions: BoolArray) -> FloatArray:
        values: FloatArray = game.table[row, coalitions @ (1 << np.arange(game.n_players))]
        return values

    of_rows = [partial(values_of, row) for row in range(len(game.table))]
    return _Games(f"{title}, {game.n_players} players", of_rows, game.shapley_values())


def _trees(rows: slice) -> _Games:
    explained: ExplainedModel
    explained, shapley = breast_cancer(rows.stop)
    game = explained.evaluated()
    of_rows = [partial(game.of_row, row) for row in range(rows.start, rows.stop)]
    return _Games(f"boosted trees, {explained.n_players} players", of_rows, shapley.values[rows])


def _score(one: PublicEstimator, games: _Games, per_player: int, seed: int) -> _Score:
    n_rows, n_players = games.exact.shape
    score = _Score(np.full(n_rows, np.nan))
    for row in range(n_rows):
        game = OneGame(games.values_of[row], n_players)
        score.errors[row] = _run_one(one, game, games.exact[row], per_player, seed, score)
    return score


def _run_one(
    one: PublicEstimator,
    game: OneGame,
    exact: FloatArray,
    per_player: int,
    seed: int,
    score: _Score,
) -> float:
    """Explain one row; whatever goes wrong is counted, for that is what a user meets."""
    assert one.explain is not None
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = one.explain(game, per_player * game.n_players + 2, seed)
    except Exception as error:
        score.failures.append(type(error).__name__)
        return np.nan
    score.seconds.append(time.perf_counter() - started - game.seconds)
    score.evaluations.append(game.n_evaluations)
    gaps = np.abs(found.values - exact)
    if not np.isfinite(gaps).all():
        score.failures.append("NaN")
        return np.nan
    if found.half_width is not None and np.isfinite(found.half_width).all():
        score.inside.append(float((gaps <= found.half_width + 1e-9).mean()))
    return float(gaps.sum())


def _comparison(
    name: str, cells: Mapping[_Cell, _Score], scores: Mapping[str, Mapping[_Cell, _Score]]
) -> Comparison | None:
    """Compare the errors with ours: the geometric mean of the ratios of all cells."""
    complete = [cell for cell, score in cells.items() if score.is_complete]
    if name == _OWN or not complete:
        return None
    ours, control = (
        float(np.exp(np.mean([np.log(_ratio(cells[c], scores[one][c])) for c in complete])))
        for one in (_OWN, _RIVAL)
    )
    return Comparison(f"error of {name} over that of {_OWN}", None, ours, control, leads="above")


def _ratio(other: _Score, own: _Score) -> float:
    """Return the mean error over that of another on the same rows."""
    return float(max(other.errors.mean(), 1e-12) / max(own.errors.mean(), 1e-12))


def _table(
    estimators: Sequence[PublicEstimator], scores: Mapping[str, Mapping[_Cell, _Score]]
) -> dict[str, list[str]]:
    cells = list(scores[_OWN])
    head = [f"error, {title}, N = {n}" for title, n in cells]
    table = {"": [*head, "evaluations used", "ms a row", "in 95 % intervals", "failures"]}
    for one in estimators:
        if one.explain is None:
            table[one.name] = [one.reason] + ["–"] * (len(cells) + 3)
        else:
            table[one.name] = _line([scores[one.name][cell] for cell in cells])
    return table


def _line(of_cells: Sequence[_Score]) -> list[str]:
    errors = [f"{np.nanmean(s.errors):.3g}" if s.seconds else "–" for s in of_cells]
    seconds = [second for score in of_cells for second in score.seconds]
    inside = [share for score in of_cells for share in score.inside]
    failures = [failure for score in of_cells for failure in score.failures]
    kinds = {kind: failures.count(kind) for kind in dict.fromkeys(failures)}
    used = "/".join(f"{np.mean(s.evaluations):.0f}" if s.evaluations else "–" for s in of_cells)
    return [
        *errors,
        used,
        f"{1000 * float(np.median(seconds)):.1f}" if seconds else "–",
        f"{np.mean(inside):.1%}" if inside else "–",
        ", ".join(f"{n} × {kind}" for kind, n in kinds.items()) or "0",
    ]


def _notes(
    estimators: Sequence[PublicEstimator],
    scores: Mapping[str, Mapping[_Cell, _Score]],
    games: Sequence[_Games],
) -> list[str]:
    how = (
        "Each estimator explains one row by a call of its own. Errors are Σ|φ̂ − φ|, means over "
        "rows. Mean Σ|φ|: "
        + ", ".join(f"{np.abs(g.exact).sum(axis=1).mean():.3g} ({g.title})" for g in games)
        + ". Times are medians without the model's own, on a machine that was busy with other "
        "work. The exact values come from all coalitions, "
        "and from shap's interventional TreeSHAP for the trees. SHEAR sees a black box here, so "
        "that it learns cooperators from the same evaluations."
    )
    notes = [how]
    losses = _losses(scores)
    if losses:
        notes += ["", f"**Where {_OWN} loses**, with this network:", "", *losses]
    return notes


def _losses(scores: Mapping[str, Mapping[_Cell, _Score]]) -> list[str]:
    lines = []
    for cell, own in scores[_OWN].items():
        better = []
        for name, cells in scores.items():
            if name == _OWN or not cells[cell].is_complete:
                continue
            ratio = _ratio(cells[cell], own)
            if ratio < 1:
                better.append(f"{name} ({ratio:.2f} of its error)")
        if better:
            lines.append(f"- {cell[0]}, N = {cell[1]}: {', '.join(better)}.")
    return lines


def _draw(scores: Mapping[str, Mapping[_Cell, _Score]], path: Path) -> None:
    cells = list(scores[_OWN])
    figure, panels = plt.subplots(
        1, len(cells), figsize=(3.2 * len(cells) + 2.5, 7), layout="constrained", sharey=True
    )
    names = list(scores)
    for panel, cell in zip(np.atleast_1d(panels), cells, strict=True):
        scale = np.nanmean(scores[_OWN][cell].errors)
        ratios = np.array([np.mean(scores[name][cell].errors) for name in names]) / scale
        colours = ["C0" if "(ours)" in name else "C7" for name in names]
        panel.barh(names, np.maximum(ratios, 1e-3), color=colours)
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_title(f"{cell[0]}\nN = {cell[1]}", fontsize=9)
        panel.set_xlabel(f"error over that of\n{_OWN}", fontsize=8)
        panel.grid(axis="x", alpha=0.3)
    np.atleast_1d(panels)[0].invert_yaxis()
    figure.savefig(path, dpi=80)
    plt.close(figure)


ITEMS: Sequence[Item] = (
    Item(
        "everybody", "All public estimators on the same games", "This project's claim",
        (Claim("least error on almost all games measured", "README.md",
               "plain orders (captum's ShapleyValueSampling) in oddgp's place"),),
        (CENSUS.file,), 4, _everybody,
    ),
)  # fmt: skip
