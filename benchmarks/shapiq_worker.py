"""Runs approximators of shapiq in a Python of their own; started by `peers`.

Says its version first. Reads requests, as JSON, from standard input and writes to standard output:
`?` with coalitions, whose values are then read; at last `=` with Shapley values, or `!` with the
reason for having none. Needs shapiq and what it learns trees by, and nothing of the project.
"""

import itertools
import json
import os
import sys
import warnings
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt
import shapiq
import shapiq.approximator


class OverBudgetError(Exception):
    """The approximator asks for more than it may evaluate."""


class AskedGame:
    """A game whose values the other process knows; each coalition is asked for once."""

    def __init__(self, n_players: int, questions: Connection, answers: Connection) -> None:
        self.n_players = n_players
        self.questions = questions
        self.answers = answers
        self.known: dict[bytes, float] = {}

    def __call__(self, coalitions: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the values, (C,), of coalitions, (C, M)."""
        packed = np.packbits(np.atleast_2d(coalitions).astype(bool), axis=1)
        keys = [row.tobytes() for row in packed]
        self._ask([key for key in dict.fromkeys(keys) if key not in self.known])
        return np.array([self.known[key] for key in keys])

    def _ask(self, keys: list[bytes]) -> None:
        if not keys:
            return
        self.questions.send_bytes(b"?" + b"".join(keys))
        values = np.frombuffer(self.answers.recv_bytes())
        if len(values) != len(keys):
            raise OverBudgetError(f"it asks for more than its {len(self.known)} evaluations")
        self.known.update(zip(keys, values.tolist(), strict=True))


def approximated(request: dict[str, Any], game: AskedGame) -> npt.NDArray[np.float64]:
    """Return the Shapley values, (M,), or interactions, of an approximator."""
    kind = getattr(shapiq.approximator, request["class"])
    n_players = request["n_players"]
    approximator = kind(n=n_players, random_state=request["seed"], **request["options"])
    found = approximator.approximate(budget=request["budget"], game=game)
    # What an interaction is worth; those that are not told are 0.
    sets = itertools.combinations(range(n_players), request["of_size"])
    return np.array([found[players] for players in sets], dtype=np.float64)


def main() -> None:
    """Answer requests until there are no more."""
    results = Connection(os.dup(sys.stdout.fileno()), readable=False)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print goes elsewhere
    requests = Connection(sys.stdin.fileno(), writable=False)
    warnings.simplefilter("ignore")
    results.send_bytes(shapiq.__version__.encode())
    while True:
        try:
            request = json.loads(requests.recv_bytes())
        except EOFError:
            return
        game = AskedGame(request["n_players"], results, requests)
        try:
            results.send_bytes(b"=" + approximated(request, game).tobytes())
        except Exception as error:
            results.send_bytes(f"!{type(error).__name__}: {error}".encode())


if __name__ == "__main__":
    main()
