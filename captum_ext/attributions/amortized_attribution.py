"""The attribution methods that train a network."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from torch import Tensor

from shapley_adapters import Game
from shapley_adapters.arguments import checked_seed
from shapley_adapters.array_types import AttributionArray
from shapley_adapters.constructors import KindT, fill_docstring, write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.surrogates.surrogate_model import surrogate_for
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.torch_support.tensor_arrays import array_of
from shapley_adapters.training_options import (
    FASTSHAP_PRESETS,
    SIMSHAP_PRESETS,
    TrainingArguments,
    training_parameters,
)

from ..argument_types import Baselines, Batches, FeatureMask, Inputs, Target
from ..games.forward_function_game import ForwardFunctionGame
from ..games.model_outputs import selected_targets
from ..inputs.checks import checked_inputs, checked_target
from ..inputs.forward_arguments import shared_arguments_only
from ..results.tensor_results import as_group_tensor, as_tensors
from .attribute_methods import attribute_method, future_method
from .call_options import OPTIONS, ByName
from .coalition_attribution import AttributeCall, CoalitionAttribution
from .shared_parameters import TEXTS
from .surrogate import (
    Surrogate,
    bar_delay,
    gathered,
    inputs_from_network,
    layout_of,
    network_inputs,
)

if TYPE_CHECKING:
    from shapley_adapters.amortized.amortized import AmortizedShapley
    from shapley_adapters.amortized.training import Training


@write_constructor
class AmortizedAttribution(TrainingArguments, CoalitionAttribution):
    """Base of the attribution methods that train a network.

    Attributes
    ----------
    trained : AmortizedShapley or None
        The trained network, and in `trained.history` how its training went.
    last_efficiency_gaps : array, (B, K), or None
        After a call: by how much the network's own attributions missed the sum that they should
        have; NaN where `efficient=False`.
    last_unlike_rows : array of int, or None
        After a call: the examples, counted from 0, on which the network misses that sum by far more
        than on held-out examples. The call warns of them. Where
        `efficient=False`, those that are far from the training examples.
    """

    _evaluates_coalitions = False
    _results = ("last_estimate", "last_efficiency_gaps", "last_unlike_rows")
    _calls_in_flight = 1  # `fit` waits for forward functions that return futures, too

    def __post_init__(self) -> None:
        super().__post_init__()
        self._loadable = self._check_training()
        self.surrogate = surrogate_for(self.surrogate, Surrogate, self, self.forward_func)
        self.trained: AmortizedShapley | None = None
        self._trained_function: Any = None
        self.last_efficiency_gaps: Any = None
        self.last_unlike_rows: Any = None
        self._training()  # refuses options that cannot be used

    def fit(
        self,
        inputs: Batches,
        baselines: Baselines = None,
        additional_forward_args: object = None,
        feature_mask: FeatureMask = None,
        show_progress: bool | None = None,
    ) -> Any:
        """Train the network to explain all outputs of the forward function.

        What it has evaluated is kept where there is a `folder`, so that a training after an
        interrupt does not pay for it again.

        Parameters
        ----------
        inputs : Tensor, tuple of Tensors, or iterable of batches
            The examples to train on. A batch is a tensor; or a list or tuple, such as inputs and
            labels, of which the first part is taken: a tensor, or for several inputs a tuple of
            them, as in `((a, b), labels)`.
        baselines, additional_forward_args, feature_mask
            As in `attribute`, the same for all examples.
        show_progress : bool, optional
            Whether to show progress bars and the remaining time on stderr. By default they appear
            after ten seconds.

        Returns
        -------
        AmortizedAttribution
            Itself. `trained.evaluations` is the number of all evaluations, and
            `trained.validation_evaluations` how many of them validation took.
        """
        from shapley_adapters.amortized.amortized import AmortizedShapley
        from shapley_adapters.amortized.fitting import Progress

        delay = bar_delay(show_progress)
        tensors = gathered(inputs)
        warn_in_training_mode(self.forward_func)
        if self.surrogate is not None and not self.surrogate.is_fitted:
            with_model = self.surrogate.with_model(self.forward_func)
            with_model.fit(tensors, additional_forward_args, feature_mask, show_progress)
        given = baselines, None, additional_forward_args, feature_mask, None
        call = self.checked_call(tensors, *given)
        real = call.game
        if self.n_mixed_rows > 0:
            call = self.checked_call(self._with_mixed_rows(real), *given)
        game: Game = call.game if call.valued is None else call.valued
        differ = real.groups.differ_by_example or real.baselines.differ_by_example
        trained = AmortizedShapley.fit(
            game,
            network_inputs(call.game.inputs, self.student),
            self._training(),
            real.n_rows,
            Progress(self.get_name(), delay),
            self.n_jobs,
            None if differ else lambda: self._shifted_rows(real.inputs, *given),
            call.game.groups.players_of_one_example(),
        )
        shape = list((call.valued or call.game).output_shape)
        layout = layout_of(call.game.inputs)
        self.trained = trained.with_host({"output_shape": shape, "inputs": layout})
        self._trained_function = self.forward_func
        return self

    def checked_call(
        self,
        inputs: Inputs,
        baselines: Baselines,
        target: Target,
        additional: object,
        feature_mask: FeatureMask,
        perturbations_per_eval: int | None,
    ) -> AttributeCall:
        """Return the games of a call: of the forward function, or of its surrogate."""
        if self.surrogate is None:
            # Training rows, probes and explained rows have different numbers of examples.
            n_examples = len(checked_inputs(inputs)[0])
            additional = shared_arguments_only(additional, n_examples)
            return super().checked_call(
                inputs, baselines, target, additional, feature_mask, perturbations_per_eval
            )
        if baselines is not None:
            raise InvalidArgumentError(
                "baselines have no meaning with a surrogate, which knows absent features; leave "
                "them out."
            )
        of_surrogate = CoalitionAttribution(self.surrogate, value_function=self.value_function)
        return of_surrogate.checked_call(
            inputs, self.surrogate.reference, target, None, feature_mask, perturbations_per_eval
        )

    def _training(self) -> Training:
        from shapley_adapters.amortized.training import Training

        return Training.of(self)

    def _with_mixed_rows(self, game: ForwardFunctionGame) -> Tensor:
        """Return examples with more of them, each made of two that are not held out."""
        from shapley_adapters.amortized.fitting import split_rows
        from shapley_adapters.amortized.unlike_rows import mixed_rows

        if len(game.inputs) > 1 or game.groups.differ_by_example:
            raise InvalidArgumentError(
                f"n_mixed_rows={self.n_mixed_rows} needs one input tensor, with the same groups "
                "for all examples."
            )
        (real,) = game.inputs
        players = game.groups.players[0][0]
        _, training_rows = split_rows(self._training(), len(real), len(real))
        rows, seed = array_of(real)[training_rows], checked_seed(self.seed)
        mixed = mixed_rows(rows, players, self.n_mixed_rows, seed)
        return torch.cat([real, torch.as_tensor(mixed).to(real)])

    def _shifted_rows(
        self,
        inputs: tuple[Tensor, ...],
        baselines: Baselines,
        target: Target,
        additional: object,
        *others: Any,
    ) -> tuple[Game, Any]:
        """Return the games and the inputs of examples unlike the training examples."""
        from shapley_adapters.amortized.unlike_rows import shifted_rows

        # An argument may have as many entries as there are artificial examples.
        additional = shared_arguments_only(additional, len(inputs[0]))
        seed, n_numbers = checked_seed(self.seed), sum(tensor[0].numel() for tensor in inputs)
        shifted = tuple(
            torch.as_tensor(shifted_rows(array_of(tensor), seed, n_numbers)).to(tensor)
            for tensor in inputs
        )
        call = self.checked_call(shifted, baselines, target, additional, *others)
        game: Game = call.game if call.valued is None else call.valued
        return game, network_inputs(call.game.inputs, self.student)

    def load_trained(
        self,
        path: str | Path,
        baselines: Baselines = None,
        additional_forward_args: object = None,
        feature_mask: FeatureMask = None,
    ) -> Any:
        """Read a trained network.

        Parameters
        ----------
        path : path
            A file that `save_trained` wrote.
        baselines, additional_forward_args, feature_mask
            As in `fit`.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, of another method or version, or was trained on another forward
            function or with other baselines.
        """
        from shapley_adapters.amortized.amortized import AmortizedShapley, ends_of
        from shapley_adapters.amortized.storage import refusing, typed

        loaded = AmortizedShapley.load(path, self.student, self._loadable)
        about = loaded.description
        if about.host.get("inputs") is None:
            raise InvalidArgumentError(
                f"{path} was written by another host, for rows as that one has them. Train anew, "
                "or load it there."
            )
        with refusing(path, "explainer"):
            if math.prod(typed(list[int], about.host["output_shape"])) != about.n_outputs:
                raise ValueError("its output_shape has another number of outputs")
        probes = loaded.fingerprint.inputs
        inputs = inputs_from_network(probes, about.host["inputs"], str(path))
        call = self.checked_call(
            inputs, baselines, None, additional_forward_args, feature_mask, None
        )
        game: Game = call.game if call.valued is None else call.valued
        loaded.check(game.n_players, probes.shape[1:])
        loaded.fingerprint.check(ends_of(game, len(probes)))
        self.trained, self.labels = loaded, about.target
        self._trained_function = self.forward_func
        return self

    @attribute_method
    @OPTIONS.documented("network")
    def attribute(
        self,
        inputs: Inputs,
        baselines: Baselines = None,
        target: Target = None,
        additional_forward_args: object = None,
        feature_mask: FeatureMask = None,
        n_samples: int | None = None,
        **options: Unpack[ByName],
    ) -> Any:
        """Attribute outputs of the forward function to its inputs, by one pass of the network.

        Parameters
        ----------
        inputs, baselines, target, additional_forward_args, feature_mask
            As in all methods here; baselines and feature mask as they were in `fit`. With a value
            function there is one output, of which no target can be chosen. Other baselines are
            refused if those of `fit` were the same for all examples; the output for them is
            compared. With `efficient`, there is a warning for examples unlike the training
            examples: the network's sum differs from the model's output by far more than on
            held-out examples.
        n_samples : int, optional
            The number of coalitions evaluated per example to improve the network's attributions.
            They are the prior mean of `OddGP`'s regression. By default, as with 0, the network
            alone explains. Needs `efficient`.
        return_standard_error : bool
            Whether to return standard errors, too. Those of the network are stated from its errors
            on held-out examples, the distance of an example to the training examples, and the
            example's efficiency gap.
        tolerance : float or str, optional
            The standard error above which coalitions are evaluated for an example, until it is met.
            Examples that meet it by the network alone cost nothing more. Needs `efficient`.
        **options
            The other options of a call.

        Returns
        -------
        Tensor or tuple of Tensors, or a pair of them with standard errors
            Attributions with the shape and device of the inputs, and in their type but at least
            float32; outputs come first where no target was given and there are several. With
            `return_input_shape=False`, one tensor whose last dimension has a column for each id of
            the feature mask.
        """
        tensors = checked_inputs(inputs)
        fields, further = OPTIONS.read("network", {"n_samples": n_samples or None, **options})
        fitted = self._fitted()
        target = checked_target(target, len(tensors[0]), may_be_function=False)
        warn_in_training_mode(self.forward_func)
        call = self.checked_call(
            inputs, baselines, None, additional_forward_args, feature_mask, None
        )
        if not further["return_input_shape"]:
            call.game.groups.check_columns()
        if call.valued is not None and target is not None:
            kind = call.valued.value_function.kind
            raise InvalidArgumentError(
                f"target={target!r} cannot be chosen where value_function={kind!r}: the network "
                "was trained on one value of each example, that of one class. Leave target out. "
                "Or train with value_function='raw' on a forward_func that returns a value for "
                "each class, and choose among these."
            )
        game: Game = call.game if call.valued is None else call.valued
        self._check_refinement(n_samples=bool(n_samples), tolerance=options.get("tolerance"))
        settings = self._settings(call.game, fields)
        inputs_of_network = network_inputs(tensors, fitted.description.network)
        explained = fitted.explain(game, inputs_of_network, self.efficient, refinement=settings)
        self.last_estimate = explained.estimate
        self.last_efficiency_gaps = explained.efficiency_gaps
        self.last_unlike_rows = explained.unlike_rows

        def formatted(per_player: AttributionArray) -> Any:
            shape = tuple(fitted.description.host["output_shape"])
            if target is not None:
                per_player, shape = _target_attributions(per_player, target, shape)
            dtype = torch.get_default_dtype()
            arguments = per_player, call.game.groups, call.game.inputs, shape, dtype
            if not further["return_input_shape"]:
                return as_group_tensor(*arguments)
            tensors_of_inputs = as_tensors(*arguments)
            return tensors_of_inputs if isinstance(inputs, tuple) else tensors_of_inputs[0]

        attributions = formatted(explained.estimate.values)
        if not settings.with_errors:
            return attributions
        return attributions, formatted(explained.estimate.standard_errors)

    attribute_future = future_method(attribute)

    def _fitted(self) -> AmortizedShapley:
        if self.trained is None:
            raise InvalidArgumentError(
                f"{self.get_name()} has not been trained. Call fit(inputs) with examples to train "
                "on, or load_trained(path)."
            )
        if self._trained_function is not self.forward_func:
            raise InvalidArgumentError(
                f"{self.get_name()} was trained to explain another forward_func than it has now. "
                "captum's LLMAttribution and DataLoaderAttribution replace forward_func, so use a "
                "method with them that is not trained, or call fit after the change."
            )
        return self.trained


def _target_attributions(
    values: AttributionArray, target: Target, output_shape: tuple[int, ...]
) -> tuple[AttributionArray, tuple[int, ...]]:
    """Return the attributions of the selected outputs, (B, M, K), and the shape of these."""
    n_rows = len(values)
    indices = torch.arange(values.shape[2]).reshape(1, *output_shape).expand(n_rows, *output_shape)
    selected = selected_targets(indices, target, target)
    columns = selected.reshape(n_rows, 1, -1).numpy()
    return np.take_along_axis(values, columns, axis=2), tuple(selected.shape[1:])


def refuse_trained(attr_method: Any, explained: str) -> None:
    """Refuse a method that trains a network where captum gives methods another forward function.

    Raises
    ------
    InvalidArgumentError
        If `attr_method` is one of them, because it cannot explain `explained`.
    """
    if isinstance(attr_method, AmortizedAttribution):
        raise InvalidArgumentError(
            f"attr_method is {type(attr_method).__name__}, which is trained to explain its own "
            f"forward_func and cannot explain {explained}. Pass an estimator, such as "
            "OddGP(model)."
        )


def _documented(method: KindT) -> KindT:
    training = training_parameters("example")
    return fill_docstring(method, model=TEXTS["networks"], training=training)


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
