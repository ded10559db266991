"""How many random mutants of the shipped code the fast tests catch, and which survive.

    python benchmarks/mutations.py --seed 3 [--mutants 60]

First the fast tests run once, with a probe before each statement that a mutant changes: it notes
which cases run it. Probes and mutants are put in while a module is imported: no file changes. Then
each mutant gets a process of its own, in which its cases follow, of each function the fastest
first, until one fails or `--seconds` of tests are spent. It ends with all that it started after a
minute and five times these seconds, and has 8 GiB of memory. The status is 1 if more than
`--survivors` survived or could not be put in, or none was caught.

`.ci/run` tries mutants that its commit draws: it lets its own run of the fast tests note the cases,
by `MUTANTS="--seed …"` and `PYTEST_PLUGINS=benchmarks.mutations` in the environment.
"""

import argparse
import ast
import builtins
import gc
import json
import multiprocessing
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("shap_ext", "captum_ext", "adapters/shapley_adapters")
PACKAGES = {Path(name).name: ROOT / name for name in FOLDERS}
EQUIVALENT = {
    (
        "adapters/shapley_adapters/estimators/graph/union_contexts.py",
        "`(number + rank) % 2 != is_reversed` → `(number + rank) % 2 == is_reversed`",
    ): "equivalent: chance decides whether an order or its reverse comes first",
    (
        "adapters/shapley_adapters/amortized/unlike_rows.py",
        "`rng.random(base.shape) < 0.5` → `rng.random(base.shape) <= 0.5`",
    ): "equivalent: one of 2^53 numbers is 0.5",
    (
        "adapters/shapley_adapters/estimators/linear_algebra.py",
        "`factor[-1].min() ** 2 > n_players * np.finfo(float).eps` → "
        "`factor[-1].min() ** 2 >= n_players * np.finfo(float).eps`",
    ): "equivalent: rounding decides at the threshold of rounding errors",
}
"""Mutants that no test can catch, by file and change, and why."""
NOT_CHANGED = 99
"""The status of a process that loaded its module from another place, or too early."""
RESULTS = {
    None: "not run",
    0: "SURVIVED",
    4: "cases are gone",
    5: "cases are gone",
    NOT_CHANGED: "NOT CHANGED",
    -signal.SIGALRM: "timed out",
}
"""What the status of a process says; others say that the mutant was caught."""
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
    left_out = {  # texts of errors, annotations, decorators, and checks of lengths by zip
        id(inner)
        for node, name, value in fields
        if name in {"annotation", "returns", "decorator_list"}
        or isinstance(node, ast.Raise | ast.JoinedStr)
        or (name == "value" and isinstance(node, ast.keyword) and node.arg == "strict")
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


class Mutant(NamedTuple):
    """The n-th change of a file: its kind, and the line of the node that it changes."""

    kind: str
    file: Path
    n: int
    line: int


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line, or of the words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", required=True, help="any text")
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests, for each mutant")
    parser.add_argument("--survivors", type=int, default=sys.maxsize, help="more of them fail")
    return parser.parse_args(words)


def notes_of(given: argparse.Namespace) -> Path:
    """Return the folder of what the cases run."""
    return ROOT / "build" / "mutants" / f"{given.seed}-{given.mutants}"


def drawn(given: argparse.Namespace) -> list[Mutant]:
    """Return as many mutants as are asked for, of each kind about as many."""
    by_kind = defaultdict(list)
    for file in (one for name in sorted(PACKAGES) for one in sorted(PACKAGES[name].rglob("*.py"))):
        for n, (kind, node, _) in enumerate(changes(ast.parse(file.read_text(encoding="utf-8")))):
            by_kind[kind].append(Mutant(kind, file, n, node.lineno))
    rng = random.Random(given.seed)
    return [rng.choice(by_kind[rng.choice(sorted(by_kind))]) for _ in range(given.mutants)]


def mutated(file: Path, n: int) -> tuple[ast.Module, str]:
    """Return the tree of a file with its n-th change, and what that changes."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kind, node, change = list(changes(tree))[n]
    before = ast.unparse(node).splitlines()[0]
    change()
    after = "pass" if kind == "statement" else ast.unparse(node).splitlines()[0]
    return ast.fix_missing_locations(tree), f"`{before}` → `{after}`"


def probed(file: Path, mutants: list[tuple[int, Mutant]]) -> ast.Module:
    """Return the tree of a file with a probe before each statement that one of the mutants changes.

    A statement that runs on import has probes in all functions of the file instead.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = [node for _, node, _ in changes(tree)]
    homes, in_functions, starts = {}, set[int](), []
    for owner in ast.walk(tree):  # outer ones first
        for _, block in ast.iter_fields(owner):
            if not isinstance(block, list) or not block or not isinstance(block[0], ast.stmt):
                continue
            inside = [list(map(id, ast.walk(statement))) for statement in block]
            for statement, ids in zip(block, inside, strict=True):
                homes.update(dict.fromkeys(ids, (block, statement)))
            if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
                in_functions.update(*inside)
                starts.append((block, block[ast.get_docstring(owner) is not None :][:1]))
    for i, mutant in mutants:
        node = id(nodes[mutant.n])
        home = [(homes[node][0], [homes[node][1]])] if node in in_functions else starts
        for block, following in home:
            place = block.index(following[0]) if following else len(block)
            # Where a function goes to another process, nobody listens there.
            probe = ast.parse(f"getattr(__import__('builtins'), 'mutant_runs', str)({i})").body
            block[place:place] = [ast.copy_location(probe[0], block[min(place, len(block) - 1)])]
    return ast.fix_missing_locations(tree)


def import_changed(trees: Mapping[Path, Callable[[], ast.Module]]) -> None:
    """Let files be imported as other trees from now on."""
    original = SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        tree = trees.get(Path(self.path))
        return compile(tree(), self.path, "exec") if tree else original(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def change_loaded(trees: Mapping[Path, Callable[[], ast.Module]]) -> None:
    """Give functions that are loaded already the code that they have in other trees."""
    codes, waiting = {}, [compile(tree(), str(file), "exec") for file, tree in trees.items()]
    while waiting:
        code = waiting.pop()
        codes[code.co_filename, code.co_qualname, code.co_firstlineno] = code
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    for one in gc.get_objects():
        if type(one) is FunctionType:  # classes of others look at what they are on demand
            code = one.__code__
            key = code.co_filename, code.co_qualname, code.co_firstlineno
            one.__code__ = codes.get(key, code)


class Notes:
    """A plugin that notes which cases run the mutants' statements, and how long the cases take."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.folder, self.case, self.seconds = notes_of(given), "", dict[str, float]()
        self.cases, by_file = defaultdict[int, set[str]](set), defaultdict(list)
        for i, mutant in enumerate(drawn(given)):
            by_file[mutant.file].append((i, mutant))
        trees = {file: partial(probed, file, some) for file, some in by_file.items()}
        import_changed(trees)
        change_loaded(trees)  # pytest imports the core for its filters of warnings
        builtins.mutant_runs = lambda i: self.cases[i].add(self.case)  # type: ignore[attr-defined]

    def pytest_runtest_setup(self, item: Any) -> None:
        self.case = item.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        noted = {
            i: {case: self.seconds[case] for case in cases & set(self.seconds)}
            for i, cases in self.cases.items()
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{os.getpid()}.json").write_text(json.dumps(noted))


def pytest_configure(config: Any) -> None:
    """Begin to note, where the tests run for it."""
    config.pluginmanager.register(Notes(arguments(shlex.split(os.environ["MUTANTS"]))))


def cases_of(given: argparse.Namespace, i: int) -> list[str]:
    """Return the cases to try on a mutant, in their order."""
    seconds, ranks = dict[str, float](), Counter[str]()
    for path in notes_of(given).glob("*.json"):
        seconds |= json.loads(path.read_text()).get(str(i), {})
    order = list[tuple[int, float, str]]()
    for own, case in sorted((own, case) for case, own in seconds.items()):
        ranks[case.partition("[")[0]] += 1
        order.append((ranks[case.partition("[")[0]], own, case))
    order.sort()
    spent = accumulate(own for _, own, _ in order)
    fitting = [case for (*_, case), sum_ in zip(order, spent, strict=True) if sum_ < given.seconds]
    return fitting or [case for *_, case in order[:1]]


def run_cases(mutant: Mutant, cases: list[str], seconds: int) -> None:
    """Run the cases with a mutant, and end the process with their status."""
    os.setpgid(0, 0)  # with the processes that it starts
    signal.alarm(seconds)  # which ends it, too
    with suppress(OSError, ValueError):  # of systems that know no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (2**33, 2**33))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    loaded = list[Path]()

    def tree() -> ast.Module:
        loaded.append(mutant.file)
        return mutated(mutant.file, mutant.n)[0]

    import_changed({mutant.file: tree})
    root = next(one.parent for one in PACKAGES.values() if one in mutant.file.parents)
    parts = mutant.file.relative_to(root).with_suffix("").parts
    try:  # which pytest takes for a wrong call where it fails
        import_module(".".join(parts).removesuffix(".__init__"))
    except Exception:
        os._exit(pytest.ExitCode.TESTS_FAILED)
    if not loaded:
        os._exit(NOT_CHANGED)
    os._exit(pytest.main(["-qx", "-n0", "-p", "no:cacheprovider", *cases]))


def main() -> int:
    """Draw mutants, try each, and print what became of it."""
    given = arguments()
    os.chdir(ROOT)  # to which the names of cases refer
    try:
        counts = tried_all(given)
    finally:  # of the code as it is now
        shutil.rmtree(notes_of(given), ignore_errors=True)
    print(dict(counts))
    n_unseen = counts["SURVIVED"] + counts["NOT CHANGED"]
    return 1 if n_unseen > given.survivors or not counts["caught"] else 0


def tried_all(given: argparse.Namespace) -> Counter[str]:
    """Print what became of each mutant, and return how often."""
    if not notes_of(given).exists():
        noting = {"MUTANTS": shlex.join(sys.argv[1:]), "PYTEST_PLUGINS": "benchmarks.mutations"}
        command = [sys.executable, "-m", "pytest", "-q", "-n2", "-m", "not slow", "tests"]
        subprocess.run(command, env={**os.environ, **noting}, check=False)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["scipy.stats", "sklearn.ensemble", "shap", "captum.attr"])

    def tried(i: int, mutant: Mutant) -> str:
        file, change = mutant.file.relative_to(ROOT), mutated(mutant.file, mutant.n)[1]
        cases, reason = cases_of(given, i), EQUIVALENT.get((str(file), change))
        process = processes.Process(
            target=run_cases, args=(mutant, cases, 60 + int(5 * given.seconds))
        )
        if cases and not reason:
            process.start()
            process.join()
            with suppress(OSError):  # no forks are left, in which the mutant may hang
                os.killpg(process.pid, signal.SIGKILL)  # type: ignore[arg-type]
        what = "equivalent" if reason else RESULTS.get(process.exitcode, "caught")
        print(f"| {file}:{mutant.line} | {mutant.kind} | {change} | {reason or what} |", flush=True)
        return what

    print("| line | kind | change | |\n|---|---|---|---|")
    with ThreadPoolExecutor(2) as pool:
        return Counter(pool.map(tried, *zip(*enumerate(drawn(given)), strict=True)))


if __name__ == "__main__":
    sys.exit(main())
