"""Files of results, one for each item and network: written by runs, read by the page."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .items import Comparison, Item, Setting

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "evidence_results"
_PACKAGES = ("numpy", "torch", "shap", "captum", "scikit-learn")


@dataclass(frozen=True)
class Result:
    """What was computed for an item with one network, and where.

    Attributes
    ----------
    name, seed : str, int
        The item, and the number of the network.
    comparisons, settings, notes
        As in `Outcome`.
    origin : dict of str to str
        Date, commit, machine, versions, seconds, and whether the run was quick.
    has_picture : bool
        Whether there is a picture beside the file.
    """

    name: str
    seed: int
    comparisons: Sequence[Comparison]
    settings: Mapping[str, str]
    notes: Sequence[str]
    origin: Mapping[str, str]
    has_picture: bool


def compute(item: Item, setting: Setting, folder: Path) -> Result:
    """Run an item with a network, and write its numbers, and for the first network its picture."""
    if item.run is None:
        raise ValueError(f"{item.name} {item.reason}")
    started = time.process_time()
    outcome = item.run(setting)
    file = path(item.name, setting.seed, folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    has_picture = outcome.draw is not None and setting.seed == 0
    if outcome.draw is not None and has_picture:
        outcome.draw(file.with_suffix(".png"))
    result = Result(
        name=item.name,
        seed=setting.seed,
        comparisons=outcome.comparisons,
        settings=outcome.settings,
        notes=outcome.notes,
        origin=_origin(time.process_time() - started, setting.is_quick),
        has_picture=has_picture,
    )
    file.write_text(
        json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return result


def load(name: str, folder: Path) -> list[Result]:
    """Read the results of an item, in the order of the networks."""
    results = []
    for file in sorted((folder / name).glob("*.json"), key=lambda one: int(one.stem)):
        saved: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        comparisons = [Comparison(**comparison) for comparison in saved.pop("comparisons")]
        results.append(Result(comparisons=comparisons, **saved))
    return results


def path(name: str, seed: int, folder: Path) -> Path:
    """Return the file of an item's numbers with one network."""
    return folder / name / f"{seed}.json"


def _origin(seconds: float, is_quick: bool) -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    ).stdout.strip()  # fmt: skip
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit or "unknown",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in _PACKAGES)]
        ),
        "seconds": f"{seconds:.0f}",
        "run": "quick" if is_quick else "full",
    }
