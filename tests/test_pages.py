"""The pages name what the code has: errors, warnings, types; README and landing page agree."""

import ast
import builtins
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from shapley_adapters import errors

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCES = [
    path
    for folder in ("adapters", "shap_ext", "captum_ext")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LANDING = (DOCS / "index.md").read_text(encoding="utf-8")


def first_column(heading):
    """Return the code in the first column of the table below a heading of `what_can_go_wrong`."""
    page = (DOCS / "what_can_go_wrong.md").read_text(encoding="utf-8")
    _, section = page.split(f"\n## {heading}\n")
    return re.findall(r"^\| `([^`]+)`", section.split("\n## ")[0], re.MULTILINE)


def warned_texts():
    """Return the constant parts of each message that the code passes to `warn_user`."""
    calls = [
        node
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn_user"
    ]
    literal = [
        call.args[0] for call in calls if isinstance(call.args[0], ast.Constant | ast.JoinedStr)
    ]
    # A name stands for a warning of a worker, which was passed to `warn_user` there.
    assert len(calls) - len(literal) <= 1
    return [template(text) for text in literal]


def template(text):
    """Return a text of the code, with {} in place of what is computed."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)


def test_every_error_is_explained():
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.ShapleyExtError)
    }
    assert set(first_column("Errors")) == classes - {"ShapleyExtError"}


def test_errors_have_the_built_in_class_of_the_page():
    page = (DOCS / "what_can_go_wrong.md").read_text(encoding="utf-8")
    bases = re.findall(r"^\| `(\w+Error)` \(`(\w+)`\) \|", page, re.MULTILINE)
    assert len(bases) == len(first_column("Errors"))
    for name, base in bases:
        assert issubclass(getattr(errors, name), getattr(builtins, base))


def test_every_warning_is_explained():
    explained = first_column("Warnings")
    texts = warned_texts()
    assert len(texts) > 12
    missing = [text for text in texts if not any(words in text for words in explained)]
    assert missing == []


def test_no_explained_warning_is_gone():
    texts = warned_texts()
    gone = [w for w in first_column("Warnings") if not any(w in text for text in texts)]
    assert gone == []


@pytest.mark.parametrize(
    "module",
    [
        "adapters/shapley_adapters/array_types.py",
        "shap_ext/argument_types.py",
        "captum_ext/argument_types.py",
    ],
)
def test_every_type_is_explained(module):
    page = (DOCS / "api" / "types.md").read_text(encoding="utf-8")
    aliases = re.findall(r"^(\w+): TypeAlias", (ROOT / module).read_text("utf-8"), re.MULTILINE)
    assert len(aliases) > 5
    assert [alias for alias in aliases if f"`{alias}`" not in page] == []


def paragraphs(text):
    """Return the paragraphs of prose and the blocks of code, without links and line breaks."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return {
        " ".join(part.split()) for part in re.split(r"\n\s*\n|^```\w*$", text, flags=re.MULTILINE)
    }


def test_readme_and_landing_page_tell_the_same_story():
    shared = paragraphs(README) & paragraphs(LANDING)
    for beginning in (
        *("**Better Shapley values", "import shap +import shap_ext", "-from captum.attr import"),
        *("One prediction of boosted trees", "You get an ordinary"),
        "With 100 or 1,000 background rows",
    ):
        assert any(part.startswith(beginning) for part in shared), beginning


BLOCK = "```python\n{}\n```\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            BLOCK.format("n = 1")
            + BLOCK.format(">>> n + 1\n2\n")
            + "<!-- not run: needs a GPU -->\n"
            + BLOCK.format("undefined")
            + BLOCK.format("print(2)")
            + "<!-- printed -->\n```text\n2\n```\n",
            None,
        ),
        (BLOCK.format("n = 1\nundefined"), "line 3, in <module>"),
        (BLOCK.format("import os\nos._exit(0)"), "ended early"),
        (BLOCK.format(">>> 1 + 1\n3\n"), "Got:\n    2"),
        ("- a list\n\n  ```python\n  n = 1\n  undefined\n  ```\n", "NameError"),
        (BLOCK.format("print(2)") + "<!-- printed -->\n```text\n3\n```\n", "The block prints:\n2"),
        ("<!-- not run -->\n" + BLOCK.format("n = 1"), "no reason"),
        ("<!-- not run: needs a GPU -->\nWords.\n\n" + BLOCK.format("n = 1"), "no Python block"),
    ],
)
def test_blocks_of_pages_are_run(text, fault, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    script = [sys.executable, str(DOCS / "run_pages.py"), str(page)]
    process = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (process.returncode != 0) == bool(fault)
    assert (fault or "run") in process.stdout + process.stderr


def test_pages_without_the_comment_have_no_block_left_out():
    run_pages = runpy.run_path(str(DOCS / "run_pages.py"))
    for page in run_pages["all_pages"]():
        fences = re.findall(r"^ *```+ *\{?(?:code-block\}? )?py", page.read_text("utf-8"), re.M)
        assert len(run_pages["read_blocks"](page)) == len(fences), page
