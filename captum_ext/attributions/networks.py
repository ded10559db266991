"""Networks that explain in one pass, for captum."""

from __future__ import annotations

from shapley_adapters.constructors import KindT, fill_docstring, write_constructor
from shapley_adapters.training_options import (
    FASTSHAP_PRESETS,
    SIMSHAP_PRESETS,
    training_parameters,
)

from .amortized_attribution import AmortizedAttribution

_MODEL = """forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the weights, the order of the examples and all coalitions.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        The function of a classifier's outputs to explain, or a `ValueFunction` with options.
    n_jobs : int, optional
        The number of workers that evaluate the labels of the training, as in the other methods."""


def _documented(method: KindT) -> KindT:
    shared = training_parameters("example")
    return fill_docstring(method, model=_MODEL, training=shared)


@_documented
@write_constructor
class SimShap(AmortizedAttribution):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    `SimShap(net).fit(loader)`, then `.attribute(x, target=…)`. Biased:
    `trained.history` has its error on held-out examples. Features that equal the baseline
    get exactly 0. Training costs `evaluations` coalitions per example. Attributing costs one
    evaluation per call, and with `efficient` one more per example. Needs safetensors:
    `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    {model}
    preset : {"paper", "paper_images"}, optional
        The settings of the paper's experiments with tables or with images, for all arguments that
        you leave out. Arguments that you pass have priority, even with their default values; of
        mappings, the entries that you pass. Pass `paired=False` for Algorithm 1 of the paper,
        which has no pairs. The page "Explaining by networks" lists all values.
    labels : {"oddgp", "leastsquares", "controlled", "simsemivalue"}
        The numbers that the network learns to predict. `"oddgp"`, `"leastsquares"`: labels,
        estimated once per example. `"simsemivalue"`: sim-semivalues of coalitions that are drawn
        in each epoch, as in the paper (Eq. 14). `"controlled"`: the same with the network's
        additive game as control variate; they have the same expectation and far less variance.
    {training}
    """

    _choices = ("oddgp", "leastsquares", "controlled", "simsemivalue")
    _presets = SIMSHAP_PRESETS

    rows_per_step: int = 64


@_documented
@write_constructor
class FastShap(AmortizedAttribution):
    """Shapley values from one pass of a network trained on the loss of the regression (FastSHAP).

    Jethani et al., FastSHAP: Real-Time Shapley Value Estimation, ICLR 2022 (Zhang et al., 2023,
    Eq. 7), with additive efficient normalisation. All else as in `SimShap`, whose default targets
    had 0.75 to 0.98 of its error with a tenth of the evaluations, validation included
    (`benchmarks/amortized_accuracy.py`, four tables).

    Parameters
    ----------
    {model}
    preset : {"paper"}, optional
        The settings of the authors' example with census data, for all arguments that you leave out.
        Arguments that you pass have priority, even with their default values; of mappings, the
        entries that you pass. The page "Explaining by networks" lists all values.
    labels : {"fastshap"}, optional
        There is one only.
    {training}
    """

    _choices = ("fastshap",)
    _presets = FASTSHAP_PRESETS

    rows_per_step: int = 32  # with 1,000 rows, 64 have half as many steps and 1.25 times the error
