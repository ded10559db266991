"""Networks that explain in one pass, for captum."""

from __future__ import annotations

from shapley_adapters.constructors import fill_docstring

from .amortized_attribution import AmortizedAttribution
from .shared_parameters import MethodT

_MODEL = """forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the weights, the order of the examples and all coalitions.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more."""

_TRAINING = """network : {"mlp", "unet", "tokens"} or Module
        The network: dense layers, a U-Net for images, convolutions for sequences; or a module from
        inputs to attributions, (examples, features, outputs), of which a copy is trained.
    network_options : mapping, optional
        Options of a named network, such as `{"grid": (16, 16)}`.
    evaluations : int, optional
        Coalitions evaluated for each example: in all for targets made once (by default 8 a feature,
        at least 64), in each epoch for the others (32).
    paired : bool
        Whether drawn coalitions come with their complements.
    epochs, rows_per_step : int
        Of the training.
    learning_rate : float, optional
        The highest of one cycle; by default 3e-3 for up to 4,000 steps of training, and 3e-3 ·
        √(4,000 / steps) for more.
    n_mixed_rows : int
        How many more examples to train on, each made of two real ones that are not held out,
        feature by feature. They cost evaluations as real ones do. For tables: with as many as there
        are evaluations for, the error falls on.
    validation_share : float
        Share of the examples that is held out, to keep the best epoch by.
    validation_evaluations : int, optional
        Coalitions evaluated for each of these. By default, all of them together cost at most a
        quarter of the training's evaluations; each gets at least 8 a feature and 64, and where that
        is too much for all, only some of them, at least 16, are evaluated.
    patience : int, optional
        Epochs without improvement after which training ends.
    efficient : bool
        Whether attributions are made to sum to the difference of the outputs, at one evaluation an
        example.
    surrogate : bool or Surrogate
        Whether absent features are marginalised by a `Surrogate`, a network that takes masked
        inputs, in place of baselines: one of yours; or, for True, one with the options given here,
        which `fit` fits to the examples at one run of the model for each. Attributions then sum to
        the difference of the surrogate's outputs.
    folder : path, optional
        Where checkpoints go; training that was interrupted goes on from there, also after the
        folder was moved. Checkpoints of another training are refused. Needs a `seed`, which belongs
        to what must be the same.
    trainer_options : mapping, optional
        Handed to `lightning.Trainer`. Gradients are cut to a norm of 1 unless `gradient_clip_val`,
        which may be None, says otherwise."""


def _documented(method: MethodT) -> MethodT:
    return fill_docstring(method, model=_MODEL, training=_TRAINING)


@_documented
class SimShap(AmortizedAttribution):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    `SimShap(net).fit(loader)`, then `.attribute(x, target=…)`. Biased: how far it is from exact
    values shows on held-out examples, in `plot_history`. Features that equal the baseline get
    exactly 0. Training costs `evaluations` coalitions for each example; attributing costs one a
    call, and one an example with `efficient`. Needs lightning and safetensors:
    `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    {model}
    targets : {"oddgp", "leastsquares", "controlled", "simsemivalue"}
        What the network is trained towards: estimates by odd Gaussian-process regression or least
        squares, made once for each example; sim-semivalues of coalitions drawn in each epoch, as in
        the paper (Eq. 14); or these with the network's own additive game as control variate, which
        have the same expectation and far less variance.
    {training}
    """

    _choices = ("oddgp", "leastsquares", "controlled", "simsemivalue")


@_documented
class FastShap(AmortizedAttribution):
    """Shapley values from one pass of a network trained on the loss of the regression (FastSHAP).

    Jethani et al., FastSHAP: Real-Time Shapley Value Estimation, ICLR 2022 (Zhang et al., 2023,
    Eq. 7), with additive efficient normalisation. All else as in `SimShap`, whose default targets
    reach the same error with a tenth of the evaluations.

    Parameters
    ----------
    {model}
    targets : {"fastshap"}, optional
        There is one only.
    {training}
    """

    _choices = ("fastshap",)
