"""Networks that explain in one pass, for captum."""

from __future__ import annotations

from shapley_adapters.constructors import KindT, fill_docstring, write_constructor
from shapley_adapters.surrogates.training_options import FASTSHAP_PRESETS, SIMSHAP_PRESETS

from .amortized_attribution import AmortizedAttribution

_MODEL = """forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the weights, the order of the examples and all coalitions.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        The function of a classifier's outputs to explain, or a `ValueFunction` with options.
    n_jobs : int, optional
        The number of workers that evaluate the labels of the training, as in the other methods."""

_TRAINING = """student : {"embeddings", "mlp", "unet", "tokens", "trees"}, Module, or regressor
        What learns to predict attributions; by default `"embeddings"` for inputs (B, D), and
        `"mlp"` for others. Networks: piecewise-linear functions of each number and dense layers
        for all; dense layers for any input; a U-Net for images; convolutions for sequences; or a
        module from inputs to attributions, (examples, features, outputs). `"trees"`: boosted trees,
        for tables, by LightGBM where it is installed, otherwise by scikit-learn; best for models
        of trees. Or a regressor of scikit-learn, of several outputs. Copies of modules and
        regressors are trained. Trees and regressors need labels `"oddgp"` or `"leastsquares"`,
        ignore the options of epochs, steps and rates, and cannot be saved by `save_trained`.
    student_options : mapping, optional
        Options of a student given by its name, such as `{"widths": (256, 256)}`,
        `{"grid": (16, 16)}`, or `{"rounds": 100, "levels": 6}` of trees.
    evaluations : int, optional
        Coalitions evaluated per example. For labels: in total, by default 8 per feature and at
        least 64. For other targets: in each epoch, by default 32.
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
        Number of further training examples. Each takes every feature from one of two training
        examples, drawn at random. They cost as many evaluations as real ones. Only for tables.
        More mixed rows lower the error.
    validation_share : float
        Share of the examples that is held out, to keep the best epoch by.
    validation_evaluations : int, optional
        Coalitions evaluated for each of these. By default, validation costs at most a tenth of the
        training's evaluations. With up to 12 features, all coalitions of each row are evaluated if
        the tenth allows it, otherwise 8 per feature and at least 64. If this is too much for all
        rows, only some of them get values. These are at least 16, even if they cost more.
    patience : int, optional
        Epochs without improvement after which training ends.
    efficient : bool
        Whether attributions are made to sum to the difference of the outputs, at one evaluation per
        example.
    surrogate : bool or Surrogate
        Whether a `Surrogate`, a network that takes masked inputs, marginalises absent features,
        instead of baselines. True: a new one with the options given here; it is fitted to the
        examples by `fit`, at one run of the model per example. Or a surrogate of yours. The
        attributions then sum to the difference of the surrogate's outputs.
    folder : path, optional
        Where labels and other values are kept, written as they come. A training that is
        interrupted, or another one of the same examples, does not evaluate them again. Other
        trainings may share the folder. Needs a `seed`.
    max_gradient_norm : float, optional
        The norm to which gradients are clipped; None for no clipping."""


def _documented(method: KindT) -> KindT:
    return fill_docstring(method, model=_MODEL, training=_TRAINING)


@_documented
@write_constructor
class SimShap(AmortizedAttribution):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    `SimShap(net).fit(loader)`, then `.attribute(x, target=…)`. Biased:
    `trained.trained.history` has its error on held-out examples. Features that equal the baseline
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
