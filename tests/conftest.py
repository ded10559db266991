"""What all tests share."""

import os
from pathlib import Path

# Before NumPy and torch read them: workers that run side by side have one core each.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of real data sets; tests that need it skip where there is none."""
    folder = Path(os.environ.get("SHAPLEY_EXT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; set SHAPLEY_EXT_DATA")
    return folder
