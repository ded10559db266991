"""The scripts of the benchmarks, which other tests do not run."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
README = (FOLDER / "README.md").read_text("utf-8")
OF_OTHER_ENVIRONMENTS = {"shapiq_worker": "shapiq"}
"""Scripts whose package the tests do not install, and that package."""

IMPORT_ALL = """
import importlib, json, sys

failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
print(json.dumps(failed))
"""


@pytest.mark.skipif(not HAS_TORCH, reason="most of them run networks")
@pytest.mark.slow
def test_every_script_can_be_imported():
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert {"model_rows", "graphs", "accuracy", *OF_OTHER_ENVIRONMENTS} <= set(names)
    places = [FOLDER, ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(p) for p in places if p)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    failed = json.loads(done.stdout.splitlines()[-1])
    for name, package in OF_OTHER_ENVIRONMENTS.items():
        if package in failed.get(name, ""):
            del failed[name]
    assert not failed


def test_the_readme_lists_all_commands():
    """Fifteen, of which the evidence is a package; `mutations.py` is a tool of the tests."""
    main = 'if __name__ == "__main__"'
    commands = {path.name for path in FOLDER.glob("*.py") if main in path.read_text("utf-8")}
    commands -= {f"{name}.py" for name in OF_OTHER_ENVIRONMENTS} | {"mutations.py"}
    listed = re.findall(r"^\| `(\w+\.py|python -m \w+)` \|", README, re.MULTILINE)
    assert len(listed) == 15
    assert set(listed) == commands | {"python -m evidence"}
    for page in (ROOT / "docs").glob("*.md"):
        named = set(re.findall(r"benchmarks/(\w+\.py)", page.read_text("utf-8")))
        assert named <= commands, page


def is_any(annotation):
    """Return whether an annotation is missing, Any as a whole, or a union with it."""
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left) or is_any(annotation.right)
    return annotation is None or ast.unparse(annotation) in ("Any", "typing.Any", "'Any'")


@pytest.mark.parametrize("folder", ["adapters/shapley_adapters", "shap_ext", "captum_ext"])
def test_few_parameters_are_any(folder):
    """Less than a tenth of a package's, of functions and of fields that become arguments."""
    found = []
    for path in (ROOT / folder).rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    arguments = [one for one in ast.walk(node.args) if isinstance(one, ast.arg)]
                    named = [one for one in arguments if one.arg not in ("self", "cls")]
                    found += [is_any(one.annotation) for one in named]
                if isinstance(node, ast.ClassDef) and "write_constructor" in map(
                    ast.unparse, node.decorator_list
                ):
                    fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
                    found += [is_any(one.annotation) for one in fields]
    assert sum(found) < 0.1 * len(found)
