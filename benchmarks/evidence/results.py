"""Files of results: written by runs, read by the page."""

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

from .items import Comparison, Item, Setting, verdict

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "evidence_results"
_PACKAGES = ("numpy", "torch", "shap", "captum", "scikit-learn")


@dataclass(frozen=True)
class Result:
    """What was computed for an item, and where.

    Attributes
    ----------
    name : str
        The item.
    comparisons, settings, table, notes
        As in `Outcome`.
    origin : dict of str to str
        Date, commit, machine, versions, seconds, and whether the run was quick.
    has_picture : bool
        Whether there is a picture beside the file.
    """

    name: str
    comparisons: Sequence[Comparison]
    settings: Mapping[str, str]
    table: Mapping[str, Sequence[str]]
    notes: Sequence[str]
    origin: Mapping[str, str]
    has_picture: bool

    @property
    def verdict(self) -> str:
        """The verdict that follows from the numbers."""
        return verdict(self.comparisons)


def compute(item: Item, setting: Setting, folder: Path) -> Result:
    """Run an item, and write its numbers and its picture."""
    if item.run is None:
        raise ValueError(f"{item.name} {item.reason}")
    started = time.perf_counter()
    outcome = item.run(setting)
    folder.mkdir(parents=True, exist_ok=True)
    if outcome.draw is not None:
        outcome.draw(folder / f"{item.name}.png")
    result = Result(
        name=item.name,
        comparisons=outcome.comparisons,
        settings=outcome.settings,
        table=outcome.table,
        notes=outcome.notes,
        origin=_origin(time.perf_counter() - started, setting.is_quick),
        has_picture=outcome.draw is not None,
    )
    path(item.name, folder).write_text(
        json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return result


def load(name: str, folder: Path) -> Result:
    """Read the result of an item."""
    saved: dict[str, Any] = json.loads(path(name, folder).read_text(encoding="utf-8"))
    comparisons = [Comparison(**comparison) for comparison in saved.pop("comparisons")]
    return Result(comparisons=comparisons, **saved)


def path(name: str, folder: Path) -> Path:
    """Return the file of an item's numbers."""
    return folder / f"{name}.json"


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
