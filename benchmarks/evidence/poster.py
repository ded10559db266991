"""The claims of the poster on evaluating and aggregating explanations (Bhatt et al., 2020)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from aggregation import BASE, COLUMNS, all_answers, members
from aggregation_sets import SETS
from coalition_games import FloatArray

from .items import Claim, Comparison, Item, Outcome, Setting
from .pictures import picture

_RIVAL = "permutation (captum)"
_COMPLEXITY = COLUMNS.index("complexity")


def _claims(setting: Setting) -> Outcome:
    """Compare AVA with what it averages, and both simpler aggregates with the simplest member."""
    n_rows, n_draws, n_pool = (4, 2, 30) if setting.is_quick else (16, 4, 100)
    arguments = argparse.Namespace(
        data=setting.data, cache=setting.cache,
        seed=setting.seed, rows=n_rows, draws=n_draws, pool=n_pool, evaluations=106,
    )  # fmt: skip
    explained = SETS["adult"](arguments)
    answers, judge = all_answers(explained, arguments)
    scores = {one.name: judge(one) for one in answers}
    settings = {
        "data": f"{explained.name} network, accuracy {explained.accuracy:.3f}",
        "rows": str(n_rows),
        "neighbours of each": str(n_draws),
        "evaluations": str(arguments.evaluations),
        "rows in which AVA looks": str(n_pool),
    }
    note = (
        "The poster has no numbers. AVA is a mean of the values of similar rows: its "
        "sensitivity is lower, and so is its faithfulness to the row itself. Ranks (Kemeny–Young) "
        "are not in the picture."
    )
    draw = partial(_draw, scores)
    return Outcome(_comparisons(scores), settings, (note,), draw)


def _comparisons(scores: Mapping[str, FloatArray]) -> list[Comparison]:
    comparisons = []
    for name, of_rows in scores.items():
        if name.startswith("AVA"):
            for column in (0, 1):
                gaps = [one[column] - scores[BASE][column] for one in (of_rows, scores[_RIVAL])]
                comparisons.append(_below(f"{COLUMNS[column]} of {name} less that of it", gaps, 0))
    simplest = np.min([scores[name][_COMPLEXITY] for name in members(dict(scores))], axis=0)
    for method in ("descent", "shrinking"):
        gaps = [
            scores[name][_COMPLEXITY] - simplest for name in (f"low complexity, {method}", "mean")
        ]
        quantity = f"complexity by {method} less that of the simplest member"
        comparisons.append(_below(quantity, gaps, 1))
    return comparisons


def _below(quantity: str, gaps: Sequence[FloatArray], claim: int) -> Comparison:
    ours, control = (float(np.nanmean(gap)) for gap in gaps)
    return Comparison(quantity, None, ours, control, 0.0, "below", is_ratio=False, claim=claim)


def _draw(scores: Mapping[str, FloatArray], path: Path) -> None:
    names = "average sensitivity", "complexity"
    with picture(path, (8, 5), *names, dpi=90, legend=None) as panel:
        shown = [name for name in scores if "ranks" not in name]  # ranks have units of their own
        for index, name in enumerate(shown):
            of_rows = scores[name]
            sensitivity, simplicity = np.nanmean(of_rows[1]), np.nanmean(of_rows[_COMPLEXITY])
            panel.scatter(
                sensitivity, simplicity, s=40, alpha=0.8, marker="osD^v"[index // 4], label=name
            )
        panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


ITEMS = (
    Item(
        "poster", "Lower sensitivity and lower complexity by aggregates",
        "poster of Bhatt et al.",
        (Claim("derive a new aggregate Shapley value explanation function that minimizes "
               "sensitivity", "Abstract", f"{_RIVAL} of the row itself in AVA's place"),
         Claim("yet has entropy less than or equal to that of each explanation",
               "Lowering Complexity", "the mean of the members")),
        ("adult/adult.csv.gz",), 1, _claims,
    ),
)  # fmt: skip
