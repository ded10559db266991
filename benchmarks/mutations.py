"""How many random mutants of the shipped code the fast tests catch, and which survive.

    python benchmarks/mutations.py --seed 3 [--mutants 60] [--of captum_ext] [--tests tests/core]

Coverage.py of the extra [coverage] tells which cases run each line; `--map FOLDER` keeps that. A
mutant changes one thing, while its module is imported in a process of its own: no file changes. Its
cases follow, of each function the fastest first, until one fails or a minute of tests is spent.
"""

import argparse
import ast
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.machinery import SourceFileLoader
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("shap_ext", "captum_ext", "adapters/shapley_adapters")
PACKAGES = {Path(name).name: ROOT / name for name in FOLDERS}
SECONDS = 60.0
ARITHMETIC, COMPARISON, BOUNDARY = (
    {getattr(ast, old): getattr(ast, new) for old, new in map(str.split, pairs.split(","))}
    for pairs in (
        "Add Sub,Sub Add,Mult Div,Div Mult,FloorDiv Mult,Pow Mult,BitAnd BitOr,BitOr BitAnd,And Or",
        "Lt GtE,LtE Gt,Gt LtE,GtE Lt,Eq NotEq,NotEq Eq,Is IsNot,IsNot Is,In NotIn,NotIn In",
        "Lt LtE,LtE Lt,Gt GtE,GtE Gt",
    )
)


def changes(tree: ast.AST) -> Any:
    """Yield kinds of change, the node, and what makes the change in the tree."""
    fields = [(node, *field) for node in ast.walk(tree) for field in ast.iter_fields(node)]
    left_out = {  # texts of errors, annotations, and decorators
        id(inner)
        for node, name, value in fields
        if name in {"annotation", "returns", "decorator_list"}
        or isinstance(node, ast.Raise | ast.JoinedStr)
        for root in (value if isinstance(value, list) else [value])
        for inner in ast.walk(root or ast.Pass())
    }
    for node, name, value in fields:
        to = partial(setattr, node, name)
        for place, one in enumerate(value if isinstance(value, list) else []):
            is_call = isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
            if is_call or isinstance(one, ast.AugAssign | ast.Raise):
                yield "statement", one, partial(value.__setitem__, place, ast.Pass())
        if id(node) in left_out:
            continue
        if name == "op" and type(value) in ARITHMETIC:
            yield "arithmetic", node, partial(to, ARITHMETIC[type(value)]())
        if name == "ops" and type(value[0]) in COMPARISON:
            yield "comparison", node, partial(to, [COMPARISON[type(value[0])](), *value[1:]])
        if name == "ops" and type(value[0]) in BOUNDARY:
            yield "boundary", node, partial(to, [BOUNDARY[type(value[0])](), *value[1:]])
        if name == "test" and ast.unparse(value) != "TYPE_CHECKING":
            yield "negation", node, partial(to, ast.UnaryOp(ast.Not(), value))
        if name == "value" and isinstance(node, ast.keyword) and node.arg in {"axis", "dim"}:
            yield "axis", node, partial(to, ast.Constant(int(ast.unparse(value) == "0")))
        if isinstance(node, ast.Constant) and name == "value" and isinstance(value, int | float):
            more = value + 1 if isinstance(value, int) else 2 * value or 1.0
            yield "constant", node, partial(to, not value if isinstance(value, bool) else more)


def mutated(file: Path, n: int) -> tuple[ast.Module, str]:
    """Return the tree of a file with its n-th change, and what that changes."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    _, node, change = list(changes(tree))[n]
    before = ast.unparse(node).splitlines()[0]
    change()
    return ast.fix_missing_locations(tree), f"`{before}` → `{ast.unparse(node).splitlines()[0]}`"


def run_cases(file: Path, n: int, cases: list[str]) -> None:
    """Run the cases with the n-th change of the file, and end the process with their status."""
    signal.alarm(int(10 * SECONDS))  # which ends it, too
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    original = SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        new = mutated(file, n)[0] if Path(self.path) == file else None
        return compile(new, self.path, "exec") if new else original(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    os._exit(pytest.main(["-qx", "-n0", "-p", "no:cacheprovider", *cases]))


class Map:
    """A plugin that notes which case runs which line, and how long the cases take."""

    def __init__(self) -> None:
        import coverage

        self.path, self.seconds = f"{os.environ['MAP']}/data.{os.getpid()}", dict[str, float]()
        sources = list(map(str, PACKAGES.values()))
        self.coverage = coverage.Coverage(self.path, source=sources, config_file=False)
        self.coverage.start()

    def pytest_runtest_setup(self, item: Any) -> None:
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        self.coverage.save()
        Path(self.path.replace("data.", "seconds.")).write_text(json.dumps(self.seconds))


def pytest_configure(config: Any) -> None:
    """Begin the map, where the tests run for it."""
    config.pluginmanager.register(Map())


def cases_of(folder: Path, file: Path, line: int) -> list[str]:
    """Return the cases that run a line, or, where it runs on import or never, any of its file."""
    import coverage

    seconds, by_line = dict[str, float](), defaultdict[int, set[str]](set)
    for path in folder.glob("seconds.*"):
        seconds |= json.loads(path.read_text())
        data = coverage.CoverageData(str(path).replace("seconds.", "data."))
        data.read()
        for at, cases in data.contexts_by_lineno(str(file)).items():
            by_line[at].update(cases)
    of_line, of_file = by_line[line] & set(seconds), set().union(*by_line.values()) & set(seconds)
    ranks, order = Counter[str](), list[tuple[int, float, str]]()
    for own, case in sorted((seconds[case], case) for case in of_line or of_file):
        ranks[case.partition("[")[0]] += 1
        order.append((ranks[case.partition("[")[0]], own, case))
    order.sort()
    spent = accumulate(own for _, own, _ in order)
    fitting = [case for (*_, case), sum_ in zip(order, spent, strict=True) if sum_ < SECONDS]
    return fitting or [case for *_, case in order[:1]]


def main() -> None:
    """Draw mutants, try each, and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", required=True, help="any text")
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--of", nargs="+", default=sorted(PACKAGES), choices=sorted(PACKAGES))
    parser.add_argument("--tests", nargs="+", default=["tests"])
    parser.add_argument("--map", type=Path, default=ROOT / "build" / "map", help="made if missing")
    given = parser.parse_args()
    if not given.map.exists():
        given.map.mkdir(parents=True)
        os.environ["MAP"] = str(given.map.resolve())
        options = ["-p", "benchmarks.mutations", "-q", "-n2", "-m", "not slow", *given.tests]
        subprocess.run([sys.executable, "-m", "pytest", *options], check=False)
    by_kind = defaultdict(list)
    for file in (one for name in given.of for one in sorted(PACKAGES[name].rglob("*.py"))):
        for n, (kind, node, _) in enumerate(changes(ast.parse(file.read_text(encoding="utf-8")))):
            by_kind[kind].append((kind, file, n, node.lineno))
    rng, processes = random.Random(given.seed), multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["scipy.stats", "sklearn.ensemble", "shap", "captum.attr"])
    drawn = [rng.choice(by_kind[rng.choice(sorted(by_kind))]) for _ in range(given.mutants)]

    def tried(kind: str, file: Path, n: int, line: int) -> str:
        cases = cases_of(given.map, file, line)
        process = processes.Process(target=run_cases, args=(file, n, cases))
        if cases:
            process.start()
            process.join()
        what = {None: "not run", 0: "SURVIVED", 4: "cases are gone"}.get(process.exitcode, "caught")
        print(f"| {file}:{line} | {kind} | {mutated(file, n)[1]} | {what} |", flush=True)
        return what

    print("| line | kind | change | |\n|---|---|---|---|")
    with ThreadPoolExecutor(2) as pool:
        print(dict(Counter(pool.map(tried, *zip(*drawn, strict=True)))))


if __name__ == "__main__":
    main()
