"""The models of the accuracy benchmark, by name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import adult
import torch
from converged import converged
from data_files import add_folder_arguments
from digit_and_word_networks import digits, film_reviews
from explained_models import Case, ExplainedModel, ReferenceValues
from table_models import breast_cancer, table_network, table_trees
from tables import companies, news

TITLES = {
    "adult-elu": "Adult, ELU network",
    "adult-relu": "Adult, ReLU network",
    "trees": "breast cancer, boosted trees",
    "table": "Taiwanese bankruptcy, boosted trees",
    "table-net": "Taiwanese bankruptcy, ReLU network",
    "news": "news articles, boosted trees",
    "news-net": "news articles, ReLU network",
    "text": "film reviews, convolutional network",
    "image": "digits, convolutional network, squares of 4 × 4 pixels",
    "image-fine": "digits, convolutional network, squares of 2 × 2 pixels",
}

_ADULT = {"adult-elu": "elu", "adult-relu": "relu"}
WITH_EXACT_VALUES = ("adult-elu", "adult-relu", "trees", "table", "news")


def add_case_arguments(parser: argparse.ArgumentParser, default: str = "adult-elu") -> None:
    """Add what chooses the model, its rows and how well they have to be known."""
    parser.add_argument("--model", choices=tuple(TITLES), default=default)
    parser.add_argument("--rows", type=int, default=40)
    add_case_settings(parser)


def add_case_settings(parser: argparse.ArgumentParser) -> None:
    """Add what all models take."""
    add_folder_arguments(parser)
    parser.add_argument(
        "--converged-evaluations",
        type=int,
        default=100_000,
        help="evaluations a row where there are no exact values",
    )


def prepare(name: str, arguments: argparse.Namespace) -> Case:
    """Return a model, its rows and their Shapley values.

    Parameters
    ----------
    name : str
        One of `TITLES`.
    arguments : argparse.Namespace
        What `add_case_arguments` asks for; `rows` is how many rows to explain.
    """
    torch.set_num_threads(1)
    explained, shapley = _made(name, arguments)
    if shapley is None:
        shapley = converged(name, explained, arguments.converged_evaluations, arguments.cache)
    return Case(name, TITLES[name], explained, shapley)


def prepare_model(name: str, arguments: argparse.Namespace) -> ExplainedModel:
    """Return a model and its rows, where their Shapley values are not asked for."""
    explained, _ = _made(name, arguments, with_values=False)
    return explained


def _made(
    name: str, arguments: argparse.Namespace, with_values: bool = True
) -> tuple[ExplainedModel, ReferenceValues | None]:
    """Return a model, and its values where they are exact."""
    if name in _ADULT:
        benchmark = _adult(_ADULT[name], arguments)
        values = benchmark.game().shapley_values() if with_values else None
        exact = None if values is None else ReferenceValues.exact(values, "all coalitions")
        return benchmark, exact
    made = _makers(arguments)[name]()
    explained, shapley = made if isinstance(made, tuple) else (made, None)
    if len(explained.rows) < arguments.rows:
        raise SystemExit(f"--rows {arguments.rows}: {TITLES[name]} has only {len(explained.rows)}.")
    return explained, shapley


def _makers(
    arguments: argparse.Namespace,
) -> dict[str, Callable[[], ExplainedModel | tuple[ExplainedModel, ReferenceValues]]]:
    data, cache, n_rows = arguments.data, arguments.cache, arguments.rows
    return {
        "trees": partial(breast_cancer, n_rows),
        "table": lambda: table_trees(companies(data), n_rows),
        "table-net": lambda: table_network("bankruptcy", companies(data), cache, n_rows),
        "news": lambda: table_trees(news(data), n_rows),
        "news-net": lambda: table_network("news", news(data), cache, n_rows),
        "text": partial(film_reviews, data, cache, n_rows),
        "image": partial(digits, data, cache, n_rows, 4),
        "image-fine": partial(digits, data, cache, n_rows, 2),
    }


def _adult(activation: str, arguments: argparse.Namespace) -> adult.AdultBenchmark:
    of_adult = argparse.Namespace(
        activation=activation, explain="margin", data=arguments.data, cache=arguments.cache
    )
    return adult.prepare(of_adult, arguments.rows)
