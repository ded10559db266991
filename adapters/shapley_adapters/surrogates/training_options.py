"""Arguments of networks that explain, which both hosts share, and presets as papers print them.

A preset holds values of arguments that the caller leaves out. An argument that the caller passes
has priority, even if its value is the default.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..arguments import checked_choice, checked_count, checked_flag
from ..constructors import write_constructor
from ..errors import InvalidArgumentError
from ..training_fields import ScheduleOptions, SurrogateOptions, TargetOptions

if TYPE_CHECKING:
    from ..amortized.amortized import AmortizedShapley
    from ..amortized.explainer_network import ExplainerNetwork
    from ..amortized.training import Training


Presets: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Values of arguments by the name of the preset."""

# An early stop and a bound on gradients are not printed in either paper.
_AS_PRINTED = {"learning_rate_schedule": "constant", "max_gradient_norm": None, "paired": True}

_SIMSHAP = {**_AS_PRINTED, "labels": "simsemivalue", "efficient": False}

SIMSHAP_PRESETS: Presets = {
    # Zhang et al. (2023), Algorithm 1, Sections 4.1.1 and 4.2.1, Appendices A.5 and A.6.
    "paper": {
        **_SIMSHAP,
        "student": "mlp",
        "student_options": {"widths": (128, 128, 128), "activation": "relu"},
        "evaluations": 64,
        "epochs": 1000,
        "rows_per_step": 1024,
        "learning_rate": 7e-4,
        "patience": 1000,
    },
    "paper_images": {
        **_SIMSHAP,
        "student": "unet",
        "student_options": {},
        "evaluations": 8,
        "epochs": 500,
        "rows_per_step": 256,
        "learning_rate": 2e-4,
        "patience": 500,
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
        "epochs": 200,
        "rows_per_step": 32,
        "learning_rate": 2e-4,
        "patience": 5,
        "efficient": True,
    },
}


@write_constructor
class TrainingArguments(TargetOptions):
    """The arguments of a network's training, and what follows from them in both hosts.

    Parameters
    ----------
    n_mixed_rows : int
        Number of further training rows. Each takes every feature from one of two training rows,
        drawn at random. They cost as many evaluations as real rows. Only for tables. More mixed
        rows lower the error.
    surrogate : bool or Surrogate
        Whether a `Surrogate`, a network that takes masked rows, marginalises absent features,
        instead of the background. True: a new one with the options given here; it is fitted to the
        training rows, at one run of the model per row. Or a surrogate of yours. The attributions
        then sum to the difference of the surrogate's outputs.
    """

    _choices: ClassVar[tuple[str, ...]] = ()
    _presets: ClassVar[Presets] = {}

    epochs: int = 100
    learning_rate: float | None = None
    learning_rate_schedule: str = "one_cycle"
    validation_share: float = 0.1
    patience: int | None = None
    folder: str | Path | None = None
    max_gradient_norm: float | None = 1.0
    n_mixed_rows: int = 0
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
        if options.get("student", preset["student"]) != preset["student"]:
            del preset["student_options"]
        complete = {**preset, **options}
        passed, shared = options.get("student_options"), preset.get("student_options")
        if isinstance(passed, Mapping) and shared is not None:
            complete["student_options"] = {**shared, **passed}
        return complete

    @property
    def network(self) -> ExplainerNetwork:
        """The trained network, a torch module of this package.

        It maps the numbers of rows, (R, …), in single precision as it sees them, and a bool tensor,
        (R, M), to attributions, (R, M, K). Features that are false in the latter get 0. The sums
        are not corrected, as if `efficient` were false.
        """
        return self._fitted().network

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

        return Training.of(self)


def training_parameters(row: str = "row") -> str:
    """Return the parameters of networks that explain; training rows are called `row`."""
    return _parameters(row, TrainingArguments, TargetOptions, ScheduleOptions)


def surrogate_parameters(row: str = "row") -> str:
    """Return the parameters of the training of surrogates; training rows are called `row`."""
    return _parameters(row, SurrogateOptions, ScheduleOptions)


def _parameters(row: str, *kinds: type) -> str:
    """Return the parameters in the docstrings of classes, indented for `fill_docstring`."""
    texts = [inspect.cleandoc(kind.__doc__ or "").partition("----------\n")[2] for kind in kinds]
    text = re.sub(r"\brow(s?)\b", rf"{row}\1", "\n".join(texts))
    return text.replace("\n", "\n    ")
