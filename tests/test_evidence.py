"""The page of published numbers beside ours: its rule, and that the results give the page."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "evidence_results"

sys.path.append(str(ROOT / "benchmarks"))  # whose scripts import each other by their names alone

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="items import networks")


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "evidence", *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT / "benchmarks",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_torch
def test_the_pages_follow_from_the_saved_results(tmp_path):
    from evidence.catalogue import ITEMS
    from evidence.page import page_texts

    verdicts, numbers = page_texts(ITEMS, RESULTS)
    assert verdicts == (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert numbers == (ROOT / "benchmarks" / "evidence.md").read_text(encoding="utf-8")
    names = [item.name for item in ITEMS]
    assert len(set(names)) == len(names)
    assert {path.stem for path in RESULTS.iterdir()} <= set(names)


@needs_torch
def test_the_page_has_no_quick_runs():
    for path in RESULTS.glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["origin"]["run"] == "full", path


@needs_torch
@pytest.mark.slow
def test_without_data_items_are_skipped_by_name(tmp_path):
    folders = ("--data", str(tmp_path), "--results", str(tmp_path / "results"))
    said = run("run", "all", "--quick", *folders)
    assert "shear-2a               SKIPPED: no adult/adult.csv.gz" in said


@needs_torch
def test_verdicts_follow_the_rule():
    from evidence.items import (
        IN_DIRECTION,
        NOT_REPRODUCED,
        REPRODUCED,
        Comparison,
        verdict,
    )

    near, same = Comparison("", 2.0, 2.3), Comparison("", 2.0, 5.0)
    other, noise = Comparison("", 2.0, 0.5), Comparison("", 2.0, 0.9, error=0.1)
    no_number = Comparison("", None, 3.0, leads="above")
    assert verdict([near, near]) == REPRODUCED
    assert verdict([near, same]) == IN_DIRECTION
    assert verdict([near, near, noise]) == IN_DIRECTION
    assert verdict([near, noise]) == NOT_REPRODUCED
    assert verdict([near, near, other]) == NOT_REPRODUCED
    assert verdict([no_number]) == IN_DIRECTION
    score = Comparison("", 0.90, 0.91, neutral=None, is_ratio=False)
    assert verdict([score]) == REPRODUCED
    assert verdict([Comparison("", 0.90, 0.94, neutral=None, is_ratio=False)]) == NOT_REPRODUCED


@needs_torch
def test_the_page_begins_with_the_finding_about_the_baseline():
    from evidence.page import page_texts

    first = page_texts([], RESULTS)[0].split("\n\n")[1]
    assert "off-by-one" in first
    assert "shear-2a" in first


@needs_torch
def test_estimators_that_take_no_part_say_why():
    from evidence.public_estimators import public_estimators

    estimators = public_estimators()
    assert {"oddgp (ours)", "shap permutation", "captum KernelShap"} <= {e.name for e in estimators}
    assert len({one.name for one in estimators}) == len(estimators)
    assert all((one.explain is None) == bool(one.reason) for one in estimators)


@needs_torch
@pytest.mark.parametrize(
    ("found", "failures", "inside"),
    [(np.nan, ["NaN"], []), (None, ["ValueError"], []), (1.0, [], [0.5])],
)
def test_failures_and_intervals_of_an_estimator_are_counted(found, failures, inside):
    from evidence.everybody import _Games, _score
    from evidence.public_estimators import PublicEstimator, Values

    def explain(game, budget, seed):
        game(game.row)
        if found is None:
            raise ValueError
        return Values(np.full(2, found), np.array([0.5, 0.1]))

    games = _Games("two", [lambda coalitions: coalitions.sum(axis=1)], np.array([[1.0, 0.8]]))
    score = _score(PublicEstimator("one", explain), games, per_player=4, n_seeds=1)
    assert score.failures == failures
    assert score.inside == inside
    assert np.isfinite(score.errors).all() == (not failures)
    assert score.evaluations == ([] if found is None else [1])
