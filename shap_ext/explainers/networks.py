"""Networks that explain in one pass, for shap."""

from __future__ import annotations

from shapley_adapters.constructors import fill_docstring

from .amortized_explainer import AmortizedExplainer
from .shared_parameters import documented

_PARAMETERS = """training_data : array or DataFrame, optional
        The rows to train on; by default those that were given as masker.
    network : {"mlp", "unet", "tokens"} or torch module
        The network: dense layers for tables, a U-Net for images, convolutions for sequences; or a
        module from rows to attributions, (rows, players, outputs), of which a copy is trained.
    network_options : mapping, optional
        Options of a named network, such as `{"widths": (256, 256)}` or `{"grid": (16, 16)}`.
    evaluations : int, optional
        Coalitions evaluated for each training row: in all for targets made once (by default 8 a
        feature, at least 64), in each epoch for the others (32).
    paired : bool
        Whether drawn coalitions come with their complements.
    epochs, rows_per_step : int
        Of the training.
    learning_rate : float, optional
        The highest of one cycle; by default 3e-3 for up to 4,000 steps of training, and 3e-3 ·
        √(4,000 / steps) for more.
    n_mixed_rows : int
        How many more rows to train on, each made of two real ones that are not held out, feature by
        feature. They cost evaluations as real ones do. For tables: with as many as there are
        evaluations for, the error falls on.
    validation_share : float
        Share of the training rows that is held out, to keep the best epoch by.
    validation_evaluations : int, optional
        Coalitions evaluated for each of these. By default, all of them together cost at most a
        quarter of the training's evaluations; each gets at least 8 a feature and 64, and where that
        is too much for all, only some of them, at least 16, are evaluated.
    patience : int, optional
        Epochs without improvement after which training ends.
    efficient : bool
        Whether the values are made to sum to the model's output, at one evaluation a row.
    features : callable, optional
        Makes an array of numbers of rows, for the network to see.
    surrogate : bool or Surrogate
        Whether absent features are marginalised by a `Surrogate`, a network that takes masked rows,
        in place of the masker: one of yours; or, for True, one with the options given here, fitted
        to the training rows at one run of the model for each. The values then sum to the
        surrogate's output.
    folder : path, optional
        Where checkpoints go; training that was interrupted goes on from there, also after the
        folder was moved. Checkpoints of another training are refused. Needs a `seed`, which belongs
        to what must be the same.
    trainer_options : mapping, optional
        Handed to `lightning.Trainer`. Gradients are cut to a norm of 1 unless `gradient_clip_val`,
        which may be None, says otherwise.
    trained : path, optional
        A file that `save_trained` wrote, to use in place of training."""


def _with_training(explainer: type) -> type:
    return documented(fill_docstring(explainer, training=_PARAMETERS))


@_with_training
class SimShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    Trains on the first call, or by `fit`. Biased: how far it is from exact values shows on held-out
    rows, in `plot_history`. Features that equal the reference get exactly 0. Training costs
    `evaluations` coalitions for each row; explaining costs one a call, and one a row with
    `efficient`. Needs torch, lightning and safetensors: `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    {parameters}
    targets : {"oddgp", "leastsquares", "controlled", "simsemivalue"}
        What the network is trained towards: estimates by odd Gaussian-process regression or least
        squares, made once for each row; sim-semivalues of coalitions drawn in each epoch, as in the
        paper (Eq. 14); or these with the network's own additive game as control variate, which have
        the same expectation and far less variance.
    {training}
    """

    name = "SimSHAP"
    _choices = ("oddgp", "leastsquares", "controlled", "simsemivalue")


@_with_training
class FastShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network trained on the loss of the regression (FastSHAP).

    Jethani et al., FastSHAP: Real-Time Shapley Value Estimation, ICLR 2022 (Zhang et al., 2023,
    Eq. 7), with additive efficient normalisation. All else as in `SimShapExplainer`, whose default
    targets reach the same error with a tenth of the evaluations.

    Parameters
    ----------
    {parameters}
    targets : {"fastshap"}, optional
        There is one only.
    {training}
    """

    name = "FastSHAP"
    _choices = ("fastshap",)
