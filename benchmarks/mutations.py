"""How many random mutations of the core the tests notice.

    python benchmarks/mutations.py --seed 3 [--mutations 60] [--tests tests/core tests/parity]

Needs the extra [coverage]. The fast tests run once, and coverage.py says which test functions run
each line. Each mutation changes one operator, comparison, constant or condition in a line that a
test runs, in a copy of the repository; the functions that run the line are run, the fastest first,
until one fails. The table has the mutations that none noticed. Some of them change nothing that
can be noticed, such as a bound on memory: look at each.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import coverage
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CORE = Path("adapters/shapley_adapters")
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "build", "_build", "images")

_OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}
_COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A piece of a file, on one line, and what takes its place."""

    file: Path
    line: int
    start: int
    end: int
    new: str

    def apply(self, source: str) -> str:
        """Return the mutated source; columns count bytes, as in `ast`."""
        lines = source.encode().splitlines(keepends=True)
        old = lines[self.line - 1]
        lines[self.line - 1] = old[: self.start] + self.new.encode() + old[self.end :]
        return b"".join(lines).decode()


def mutations_of_file(file: Path) -> list[Mutation]:
    """Return all mutations of a file, docstrings, annotations and messages left out."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = []
    for node in _computing_nodes(tree):
        new = _replaced(node)
        if new is not None and node.lineno == node.end_lineno:  # type: ignore[attr-defined]
            places = node.lineno, node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
            found.append(Mutation(file, *places, new))
    return found


def _computing_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the nodes below one that compute something when the code runs."""
    nodes = []
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Raise | ast.JoinedStr):
                nodes += [child, *_computing_nodes(child)]
    return nodes


def _replaced(node: ast.AST) -> str | None:
    """Return the mutated text of a node, or None."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        sides = ast.unparse(node.left), ast.unparse(node.right)
        return f"(({sides[0]}) {_OPERATORS[type(node.op)]} ({sides[1]}))"
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS and len(node.ops) == 1:
        sides = ast.unparse(node.left), ast.unparse(node.comparators[0])
        return f"(({sides[0]}) {_COMPARISONS[type(node.ops[0])]} ({sides[1]}))"
    if isinstance(node, ast.BoolOp):
        joint = " or " if isinstance(node.op, ast.And) else " and "
        return f"({joint.join(f'({ast.unparse(value)})' for value in node.values)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"({ast.unparse(node.operand)})"
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return repr(not node.value if isinstance(node.value, bool) else 2 * node.value or 1)
    return None


def functions_by_line(folder: Path, tests: list[str]) -> dict[tuple[str, int], list[str]]:
    """Run the fast tests; return the test functions that run each line, the fastest first."""
    settings = folder / "coveragerc"
    settings.write_text(
        f"[run]\nsource = {folder / CORE}\ndynamic_context = test_function\ncore = ctrace\n"
        f"data_file = {folder / 'coverage.data'}\n"
    )
    command = ["-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q"]
    if _run(folder, [*command, "-m", "not slow", f"--junitxml={folder / 'times.xml'}", *tests]):
        raise SystemExit("Tests fail without any mutation. Mend them first.")
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(folder / "times.xml").iter("testcase"):
        name = str(case.get("name")).partition("[")[0]
        seconds[f"{case.get('classname')}.{name}"] += float(case.get("time", 0))
    data = coverage.CoverageData(str(folder / "coverage.data"))
    data.read()
    functions = {}
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            named = sorted((one for one in contexts if one), key=lambda one: seconds[one])
            functions[str(Path(file).relative_to(folder)), line] = named
    return functions


def is_noticed(folder: Path, mutation: Mutation, functions: list[str], limit: float) -> bool:
    """Return whether a test fails, or runs endlessly, with the mutation."""
    path = folder / mutation.file
    source = path.read_text(encoding="utf-8")
    path.write_text(mutation.apply(source), encoding="utf-8")
    nodes = [
        f"{one.rpartition('.')[0].replace('.', '/')}.py::{one.rpartition('.')[2]}"
        for one in functions
    ]
    try:
        return _run(folder, ["-m", "pytest", "-qx", "-m", "not slow", *nodes], limit) != 0
    finally:
        path.write_text(source, encoding="utf-8")


def _run(folder: Path, arguments: list[str], limit: float | None = None) -> int:
    """Run Python in the copy; return its status, 1 if it takes longer than the limit."""
    paths = os.pathsep.join([str(folder), str(folder / "adapters")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, timeout=limit,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1
    return done.returncode


def main() -> None:
    """Draw mutations and print those that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--mutations", type=int, default=60)
    parser.add_argument("--tests", nargs="+", default=["tests/core", "tests/parity"])
    parser.add_argument("--most-functions", type=int, default=25, help="for each mutation")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each mutation")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        shutil.copytree(ROOT, folder, ignore=_LEFT_OUT)
        functions = functions_by_line(folder, arguments.tests)
        files = sorted((ROOT / CORE).rglob("*.py"))
        mutations = [
            mutation
            for file in files
            for mutation in mutations_of_file(file.relative_to(ROOT))
            if functions.get((str(mutation.file), mutation.line))
        ]
        drawn = [mutations[index] for index in rng.permutation(len(mutations))]
        print("| file | line | becomes |\n|---|---|---|")
        n_noticed = 0
        for mutation in drawn[: arguments.mutations]:
            named = functions[str(mutation.file), mutation.line][: arguments.most_functions]
            if is_noticed(folder, mutation, named, arguments.limit):
                n_noticed += 1
            else:
                lines = [mutation.file, mutation.line, f"`{mutation.new}`"]
                print("| " + " | ".join(map(str, lines)) + " |", flush=True)
        n_drawn = min(arguments.mutations, len(drawn))
        print(f"\nNoticed: {n_noticed} of {n_drawn}, of {len(mutations)} possible ones.")


if __name__ == "__main__":
    main()
