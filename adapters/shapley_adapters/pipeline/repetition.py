"""Whether a model answers at random: some of its values are evaluated again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..array_types import BoolArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import warn_user
from ..estimators.draws import Draws
from ..estimators.random_answers import MOST_COMPARED, equal_errors, most_surprising
from ..estimators.value_errors import ValueErrors
from ..games.evaluation import Evaluator, Request
from ..workers import one_blas_thread
from .designs import PendingRows
from .settings import Settings

_DIFFERENCE = 2.0**-8
"""Share of the largest value by which repeated values may differ. Many models compute with reduced
precision inside, and then differ that much between batches of different sizes."""

_NOISE, _NOISE_OF_SPREAD, _LEAST_NOISE = 2.0**-16, 2.0**-7, 2.0**-20
"""Two values of the same call differ by more if a model is random: by these shares of the largest
value and of the differences between values, whichever is less; and at least by the rounding of
single precision on a GPU. The noise of values far from 0 is a small share of these."""

_MOST_PAIRS = 3
"""Coalitions of which two answers are compared, if they are almost equal."""

_FEWEST_AGAIN, _SHARE_AGAIN, _SHARE_OF_ROW = 4, 0.05, 0.03
"""Evaluations that look for random answers: the most of a call, the most as a share of its
evaluations where that is more, and those of a row's values as a share of these, or four. With 2 %,
bars of noise in 5 % of the answers held .25 to .79; with 3 %, .80 to 1.0. Labels that are random in
5 % of 20 rows were noticed in .82 of calls of 40 or 60 evaluations, with four a row in .95."""

ROUNDINGS = 8
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

    def warn(self, known_from: str = "") -> None:
        """Say what differs, why, and what to do.

        `known_from` is the budget from which on error bars include noise, where this one is less.
        """
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
        hold = f"may miss this noise below {known_from}" if known_from else "include this noise"
        held = f"Error bars {hold}; repeats=2 evaluates each coalition twice."
        if self.cause == "shared noise":
            held = (
                "All rows of a batch share this noise, such as one dropout mask, so error bars "
                "cannot include it."
            )
        warn_user(
            f"The model is not deterministic: it returned {first} and {second} for the same "
            f"input. {held} Switch off random parts (model.eval() for dropout), fix the seed in "
            "each call, or average many outputs in the model. If the rows of a batch influence "
            "each other, as in batch normalisation, explain a model that treats each row alone.",
            subject="repeated values",
        )


@dataclass
class Repetition:
    """What values tell that were evaluated twice.

    Attributes
    ----------
    n_evaluations, n_first : int
        The evaluations that this took, and those of the first row, without those that explained a
        difference.
    difference : Difference, optional
        The first two answers that differ.
    may_continue : bool
        Whether each row's values may tell more: not where the model is known to be random, or its
        rows influence each other.
    smallest : float
        Share of the largest value by which answers of other batches differ at least.
    """

    n_evaluations: int = 0
    n_first: int = 0
    difference: Difference | None = None
    may_continue: bool = False
    smallest: float = _DIFFERENCE

    @classmethod
    def from_first_row(
        cls,
        evaluate: Evaluator,
        active: BoolArray,
        ends: ValueArray,
        settings: Settings,
        n_evaluations: int,
    ) -> Repetition:
        """Evaluate half of the players of the first row twice, and all of them once more.

        `n_evaluations` are those of the call.

        Half of the players, because a model may answer at random only where some are absent. The
        output is computed beside other rows than before: it differs where rows of a batch influence
        each other. Labels are often equal by chance: among all values of a row there are better
        ones. Models in training mode are not checked: the hosts warn of them, and their rows may
        need a batch.
        """
        game, rows = evaluate.game, np.flatnonzero(active.any(axis=1))
        is_random = game.draws_values or game.answers_at_random or game.is_in_training_mode
        is_known = settings.n_repeats > 1 or is_random or settings.is_for_training
        if is_known or not len(rows):
            return cls()
        row, rounding = rows[:1], ROUNDINGS * game.rounding
        between = max(_DIFFERENCE, rounding)
        if (ends[row] == np.round(ends[row])).all():
            return cls(may_continue=True, smallest=between)
        players = np.flatnonzero(active[rows[0]])
        n_ends = 2 if game.evaluates_first_alone else 1
        largest = float(np.abs(ends).max())
        most = int(max(_FEWEST_AGAIN, _SHARE_AGAIN * n_evaluations)) - n_ends
        for n_spent in range(2, min(2 * _MOST_PAIRS, most) + 1, 2):
            half = np.zeros((1, 1, game.n_players), dtype=bool)
            half[..., np.roll(players, n_spent)[: (len(players) + 1) // 2]] = True
            request = Request(row, CoalitionTable(half, np.array([1])))
            # Each is evaluated alone: rows of a batch may influence each other.
            two = np.stack([evaluate([request])[0][0, 0] for _ in range(2)])
            largest = max(largest, float(np.abs(two).max()))
            spread = max(np.ptp(ends[row[0]], axis=0).max(), np.abs(two - ends[row[0]]).max())
            noise = min(_NOISE, _NOISE_OF_SPREAD * spread / max(largest, 1e-300))
            noise = max(noise, _LEAST_NOISE, rounding)
            if (np.ptp(two, axis=0) > noise * largest).any():
                found, n_more = Difference.explained(two, evaluate, request, noise * largest)
                return cls(n_spent + n_more, n_spent, found, True, noise)
            if (two[0] == two[1]).all():  # answers at random may almost be equal
                break
        # Alone, unless it was alone before: then with the empty coalition.
        coalitions, allowed = end_points(game.n_players)[None, ::-1][:, :n_ends], between * largest
        beside = Request(row, CoalitionTable(coalitions, np.array([n_ends])))
        pairs = np.stack([ends[row[0], ::-1][:n_ends], evaluate([beside])[0][0]], axis=1)
        most_different = int(np.ptp(pairs, axis=1).max(axis=1).argmax())
        two = pairs[most_different]
        if not (np.ptp(two, axis=0) > allowed).any():
            return cls(n_spent + n_ends, n_spent + n_ends, may_continue=True, smallest=between)
        request = Request(row, CoalitionTable(coalitions[:, [most_different]], np.array([1])))
        found, n_more = Difference.explained(two, evaluate, request, allowed)
        n_spent += n_ends
        goes_on = found.cause != "influence"
        return cls(n_spent + n_more, n_spent, found, goes_on, between)

    def add(self, other: Repetition) -> None:
        """Add what values of other rows tell."""
        self.n_evaluations += other.n_evaluations
        self.difference = self.difference or other.difference

    def checked(
        self, pending: list[PendingRows], evaluate: Evaluator, largest: float
    ) -> list[PendingRows]:
        """Evaluate some values of each row again, and separate rows whose answers differ.

        Those are the values that the others let expect least: they differ most the next time, if
        the model answers at random. The first answers stay; errors are known by the second ones.
        `largest` is the largest value so far.
        """
        evaluate = replace(evaluate, memory=None, on_progress=None)  # nothing known, not counted
        samples, done, looked = [], [], []
        squares, n_compared = np.zeros(1), 0
        if (known := self.difference) is not None:
            squares, n_compared = (known.first - known.second) ** 2, 1
        n_rows = evaluate.game.n_rows
        for rows in pending:
            table, n_values = rows.design.table, rows.values.shape[1]
            # The rows of a call share few values by their indices.
            n_left = max(_FEWEST_AGAIN, _SHARE_AGAIN * n_values * n_rows) - self.n_first
            each = min(n_left / n_rows, max(_FEWEST_AGAIN, _SHARE_OF_ROW * n_values))
            indices = rows.group.rows
            n_again = np.floor((indices + 1) * each) - np.floor(indices * each)
            most = max(0, min(table.counts.min() - 2, MOST_COMPARED))
            n_each = np.clip(n_again, 0, most).astype(np.intp)
            is_of_use = n_each.any() or (most > 0 and rows.design.is_whole and known is not None)
            if rows.is_checked or rows.design.n_before_choice or not is_of_use:
                done.append(rows)
                continue
            coalitions, counts = table.coalitions[:, :n_values], np.minimum(table.counts, n_values)
            with one_blas_thread():
                repeated = most_surprising(rows.values, coalitions, counts, int(n_each.max()))
            chosen = coalitions[np.arange(len(coalitions))[:, None], repeated]
            request = rows.request(CoalitionTable(chosen, n_each))
            samples.append((replace(rows, is_checked=True), request, repeated))
        answers = evaluate([request for _, request, _ in samples])
        for (rows, request, repeated), second in zip(samples, answers, strict=True):
            self.n_evaluations += request.n_pairs
            first = np.take_along_axis(rows.values, repeated[..., None], axis=1)
            again: ValueArray = second.reshape(first.shape)  # none have no outputs
            is_asked = np.arange(again.shape[1]) < request.table.counts[:, None]
            apart = is_asked[..., None] * np.abs(first - again)
            differ = apart > self.smallest * largest
            if differ.any() and self.difference is None:
                self._explain(differ, first, again, request, evaluate, self.smallest * largest)
            squares = squares + (apart**2).sum(axis=(0, 1))
            n_compared += request.n_pairs
            looked.append((rows, differ, repeated, again, request.table.counts))
        if self.difference is None or self.difference.cause == "influence":
            return done + [rows for rows, *_ in looked]
        return done + [part for one in looked for part in _separated(*one, squares, n_compared)]

    def _explain(
        self,
        differ: BoolArray,
        first: ValueArray,
        again: ValueArray,
        sample: Request,
        evaluate: Evaluator,
        allowed: float,
    ) -> None:
        """Look for the cause of the first difference of answers, (R, n, K)."""
        row, index = (int(found[0]) for found in np.nonzero(differ.any(axis=2)))
        alone = replace(
            sample,
            rows=sample.rows[[row]],
            table=CoalitionTable(sample.table.coalitions[row, [[index]]], np.array([1])),
            players=None if sample.players is None else sample.players[[row]],
        )
        two = np.stack([first[row, index], again[row, index]])
        self.difference, n_more = Difference.explained(two, evaluate, alone, allowed)
        self.n_evaluations += n_more


def _separated(
    pending: PendingRows,
    differ: BoolArray,
    repeated: IntArray,
    again: ValueArray,
    counts: IntArray,
    squares: FloatArray,
    n_compared: int,
) -> list[PendingRows]:
    """Return rows whose answers are the same again together, and each other row by itself.

    Answers of labels, and others with few different values, may be the same by chance, and some
    rows were not looked at. Where no spread of draws shows their noise, it is the mean one of all
    rows, by the sums of squares of `n_compared` differences, (K,), over one more than the answers
    that are the same.
    """
    values = np.sort(pending.values, axis=1)
    n_different = 1 + np.count_nonzero(np.diff(values, axis=1), axis=1).max(axis=1)
    are_random, are_few = differ.any(axis=(1, 2)), 2 * n_different < values.shape[1]
    may_be = ~are_random & (are_few | (counts == 0)) & pending.design.is_whole
    n_same = counts[may_be].sum() / max(1, may_be.sum())
    noise = squares / (2 * n_compared * (n_same + 1)), n_compared
    groups = (~are_random & ~may_be, None), (may_be, noise)
    parts = [
        replace(pending.subset_rows(np.flatnonzero(which)), noise=of_group)
        for which, of_group in groups
        if which.any()
    ]
    for place in np.flatnonzero(are_random).tolist():
        part, n = pending.subset_rows(np.array([place])), int(counts[place])
        parts.append(replace(part, repeated=repeated[place, :n], again=again[place, :n]))
    return parts


def errors_of_repeated(pending: PendingRows) -> ValueErrors:
    """Return the errors of the values of a row of which some were evaluated again, or of noise."""
    if pending.noise is not None:
        return equal_errors(*pending.noise, pending.values.shape)
    (values,) = pending.values
    answers = np.stack([values, values], axis=1)  # (C, 2, K)
    answers[pending.repeated, 1] = pending.again
    drawn = np.zeros((1, len(values), 2), dtype=bool)
    drawn[:, :, 0], drawn[:, pending.repeated, 1] = True, True
    table = pending.design.table.first(len(values))
    draws = Draws(2, is_background=False)
    return draws.means(answers.reshape(1, len(values), -1), table, drawn)[1]
