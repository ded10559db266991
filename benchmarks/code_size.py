"""How much there is to understand: lines, modules, numbers, classes, names and words.

    python benchmarks/code_size.py

For each package, and for the estimator `oddgp`: modules without `__init__`, those below a hundred
lines, lines of code, comment lines per 100 of them, numeric constants of modules and functions that
are named `of` or `of_…`. Then the most classes of ours above a public explainer or attribution, and
the words of the documentation, API and evidence included.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "core": "adapters/shapley_adapters",
    "shap_ext": "shap_ext",
    "captum_ext": "captum_ext",
    "oddgp": "adapters/shapley_adapters/estimators/odd_gp",
}
_SHORT = 100


def code_lines(text: str) -> tuple[int, int]:
    """Return the lines of code, and those of comments; docstrings are neither."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code, comments = set(), set()
    ignored = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = set(range(token.start[0], token.end[0] + 1))
        if token.type == tokenize.COMMENT:
            comments |= lines
        elif token.type not in ignored:
            code |= lines
    return len(code - documented), len(comments)


def constants(tree: ast.Module) -> int:
    """Return how many numbers the constants of a module hold."""
    return sum(
        isinstance(node, ast.Constant) and type(node.value) in (int, float)
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
    )


def functions_of(tree: ast.Module) -> int:
    """Return how many functions are named `of`, or begin with `of_`."""
    return sum(
        isinstance(node, ast.FunctionDef) and bool(re.match(r"_?of(_|$)", node.name))
        for node in ast.walk(tree)
    )


def line_of(name: str, files: Iterable[Path]) -> str:
    """Return a line of the table."""
    texts = [path.read_text(encoding="utf-8") for path in files if path.name != "__init__.py"]
    trees = [ast.parse(text) for text in texts]
    counts = [code_lines(text) for text in texts]
    n_code, n_comments = sum(count[0] for count in counts), sum(count[1] for count in counts)
    numbers = [
        len(texts),
        sum(len(text.splitlines()) < _SHORT for text in texts),
        n_code,
        f"{100 * n_comments / n_code:.1f}",
        sum(map(constants, trees)),
        sum(map(functions_of, trees)),
    ]
    return f"| {name} | {' | '.join(map(str, numbers))} |"


def most_classes_above(package: str) -> str:
    """Return the public class with most classes of ours above it, and their number."""
    module = __import__(package)
    ours = ("shap_ext", "captum_ext", "shapley_adapters")
    counted = {
        name: sum(above.__module__.split(".")[0] in ours for above in public.__mro__[1:])
        for name in module.__all__
        if isinstance(public := getattr(module, name), type)
    }
    name = max(counted, key=lambda name: counted[name])
    return f"{counted[name]} above {package}.{name}"


def main() -> None:
    """Print the table."""
    print("| | modules | below 100 lines | code | comments | numbers | named of |")
    print("|" + "---|" * 7)
    folders = {name: ROOT / folder for name, folder in PARTS.items()}
    for name, folder in folders.items():
        print(line_of(name, sorted(folder.rglob("*.py"))))
    packages = [folders[name] for name in ("core", "shap_ext", "captum_ext")]
    print(line_of("all packages", [path for folder in packages for path in folder.rglob("*.py")]))
    print(line_of("tests", sorted((ROOT / "tests").rglob("*.py"))))
    print(f"\nClasses: {most_classes_above('shap_ext')}; {most_classes_above('captum_ext')}")
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "api").glob("*.md")]
    n_words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    print(f"Documentation: {n_words:,} words on {len(pages)} pages")


if __name__ == "__main__":
    main()
