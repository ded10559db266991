"""The page of published numbers beside ours: its rule, and that the results give the page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "evidence"

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="items import networks")


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "evidence", *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT / "tests",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_torch
def test_the_page_follows_from_the_saved_results(tmp_path):
    from tests.evidence.catalogue import ITEMS
    from tests.evidence.page import page_text

    assert page_text(ITEMS, RESULTS) == (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
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
    from tests.evidence.items import IN_DIRECTION, NOT_REPRODUCED, REPRODUCED, Comparison, verdict

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
