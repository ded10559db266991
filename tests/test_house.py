"""A ratchet: how much there is to understand. `tests/house.json` has the numbers; they only fall.

    python tests/test_house.py            # prints what rose and what fell
    python tests/test_house.py --write    # writes the numbers of now
    python tests/test_house.py --walk "shap best"    # prints the functions that a call enters

A commit lowers numbers or leaves them. One that must raise a number says in its message which
others it lowered for it. Every number is counted, none is measured by a clock:

- lines of code: lines with a token that is no comment and no docstring; modules: Python files;
- functions and modules of a warm call: distinct functions (comprehensions belong to theirs) that
  the second of two equal calls enters, between the user's call and its return;
- public names: those of `__all__`, and methods of public classes; their parameters without `self`;
- numbers: literals other than 0 to 9 and .5, at any place of the code;
- words: of pages and of the CHANGELOG; names at the top level, without `.git` and what git ignores.
"""

import ast
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "house.json"
FOLDERS = {
    "shapley_adapters": ROOT / "adapters" / "shapley_adapters",
    "shap_ext": ROOT / "shap_ext",
    "captum_ext": ROOT / "captum_ext",
    "oddgp": ROOT / "adapters" / "shapley_adapters" / "estimators" / "odd_gp",
    "tests": ROOT / "tests",
    "benchmarks": ROOT / "benchmarks",
}
SHIPPED = ("shapley_adapters", "shap_ext", "captum_ext")
N_ROWS, N_PLAYERS, BUDGET = 5, 12, 500


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="torch is not installed")
def test_the_house_does_not_grow():
    path = os.pathsep.join(
        filter(None, [str(ROOT), str(ROOT / "adapters"), os.getenv("PYTHONPATH")])
    )
    done = subprocess.run(
        [sys.executable, __file__, "--json"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    now, recorded = json.loads(done.stdout), json.loads(RECORDED.read_text("utf-8"))
    assert now == recorded, (
        f"\n{table(recorded, now)}\nWhat rose must fall again. For what fell, or rose for it, "
        "run `python tests/test_house.py --write`."
    )


def table(recorded, now):
    """Return a line for each number that differs."""
    lines = [
        f"{'ROSE' if after > before else 'fell'}  {kind}, {name}: {before:,} -> {after:,}"
        for kind, numbers in now.items()
        for name, after in numbers.items()
        if after != (before := recorded.get(kind, {}).get(name, 0))
    ]
    return "\n".join(sorted(lines)) or "Nothing changed."


def numbers():
    """Return all numbers, by kind and name."""
    files = {name: sorted(folder.rglob("*.py")) for name, folder in FOLDERS.items()}
    shipped = {name: files[name] for name in (*SHIPPED, "oddgp")}
    walks = {name: walk(call) for name, call in CALLS.items()}
    return {
        "lines of code": {name: sum(map(code_lines, paths)) for name, paths in files.items()},
        "modules": {name: len(paths) for name, paths in files.items()},
        "functions of a warm call": {name: len(functions) for name, functions in walks.items()},
        "modules of a warm call": {
            name: len({path for path, *_ in functions}) for name, functions in walks.items()
        },
        "public names": {name: len(values) for name, values in public().items()},
        "public parameters": {name: sum(values) for name, values in public().items()},
        "numbers": {name: sum(map(literals, paths)) for name, paths in shipped.items()},
        "words": {
            "docs": words(*ROOT.glob("docs/*.md"), *ROOT.glob("docs/api/*.md")),
            "benchmarks": words(*ROOT.glob("benchmarks/*.md")),
            "README": words(ROOT / "README.md"),
            "CHANGELOG": words(ROOT / "CHANGELOG.md"),
        },
        "names": {"top level": len(top_level())},
    }


def code_lines(path):
    """Return the lines of a module that hold code: those of texts do, but for docstrings."""
    text = path.read_text("utf-8")
    of_texts, documented = set(), set()
    for node in ast.walk(ast.parse(text)):
        inside = range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", None) or 0) + 1)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented.update(inside)
        elif isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", 0), str | bytes):
            of_texts.update(inside)
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    code = {number for number, line in lines if line and line[0] != "#"}
    return len((code | of_texts) - documented)


def literals(path):
    """Return how many numbers a module states that somebody chose."""
    return sum(
        isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in (*range(10), 0.5)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )


def words(*paths):
    """Return how many words some pages have."""
    return sum(len(path.read_text("utf-8").split()) for path in paths)


def top_level():
    """Return the names that a stranger sees first."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.partition("/")[0] for name in listed.stdout.splitlines()}


def public():
    """Return how many parameters each public name and method has, by package."""
    from tests.test_public_signatures import public_values

    counts = {name: [] for name in SHIPPED}
    for path, value in public_values():
        try:
            names = set(inspect.signature(value).parameters) - {"self", "cls"}
        except (TypeError, ValueError):
            names = set()
        counts[path.partition(".")[0]].append(len(names))
    return counts


def walk(prepare):
    """Return the functions that the second of two equal calls enters: file, line and name of each.

    Which functions choose the size of a batch depends on the clock, so that they do not count. Only
    the main thread is watched, so that there must be no other.
    """
    call = prepare()
    folders = tuple(f"{FOLDERS[name]}{os.sep}" for name in SHIPPED)
    entered = set()

    def record(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders):
            entered.add((code.co_filename, code.co_firstlineno, code.co_name))

    with threadpool_limits(1):
        call()
        sys.setprofile(record)
        try:
            call()
        finally:
            sys.setprofile(None)
    return sorted(
        (str(Path(file).relative_to(ROOT)), line, name)
        for file, line, name in entered
        if (name == "<lambda>" or name[0] != "<") and not file.endswith("batch_sizes.py")
    )


def through_shap(algorithm):
    import shap

    import shap_ext  # noqa: F401 # it makes shap know the algorithms

    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(100, N_PLAYERS)), rng.normal(size=N_PLAYERS)

    def model(rows):
        return np.tanh(rows @ weights) + rows[:, 0] * rows[:, 1]

    explainer = shap.Explainer(model, X, algorithm=algorithm, seed=0)
    return lambda: explainer(X[:N_ROWS], max_evals=BUDGET, silent=True)


def through_captum(name):
    import torch

    import captum_ext

    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(N_ROWS, N_PLAYERS, generator=generator)
    weights = torch.randn(N_PLAYERS, generator=generator)

    def forward(rows):
        return torch.tanh(rows @ weights) + rows[:, 0] * rows[:, 1]

    method = getattr(captum_ext, name)(forward, seed=0)
    return lambda: method.attribute(inputs, n_samples=BUDGET)


CALLS = {
    "shap best": lambda: through_shap("best"),
    "shap oddgp": lambda: through_shap("oddgp"),
    "shap leastsquares": lambda: through_shap("leastsquares"),
    "captum Best": lambda: through_captum("Best"),
    "captum OddGP": lambda: through_captum("OddGP"),
}


def main(*arguments):
    if arguments[:1] == ("--walk",):
        for path, line, name in walk(CALLS[arguments[1]]):
            print(f"{path}:{line} {name}")
        return
    now = numbers()
    text = json.dumps(now, indent=1) + "\n"
    if arguments == ("--json",):
        print(text)
        return
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    print(table(recorded, now))
    if arguments == ("--write",):
        RECORDED.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "adapters")]
    main(*sys.argv[1:])
