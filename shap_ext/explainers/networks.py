"""Networks that explain in one pass, for shap."""

from __future__ import annotations

from shapley_adapters.constructors import fill_docstring, write_constructor
from shapley_adapters.surrogates.training_options import FASTSHAP_PRESETS, SIMSHAP_PRESETS

from .amortized_explainer import AmortizedExplainer
from .shared_parameters import documented

_PARAMETERS = """training_data : array or DataFrame, optional
        The rows to train on; by default those that were given as masker.
    student : {"embeddings", "mlp", "unet", "tokens", "trees"}, torch module, or regressor
        What learns to predict attributions; by default `"embeddings"` for tables, and `"mlp"` for
        images and with `features`. Networks: piecewise-linear functions of each number and dense
        layers for all; dense layers for any input; a U-Net for images; convolutions for sequences;
        or a module from rows to attributions, (rows, players, outputs). `"trees"`: boosted trees,
        for tables, by LightGBM where it is installed, otherwise by scikit-learn; best for models
        of trees. Or a regressor of scikit-learn, of several outputs. Copies of modules and
        regressors are trained. Trees and regressors need labels `"oddgp"` or `"leastsquares"`,
        ignore the options of epochs, steps and rates, and cannot be saved by `save_trained`.
    student_options : mapping, optional
        Options of a student given by its name, such as `{"widths": (256, 256)}`,
        `{"grid": (16, 16)}`, or `{"rounds": 100, "levels": 6}` of trees.
        `"embeddings"` needs `{"players": …}`, the feature of each number of a row, where `features`
        makes more or fewer numbers than there are features.
    evaluations : int, optional
        Coalitions evaluated per training row. For labels: in total, by default 8 per feature and
        at least 64. For other targets: in each epoch, by default 32.
    paired : bool
        Whether drawn coalitions come with their complements.
    epochs, rows_per_step : int
        Numbers of epochs and of rows per step of the training.
    learning_rate : float, optional
        The largest learning rate of the one-cycle schedule. By default 3e-3 for up to 4,000 steps
        of training, and 3e-3 · √(4,000 / steps) for more.
    learning_rate_schedule : {"one_cycle", "constant"}
        Whether the learning rate rises and falls in one cycle, or stays the same.
    n_mixed_rows : int
        Number of further training rows. Each takes every feature from one of two training rows,
        drawn at random. They cost as many evaluations as real rows. Only for tables. More mixed
        rows lower the error.
    validation_share : float
        Share of the training rows that is held out, to keep the best epoch by.
    validation_evaluations : int, optional
        Coalitions evaluated for each of these. By default, validation costs at most a tenth of the
        training's evaluations. With up to 12 features, all coalitions of each row are evaluated if
        the tenth allows it, otherwise 8 per feature and at least 64. If this is too much for all
        rows, only some of them get values. These are at least 16, even if they cost more.
    patience : int, optional
        Epochs without improvement after which training ends.
    efficient : bool
        Whether the values are made to sum to the model's output, at one evaluation per row.
    features : callable, optional
        Makes an array of numbers of rows, for the network to see.
    surrogate : bool or Surrogate
        Whether a `Surrogate`, a network that takes masked rows, marginalises absent features,
        instead of the masker. True: a new one with the options given here; it is fitted to the
        training rows, at one run of the model per row. Or a surrogate of yours. The values then sum
        to the surrogate's output.
    folder : path, optional
        Where labels and other values are kept, written as they come. A training that is
        interrupted, or another one of the same rows, does not evaluate them again. Other trainings
        may share the folder. Needs a `seed`.
    max_gradient_norm : float, optional
        The norm to which gradients are clipped; None for no clipping.
    trained : path, optional
        A file that `save_trained` wrote, to use in place of training."""


def _with_training(explainer: type) -> type:
    return documented(fill_docstring(explainer, training=_PARAMETERS))


@_with_training
@write_constructor
class SimShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    Trains in the first call, or by `fit`. Biased: `trained.trained.history` has its error on
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
