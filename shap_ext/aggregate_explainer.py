"""Explainers that are made of other explainers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shap

from shapley_adapters.aggregation import Aggregate
from shapley_adapters.arguments import checked_count, checked_flag, checked_seed
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError

from .backgrounds import bounded_background, check_masker
from .members import Member, MemberResult, checked_members, has_outputs, member_of
from .saved_options import SavedExplainer
from .shap_internals import is_op_chain

DEFAULT_EXPLAINERS = ("oddgp", "leastsquares", "shear")


@dataclass(frozen=True)
class Spread:
    """How far an aggregate may be off, at most, in the shape of its values.

    Both are weighted sums of the members', which bounds them however the members' draws hang
    together.

    Attributes
    ----------
    errors : array
        Standard errors.
    half_widths : array
        How far 95 % intervals reach from the values.
    """

    errors: FloatArray
    half_widths: FloatArray


@dataclass(frozen=True)
class Combined:
    """What an aggregate explainer made of its members' answers.

    Attributes
    ----------
    values : array, (R, …) or (R, …, K)
        The attributions.
    base_values : array, (R,) or (R, K)
        The values without any feature.
    spread : Spread or None
        Bounds of the standard errors and intervals.
    template : shap.Explanation or None
        An answer to take names from.
    data, display_data : array or DataFrame, or None
        What plots show beside the features, which may be groups of columns.
    """

    values: FloatArray
    base_values: FloatArray
    spread: Spread | None
    template: Any
    data: Any
    display_data: Any


class AggregateExplainer(SavedExplainer):
    """Base of the explainers that combine others.

    Attributes
    ----------
    seed : int
        Seed of all random choices, and of the members that are given by name.
    last_aggregate : Aggregate or None
        What the latest call made of its members' answers, features last: weights and proofs.
    last_candidates : list of arrays
        The members' answers of the latest call, in the shape of its values.
    """

    name = "aggregate"

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
    ) -> None:
        masker, _ = bounded_background(masker)
        super().__init__(
            model,
            masker,
            link=link,
            feature_names=None if feature_names is None else list(feature_names),
            output_names=None if output_names is None else list(output_names),
            linearize_link=checked_flag("linearize_link", linearize_link),
        )
        check_masker(self.masker)
        self.seed = checked_seed(seed)
        self.last_aggregate: Aggregate | None = None
        self.last_candidates: list[FloatArray] = []

    def _specs(self) -> list[Any]:
        """Return what the members are given as."""
        raise NotImplementedError

    def _combine(self, rows: Any, arguments: Mapping[str, Any], error_bounds: bool) -> Combined:
        """Explain rows."""
        raise NotImplementedError

    def _members(self) -> list[Member]:
        return [
            member_of(
                spec,
                model=self.model,
                masker=self.masker,
                link=self.link,
                feature_names=self.feature_names,
                output_names=self.output_names,
                linearize_link=self.linearize_link,
                seed=self.seed,
            )
            for spec in self._specs()
        ]

    def __call__(
        self,
        X: Any,
        *,
        max_evals: int | str = "auto",
        main_effects: bool = False,
        error_bounds: bool = False,
        batch_size: int | str = "auto",
        outputs: Any = None,
        silent: bool = False,
    ) -> Any:
        """Explain the model's output for each row.

        Parameters
        ----------
        X : array or DataFrame, (R, …)
            The rows.
        max_evals : int or "auto"
            The budget of all members together for each explained row: those that take a budget get
            equal shares of it. By default each has its own default.
        main_effects : bool
            Not supported.
        error_bounds : bool
            Whether to give standard errors and 95 % intervals. Those of the members are added up
            with their weights, which bounds the error however the members' draws hang together.
            Only for linear aggregates of members that give them.
        batch_size : int or "auto"
            Is passed on to the members that take it.
        outputs : sequence of int, optional
            Which outputs to show; all by default.
        silent : bool
            Whether to show no progress bars.

        Returns
        -------
        shap.Explanation
            Values (R, M), or (R, M, K) for K outputs.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used, or members' answers do not fit together.
        BudgetError
            If a share of the budget is too small for a member.
        """
        started = time.time()
        if main_effects:
            raise InvalidArgumentError("main_effects=True is not supported by aggregates.")
        arguments = {"silent": checked_flag("silent", silent), **self._budget(max_evals)}
        if batch_size != "auto":
            arguments["batch_size"] = checked_count("batch_size", batch_size)
        if checked_flag("error_bounds", error_bounds):
            arguments["error_bounds"] = True
        rows = _checked_rows(X)
        found = self._combine(rows, arguments, error_bounds)
        return self._explanation(found, rows, outputs, time.time() - started)

    def explain_row(self, *row_args: Any, **arguments: Any) -> dict[str, Any]:
        """Explain one row; returns what shap's own explainers return for a row."""
        if len(row_args) != 1:
            raise InvalidArgumentError(f"one input is explained; got {len(row_args)}.")
        row = np.asarray(row_args[0])
        made = self(row[None], **arguments)
        values = made.values[0]
        n_features = int(np.prod(row.shape))
        return {
            "values": values.reshape(n_features, *values.shape[row.ndim :]),
            "expected_values": made.base_values[0],
            "mask_shapes": [row.shape],
            "main_effects": None,
            "clustering": None,
            "error_std": None if made.error_std is None else made.error_std[0],
            "output_names": made.output_names,
        }

    def _budget(self, max_evals: Any) -> dict[str, Any]:
        if isinstance(max_evals, str) and max_evals == "auto":
            return {}
        if isinstance(max_evals, str):
            raise InvalidArgumentTypeError(
                f"max_evals must be a whole number or 'auto'; got {max_evals!r}."
            )
        total = checked_count("max_evals", max_evals)
        n_shares = sum(member.takes("max_evals") for member in self._members())
        if n_shares > total:
            raise BudgetError(
                f"max_evals={total} must be shared by {n_shares} explainers; pass at least "
                f"{n_shares}, or 'auto'."
            )
        return {"max_evals": total // max(1, n_shares)}

    def _explanation(self, found: Combined, rows: Any, outputs: Any, seconds: float) -> Any:
        values, base, spread = found.values, found.base_values, found.spread
        template = found.template
        names = self.output_names
        if names is None and template is not None:
            names = template.output_names
        if outputs is not None:
            places = _checked_outputs(outputs, values, rows)
            values, base = values[..., places], base[..., places]
            if spread is not None:
                spread = Spread(spread.errors[..., places], spread.half_widths[..., places])
            names = None if names is None else [list(names)[place] for place in places]
        return shap.Explanation(
            values,
            base_values=base,
            data=found.data,
            display_data=found.display_data,
            feature_names=self._names(rows, template),
            output_names=names if has_outputs(values, rows) else None,
            lower_bounds=None if spread is None else values - spread.half_widths,
            upper_bounds=None if spread is None else values + spread.half_widths,
            error_std=None if spread is None else spread.errors,
            compute_time=seconds,
        )

    def _names(self, rows: Any, template: Any) -> Any:
        if template is not None and template.feature_names is not None:
            return template.feature_names
        columns = getattr(rows, "columns", None)
        return self.feature_names if columns is None else [str(column) for column in columns]


class CandidateExplainer(AggregateExplainer):
    """Base of the aggregates of several explainers' answers for the same rows."""

    explainers: Any

    def _specs(self) -> list[Any]:
        given = DEFAULT_EXPLAINERS if self.explainers is None else self.explainers
        return checked_members("explainers", given)

    def _aggregator(self, rows: Any, arguments: Mapping[str, Any]) -> Any:
        """Return the aggregator of the core with the options of this object."""
        raise NotImplementedError

    def _combine(self, rows: Any, arguments: Mapping[str, Any], error_bounds: bool) -> Combined:
        members = self._members()
        results = explained_by_all(members, rows, arguments)
        aggregator = self._aggregator(rows, arguments)
        with_outputs = has_outputs(results[0].values, rows)
        made = aggregator([folded(one.values, with_outputs) for one in results])
        self.last_aggregate = made
        self.last_candidates = [one.values for one in results]
        weights = made.weights if made.weights is not None and made.weights.ndim == 1 else None
        template = template_of(results)
        return Combined(
            unfolded(made.values, results[0].values.shape, with_outputs),
            self._base(results, weights, made),
            _bounded_spread(members, results, weights) if error_bounds else None,
            template,
            _shown(results[0].values, rows, template),
            None if template is None else template.display_data,
        )

    @staticmethod
    def _base(results: Sequence[MemberResult], weights: Any, made: Aggregate) -> FloatArray:
        shape = made.values.shape[:-1]
        known = [place for place, one in enumerate(results) if one.base_values is not None]
        if made.rankings is not None or not known:
            return np.zeros(shape)
        shares = np.ones(len(known)) if weights is None else weights[known]
        if shares.sum() == 0:
            shares = np.ones(len(known))
        values = np.array([results[place].base_values for place in known])
        base: FloatArray = np.average(values, axis=0, weights=shares)
        return base


def explained_by_all(
    members: Sequence[Member], rows: Any, arguments: Mapping[str, Any]
) -> list[MemberResult]:
    """Return what all members say; a budget that is too small is told with its sharing."""
    results = []
    for member in members:
        try:
            results.append(member.explain(rows, arguments))
        except BudgetError as error:
            n_shares = sum(one.takes("max_evals") for one in members)
            raise BudgetError(
                f"{error} It is this explainer's part of the budget, which {n_shares} share."
            ) from error
    check_alike([member.name for member in members], [one.values for one in results])
    return results


def folded(values: FloatArray, with_outputs: bool) -> FloatArray:
    """Return values with the features of a row in the last axis, (R, M) or (R, K, M)."""
    if with_outputs:
        values = np.moveaxis(values, -1, 1)
        return values.reshape(*values.shape[:2], -1)
    return values.reshape(len(values), -1)


def unfolded(values: FloatArray, shape: tuple[int, ...], with_outputs: bool) -> FloatArray:
    """Undo `folded`."""
    if not with_outputs:
        return values.reshape(shape)
    return np.moveaxis(values.reshape(len(values), shape[-1], *shape[1:-1]), 1, -1)


def check_alike(names: Sequence[str], values: Sequence[FloatArray]) -> None:
    """Refuse answers of different shapes."""
    if len({one.shape for one in values}) > 1:
        shapes = ", ".join(f"{name}: {v.shape}" for name, v in zip(names, values, strict=True))
        raise InvalidArgumentError(
            f"the explainers must explain the same features and outputs; their values have the "
            f"shapes {shapes}."
        )


def template_of(results: Sequence[MemberResult]) -> Any:
    """Return the first answer that is an Explanation."""
    return next((one.explanation for one in results if one.explanation is not None), None)


def _bounded_spread(
    members: Sequence[Member], results: Sequence[MemberResult], weights: Any
) -> Spread:
    if weights is None:
        raise InvalidArgumentError(
            "error_bounds=True: this aggregate is no fixed linear combination of its explainers, "
            "so that their standard errors say nothing about it. Pass error_bounds=False."
        )
    shape = results[0].values.shape
    errors, half_widths = np.zeros(shape), np.zeros(shape)
    for member, one, weight in zip(members, results, weights, strict=True):
        if one.errors is None or one.half_widths is None:
            raise InvalidArgumentError(
                f"error_bounds=True, but {member.name} gives no standard errors."
            )
        errors += weight * one.errors
        half_widths += weight * one.half_widths
    return Spread(errors, half_widths)


def _checked_rows(rows: Any) -> Any:
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu().numpy()
    if isinstance(rows, (list, tuple)):
        rows = np.asarray(rows)
    if np.ndim(rows) < 2 or len(rows) == 0:
        raise InvalidArgumentError(
            f"X has shape {np.shape(rows)}: a table of rows is needed. For one row pass X[None]."
        )
    return rows


def _checked_outputs(outputs: Any, values: FloatArray, rows: Any) -> list[int]:
    if is_op_chain(outputs) or isinstance(outputs, str) or not hasattr(outputs, "__len__"):
        raise InvalidArgumentTypeError(
            "outputs of an aggregate must be a list of places of outputs, the same for all rows; "
            f"got {type(outputs).__name__}."
        )
    places = [checked_count("outputs", place, minimum=0) for place in outputs]
    n_outputs = values.shape[-1] if has_outputs(values, rows) else 0
    if not places or max(places) >= n_outputs:
        raise InvalidArgumentError(
            f"outputs={list(outputs)} must name some of the model's {n_outputs} outputs, counted "
            "from 0; a model with one output needs no outputs=."
        )
    return places


def _shown(values: FloatArray, rows: Any, template: Any) -> Any:
    """Return what the explanation of the same rows shows, where its features are these."""
    shape = values.shape[:-1] if has_outputs(values, rows) else values.shape
    of_features = template is not None and np.shape(template.data) == shape
    return template.data if of_features else np.asarray(rows)
