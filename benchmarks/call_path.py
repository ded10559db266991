"""How much code one explanation runs through: distinct functions, their modules, and the depth.

A reader who follows a call meets each function that it enters. This script counts them, and those
of shap's own permutation explainer for comparison:

    python benchmarks/call_path.py [--only shap] [--list]

Functions are those with `def` or `lambda`, with properties, in the source of the named packages.
Comprehensions are part of the function that they stand in: newer Python runs them there. The depth
is the number of frames of these packages between the user's call and the model.

The last column counts functions that the sources mention only where they are defined and called.
Each of them could stand inside its caller, so that a reader meets that many functions less, but
longer ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms

N_ROWS, N_PLAYERS, BUDGET = 5, 12, 500

Model = Callable[[Any], Any]

_TIMED = "batch_sizes.py"
"""Which functions of this module run depends on the time that batches take."""


@dataclass(frozen=True)
class CallPath:
    """What one call enters.

    Attributes
    ----------
    name : str
        The explainer.
    functions : list of str
        The functions, each as the path of its module in the package and its name.
    n_functions, n_modules : int
        How many there are, and in how many modules.
    depth : int
        Frames of the packages between the user's call and the model, at most.
    n_called_once : int
        How many functions have a single place that calls them.
    """

    name: str
    functions: list[str]
    n_functions: int
    n_modules: int
    depth: int
    n_called_once: int


class _Recorder:
    """Records which functions of some packages run, and how deep the model is called."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.folders = tuple(_folder(package) for package in packages)
        self.codes: set[CodeType] = set()
        self.depth = 0

    def watched(self, model: Model) -> Model:
        """Return the model, which measures the depth at each call."""

        def predict(inputs: Any) -> Any:
            frame: FrameType | None = sys._getframe(1)
            depth = 0
            while frame is not None:
                depth += self._is_counted(frame.f_code)
                frame = frame.f_back
            self.depth = max(self.depth, depth)
            return model(inputs)

        return predict

    def record(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a function when it begins; `sys.setprofile` calls this."""
        if event == "call" and self._is_counted(frame.f_code):
            self.codes.add(frame.f_code)

    def _is_counted(self, code: CodeType) -> bool:
        is_function = not code.co_name.startswith("<") or code.co_name == "<lambda>"
        is_function &= not code.co_filename.endswith(_TIMED)
        return is_function and code.co_filename.startswith(self.folders)


def _folder(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed", name=package)
    return str(Path(spec.origin).parent) + "/"


def measure(
    name: str,
    packages: tuple[str, ...],
    model: Model,
    prepare: Callable[[Model], Callable[[], Any]],
) -> CallPath:
    """Run a prepared call once, and return what it entered.

    Parameters
    ----------
    name : str
        The explainer.
    packages : tuple of str
        The packages whose functions count.
    model : callable
        The model.
    prepare : callable
        Builds the explainer of a model, and returns the call to measure.
    """
    recorder = _Recorder(packages)
    call = prepare(recorder.watched(model))
    sys.setprofile(recorder.record)
    try:
        call()
    finally:
        sys.setprofile(None)
    modules = {code.co_filename for code in recorder.codes}
    functions = [f"{_module(code)}:{code.co_firstlineno} {code.co_name}" for code in recorder.codes]
    mentions = _mentions(recorder.folders)
    n_called_once = sum(mentions[code.co_name] == 2 for code in recorder.codes)
    return CallPath(
        name, sorted(functions), len(functions), len(modules), recorder.depth, n_called_once
    )


def _mentions(folders: tuple[str, ...]) -> Counter[str]:
    """Return how often each word stands in the sources of some folders."""
    sources = (path.read_text() for folder in folders for path in Path(folder).rglob("*.py"))
    return Counter(word for source in sources for word in re.findall(r"\w+", source))


def _module(code: CodeType) -> str:
    """Return the path of a function's module, from its package on."""
    parts = Path(code.co_filename).parts
    packages = ("shap_ext", "captum_ext", "shapley_adapters", "shap")
    return "/".join(parts[max(parts.index(name) for name in packages if name in parts) :])


def through_shap(algorithm: str, packages: tuple[str, ...]) -> CallPath:
    """Measure one algorithm of `shap.Explainer`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, N_PLAYERS))
    weights = rng.normal(size=N_PLAYERS)

    def model(rows: Any) -> Any:
        return np.tanh(rows @ weights) + rows[:, 0] * rows[:, 1]

    def prepare(watched: Model) -> Callable[[], Any]:
        explainer = shap.Explainer(watched, X, algorithm=algorithm, seed=0)
        return lambda: explainer(X[:N_ROWS], max_evals=BUDGET, silent=True)

    return measure(f"shap: {algorithm}", packages, model, prepare)


def through_captum() -> CallPath:
    """Measure least squares called through captum."""
    import torch

    import captum_ext

    torch.manual_seed(0)
    inputs, weights = torch.randn(N_ROWS, N_PLAYERS), torch.randn(N_PLAYERS)

    def forward(rows: Any) -> Any:
        return torch.tanh(rows @ weights) + rows[:, 0] * rows[:, 1]

    def prepare(watched: Model) -> Callable[[], Any]:
        method = captum_ext.LeastSquares(watched, seed=0)
        return lambda: method.attribute(inputs, n_samples=BUDGET)

    packages = ("captum_ext", "shapley_adapters")
    return measure("captum: LeastSquares", packages, forward, prepare)


CONTENDERS: dict[str, Callable[[], CallPath]] = {
    "shap": lambda: through_shap("leastsquares", ("shap_ext", "shapley_adapters")),
    "captum": through_captum,
    "permutation": lambda: through_shap("permutation", ("shap",)),
}


def main() -> None:
    """Print the counts of each explainer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CONTENDERS, help="measure one explainer")
    parser.add_argument("--list", action="store_true", help="list the functions, too")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    arguments = parser.parse_args()
    paths = [CONTENDERS[name]() for name in CONTENDERS if arguments.only in (None, name)]
    if arguments.json:
        print(json.dumps([asdict(path) for path in paths]))
        return
    print(f"{'':24}functions  modules  depth  called once")
    for path in paths:
        counts = f"{path.n_functions:9}{path.n_modules:9}{path.depth:7}{path.n_called_once:13}"
        print(f"{path.name:24}{counts}")
        if arguments.list:
            print("\n".join(f"    {function}" for function in path.functions))


if __name__ == "__main__":
    main()
