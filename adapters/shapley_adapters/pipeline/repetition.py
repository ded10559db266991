"""Whether a model answers at random: some of its values are evaluated again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..array_types import BoolArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import warn_user
from ..games.evaluation import Evaluator, Request
from .settings import Settings

_DIFFERENCE = 2.0**-8
"""Share of the largest value by which repeated values may differ. Many models compute with reduced
precision inside, and then differ that much between batches of different sizes."""

_NOISE = 2.0**-16
"""Share of the largest value by which two values of the same call differ, if a model is random."""

_MOST_PAIRS = 3
"""Coalitions of which two answers are compared, if they are almost equal."""

_ROUNDINGS = 8
"""Rounding errors of the output by which they may differ, where that is more."""


@dataclass(frozen=True)
class Difference:
    """Two answers, (K,), of the model to one question.

    `cause` is noise of each answer; noise that all rows of a batch share; or the rows of a batch,
    which influence each other.
    """

    first: ValueArray
    second: ValueArray
    cause: Literal["noise", "shared noise", "influence"] = "noise"

    @classmethod
    def explained(
        cls, two: ValueArray, evaluate: Evaluator, request: Request, allowed: float
    ) -> tuple[Difference, int]:
        """Return the difference of two answers, (2, K), and the evaluations that explain it.

        The request is for their coalition alone. It is evaluated twice in one batch, with its
        complement between, and twice alone. Labels are often equal by chance; other answers are
        taken for those of one batch if all are the same again.
        """
        if (two == np.round(two)).all():
            return cls(two[0], two[1]), 0
        (of_coalition,) = request.table.coalitions
        batch = np.concatenate([of_coalition, ~of_coalition, of_coalition])[None]
        in_batch = replace(request, table=CoalitionTable(batch, np.array([3])))
        together, alone = np.zeros((2, 0, len(two[0])))
        for n_spent in (5, 10):
            together = np.concatenate([together, evaluate([in_batch])[0][0, ::2]])
            if (np.ptp(together[-2:], axis=0) > allowed).any():
                return cls(two[0], two[1]), n_spent - 2
            alone = np.concatenate([alone, *(evaluate([request])[0][0] for _ in range(2))])
            if (np.ptp(alone, axis=0) > allowed).any():
                return cls(two[0], two[1], "shared noise"), n_spent
        is_same = (np.ptp(together, axis=0) <= allowed).all()
        has_company = is_same and (np.abs(together[0] - alone[0]) > allowed).any()
        return cls(two[0], two[1], "influence" if has_company else "noise"), n_spent

    def warn(self) -> None:
        """Say what differs, why, and what to do."""
        output = int(np.abs(self.first - self.second).argmax())
        first, second = f"{self.first[output]:.6g}", f"{self.second[output]:.6g}"
        if self.cause == "influence":
            warn_user(
                f"The rows of a batch influence each other: the model returned {first} and "
                f"{second} for the same input beside other rows. The attributions then depend on "
                "the size of batches, and error bars do not hold that. Let the model treat each "
                "row alone: model.eval() for batch normalisation, no softmax or mean over the "
                "first axis. Or call it with one row at a time: in shap explain lambda x: "
                "[model(row[None])[0] for row in x], in captum one example with "
                "perturbations_per_eval=1.",
                subject="repeated values",
            )
            return
        held = "Error bars hold that noise; repeats= evaluates each coalition several times."
        if self.cause == "shared noise":
            held = (
                "All rows of a batch share that noise, such as one dropout mask, and error bars "
                "cannot hold it."
            )
        warn_user(
            f"The model is not deterministic: it returned {first} and {second} for the same "
            f"input. {held} Switch off the random parts of the model (model.eval() for dropout), "
            "let it start from a fixed seed in each call, or average many outputs inside it. If "
            "its rows influence each other within a batch, as in batch normalisation, explain one "
            "that treats each row alone.",
            subject="repeated values",
        )


@dataclass(frozen=True)
class Repetition:
    """What values of the first row tell that were evaluated twice.

    Attributes
    ----------
    n_evaluations, n_explaining : int
        The evaluations that this took, and those that explained a difference.
    difference : Difference, optional
        Two answers that differ.
    may_continue : bool
        Whether each row's values may tell more: not where the model is known to be random, or its
        rows influence each other.
    smallest : float
        Share of the largest value by which answers of other batches differ at least.
    """

    n_evaluations: int = 0
    n_explaining: int = 0
    difference: Difference | None = None
    may_continue: bool = False
    smallest: float = _DIFFERENCE

    @property
    def is_random(self) -> bool:
        """Whether the model answers at random."""
        return self.difference is not None and self.difference.cause != "influence"

    @classmethod
    def from_first_row(
        cls, evaluate: Evaluator, active: BoolArray, ends: ValueArray, settings: Settings
    ) -> Repetition:
        """Evaluate half of the players of the first row twice, and all of them once more.

        Half of the players, because a model may answer at random only where some are absent. The
        output is computed beside other rows than before: it differs where rows of a batch influence
        each other. Labels are often equal by chance: among all values of a row there are better
        ones. Models in training mode are not checked: the hosts warn of them, and their rows may
        need a batch.
        """
        game, rows = evaluate.game, np.flatnonzero(active.any(axis=1))
        is_known = settings.n_repeats > 1 or game.is_random or game.is_in_training_mode
        if settings.is_for_training or is_known or not len(rows):
            return cls()
        row, rounding = rows[:1], _ROUNDINGS * game.rounding
        noise, between = max(_NOISE, rounding), max(_DIFFERENCE, rounding)
        if (ends[row] == np.round(ends[row])).all():
            return cls(may_continue=True, smallest=between)
        players = np.flatnonzero(active[rows[0]])
        largest = float(np.abs(ends).max())
        for n_spent in range(2, 2 * _MOST_PAIRS + 1, 2):
            half = np.zeros((1, 1, game.n_players), dtype=bool)
            half[..., np.roll(players, n_spent)[: (len(players) + 1) // 2]] = True
            request = Request(row, CoalitionTable(half, np.array([1])))
            # Each is evaluated alone: rows of a batch may influence each other.
            two = np.stack([evaluate([request])[0][0, 0] for _ in range(2)])
            largest = max(largest, float(np.abs(two).max()))
            if (np.ptp(two, axis=0) > noise * largest).any():
                found, n_more = Difference.explained(two, evaluate, request, noise * largest)
                return cls(n_spent + n_more, n_more, found, True, noise)
            if (two[0] == two[1]).all():  # answers at random may almost be equal
                break
        # Alone, unless it was alone before: then with the empty coalition.
        n_ends, allowed = 2 if game.evaluates_first_alone else 1, between * largest
        coalitions = end_points(game.n_players)[None, ::-1][:, :n_ends]
        beside = Request(row, CoalitionTable(coalitions, np.array([n_ends])))
        two = np.stack([ends[row[0], 1], evaluate([beside])[0][0, 0]])
        if not (np.ptp(two, axis=0) > allowed).any():
            return cls(n_spent + n_ends, may_continue=True, smallest=between)
        request = Request(row, CoalitionTable(coalitions[:, :1], np.array([1])))
        found, n_more = Difference.explained(two, evaluate, request, allowed)
        n_spent += n_ends + n_more
        return cls(n_spent, n_more, found, found.cause != "influence", between)
