"""Files of results, one for each item and network: written by runs, read by the page."""

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
    file = folder / item.name / f"{setting.seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    has_picture = outcome.draw is not None and setting.seed == 0
    if outcome.draw is not None and has_picture:
        outcome.draw(file.with_suffix(".png"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    ).stdout.strip()  # fmt: skip
    versions = (f"{name} {version(name)}" for name in _PACKAGES)
    origin = {
        "date": datetime.date.today().isoformat(),
        "commit": commit or "unknown",
        "code": code_of(item.run),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
        "seconds": f"{time.process_time() - started:.0f}",
        "run": "quick" if setting.is_quick else "full",
    }
    result = Result(
        item.name, setting.seed, outcome.comparisons, outcome.settings, outcome.notes, origin,
        has_picture,
    )  # fmt: skip
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
    return result


def load(name: str, folder: Path) -> list[Result]:
    """Read the results of an item, in the order of the networks."""
    results = []
    for file in sorted((folder / name).glob("*.json"), key=lambda one: int(one.stem)):
        saved: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        comparisons = [Comparison(**comparison) for comparison in saved.pop("comparisons")]
        results.append(Result(comparisons=comparisons, **saved))
    return results


def differences(results: Sequence[Result]) -> list[str]:
    """Return in what the results of an item differ that must be the same for all networks.

    A network may have nothing to compare, such as no digit that it gets wrong.
    """
    compared = [one.comparisons for one in results if one.comparisons]
    said: dict[str, set[Any]] = {
        "code": {one.origin["code"] for one in results},
        "quantities": {frozenset(replace(one, ours=0, control=0) for one in of) for of in compared},
        "controls": {
            frozenset((one.quantity, math.isnan(one.control)) for one in of) for of in compared
        },
    }
    return [name for name, of_networks in said.items() if len(of_networks) > 1]


def code_of(run: Callable[..., Any]) -> str:
    """Return a hash of the module of a function, and of all that it imports of the benchmarks.

    Comments, docstrings and line breaks do not matter.
    """
    to_read = [Path(inspect.getfile(run.func if isinstance(run, partial) else run))]
    found: dict[str, str] = {}
    while to_read:
        file = to_read.pop()
        if not file.is_file() or file.name in found:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", None)
                folder = file.parent if getattr(node, "level", 0) else FOLDER.parent
                names = [module] if module else [one.name for one in node.names]
                to_read += [folder / f"{name}.py" for name in names]
        found[file.name] = ast.unparse(_WithoutTexts().visit(tree))
    return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()[:12]


class _WithoutTexts(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:  # as ast calls it
        return None if isinstance(node.value, ast.Constant) else node
