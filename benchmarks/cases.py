"""Models of tables with their rows and Shapley values, by name."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import adult
import numpy as np
import torch
from explained_models import Case, ReferenceValues
from games import converged
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
}


def prepare(name: str, data: Path, cache: Path, n_rows: int) -> Case:
    """Return a model, its rows and their Shapley values.

    Parameters
    ----------
    name : str
        One of `TITLES`.
    data, cache : Path
        The folder of the data sets, and the one that keeps trained networks.
    n_rows : int
        How many rows to explain.
    """
    torch.set_num_threads(1)
    if name.startswith("adult"):
        explained = adult.prepare(data, cache, n_rows, name.removeprefix("adult-"))
        values = explained.tabulated().shapley_values()
        shapley = ReferenceValues.exact(values, "all coalitions")
    elif name == "trees":
        explained, shapley = breast_cancer(n_rows)
    else:
        table = (companies if name.startswith("table") else news)(data)
        if not name.endswith("-net"):
            explained, shapley = table_trees(table, n_rows)
        else:
            kept = "bankruptcy" if name == "table-net" else "news"
            explained = table_network(kept, table, cache, n_rows)
            games, n_players = explained.evaluated(), explained.n_players
            found = [converged(partial(games.of_row, row), n_players) for row in range(n_rows)]
            values, errors = (
                np.array([getattr(one, part) for one in found])
                for part in ("exact", "standard_errors")
            )
            shapley = ReferenceValues(values, errors, "least squares, 2,000 evaluations a player")
    if len(explained.rows) < n_rows:
        raise SystemExit(f"--rows {n_rows}: {TITLES[name]} has only {len(explained.rows)}.")
    return Case(TITLES[name], explained, shapley)
