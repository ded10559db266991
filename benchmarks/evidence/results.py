"""Files of results, one for each item and network: written by runs, read by the page."""

from __future__ import annotations

import ast
import datetime
import hashlib
import inspect
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
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
        Date, commit, hash of the code, machine, versions, seconds, and whether the run was quick.
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
        origin=_origin(item, time.process_time() - started, setting.is_quick),
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


def differences(results: Sequence[Result]) -> list[str]:
    """Return in what the results of an item differ that must be the same for all networks.

    A network may have nothing to compare, such as no digit that it gets wrong.
    """
    compared = [one.comparisons for one in results if one.comparisons]
    said: dict[str, list[Any]] = {
        "code": [one.origin["code"] for one in results],
        "quantities": [
            {
                (one.quantity, one.theirs, one.neutral, one.leads, one.is_ratio, one.claim)
                for one in of
            }
            for of in compared
        ],
        "controls": [{(one.quantity, math.isnan(one.control)) for one in of} for of in compared],
    }
    return [
        name
        for name, of_networks in said.items()
        if any(one != of_networks[0] for one in of_networks)
    ]


def code_of(run: Callable[..., Any]) -> str:
    """Return a hash of the module of a function, and of all that it imports of the benchmarks.

    Comments, docstrings and line breaks do not matter.
    """
    to_read = [Path(inspect.getfile(run.func if isinstance(run, partial) else run))]
    found: dict[str, str] = {}
    while to_read:
        file = to_read.pop()
        if file.is_file() and file.name not in found:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            to_read += _imported(tree, file.parent)
            found[file.name] = ast.unparse(_without_docstrings(tree))
    return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()[:12]


def _imported(tree: ast.Module, folder: Path) -> Iterator[Path]:
    """Yield where the modules that a module imports would be, were they of the benchmarks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [one.name for one in node.names]
            for name in names:
                yield (folder if node.level else FOLDER.parent) / f"{name}.py"
        elif isinstance(node, ast.Import):
            for one in node.names:
                yield FOLDER.parent / f"{one.name}.py"


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [
                one for one in body
                if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]  # fmt: skip
            body[:] = kept or [ast.Pass()]
    return tree


def _origin(item: Item, seconds: float, is_quick: bool) -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    ).stdout.strip()  # fmt: skip
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit or "unknown",
        "code": code_of(item.run) if item.run is not None else "",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in _PACKAGES)]
        ),
        "seconds": f"{seconds:.0f}",
        "run": "quick" if is_quick else "full",
    }
