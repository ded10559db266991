"""Where data sets and trained networks lie, and how data sets are split."""

import os
import tempfile
from pathlib import Path

import numpy as np
from games import IntArray

DATA_VARIABLE = "SHAPLEY_EXT_DATA"
_SEED = 2022


def data_folder() -> Path:
    """Return the folder that the environment names, or `shared/data` beside the repository."""
    repository = Path(__file__).resolve().parents[1]
    return Path(os.environ.get(DATA_VARIABLE, repository.parent / "shared" / "data"))


FOLDERS = {"data": data_folder(), "cache": Path(tempfile.gettempdir()) / "shapley-ext-benchmarks"}
"""Where the data are, and where what takes time to make is kept: options of commands."""


def data_file(folder: Path, name: str) -> Path:
    """Return the path of a file in the folder of data sets, or end the program without it."""
    path = folder / name
    if not path.is_file():
        raise SystemExit(
            f"No file {path}. Name the folder that holds {name} by --data or the environment "
            f"variable {DATA_VARIABLE}."
        )
    return path


def parts(n_examples: int, seed: int = 0) -> dict[str, IntArray]:
    """Draw 64 % of the places for training, 16 % for validation and 20 % for the test."""
    order = np.random.default_rng(_SEED + seed).permutation(n_examples)
    n_test, n_validation = round(0.2 * n_examples), round(0.16 * n_examples)
    return {
        "test": order[:n_test],
        "validation": order[n_test : n_test + n_validation],
        "training": order[n_test + n_validation :],
    }


def in_turns(labels: IntArray, places: IntArray) -> IntArray:
    """Return places with label 1 and label 0 in turns, as many of each as the rarer has."""
    ones, zeros = (places[labels[places] == label] for label in (1, 0))
    n_each = min(len(ones), len(zeros))
    return np.stack([ones[:n_each], zeros[:n_each]], axis=1).ravel()
