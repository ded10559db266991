"""The options of trainings, which both hosts, networks and surrogates share. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .constructors import write_constructor

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


@write_constructor
class ScheduleOptions:
    """The options of every training; `rows_per_step` has another default in each.

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
    learning_rate: float | None = None
    learning_rate_schedule: str = "one_cycle"
    validation_share: float = 0.1
    patience: int | None = None
    folder: str | Path | None = None
    max_gradient_norm: float | None = 1.0


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
class SurrogateOptions(ScheduleOptions):
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

    rows_per_step: int = 64
    seed: int | None = None
    network: Network = "mlp"
    network_options: Mapping[str, Any] | None = None
    loss: str = "auto"
    coalitions: int = 16
