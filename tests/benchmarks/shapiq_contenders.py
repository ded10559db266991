"""Every approximator of Shapley values in shapiq, run in the Python that has it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from coalition_games import BoolArray, FloatArray

_WORKER = Path(__file__).with_name("shapiq_worker.py")

ValuesOf = Callable[[BoolArray], FloatArray]
"""Coalitions of one row, (C, M), to values, (C,)."""


class UnusableBudgetError(Exception):
    """An approximator cannot use the budget; the message says why."""


@dataclass(frozen=True)
class Approximator:
    """A class of shapiq and how to use it best.

    Attributes
    ----------
    name : str
        What tables call it: the class.
    options : callable
        Number of players and budget to the options of the class.
    most_per_player : int
        The evaluations a player beyond which it takes too long.
    most_rows : int
        How many rows to explain at most, with one seed, where all would take too long.
    """

    name: str
    options: Callable[[int, int], dict[str, Any]]
    most_per_player: int = 10**9
    most_rows: int = 10**9


def _fixed(**options: Any) -> Callable[[int, int], dict[str, Any]]:
    return lambda n_players, budget: options


def _sets_up_to_three(n_players: int) -> int:
    return 1 + sum(comb(n_players, size) for size in (1, 2, 3))


def _poly_options(n_players: int, budget: int) -> dict[str, Any]:
    """Return sets of three where the budget tells them apart; with pairs, those of two do nothing.

    With a part of the sets of three it is worse than without any.
    """
    order = 3 if budget >= 2 * _sets_up_to_three(n_players) else 1
    return {"max_order": order, "pairing_trick": True}


def _additive_options(n_players: int, budget: int) -> dict[str, Any]:
    """Return sets of three where the budget is half their number; below, errors are huge."""
    order = 3 if 2 * budget >= _sets_up_to_three(n_players) else 2
    return {"max_order": order, "pairing_trick": True}


APPROXIMATORS = (
    Approximator("KernelSHAP", _fixed(pairing_trick=True)),
    Approximator("LeverageSHAP", _fixed()),
    Approximator("OddSHAP", _fixed()),
    Approximator("PolySHAP", _poly_options),
    Approximator("kADDSHAP", _additive_options),
    Approximator("RegressionMSR", _fixed(index="SV")),
    Approximator("ProxySHAP", _fixed(index="SV", max_order=1, adjustment=True)),
    Approximator("ProxySPEX", _fixed(index="SV", max_order=1, pairing_trick=True), most_rows=4),
    Approximator("SPEX", _fixed(index="SV", max_order=1), most_rows=10),
    Approximator("PermutationSamplingSV", _fixed()),
    Approximator("UnbiasedKernelSHAP", _fixed(pairing_trick=True)),
    Approximator("SVARM", _fixed(pairing_trick=True)),
    Approximator("StratifiedSamplingSV", _fixed()),
    Approximator("OwenSamplingSV", _fixed()),
    Approximator("ShaplEIG", _fixed(show_progress=False), most_per_player=8, most_rows=4),
)
"""SHAPIQ and SVARMIQ, at order one, are UnbiasedKernelSHAP and SVARM; the others are for
interactions."""


class ShapiqWorker:
    """A process with shapiq that asks for the values of coalitions.

    Parameters
    ----------
    python : Path
        The interpreter of an environment with shapiq.

    Attributes
    ----------
    version : str
        The version of shapiq.
    """

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [str(python), str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # Of their own, for both sides close what they hold.
        self.to_worker = Connection(os.dup(self.process.stdin.fileno()), readable=False)
        self.from_worker = Connection(os.dup(self.process.stdout.fileno()), writable=False)
        try:
            self.version = self.from_worker.recv_bytes().decode()
        except EOFError:
            raise SystemExit(
                f"{python} cannot run shapiq: install tests/benchmarks/requirements-shapiq.txt "
                "there, or leave --shapiq-python out."
            ) from None

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    def explain(
        self,
        approximator: Approximator,
        values_of: ValuesOf,
        n_players: int,
        budget: int,
        seed: int,
    ) -> tuple[FloatArray, int, float]:
        """Explain one row.

        Returns
        -------
        array, (M,)
            The values.
        int
            Distinct coalitions that it asked for.
        float
            Seconds that it took, those of the model apart.

        Raises
        ------
        UnusableBudgetError
            If it refuses the budget, or wants more.
        """
        request = {
            "class": approximator.name,
            "options": approximator.options(n_players, budget),
            "n_players": n_players,
            "budget": budget,
            "seed": seed,
        }
        self.to_worker.send_bytes(json.dumps(request).encode())
        n_bytes, n_asked = (n_players + 7) // 8, 0
        while True:
            message = self.from_worker.recv_bytes()
            kind, rest = message[:1], message[1:]
            if kind == b"=":
                found = np.frombuffer(rest)
                return found[:-1], n_asked, float(found[-1])
            if kind == b"!":
                raise UnusableBudgetError(rest.decode())
            packed = np.frombuffer(rest, dtype=np.uint8).reshape(-1, n_bytes)
            n_asked += len(packed)
            coalitions = np.unpackbits(packed, axis=1, count=n_players).astype(bool)
            values = values_of(coalitions) if n_asked <= budget else np.empty(0)
            self.to_worker.send_bytes(values.tobytes())
