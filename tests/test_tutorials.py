"""The tutorials are scripts as a user would write them. The build of the pages runs them."""

import ast
import re
from pathlib import Path

import pytest

import shap_ext
import shapley_adapters
import shapley_adapters.aggregation
import shapley_adapters.criteria
import shapley_adapters.estimators
from tests.helpers.optional import HAS_TORCH, captum_ext

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
TUTORIALS = {path.stem: path for path in sorted(FOLDER.rglob("*.py"))}
PUBLIC = {
    "shap_ext": shap_ext,
    "shap_ext.criteria": shap_ext.criteria,
    "shapley_adapters": shapley_adapters,
    "shapley_adapters.aggregation": shapley_adapters.aggregation,
    "shapley_adapters.criteria": shapley_adapters.criteria,
    "shapley_adapters.estimators": shapley_adapters.estimators,
}
if HAS_TORCH:
    PUBLIC |= {"captum_ext": captum_ext, "captum_ext.criteria": captum_ext.criteria}
OURS = ("shap_ext", "captum_ext", "shapley_adapters")

each_tutorial = pytest.mark.parametrize("path", TUTORIALS.values(), ids=TUTORIALS)


def imports_of(tree):
    """Yield the module and the name, or None, of each import of our packages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def is_public(module, name):
    if not HAS_TORCH and module.startswith("captum_ext"):
        return True  # cannot be looked up here
    return module in PUBLIC and (name is None or name in PUBLIC[module].__all__)


def test_there_are_tutorials():
    assert len(TUTORIALS) >= 16


@each_tutorial
def test_only_public_names_are_imported(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ours = [pair for pair in imports_of(tree) if pair[0].split(".")[0] in OURS]
    assert ours
    assert [pair for pair in ours if not is_public(*pair)] == []


@each_tutorial
def test_the_page_has_its_parts(path):
    text = path.read_text(encoding="utf-8")
    title, underline = text.splitlines()[1:3]
    assert len(title) == len(underline) and set(underline) == {"="}
    assert "**For whom:**" in text
    assert "What to read next\n# -----------------" in text
    assert re.search(r"plt\.show\(|shap\.plots\.|\.plot_\w+\(|visualize_\w+\(", text)


def test_the_data_have_a_licence():
    notes = (FOLDER / "README_DATA.txt").read_text(encoding="utf-8")
    data = [path.relative_to(FOLDER) for path in FOLDER.rglob("*.csv")]
    assert [path for path in data if path.as_posix() not in notes] == []
