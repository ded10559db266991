"""The games of the benchmark of games, whose scripts are not a package."""

import runpy
from pathlib import Path

_PATH = Path(__file__).parents[1] / "benchmarks" / "zoo_games.py"
_NAMES = runpy.run_path(str(_PATH))

GAMES = _NAMES["GAMES"]
"""Names of kinds of games, and functions that make them."""

tabulated = _NAMES["tabulated"]
"""Function of a kind, a number of players and a number of games; returns all values."""
