"""The scripts of the benchmarks, which other tests do not run."""

import argparse
import ast
import importlib
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


@pytest.fixture
def pages(monkeypatch):
    """Import what writes into pages."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("pages")


def strings(name):
    """Return the texts of a script, those of f-strings up to their first number."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_every_command_writes_its_marks_by_the_options_that_pages_name():
    commands = re.findall(r"^\| `(\w+)\.py` \|", README, re.MULTILINE)
    known = {name: strings(name) for name in commands}
    for name in commands:
        text = (FOLDER / f"{name}.py").read_text("utf-8")
        assert "pages.read_options(" in text, name
        assert "pages.report(" in text, name
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        marks = re.findall(r"<!--([\w-]+)-->\n\n.+?\n\n<!--end-->", text, re.DOTALL)
        assert len(marks) == text.count("<!--end-->"), page
        for mark in marks:
            wanted = {mark, mark.partition("-")[0] + "-"}
            assert any(wanted & texts for texts in known.values()), mark
        for name, line in re.findall(r"python benchmarks/(\w+)\.py(.*) --docs", text):
            options = re.sub(r" --parts( \w+)+", "", line).strip()
            assert not options or options in known[name], (page, line)


@pytest.mark.parametrize(
    ("words", "is_accepted"),
    [
        ("", True),
        ("--rows 5", False),
        ("--quick", False),
        ("--parts a --data elsewhere", True),
        ("--rows 9 --shapiq-python here", True),
        ("--rows 9", False),
        ("--rows 5 --kept", True),
    ],
)
def test_numbers_of_other_options_stay_out_of_pages(pages, monkeypatch, words, is_accepted):
    defaults = {"rows": None, "parts": ["a"], "data": None, "shapiq_python": None, "kept": False}
    monkeypatch.setattr(sys, "argv", ["command", "--docs", *words.split()])
    lines = ("", "--rows 9 --shapiq-python ENVIRONMENT")
    if is_accepted:
        assert pages.read_options("", *lines, **defaults).docs
    else:
        with pytest.raises(SystemExit):
            pages.read_options("", *lines, **defaults)


def test_a_table_goes_between_its_marks(pages, monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    page, others = tmp_path / "docs" / "page.md", "<!--b-->\n\nkept\n\n<!--end-->\n"
    for path, text in (
        (page, f"A\n\n<!--a-->\n\nold\n\n<!--end-->\n{others}"),
        (tmp_path / "README.md", ""),
    ):
        path.write_text(text)
    table = pages.table(["x", *pages.budgets([2, 2.5])], [[1, *map(pages.short, (0.0663, -12.3))]])
    pages.report(argparse.Namespace(docs=True), "a", table)
    wanted = "| x | N = 2 | 2.5 |\n|---|---|---|\n| 1 | .066 | -12 |"
    assert page.read_text() == f"A\n\n<!--a-->\n\n{wanted}\n\n<!--end-->\n{others}"
    with pytest.raises(LookupError, match="mark c"):
        pages.fill("c", table)


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
