"""Who may import whom, read from the sources; and each host package without the other."""

import ast
import functools
import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers.estimator_table import OF_CLASSES
from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[1]
SOURCES = {
    "shapley_adapters": ROOT / "adapters" / "shapley_adapters",
    "shap_ext": ROOT / "shap_ext",
    "captum_ext": ROOT / "captum_ext",
}
HOSTS = {"shap", "captum", "shap_ext", "captum_ext"}
NEEDS_TORCH = {
    "amortized",
    "array_module",
    "attributions",
    "autograd_torch",
    "derivatives_torch",
    "device_memory",
    "language_models",
    "random_state",
    "surrogate_training",
    "value_functions_torch",
}

# Folders, and modules beside them: each may import those of the floors before its own.
FLOORS = {
    "shapley_adapters": [
        {"array_types", "atomic_files", "errors", "global_generators", "memory_bounds"},
        {
            "arguments",
            "coalitions",
            "constructors",
            "frames",
            "hierarchies",
            "torch_support",
            "workers",
        },
        {
            "answer_memory",
            "games",
            "graphs",
            "row_sources",
            "series_windows",
            "streamed_values",
            "superpixels",
            "training_options",
        },
        {"batch_function", "conditional", "cooperators", "criteria", "interactions", "remote"},
        {"aggregation", "coalition_function", "estimators", "language_models"},
        {"pipeline"},
        {"amortized", "global_importance", "streams"},
        {"surrogates"},
    ],
    "shap_ext": [
        {"argument_types"},
        {"shap_internals"},
        {"inputs"},
        {"maskers", "models", "results"},
        {"games", "importance", "streams"},
        {"explainers"},
        {"aggregates", "explained_games", "plots"},
        {"criteria", "registration", "report_page"},
    ],
    "captum_ext": [
        {"argument_types"},
        {"captum_internals", "futures"},
        {"inputs"},
        {"conditional", "games", "results"},
        {"streams"},
        {"attributions"},
        {"aggregates", "captum_tools", "explained_games"},
        {"criteria"},
    ],
}

# Of the estimators: what more than one method uses, or can.
SHARED_BY_ESTIMATORS = {
    "background_means",
    "checked_results",  # of estimators of other packages
    "cross_fitting",
    "linear_algebra",
    "order_designs",
    "odd_gp",  # its regression, whose errors SHEAR estimates
    "pair_folds",
    "protocol",
    "random_answers",
    "registered",
    "units",
    "value_errors",
}


def files(package):
    return sorted(SOURCES[package].rglob("*.py"))


MODULES = [(package, path) for package in SOURCES for path in files(package)]


@functools.cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path, *, when_run=False):
    """Walk the syntax of a module; `when_run` leaves out what only type checkers see."""
    waiting = [syntax(path)]
    while waiting:
        node = waiting.pop()
        yield node
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not (when_run and is_for_types):
            waiting.extend(ast.iter_child_nodes(node))


def imports(package, path, *, when_run=False):
    """Return the full names of the modules, or of names in them, that a module imports."""
    inside = [package, *path.relative_to(SOURCES[package]).with_suffix("").parts]
    found = set()
    for node in nodes(path, when_run=when_run):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = inside[: -node.level] if node.level else []
            origin = ".".join([*start, *filter(None, [node.module])])
            found |= {f"{origin}.{alias.name}" for alias in node.names}
    return found


def packages(package, path, **options):
    return {name.split(".")[0] for name in imports(package, path, **options)}


def modules_inside(package, path, **options):
    """Return the modules of its own package that a module imports, without the package's name."""
    here = [path.relative_to(SOURCES[package]).with_suffix("").parts for path in files(package)]
    modules = {".".join(parts) for parts in here}
    inside = set()
    for name in imports(package, path, **options):
        if name.startswith(f"{package}."):
            parts = name.split(".")[1:]
            known = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
            inside.add(next((module for module in known if module in modules), known[-1]))
    return inside


def needs_torch(path):
    return path.stem in NEEDS_TORCH or path.parent.name in NEEDS_TORCH


def test_all_sources_are_found():
    assert {package for package, _ in MODULES} == set(SOURCES)
    assert len(MODULES) > 30
    found = imports("shapley_adapters", SOURCES["shapley_adapters"] / "estimators" / "exact.py")
    assert {
        "numpy",
        "shapley_adapters.errors.BudgetError",
        "shapley_adapters.estimators.protocol.Solution",
    } <= found


def test_hosts_and_core_keep_apart():
    allowed = {
        "shapley_adapters": set(),
        "shap_ext": {"shap", "shap_ext"},
        "captum_ext": {"captum", "captum_ext"},
    }
    for package, path in MODULES:
        assert packages(package, path) & HOSTS <= allowed[package], path


def test_torch_is_imported_where_it_is_needed_only():
    """At run time; annotations may name tensors."""
    for package, path in MODULES:
        if package != "captum_ext" and not needs_torch(path):
            assert "torch" not in packages(package, path, when_run=True), path


@pytest.mark.parametrize("package", ["shapley_adapters", "shap_ext"])
def test_modules_that_need_torch_are_imported_lazily(package):
    for path in files(package):
        if needs_torch(path):  # and imports torch anyway
            continue
        of_module = ast.parse(path.read_text(encoding="utf-8")).body
        for node in of_module:
            if isinstance(node, ast.Import | ast.ImportFrom):
                words = set(re.findall(r"\w+", ast.unparse(node)))
                assert not words & NEEDS_TORCH, path


@pytest.mark.parametrize("package", FLOORS)
def test_folders_import_one_way(package):
    floors = {name: floor for floor, names in enumerate(FLOORS[package]) for name in names}
    assert len(FLOORS[package]) <= 8
    for path in files(package):
        inside = path.relative_to(SOURCES[package])
        folder = inside.parts[0].removesuffix(".py")
        if folder == "__init__":
            continue
        assert folder in floors, f"{inside}: say in FLOORS where its folder belongs"
        others = {name.split(".")[0] for name in modules_inside(package, path)} - {folder}
        later = {name for name in others if floors[name] >= floors[folder]}
        assert not later, f"{inside} imports {later}"


@pytest.mark.parametrize("package", FLOORS)
def test_no_imports_go_in_circles(package):
    graph = {
        ".".join(path.relative_to(SOURCES[package]).with_suffix("").parts): modules_inside(
            package, path, when_run=True
        )
        for path in files(package)
    }
    TopologicalSorter(graph).prepare()


def test_estimators_know_neither_the_evaluation_nor_each_other():
    """But for `best`, which chooses among others."""
    folder = SOURCES["shapley_adapters"] / "estimators"
    for path in folder.rglob("*.py"):
        method = path.relative_to(folder).parts[0].removesuffix(".py")
        for module in modules_inside("shapley_adapters", path):
            parts = module.split(".")
            assert parts[0] != "games", path
            if parts[0] == "estimators" and parts[1] != method and method != "best":
                assert parts[1] in SHARED_BY_ESTIMATORS, path


def test_private_pieces_of_the_hosts_are_named_in_one_module_each():
    for package, host in (("shap_ext", "shap"), ("captum_ext", "captum")):
        for path in files(package):
            private = {
                name
                for name in imports(package, path)
                if name.startswith(f"{host}.") and any(p.startswith("_") for p in name.split("."))
            }
            assert not private or path.stem == f"{host}_internals", path.name


def test_modules_are_named_for_what_they_own():
    for _, path in MODULES:
        named = path.stem.strip("_")
        assert named not in {"utils", "util", "helpers", "common", "base", "misc"}, path


def test_no_assert_statements():
    """They vanish under `python -O`."""
    for _, path in MODULES:
        lines = [node.lineno for node in nodes(path) if isinstance(node, ast.Assert)]
        assert lines == [], path


def test_no_global_random_state():
    for package, path in MODULES:
        assert_no_global_random_state(package, path)


def assert_no_global_random_state(package, path):
    names = ("Generator", "Philox", "SeedSequence", "default_rng")  # each has a state of its own
    allowed = {f"np.random.{name}" for name in names}
    keeps_both = path == SOURCES["shapley_adapters"] / "global_generators.py"  # and restores them
    if keeps_both:
        kept = {"get_state", "set_state", "RandomState", "MT19937"}
        allowed |= {f"np.random.{name}" for name in kept}
    if package == "shap_ext" and path.name == "aggregate_explainer.py":
        allowed |= {"np.random.get_state"}  # in which shap leaves it
    used = {ast.unparse(node) for node in nodes(path) if isinstance(node, ast.Attribute)}
    numpy_random = {name for name in used if name.count(".") == 2 and ".random." in name}
    assert {name for name in numpy_random if name.startswith(("np.", "numpy."))} <= allowed, path
    if "torch.random.fork_rng" not in used:  # which puts the state back
        assert "torch.manual_seed" not in used, path
    assert not used & {"torch.rand", "torch.randn"}, path
    assert keeps_both or "random" not in packages(package, path), path
    imported = {name for name in imports(package, path) if name.startswith("numpy.random")}
    assert imported <= {"numpy.random.Generator"}, path


# --- with the other host out of reach ---


def run_without(blocked, code):
    """Run `code` in a new interpreter in which the `blocked` modules cannot be imported."""
    script = f"""
import sys
blocked = {blocked!r}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(name + " is blocked", name=name)
sys.meta_path.insert(0, Blocker())
sys.path[:0] = {[str(ROOT), str(ROOT / "adapters")]!r}
{code}"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def messages_without(blocked, uses):
    """Return the name and the message of the ImportError of each use, from one interpreter."""
    code = f"""
import json
import pandas as pd
for use in {uses!r}:
    try:
        exec(use)
    except ImportError as error:
        print(json.dumps([error.name, str(error)]))
"""
    return [json.loads(line) for line in run_without(blocked, code).splitlines()]


def assert_named(found, package, extra):
    name, message = found
    assert name == package
    assert f"{package} is not installed: pip install 'shapley-ext[{extra}]'." in message


@pytest.mark.parametrize(("missing", "package"), [("shap", "shap_ext"), ("captum", "captum_ext")])
def test_a_missing_package_is_named_with_the_extra_that_installs_it(missing, package):
    (found,) = messages_without([missing], [f"import {package}"])
    assert_named(found, missing, missing)


def test_a_missing_package_of_an_option_is_named_where_it_is_used():
    uses = {
        "import shap_ext; shap_ext.SimShapExplainer(len, pd.DataFrame([0]))": "amortized",
        "shap_ext.Surrogate.load('file')": "amortized",
        "shap_ext.plots.bar(None)": "plots",
        "blocked.remove('matplotlib'); shap_ext.draw_graph([[0.0]], [0.0])": "graphs",
    }
    packages = {"amortized": "safetensors", "graphs": "networkx", "plots": "matplotlib"}
    found = messages_without(list(packages.values()), list(uses))
    for one, extra in zip(found, uses.values(), strict=True):
        assert_named(one, packages[extra], extra)


def test_the_core_needs_no_host_and_no_torch():
    code = """
import numpy as np, shapley_adapters as core
class Sums(core.Game):
    n_rows, n_players, evaluations_per_batch = 1, 9, 100
    def __call__(self, rows, coalitions): return coalitions.sum(axis=1, keepdims=True) * 1.0
settings = core.Settings(seed=0, budget=100)
print(core.estimate(Sums(), core.Shear(), settings).values.round(9).ravel().tolist())
"""
    assert run_without(["shap", "captum", "torch"], code) == str([1.0] * 9)


NEEDED: dict[str, dict] = {
    **{name: {"graph": "line"} for name in ("lshapley", "cshapley", "myerson")},
    "hierarchy": {"hierarchy": [[0, 1, 2], [3, 4], [5, [6, 7, 8]]]},
    "asymmetric": {"order": [[0, 1, 2], [3, 4, 5, 6, 7, 8]]},
}


def test_shap_ext_works_without_captum_and_torch():
    is_exact = {row.algorithm: row.exact_on_additive for row in OF_CLASSES}
    code = f"""
not_exact = {[name for name, exact in is_exact.items() if not exact]}
import numpy as np, shap, shap_ext
for name in set(shap_ext.algorithms()) - set(("fastshap", "simshap")):  # which need torch
    options = dict(dataset=np.ones((1, 9))) if name == "ava" else {NEEDED}.get(name, dict())
    model = lambda x: x @ np.arange(9.0)
    explainer = shap.Explainer(model, np.zeros((1, 9)), algorithm=name, **options)
    found = explainer(np.ones((2, 9)), max_evals=512, silent=True)
    assert np.allclose(found.values, np.arange(9.0)), name
    if name not in ("enumeration", *not_exact):
        found = explainer(np.ones((2, 9)), max_evals=120, silent=True)
        assert np.allclose(found.values, np.arange(9.0)), name
print("done")
"""
    assert run_without(["captum", "captum_ext", "torch"], code) == "done"


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_captum_ext_works_without_shap():
    code = f"""
import captum, torch, captum_ext
for name in captum_ext.__all__:
    kind = getattr(captum_ext, name)
    is_trained = name in ("FastShap", "SimShap")
    is_method = isinstance(kind, type) and issubclass(kind, captum.attr.PerturbationAttribution)
    if is_method and not is_trained:
        options = {NEEDED}.get(name.lower(), dict())
        method = kind(lambda x: (x * torch.arange(9.0)).sum(1), seed=0, **options)
        found = method.attribute(torch.ones(2, 9), n_samples=512)
        assert torch.allclose(found, torch.arange(9.0).expand(2, 9)), name
print("done")
"""
    assert run_without(["shap", "shap_ext"], code) == "done"


USES = {
    "shap_ext": """
import numpy as np
explainer = shap_ext.ShearExplainer(lambda x: x.sum(axis=1) ** 2, np.zeros((1, 12)), seed=0)
explainer(np.ones((1, 12)), max_evals=200, silent=True)
""",
    "captum_ext": "",
}
SLOW_TO_IMPORT = {
    *("filelock", "joblib", "narwhals", "networkx", "numba", "pandas", "pyarrow"),
    *("scipy.optimize", "scipy.stats", "sklearn"),
}


@pytest.mark.parametrize(("host", "package"), [("shap", "shap_ext"), ("captum.attr", "captum_ext")])
def test_what_is_slow_to_import_is_imported_when_it_is_used(host, package):
    """But for what the host imports itself. captum_ext took 2 s and 160 MB before."""
    pytest.importorskip(host)
    code = f"""
import sys, {host}
before = set(sys.modules)
import {package}
print(sorted({SLOW_TO_IMPORT!r} & (set(sys.modules) - before)))
{USES[package]}
print("torch" in sys.modules)
"""
    # Neither shap, as of 0.51, nor the use of shap_ext imports torch.
    assert run_without([], code).splitlines() == ["[]", str(package == "captum_ext")]


def test_explainers_import_no_features():
    """Streams, batches of tables and importance take an explainer; its methods import them."""
    for folder in (SOURCES["shap_ext"] / "explainers", SOURCES["captum_ext"] / "attributions"):
        for path in folder.glob("*.py"):
            above = [
                one.module or "" for one in syntax(path).body if isinstance(one, ast.ImportFrom)
            ]
            assert not re.search("streams|batch_function|importance", " ".join(above)), path


@pytest.mark.parametrize("package", ["shap_ext", "captum_ext"])
def test_few_classes_are_above_a_public_one(package):
    module = pytest.importorskip(package)
    ours = {"shap_ext", "captum_ext", "shapley_adapters"}
    for name in module.__all__:
        public = getattr(module, name)
        if isinstance(public, type):
            above = [kind.__name__ for kind in public.__mro__[1:] if root_of(kind) in ours]
            is_network = {"AmortizedExplainer", "AmortizedAttribution"} & set(above)
            assert len(above) <= (5 if is_network else 3), (name, above)


def root_of(kind):
    """Return the package that a class belongs to."""
    return kind.__module__.split(".")[0]
