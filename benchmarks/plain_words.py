"""Count the private words in names, docstrings, comments and messages of the three packages.

    python benchmarks/plain_words.py                  # the three packages
    python benchmarks/plain_words.py --others         # and numpy, scikit-learn, shap, captum
    python benchmarks/plain_words.py --list adapters/shapley_adapters/criteria

A name is counted where it consists of one word of `PRIVATE_NAMES` alone: `kept`, not `kept_rows`.
Each function counts each of its names once, each class each of its attributes once. Text is
compared word by word; quotations of code are counted, too. No package imports are needed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("adapters/shapley_adapters", "shap_ext", "captum_ext")
OTHERS = ("numpy", "sklearn", "shap", "captum")

PARTICIPLES = (
    "answered asked bought chosen counted cut done drawn dropped found given gone held kept "
    "known learned left lost made marked met named opened paid passed picked read "
    "reached said seen sent shown spent stated stored taken told tried used wanted written"
)
PRONOUNS = (
    "all another any anyone both each either every everyone everything few here many more most "
    "neither nobody none nothing one other others own rest same some something such that there "
    "these this those what which who whole"
)
PLACES = "place places where"
PRIVATE_NAMES = frozenset(f"{PARTICIPLES} {PRONOUNS} {PLACES}".split())

_COUNTED = (
    "batches|bytes|calls|coalitions|draws|entries|evaluations|integers|megabytes|models|numbers|"
    r"outputs|pairs|permutations|players|rounds|rows|samples|seconds|steps|times|units|values|\d+"
)
_PER = "batch|call|coalition|column|draw|epoch|feature|pair|player|round|row|step|unit"
PRIVATE_WORDS = {
    "what": r"\bwhat(?:ever)?\b(?![^.!]*\?)",
    "tell": r"\b(?:tells?|told|telling)\b",
    "place": r"(?<!in )(?<!takes )(?<!take )\bplaces?\b(?! of)",
    "a row": rf"\b(?:{_COUNTED}) an? (?:{_PER})\b",
    "near": r"\bnear\b",
}
"""Words of text, by the column of the table that counts them.

`what` in questions is left out, and so is `place` in "in place (of)" and "take place".
"""


@dataclass
class Counts:
    """Counts of one package.

    Attributes
    ----------
    n_names : int
        Names of parameters, of local variables and of attributes.
    n_text_lines : int
        Lines of docstrings, comments and messages.
    names : Counter of str
        The private names among them.
    words : Counter of str
        The private words of the text, by their column.
    findings : list of str
        File, line and text of each private name and word.
    """

    n_names: int = 0
    n_text_lines: int = 0
    names: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def add_file(self, path: Path) -> None:
        """Count the names and the text of one file."""
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for line, name in bound_names(tree):
            self.n_names += 1
            word = name.strip("_")
            if word in PRIVATE_NAMES:
                self.names[word] += 1
                self.findings.append(f"{path}:{line}: name {name}")
        for first_line, text in texts(tree, source):
            self.n_text_lines += text.count("\n") + 1
            self._add_text(path, first_line, text)

    def _add_text(self, path: Path, first_line: int, text: str) -> None:
        for column, pattern in PRIVATE_WORDS.items():
            for match in re.finditer(pattern, text, flags=re.IGNORECASE):
                line = first_line + text.count("\n", 0, match.start())
                start, end = max(0, match.start() - 40), match.end() + 40
                self.words[column] += 1
                excerpt = " ".join(text[start:end].split())
                self.findings.append(f"{path}:{line}: {column}: …{excerpt}…")

    def table_row(self, package: str) -> str:
        """Return the row of the table."""
        share = sum(self.names.values()) / max(1, self.n_names)
        rates = [1000 * self.words[column] / max(1, self.n_text_lines) for column in PRIVATE_WORDS]
        numbers = "".join(f"{rate:8.1f}" for rate in rates)
        totals = f"{self.n_names:8d} {share:8.2%} {self.n_text_lines:8d}"
        return f"{package:28}{totals}{numbers}"


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each parameter, local variable and attribute, once per scope."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _once(_names_in_function(scope))
        elif isinstance(scope, ast.ClassDef):
            yield from _once(_attributes_of_class(scope))


def _once(names: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    earlier = set()
    for line, name in names:
        if name.strip("_") and name not in earlier:
            earlier.add(name)
            yield line, name


def _names_in_function(
    scope: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> Iterator[tuple[int, str]]:
    a = scope.args
    for parameter in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]:
        if parameter is not None and parameter.arg not in ("self", "cls"):
            yield parameter.lineno, parameter.arg
    body = scope.body
    waiting: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _attributes_of_class(scope: ast.ClassDef) -> Iterator[tuple[int, str]]:
    for statement in scope.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.lineno, statement.target.id
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.lineno, statement.name
    for node in ast.walk(scope):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.lineno, node.attr


def texts(tree: ast.Module, source: str) -> Iterator[tuple[int, str]]:
    """Yield first line and text of each comment, docstring, and other string of three words."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            inside |= {id(part) for part in parts}
            yield from _sentence(node, " … ".join(str(part.value) for part in parts))
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield from _sentence(node, node.value)


def _sentence(node: ast.expr, text: object) -> Iterator[tuple[int, str]]:
    if isinstance(text, str) and len(re.findall(r"[A-Za-z]+", text)) >= 3:
        yield node.lineno, text


def files_of(folder: Path) -> list[Path]:
    """Return the source files of a package, its tests left out."""
    if folder.is_file():
        return [folder]
    return [path for path in sorted(folder.rglob("*.py")) if "tests" not in path.parts]


def counted(folder: Path) -> Counts:
    """Return the counts of all files of a folder."""
    counts = Counts()
    for path in files_of(folder):
        counts.add_file(path)
    return counts


def installed_folder(package: str) -> Path | None:
    """Return the folder of an installed package, or None."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def main() -> None:
    """Print the table, or with `--list` each finding."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", default=PACKAGES, help="folders or files")
    parser.add_argument("--others", action="store_true", help="compare with installed packages")
    parser.add_argument("--list", action="store_true", help="print each finding")
    arguments = parser.parse_args()
    folders = {name: ROOT / name for name in arguments.folders}
    if arguments.others:
        folders |= {name: at for name in OTHERS if (at := installed_folder(name))}
    counts = {name: counted(folder) for name, folder in folders.items()}
    if arguments.list:
        print(*[line for one in counts.values() for line in one.findings], sep="\n")
    columns = "".join(f"{column:>8}" for column in PRIVATE_WORDS)
    print("Words per 1,000 lines of docstrings, comments and messages:")
    print(f"{'package':28}{'names':>8} {'private':>8} {'lines':>8}{columns}")
    for name, one in counts.items():
        print(one.table_row(name))


if __name__ == "__main__":
    main()
