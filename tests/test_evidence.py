"""The page of published numbers beside ours: its rule, and that the results give the page."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "evidence_results"

sys.path.append(str(ROOT / "benchmarks"))  # whose scripts import each other by their names alone

if not HAS_TORCH:
    pytest.skip("items import networks", allow_module_level=True)

from evidence import __main__, results  # noqa: E402
from evidence.catalogue import ITEMS  # noqa: E402
from evidence.items import Comparison  # noqa: E402
from evidence.page import evidence, page_texts, stability  # noqa: E402
from evidence.rule import Evidence, gather, verdict  # noqa: E402


def test_the_pages_follow_from_the_saved_results(tmp_path):

    verdicts, numbers = page_texts(ITEMS, RESULTS)
    assert verdicts == (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert numbers == (ROOT / "benchmarks" / "evidence.md").read_text(encoding="utf-8")
    names = [item.name for item in ITEMS]
    assert len(set(names)) == len(names)
    assert {path.stem for path in RESULTS.iterdir()} <= set(names)


def test_the_page_has_no_quick_runs():
    for path in RESULTS.glob("*/*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["origin"]["run"] == "full", path


def test_every_item_quotes_what_it_checks_and_names_a_control():

    for item in ITEMS:
        if item.run is None:
            assert item.reason, item.name
            continue
        assert item.claims, item.name
        assert all(one.quote and one.place and one.control for one in item.claims)
        for tested in evidence(item, results.load(item.name, RESULTS)).tested:
            assert 0 <= tested.ours.of.claim < len(item.claims), item.name


@pytest.mark.slow
def test_without_data_items_are_skipped_by_name(tmp_path, monkeypatch, capsys):

    folders = ("--data", str(tmp_path), "--results", str(tmp_path / "results"))
    monkeypatch.setattr(sys, "argv", ["evidence", "run", "all", "--quick", *folders])
    __main__.main()
    said = capsys.readouterr().out
    assert "shear-2a               0: SKIPPED: no adult/adult.csv.gz" in said


def compared(ours, control=(1.0, 1.001, 0.999), theirs=2.0, **options):
    """Return what several networks say of one published number."""

    runs = [
        [Comparison("", theirs, one, other, **options)]
        for one, other in zip(ours, control, strict=True)
    ]
    return gather(runs)[0]


@pytest.mark.parametrize(
    ("ours", "options", "expected"),
    [
        ((2.2, 2.3, 2.25), {}, "agrees"),
        ((2.2, 2.6, 2.4), {}, "same side"),  # the mean agrees, the interval does not
        ((5.0, 5.1, 4.9), {}, "same side"),
        ((0.5, 0.51, 0.49), {}, "differs"),
        ((0.5, 2.1, 2.0), {}, "open"),
        ((3.0, 3.1, 2.9), {"theirs": None, "leads": "above"}, "same side"),
        ((0.9, 0.895, 0.905), {"theirs": 0.9, "neutral": None, "is_ratio": False}, "agrees"),
        ((1.8, 1.81, 1.79), {"theirs": 1.0, "neutral": None}, "differs"),  # "comparable"
        ((1.8, 1.81, 1.79), {"theirs": 1.0}, "differs"),  # at the neutral number, no side
        ((1.1, 1.6, 1.3), {"theirs": 1.0, "neutral": None}, "open"),
    ],
)
def test_answers_follow_from_the_interval_over_networks(ours, options, expected):
    assert compared(ours, **options).answer == expected


def test_the_interval_is_that_of_student():
    spread = compared((1.0, 2.0, 4.0)).ours
    expected = t.interval(0.95, 2, np.mean([1, 2, 4]), np.std([1, 2, 4], ddof=1) / np.sqrt(3))
    np.testing.assert_allclose(spread.interval, expected, atol=1e-12)


def test_a_control_passes_if_it_says_as_much():
    near, far = (2.0, 2.01, 1.99), (5.0, 5.1, 4.9)
    assert compared(near, control=near).is_passed_by_control
    assert compared(far, control=far).is_passed_by_control
    assert compared(far, control=near).is_passed_by_control
    assert not compared(near, control=far).is_passed_by_control
    assert not compared(near).is_passed_by_control
    against = (0.5, 0.51, 0.49)
    assert not compared(against, control=against).is_passed_by_control


@pytest.mark.parametrize("ours", [(2.0, 2.01, 1.99), (0.5, 0.51, 0.49), (0.5, 2.1, 2.0)])
def test_without_a_control_a_comparison_counts_neither_for_nor_against(ours):
    assert compared(ours).counts
    assert not compared(ours, control=(np.nan,) * 3).counts


def of_networks(*ours, **changes):
    """Return results of an item whose paper says 2; `changes` are those of the last network."""

    made = []
    for seed, one in enumerate(ours):
        more = changes if seed == len(ours) - 1 else {}
        comparison = Comparison(more.get("quantity", "a"), 2.0, one, more.get("control", 1.0))
        origin = {"code": more.get("code", "b")}
        made.append(
            results.Result("item", seed, more.get("all", [comparison]), {}, (), origin, False)
        )
    return made


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"code": "c"}, "code"), ({"quantity": "c"}, "quantities and controls"),
     ({"control": np.nan}, "controls")],
)  # fmt: skip
def test_networks_that_were_not_compared_alike_are_refused(changes, said):

    evidence(ITEMS[0], of_networks(2.0, 2.1, 2.2))
    evidence(ITEMS[0], of_networks(2.0, 2.1, 2.2, all=[]))  # nothing to compare with one network
    with pytest.raises(SystemExit, match=rf"shear-2a differ in their {said},.*--again"):
        evidence(ITEMS[0], of_networks(2.0, 2.1, 2.2, **changes))


def test_a_verdict_says_without_how_many_networks_it_is_the_same():

    assert stability(ITEMS[0], of_networks(2.0, 2.01, 1.99, 2.0)) == "4/4"
    assert stability(ITEMS[0], of_networks(2.0, 2.01, 1.99)) == "0/3"  # two are too few
    # Without the last one, all agree; without any other, the comparison is as open as with all.
    assert stability(ITEMS[0], of_networks(2.0, 2.01, 1.99, 2.0, 0.1)) == "4/5"


def test_the_code_of_a_result_is_all_that_its_item_imports(tmp_path, monkeypatch):

    monkeypatch.setattr(results, "FOLDER", tmp_path / "evidence_results")
    folder, texts = tmp_path / "evidence", {"item": "from .other import f", "other": "import games"}
    folder.mkdir()
    monkeypatch.setattr("inspect.getfile", lambda _: str(folder / "item.py"))

    def code(games):
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        (tmp_path / "games.py").write_text(games)
        return results.code_of(len)

    known = code("x = 1")
    assert code('"""What it is."""\nx = 1  # a number') == known
    assert code("x = 2") != known


def test_verdicts_follow_the_rule():

    near, same = compared((2.0, 2.01, 1.99)), compared((5.0, 5.1, 4.9))
    other, unclear = compared((0.5, 0.51, 0.49)), compared((0.5, 2.1, 2.0))
    struck = compared((2.0, 2.01, 1.99), control=(2.0, 2.01, 1.99))
    for tested, expected in (
        ([near, near], "reproduced"),
        ([near, same], "reproduced in direction"),
        ([near, near, unclear], "reproduced in direction"),
        ([near, unclear], "not reproduced"),
        ([near, near, other], "not reproduced"),
        ([near, near, struck], "reproduced"),
        ([near, struck], "no verdict"),
        ([struck], "no verdict"),
    ):
        assert verdict(Evidence(True, 3, tested)) == expected
    assert verdict(Evidence(True, 2, [near])) == "too few networks"
    assert verdict(Evidence(False, 0, [])) == "cannot be reproduced"
