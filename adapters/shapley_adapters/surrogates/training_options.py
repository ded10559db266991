"""Arguments of networks that explain, which both hosts share, and presets as papers print them.

A preset holds values of arguments that the caller leaves out. An argument that the caller passes
has priority, even if its value is the default.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..arguments import checked_choice, checked_count, checked_flag
from ..constructors import write_constructor
from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from torch import nn

    from ..amortized.amortized import AmortizedShapley
    from ..amortized.explainer_network import ExplainerNetwork
    from ..amortized.regressors import ScikitRegressor
    from ..amortized.training import Training


Network: TypeAlias = "str | nn.Module"
"""The name of a network, or a module of the user."""

Student: TypeAlias = "str | nn.Module | ScikitRegressor"
"""What learns attributions: the name of a network, `"trees"`, or a module or regressor."""


Presets: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Values of arguments by the name of the preset."""

_AS_PRINTED = {
    "learning_rate_schedule": "constant",
    # An early stop and a bound on gradients are not printed in either paper.
    "max_gradient_norm": None,
}

SIMSHAP_PRESETS: Presets = {
    # Zhang et al. (2023), Algorithm 1, Sections 4.1.1 and 4.2.1, Appendices A.5 and A.6.
    "paper": {
        **_AS_PRINTED,
        "labels": "simsemivalue",
        "student": "mlp",
        "student_options": {"widths": (128, 128, 128), "activation": "relu"},
        "evaluations": 64,
        "paired": True,
        "epochs": 1000,
        "rows_per_step": 1024,
        "learning_rate": 7e-4,
        "patience": 1000,
        "efficient": False,
    },
    "paper_images": {
        **_AS_PRINTED,
        "labels": "simsemivalue",
        "student": "unet",
        "student_options": {},
        "evaluations": 8,
        "paired": True,
        "epochs": 500,
        "rows_per_step": 256,
        "learning_rate": 2e-4,
        "patience": 500,
        "efficient": False,
    },
}

FASTSHAP_PRESETS: Presets = {
    # Jethani et al. (2022): the authors' example of census data, github.com/iancovert/fastshap.
    "paper": {
        **_AS_PRINTED,
        "labels": "fastshap",
        "student": "mlp",
        "student_options": {"widths": (128, 128), "activation": "relu"},
        "evaluations": 32,
        "paired": True,
        "epochs": 200,
        "rows_per_step": 32,
        "learning_rate": 2e-4,
        "patience": 5,
        "efficient": True,
    },
}


@write_constructor
class TrainingArguments:
    """The arguments of a network's training, and what follows from them in both hosts."""

    _choices: ClassVar[tuple[str, ...]] = ()
    _presets: ClassVar[Presets] = {}

    student: Student | None = None
    student_options: Mapping[str, Any] | None = None
    epochs: int = 100
    learning_rate: float | None = None
    learning_rate_schedule: str = "one_cycle"
    validation_share: float = 0.1
    patience: int | None = None
    folder: str | Path | None = None
    max_gradient_norm: float | None = 1.0
    preset: str | None = None
    labels: str | None = None
    evaluations: int | None = None
    paired: bool = True
    n_mixed_rows: int = 0
    validation_evaluations: int | None = None
    efficient: bool = True
    surrogate: Any = False  # becomes a Surrogate or None: see `surrogate_for`

    @classmethod
    def _completed_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a caller, and those of the preset that the caller left out.

        Mappings are merged entry by entry: those that the caller passes have priority. The options
        of the preset's student are left out if the caller passes another one.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If there is no preset of this name.
        """
        name = options.get("preset")
        if name is None:
            return options
        preset = dict(cls._presets[checked_choice("preset", name, tuple(cls._presets))])
        student = options.get("student", preset["student"])
        if not isinstance(student, str) or student != preset["student"]:
            del preset["student_options"]
        for key, value in preset.items():
            passed = options.get(key)
            if isinstance(value, Mapping) and isinstance(passed, Mapping):
                preset[key] = {**value, **passed}
            elif key in options:
                preset[key] = passed
        return {**options, **preset}

    def __repr__(self) -> str:
        """Return the arguments that differ from the defaults, with the preset first.

        Of the arguments of the preset, only those with another value than the preset's are shown.
        """
        parameters = inspect.signature(type(self)).parameters
        name = self.preset
        of_preset = {} if name is None else self._presets[name]
        expected = {key: one.default for key, one in parameters.items()} | dict(of_preset)
        shown = {} if name is None else {"preset": name}
        for key in parameters:
            value = getattr(self, key, expected[key])
            if key != "preset" and not _are_same(value, expected[key]):
                shown[key] = value
        texts = [f"{key}={reprlib.repr(value)}" for key, value in shown.items()]
        return f"{type(self).__name__}({', '.join(texts)})"

    @property
    def network(self) -> ExplainerNetwork:
        """The trained network, a torch module of this package.

        It maps the numbers of rows, (R, …), in single precision as it sees them, and a bool tensor,
        (R, M), to attributions, (R, M, K). Features that are false in the latter get 0. The sums
        are not corrected, as if `efficient` were false.
        """
        return self._fitted().trained.network

    def save_trained(self, path: str | Path) -> None:
        """Write the trained network to a file, which `trained=` (shap) or `load_trained` reads.

        Weights are safetensors, the rest is JSON; no code is stored, and none runs on loading.
        """
        self._fitted().save(path)

    def _fitted(self) -> AmortizedShapley:
        raise NotImplementedError

    def _check_training(self) -> tuple[str, ...]:
        """Refuse options that cannot be used; set `labels` to the first target if it is None.

        Returns
        -------
        tuple of str
            The targets that a network may have that is loaded in place of training: all, or the
            one that the caller passed.
        """
        is_open = self.labels is None
        self.labels = checked_choice("labels", self.labels or self._choices[0], self._choices)
        checked_flag("paired", self.paired)
        self.n_mixed_rows = checked_count("n_mixed_rows", self.n_mixed_rows, minimum=0)
        checked_flag("efficient", self.efficient)
        return self._choices if is_open else (self.labels,)

    def _check_refinement(self, **refinements: object) -> None:
        """Refuse arguments that refine a network's attributions if these are not made efficient.

        Raises
        ------
        InvalidArgumentError
            If one is given without `efficient`.
        """
        for name, value in refinements.items():
            if value and not self.efficient:
                raise InvalidArgumentError(
                    f"{name} needs efficient=True: attributions are improved by evaluations of the "
                    f"model, but efficient=False asks for none. Leave out {name}, or set "
                    "efficient=True."
                )

    def _training(self) -> Training:
        from ..amortized.training import Training

        return Training.of_explainer(self)


def _are_same(value: Any, expected: Any) -> bool:
    """Return whether two values of an argument are the same; arrays are not compared."""
    plain = (str, int, float, tuple, Mapping)
    if expected is None or expected is False:
        return value is None or value is False
    are_plain = isinstance(value, plain) and isinstance(expected, plain)
    return value is expected or (are_plain and repr(value) == repr(expected))
