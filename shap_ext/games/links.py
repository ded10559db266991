"""Averages over background rows, through a link function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NonFiniteValueError,
    warn_user,
)
from shapley_adapters.games.evaluation import background_mean

_STEP = 1e-4
"""Step of the link's numerical derivative; the one that shap takes."""

_LEAST_PROBABILITY = 1e-15
"""Probabilities are clipped to this distance from 0 and 1 before their logit, as in shap's
KernelExplainer."""

_BY_NAME = {"identity": shap.links.identity, "logit": shap.links.logit}
"""The links that shap's KernelExplainer knows by name."""


def checked_link(link: object) -> Any:
    """Return the link function that a user passes or names."""
    if isinstance(link, str):
        if link not in _BY_NAME:
            raise InvalidArgumentError(
                f"link={link!r} is not known by name; pass 'identity', 'logit', or a function of "
                "arrays."
            )
        return _BY_NAME[link]
    if not callable(link):
        raise InvalidArgumentTypeError(
            f"link must be 'identity', 'logit', or a function of arrays; got {type(link).__name__}."
        )
    return link


@dataclass(frozen=True)
class LinkedAverage:
    """Average of outputs over background rows, in the units of the link.

    Attributes
    ----------
    link : callable
        Takes and returns arrays.
    weights : array, (B, K), or None
        Weights of the background rows, by which an average of linked outputs keeps a model that is
        additive in the units of the link additive; None for the link of the average.
    background_weights : array, (B,), or None
        How much each background row counts, 1 in all; None where all count the same.
    """

    link: Callable[[Any], Any]
    weights: FloatArray | None = None
    background_weights: FloatArray | None = None
    _warned: set[str] = field(default_factory=set, repr=False, compare=False)

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Return the average over the background, (P, K), of `outputs`, (P, B, K)."""
        if self.link is shap.links.identity:
            return background_mean(outputs, self.background_weights)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.weights is None:
                return self._linked(self._mean(outputs))
            return self._mean(self.weights * self._linked(outputs))

    @property
    def sampling_obstacle(self) -> str:
        """Why the average over a part of the background would not do; "" if it does."""
        if self.link is shap.links.identity or self.weights is not None:
            return ""
        return (
            "the link of an average over fewer is biased. Leave linearize_link=True, so that "
            "linked outputs are averaged, or raise the budget."
        )

    def row_contributions(self, outputs: FloatArray, backgrounds: IntArray) -> FloatArray:
        """Return what single background rows add to their average, (P, K), of outputs, (P, K)."""
        if self.link is shap.links.identity or self.weights is None:
            return outputs
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self.weights[backgrounds] * self._linked(outputs)

    def _linked(self, outputs: FloatArray) -> FloatArray:
        """Return linked outputs; refuse outputs that the link makes infinite."""
        linked = self._of_link(outputs)
        is_lost = np.isfinite(outputs) & ~np.isfinite(linked)
        if is_lost.any():
            output, value = outputs[is_lost][0], linked[is_lost][0]
            raise NonFiniteValueError(
                f"link turns an output of the model, {output}, into {value}. Explain a function "
                "whose outputs the link takes, such as probabilities for the logit, or leave out "
                "link."
            )
        return linked

    def _of_link(self, outputs: FloatArray) -> FloatArray:
        """Return what the link makes of outputs, in their shape; probabilities are clipped."""
        if self.link is shap.links.logit:
            clipped = np.clip(outputs, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
            are_clipped = (outputs != clipped) & (outputs >= 0) & (outputs <= 1)
            if are_clipped.any():
                outputs = np.where(are_clipped, clipped, outputs)
                if not self._warned:  # once in a call
                    self._warned.add("clipped")
                    warn_user(
                        "link='logit': the model returned probabilities of 0 or 1, whose logit is "
                        f"infinite. They are clipped to {_LEAST_PROBABILITY} and "
                        f"1 - {_LEAST_PROBABILITY}, as in shap's KernelExplainer."
                    )
        linked = self.link(outputs)
        array = np.asarray(linked)
        if array.dtype.kind not in "biuf":
            is_array = isinstance(linked, np.ndarray)
            got = f"an array of {array.dtype}" if is_array else type(linked).__name__
            raise InvalidArgumentTypeError(
                f"link must return numbers, one for each output of the model; it returned {got}. "
                "Pass 'identity', 'logit', or a function such as np.log."
            )
        if array.shape != np.shape(outputs):
            raise InvalidArgumentError(
                f"link must return an array of the shape of its argument, {np.shape(outputs)}; it "
                f"returned {array.shape}. Pass a function that NumPy applies to each entry."
            )
        return array.astype(np.float64)

    def linearized_at(self, empty_outputs: FloatArray) -> LinkedAverage:
        """Return the average with weights that make it right for the empty coalition, (B, K)."""
        if self.link is shap.links.identity or len(empty_outputs) == 1:
            return self
        return replace(self, weights=self._linearizing_weights(empty_outputs))

    def _mean(self, outputs: FloatArray) -> FloatArray:
        return background_mean(outputs, self.background_weights)

    def _linearizing_weights(self, outputs: FloatArray) -> FloatArray:
        """Return weights, (B, K), with mean(weights · link(outputs)) = link(mean(outputs)).

        Each row's weight is the ratio of the linearised link's rise from the mean to the link's
        own; at the mean itself that ratio is 1.
        """
        link, mean = self._of_link, self._mean(outputs[None])[0]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at_mean = link(mean)
            slope = (link(mean + _STEP) - at_mean) / _STEP
            rise = link(outputs) - at_mean
            weights = np.where(
                rise == 0, 1.0, slope * (outputs - mean) / np.where(rise == 0, 1, rise)
            )
            scaled: FloatArray = weights / self._mean(weights[None])[0]
        return scaled
