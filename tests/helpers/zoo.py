"""The games of the benchmark of games, whose scripts are not a package."""

import runpy
import sys
from pathlib import Path
from unittest import mock

_FOLDER = Path(__file__).parents[2] / "benchmarks"
with mock.patch.object(sys, "path", [str(_FOLDER), *sys.path]):
    _NAMES = runpy.run_path(str(_FOLDER / "zoo_games.py"))

GAMES = _NAMES["GAMES"]
"""Names of kinds of games, and functions that make them."""

tabulated = _NAMES["tabulated"]
"""Function of a kind, a number of players and a number of games; returns all values."""
