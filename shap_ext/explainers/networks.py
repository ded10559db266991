"""Networks that explain in one pass, for shap."""

from __future__ import annotations

from shapley_adapters.constructors import fill_docstring, write_constructor
from shapley_adapters.training_options import (
    FASTSHAP_PRESETS,
    SIMSHAP_PRESETS,
    training_parameters,
)

from .amortized_explainer import AmortizedExplainer
from .shared_parameters import documented

_PARAMETERS = """training_data : array or DataFrame, optional
        The rows to train on; by default those that were given as masker.
    features : callable, optional
        Makes an array of numbers of rows, for the network to see. If it changes the count of
        numbers, student `"embeddings"` needs `student_options={"players": …}`, the feature of each.
    trained : path, optional
        A file that `save_trained` wrote, to use in place of training.
    """


def _with_training(explainer: type) -> type:
    shared = training_parameters()
    return documented(fill_docstring(explainer, training=_PARAMETERS + shared))


@_with_training
@write_constructor
class SimShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    Trains in the first call, or by `fit`. Biased: `trained.history` has its error on
    held-out rows. Features that equal the reference get exactly 0. Training costs `evaluations`
    coalitions per row. Explaining costs one evaluation per call, and with `efficient` one more per
    row. Needs torch and safetensors: `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    {parameters}
    preset : {"paper", "paper_images"}, optional
        The settings of the paper's experiments with tables or with images, for all arguments that
        you leave out. Arguments that you pass have priority, even with their default values; of
        mappings, the entries that you pass. Pass `paired=False` for Algorithm 1 of the paper,
        which has no pairs. The page "Explaining by networks" lists all values.
    labels : {"oddgp", "leastsquares", "controlled", "simsemivalue"}
        The numbers that the network learns to predict. `"oddgp"`, `"leastsquares"`: labels,
        estimated once per training row. `"simsemivalue"`: sim-semivalues of coalitions that are
        drawn in each epoch, as in the paper (Eq. 14). `"controlled"`: the same with the network's
        additive game as control variate; they have the same expectation and far less variance.
    {training}
    """

    name = "SimSHAP"
    _choices = ("oddgp", "leastsquares", "controlled", "simsemivalue")
    _presets = SIMSHAP_PRESETS

    rows_per_step: int = 64


@_with_training
@write_constructor
class FastShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network trained on the loss of the regression (FastSHAP).

    Jethani et al., FastSHAP: Real-Time Shapley Value Estimation, ICLR 2022 (Zhang et al., 2023,
    Eq. 7), with additive efficient normalisation. All else as in `SimShapExplainer`, whose default
    targets had 0.75 to 0.98 of its error with a tenth of the evaluations, validation included
    (`benchmarks/amortized_accuracy.py`, four tables).

    Parameters
    ----------
    {parameters}
    preset : {"paper"}, optional
        The settings of the authors' example with census data, for all arguments that you leave out.
        Arguments that you pass have priority, even with their default values; of mappings, the
        entries that you pass. The page "Explaining by networks" lists all values.
    labels : {"fastshap"}, optional
        There is one only.
    {training}
    """

    name = "FastSHAP"
    _choices = ("fastshap",)
    _presets = FASTSHAP_PRESETS

    rows_per_step: int = 32  # with 1,000 rows, 64 have half as many steps and 1.25 times the error
