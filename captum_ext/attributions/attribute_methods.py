"""Common parts of every attribution: usage count, named options, a Future, its name and graph."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import captum.attr
from torch import Tensor
from torch.futures import Future

from shapley_adapters import PlayerGraph, PlayerTree
from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.graphs.reading import GraphLike, read_graphs
from shapley_adapters.hierarchies.reading import HierarchyLike, read_hierarchy

from ..captum_internals import counted_usage
from ..games.forward_function_game import ForwardFunctionGame, in_background
from ..inputs.checks import checked_inputs

_AS_PAPERS_WRITE_THEM = {"FastShap": "FastSHAP", "Shear": "SHEAR", "SimShap": "SimSHAP"}


def attribute_method(attribute: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an `attribute`: count its use as captum does and refuse options without names.

    captum's classes differ in the order of their last arguments. A call that passes one of them by
    position gets an error that says so, because it may come from a class with another order.
    """
    with_usage = counted_usage(attribute)
    parameters = inspect.signature(attribute).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    @functools.wraps(attribute)
    def counted_attribute(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(positional):
            raise InvalidArgumentTypeError(
                f"attribute takes at most {len(positional)} arguments by position "
                f"({', '.join(positional)}); got {len(args)}. captum's classes differ in "
                f"the next arguments, so pass the others by name: {', '.join(names)}."
            )
        return with_usage(self, *args, **kwargs)

    @functools.wraps(attribute)
    def attribute_in_tools(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("return_standard_error"):
            raise InvalidArgumentError(
                "return_standard_error=True is not possible inside captum's NoiseTunnel, which "
                "would average and square standard errors as if they were attributions. Leave it "
                "out; last_estimate.standard_errors holds the errors of the latest samples."
            )
        return attribute(self, *args, **kwargs)

    # captum's NoiseTunnel calls what is inside, so that its samples are not counted as usage. It
    # removes one wrapper.
    inside: Any = attribute_in_tools
    inside.__signature__ = inspect.signature(attribute)
    del inside.__wrapped__
    outside: Any = counted_attribute
    outside.__wrapped__ = inside
    return counted_attribute


def future_method(attribute: Callable[..., Any]) -> Callable[..., Future[Any]]:
    """Return the `attribute_future` that belongs to an `attribute`.

    The class says by `_prepared_for_futures` which copy of itself runs in the background, and in
    `_results` which attributes of the copy hold results of the call.
    """

    def attribute_future(self: Any, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do the same as `attribute` in the background, and return a Future at once.

        For forward functions that return a `torch.futures.Future`, such as calls of a remote model.
        Several calls of the forward function are in flight at the same time. Forward functions that
        return their output directly work, too.

        The arguments are those of `attribute`.

        Returns
        -------
        torch.futures.Future
            Its `wait()` returns the attributions that `attribute` computes from the results of the
            futures. It raises the errors of `attribute`, and `FutureError` if a Future of the
            forward function ended with an error. Attributes such as `last_estimate`
            are set when it completes.
        """
        bound = inspect.signature(attribute).bind(self, *args, **kwargs)
        twin = self._prepared_for_futures()

        def run() -> Any:
            attributions = attribute(twin, *args, **kwargs)
            for name in self._results:
                setattr(self, name, getattr(twin, name))
            return attributions

        return in_background(run, checked_inputs(bound.arguments["inputs"]))

    documented: Any = attribute_future
    documented.__signature__ = inspect.signature(attribute)
    return counted_usage(attribute_future)


def graph_of_inputs(
    graph: GraphLike | None, game: ForwardFunctionGame
) -> PlayerGraph | list[PlayerGraph]:
    """Return the graph of the players: by default the grid of the inputs."""
    if graph is None:
        _refuse_tables(game.inputs, "graph")
    return read_graphs("grid" if graph is None else graph, _layouts(game), game.n_players)


def trees_of_inputs(
    hierarchy: HierarchyLike | None, game: ForwardFunctionGame
) -> PlayerTree | list[PlayerTree]:
    """Return the hierarchy of the players: by default halves of the axes of the inputs."""
    if hierarchy is None:
        _refuse_tables(game.inputs, "hierarchy")
    return read_hierarchy(hierarchy, _layouts(game), game.n_players)


def _layouts(game: ForwardFunctionGame) -> list[list[IntArray]]:
    return game.groups.layouts([tuple(tensor.shape[1:]) for tensor in game.inputs])


_INSTEAD = {
    "graph": "graph= with the graph of its features, or graph='line' if they are a sequence",
    "hierarchy": "hierarchy= with nested lists of its features",
}


def _refuse_tables(inputs: tuple[Tensor, ...], argument: str) -> None:
    """Refuse inputs whose shape says nothing about neighbours."""
    for index, tensor in enumerate(inputs):
        if tensor.dim() == 2 and tensor.shape[1] > 1 and tensor.is_floating_point():
            raise InvalidArgumentError(
                f"{argument} is missing: inputs[{index}] of shape {tuple(tensor.shape)} is a table "
                "of numbers, whose columns are not neighbours because they stand side by side. "
                f"Pass {_INSTEAD[argument]}. Token ids, embeddings, images and volumes bring their "
                f"{argument} with them."
            )


class NamedAttribution(captum.attr.Attribution):  # type: ignore[misc] # captum is untyped
    """Attribution whose name reads well: captum puts a space before every capital."""

    @classmethod
    def get_name(cls) -> str:
        """Return the readable name of the class."""
        name = cls.__name__
        if name in _AS_PAPERS_WRITE_THEM:
            return _AS_PAPERS_WRITE_THEM[name]
        # A single capital, as in L-Shapley, belongs to the next word, and so does the prefix "Sim".
        # Each other word has a space before it; abbreviations such as LLM stay whole.
        hyphened = re.sub(r"^(Sim|[A-Z])(?=[A-Z][a-z])", r"\1-", name)
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", hyphened)
