"""The tutorials are scripts as a user would write them. The build of the pages runs them."""

import ast
import re
from pathlib import Path

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


def test_only_public_names_are_imported():
    for name, path in TUTORIALS.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        ours = [pair for pair in imports_of(tree) if pair[0].split(".")[0] in OURS]
        assert ours, name
        assert [pair for pair in ours if not is_public(*pair)] == [], name


def test_the_pages_have_their_parts():
    pictures = r"plt\.show\(|shap\.plots\.|\.plot_\w+\(|visualize_\w+\("
    for name, path in TUTORIALS.items():
        text = path.read_text(encoding="utf-8")
        title, underline = text.splitlines()[1:3]
        assert len(title) == len(underline) and set(underline) == {"="}, name
        assert "**For whom:**" in text, name
        assert "What to read next\n# -----------------" in text, name
        assert re.search(pictures, text), name


def test_the_data_have_a_licence():
    notes = (FOLDER / "README_DATA.txt").read_text(encoding="utf-8")
    data = [path.relative_to(FOLDER) for path in FOLDER.rglob("*.csv")]
    assert [path for path in data if path.as_posix() not in notes] == []
