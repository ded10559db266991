"""The options of trainings, of networks that explain and of surrogates, and presets of papers.

A preset holds values of arguments that the caller leaves out. An argument that the caller passes
has priority, even if its value is the default. Imports no torch.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from .arguments import (
    checked_choice,
    checked_count,
    checked_flag,
    checked_positive,
    checked_probability,
    checked_seed,
)
from .constructors import write_constructor
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from torch import nn


class ScikitRegressor(Protocol):
    """A regressor of scikit-learn, of several outputs."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Learn y, (R, outputs), of X, (R, D)."""

    def predict(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Return predictions, (R, outputs)."""


Network: TypeAlias = "str | nn.Module"
"""The name of a network, or a module of the user."""

Student: TypeAlias = "str | nn.Module | ScikitRegressor"
"""What learns attributions: the name of a network, `"trees"`, or a module or regressor."""


RATE_SCHEDULES = ("one_cycle", "constant")

LOSSES = ("auto", "kl", "squared")
"""The losses of surrogates."""


@write_constructor
class Schedule:
    """The options of every training.

    Parameters
    ----------
    epochs, rows_per_step : int
        Numbers of epochs and of rows per step of the training.
    learning_rate : float, optional
        The largest learning rate of the one-cycle schedule. By default 3e-3 for up to 4,000 steps
        of training, and 3e-3 · √(4,000 / steps) for more.
    learning_rate_schedule : {"one_cycle", "constant"}
        Whether the learning rate rises and falls in one cycle, or stays the same.
    validation_share : float
        Share of the training rows that is held out, to keep the best epoch by.
    patience : int, optional
        Epochs without improvement after which training ends; by default half of all epochs, and at
        least 10.
    max_gradient_norm : float, optional
        The norm to which gradients are clipped; None for no clipping.
    folder : path, optional
        Where labels and the model's outputs are kept, written as they come. A training that is
        interrupted, or another one of the same rows, does not evaluate them again. Other trainings
        may share the folder. Needs a `seed`.
    """

    epochs: int = 100
    rows_per_step: int = 64
    learning_rate: float | None = None
    learning_rate_schedule: str = "one_cycle"
    validation_share: float = 0.1
    patience: int | None = None
    folder: str | Path | None = None
    max_gradient_norm: float | None = 1.0
    seed: Any = None  # an int, once it is checked

    def _check_schedule(self) -> None:
        """Refuse options that cannot be used; draw a seed where there is none."""
        self.seed = checked_seed(self.seed)
        for name in ("epochs", "rows_per_step", *["patience"] * (self.patience is not None)):
            setattr(self, name, checked_count(name, getattr(self, name)))
        checked_choice("learning_rate_schedule", self.learning_rate_schedule, RATE_SCHEDULES)
        checked_probability("validation_share", self.validation_share)
        for name in ("learning_rate", "max_gradient_norm"):
            if getattr(self, name) is not None:
                checked_positive(name, getattr(self, name))


@write_constructor
class TargetOptions:
    """The options of a training for attributions.

    Parameters
    ----------
    student : {"embeddings", "mlp", "unet", "trees"}, torch module, or regressor
        What learns to predict attributions; by default `"embeddings"` for tables, and `"mlp"` for
        others. Networks: piecewise-linear functions of each number and dense layers for all; dense
        layers for any input; a U-Net for images; or a module from rows to attributions, (rows,
        players, outputs). `"trees"`: boosted trees of scikit-learn, for tables; best for models of
        trees. Or a regressor of scikit-learn, of several outputs. Copies of modules and regressors
        are trained. Trees and regressors need labels `"oddgp"` or `"leastsquares"`, ignore the
        options of epochs, steps and rates, and cannot be saved by `save_trained`.
    student_options : mapping, optional
        Options of a student given by its name, such as `{"widths": (256, 256)}`,
        `{"grid": (16, 16)}`, or `{"rounds": 100, "levels": 6}` of trees.
    evaluations : int, optional
        Coalitions evaluated per training row. For labels: in total, by default 8 per feature and
        at least 64. For other targets: in each epoch, by default 32.
    paired : bool
        Whether drawn coalitions come with their complements.
    validation_evaluations : int, optional
        Coalitions evaluated for each held-out row. By default, validation costs at most a tenth of
        the training's evaluations. With up to 12 features, all coalitions of each row are evaluated
        if the tenth allows it, otherwise 8 per feature and at least 64. If this is too much for all
        rows, only some of them get values. These are at least 16, even if they cost more.
    efficient : bool
        Whether the attributions are made to sum to the difference of the outputs, at one evaluation
        per row.
    """

    student: Student | None = None
    student_options: Mapping[str, Any] | None = None
    preset: str | None = None
    labels: str | None = None
    evaluations: int | None = None
    paired: bool = True
    validation_evaluations: int | None = None
    efficient: bool = True


@write_constructor
class SurrogateOptions(Schedule):
    """The options of a training of surrogates.

    Parameters
    ----------
    loss : {"auto", "kl", "squared"}
        The distance to the model's outputs: the Kullback–Leibler divergence, for probabilities of
        several classes, or the sum over outputs of squared differences divided by the output's
        variance. The mean is the best answer to both. `"auto"` looks at the outputs.
    coalitions : int
        Random coalitions of each row in each epoch, of all sizes alike.
    """

    network: Network = "mlp"
    network_options: Mapping[str, Any] | None = None
    loss: str = "auto"
    coalitions: int = 16

    def __post_init__(self) -> None:
        self._check_schedule()
        checked_choice("loss", self.loss, LOSSES)
        checked_count("coalitions", self.coalitions)


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
    def network(self) -> nn.Module:
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

    def _fitted(self) -> Any:
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


def training_parameters(row: str = "row") -> str:
    """Return the parameters of networks that explain; training rows are called `row`."""
    return _parameters(row, TrainingArguments, TargetOptions, Schedule)


def surrogate_parameters(row: str = "row") -> str:
    """Return the parameters of the training of surrogates; training rows are called `row`."""
    return _parameters(row, SurrogateOptions, Schedule)


def _parameters(row: str, *kinds: type) -> str:
    """Return the parameters in the docstrings of classes, indented for `fill_docstring`."""
    texts = [inspect.cleandoc(kind.__doc__ or "").partition("----------\n")[2] for kind in kinds]
    text = re.sub(r"\brow(s?)\b", rf"{row}\1", "\n".join(texts))
    return text.replace("\n", "\n    ")
