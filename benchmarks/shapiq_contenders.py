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

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1"}
"""LightGBM starts a thread per core in spite of the first variable; on busy cores they wait."""

ValuesOf = Callable[[BoolArray], FloatArray]
"""Coalitions of one row, (C, M), to values, (C,)."""


class UnusableBudgetError(Exception):
    """An approximator cannot use the budget; the message says why."""


@dataclass(frozen=True)
class Approximator:
    """A class of shapiq and how to use it best.

    Attributes
    ----------
    kind : str
        The class.
    options : callable
        Number of players and budget to the options of the class.
    form : str
        What tells it from others of the class, in tables.
    most_per_player : int, optional
        The evaluations a player beyond which it takes too long.
    most_rows : int, optional
        How many rows to explain at most, with one seed, where all would take too long.
    """

    kind: str
    options: Callable[[int, int], dict[str, Any]]
    form: str = ""
    most_per_player: int | None = None
    most_rows: int | None = None

    @property
    def name(self) -> str:
        """What tables call it."""
        return " ".join(["shapiq", self.kind, self.form]).strip()


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


def _owen_options(n_players: int, budget: int) -> dict[str, Any]:
    """Return few points for few evaluations: a point wants some draws for each player."""
    return {"n_anchor_points": 3 if budget < 40 * n_players else 10}


_SHAPLEY = {"index": "SV", "max_order": 1}

APPROXIMATORS = (
    Approximator("KernelSHAP", _fixed(pairing_trick=True)),
    Approximator("LeverageSHAP", _fixed()),
    Approximator("OddSHAP", _fixed()),
    Approximator("OddSHAP", _fixed(interaction_factor=5), "factor 5"),
    Approximator("PolySHAP", _poly_options),
    Approximator("kADDSHAP", _additive_options),
    Approximator("RegressionMSR", _fixed(index="SV", proxy_model="linear"), "linear"),
    Approximator("RegressionMSR", _fixed(index="SV", proxy_model="lightgbm"), "trees"),
    Approximator(
        "ProxySHAP",
        _fixed(**_SHAPLEY, adjustment=True, k_folds=5, proxy_model="lightgbm"),
        "5 folds",
        most_rows=10,
    ),
    Approximator("ProxySPEX", _fixed(**_SHAPLEY, pairing_trick=True), most_rows=4),
    Approximator("SPEX", _fixed(**_SHAPLEY), most_rows=10),
    Approximator("PermutationSamplingSV", _fixed()),
    Approximator("UnbiasedKernelSHAP", _fixed(pairing_trick=True)),
    Approximator("SVARM", _fixed()),
    Approximator("StratifiedSamplingSV", _fixed()),
    Approximator("OwenSamplingSV", _owen_options),
    Approximator("ShaplEIG", _fixed(show_progress=False), most_per_player=8, most_rows=8),
)
"""Tried on boosted trees and on the ReLU network. OddSHAP's default, one term for ten evaluations,
is its paper's; one for five was better from 16 evaluations a player on. RegressionMSR and ProxySHAP
with their default, XGBoost, were worse than with these.
SHAPIQ and SVARMIQ, at order one, are UnbiasedKernelSHAP and SVARM; the others are for
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
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": ""},
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
                f"{python} cannot run shapiq: install benchmarks/requirements-shapiq.txt "
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
        of_size: int = 1,
    ) -> tuple[FloatArray, int, float]:
        """Explain one row.

        Returns
        -------
        array, (M,), or (T,)
            The values, or the interactions of all sets of `of_size` players.
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
            "class": approximator.kind,
            "options": approximator.options(n_players, budget),
            "n_players": n_players,
            "budget": budget,
            "seed": seed,
            "of_size": of_size,
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
