"""Errors of shap's and shapiq's estimators on the games of the zoo, kept in a file.

They do not depend on our estimators, and so are computed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from coalition_games import BoolArray, FloatArray
from contenders import GameOfAllRows, by_shap_kernel, by_shap_permutation
from peers import Answer
from shapiq_contenders import APPROXIMATORS, Approximator, ShapiqWorker, UnusableBudgetError
from zoo_values import ZooGames

SHAPIQ = tuple(
    peer
    for peer in APPROXIMATORS
    if peer.kind
    in ("OddSHAP", "LeverageSHAP", "kADDSHAP", "PolySHAP", "RegressionMSR", "ProxySHAP")
)
Explain = Callable[[ZooGames, int, int], FloatArray]

SHAP: dict[str, Callable[[GameOfAllRows, int, int], Answer]] = {
    "shap permutation": by_shap_permutation,
    "shap kernel": by_shap_kernel,
}


def relative_errors(found: FloatArray, exact: FloatArray) -> FloatArray:
    """Return Σ|φ̂ − φ| over Σ|φ| of each game, (R,)."""
    errors: FloatArray = np.abs(found - exact).sum(axis=1) / np.abs(exact).sum(axis=1)
    return errors


class PeerErrors:
    """Errors of the peers by kind of game, players, games, evaluations a player and seeds.

    Parameters
    ----------
    worker : ShapiqWorker
        The process that has shapiq.
    path : Path
        The file that keeps what was computed, so that an interrupted run goes on.
    """

    def __init__(self, worker: ShapiqWorker, path: Path) -> None:
        self.worker, self.path = worker, path
        self.errors = json.loads(path.read_text()) if path.exists() else {}

    def of_cell(
        self, name: str, games: ZooGames, per_player: int, n_seeds: int
    ) -> dict[str, FloatArray]:
        """Return the errors of each peer that can use the budget, (S, R)."""
        sizes = f"{games.n_players} players, {len(games.exact)} games"
        key = f"{name}, {sizes}, {per_player} a player, {n_seeds} seeds"
        of_cell = self.errors.setdefault(key, {})
        budget = per_player * games.n_players + 2
        for peer, explain in self._explainers().items():
            if peer not in of_cell:
                of_cell[peer] = self._computed(explain, games, budget, n_seeds)
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_text(json.dumps(self.errors))
        return {peer: np.array(errors) for peer, errors in of_cell.items() if errors is not None}

    def _explainers(self) -> dict[str, Explain]:
        """Return what computes the Shapley values of games, given evaluations and a seed."""
        of_shapiq: dict[str, Explain] = {
            peer.name: partial(self._by_shapiq, peer) for peer in SHAPIQ
        }
        return of_shapiq | {name: partial(by_shap, explain) for name, explain in SHAP.items()}

    def _computed(
        self, explain: Explain, games: ZooGames, budget: int, n_seeds: int
    ) -> list[list[float]] | None:
        """Return the errors of a peer by seed and game; None if it cannot use the budget."""
        try:
            found = [explain(games, budget, seed) for seed in range(n_seeds)]
        except UnusableBudgetError:
            return None
        return [relative_errors(values, games.exact).tolist() for values in found]

    def _by_shapiq(self, peer: Approximator, games: ZooGames, budget: int, seed: int) -> FloatArray:
        """Explain the games one by one, each with draws of its own."""

        def values_of(row: int) -> Callable[[BoolArray], FloatArray]:
            return lambda coalitions: games.values_of(np.full(len(coalitions), row), coalitions)

        n_players, n_games = games.n_players, len(games.exact)
        found = [
            self.worker.explain(peer, values_of(row), n_players, budget, seed * 10_000 + row)[0]
            for row in range(n_games)
        ]
        return np.array(found)


def by_shap(
    explain: Callable[[GameOfAllRows, int, int], Answer],
    games: GameOfAllRows,
    budget: int,
    seed: int,
) -> FloatArray:
    """Return the answer of an explainer of shap, which may take more than the budget."""
    answer = explain(games, budget, seed)
    if answer.evaluations > budget:
        raise UnusableBudgetError(f"it takes {answer.evaluations} evaluations, not {budget}")
    return answer.values
