"""Sensitivity, faithfulness and complexity of explainers and of aggregates of them.

The comparison that Bhatt, Weller and Moura call for, on Adult (13 players) and MNIST (49 blocks of
4 × 4 pixels), with both ways to lower complexity, AVA, centroids, and learned combinations:

    python benchmarks/aggregation.py [--quick] [--sets adult mnist]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import captum.attr
import numpy as np
import torch
from aggregation_sets import SETS, ExplainedSet
from coalition_games import FloatArray, IntArray
from data_files import add_folder_arguments

from captum_ext import OddGP, Shear
from captum_ext.attributions.coalition_attribution import CoalitionAttribution
from shapley_adapters.aggregation import (
    Centroid,
    Convex,
    LowComplexity,
    NeighbourIndex,
    NeighbourSearch,
    averaged_over_neighbours,
    learned_weights,
)
from shapley_adapters.aggregation.convex import (
    Loss,
    complexity_loss,
    sensitivity_loss,
    unfaithfulness_loss,
)
from shapley_adapters.array_types import BoolArray
from shapley_adapters.criteria import complexity, faithfulness, sensitivity
from shapley_adapters.criteria.faithfulness import removal_losses

COLUMNS = ("max sensitivity", "average sensitivity", "faithfulness", "complexity")
BASE = "oddgp"
"""The explainer that AVA averages."""

Explain = Callable[[FloatArray, IntArray], FloatArray]
"""Rows and the class of each to attributions of players."""


@dataclass(frozen=True)
class Answers:
    """What one explainer says of the rows and of their neighbours.

    Attributes
    ----------
    name : str
        The explainer.
    rows : array, (R, M)
        Attributions of the rows.
    near : array, (R, n, M)
        Those of the neighbours; zero where they do not count.
    """

    name: str
    rows: FloatArray
    near: FloatArray


def main() -> None:
    """Judge all explainers and aggregates, and print the tables."""
    arguments = _arguments()
    torch.set_num_threads(1)
    for name in arguments.sets:
        started = time.perf_counter()
        explained = SETS[name](arguments)
        answers, judge = all_answers(explained, arguments)
        scores = {one.name: judge(one) for one in answers}
        _print_table(explained, scores, arguments, time.perf_counter() - started)
        _print_claims(scores)


class Judge:
    """Measures answers; rows without neighbours are left out of the sensitivities."""

    def __init__(self, explained: ExplainedSet, kept: BoolArray, seed: int) -> None:
        method = CoalitionAttribution(explained.model, seed=0)
        call = method.checked_call(
            torch.as_tensor(explained.rows),
            torch.as_tensor(explained.reference),
            torch.as_tensor(explained.classes),
            None,
            torch.as_tensor(explained.players),
            None,
        )
        self.game, self.kept, self.seed = call.game, kept, seed

    def __call__(self, answers: Answers) -> FloatArray:
        """Return the four criteria of each row, (4, R)."""
        moved = sensitivity(answers.rows, answers.near, is_neighbour=self.kept)
        faithful = faithfulness(answers.rows, self.game, seed=self.seed)
        return np.array([moved.maximum, moved.average, faithful, complexity(answers.rows)])

    def unfaithfulness(self, candidates: FloatArray) -> Loss:
        """Return the loss of combinations, by the subsets on which all are judged."""
        subsets, losses = removal_losses(self.game, 1, seed=self.seed)
        return unfaithfulness_loss(candidates, subsets, losses[:, 0])


def all_answers(
    explained: ExplainedSet, arguments: argparse.Namespace
) -> tuple[list[Answers], Judge]:
    """Return what all explainers and aggregates say of a set, and what judges them."""
    rows, classes = explained.rows, explained.classes
    flat = rows.reshape(len(rows), -1).astype(np.float64)
    near, _ = explained.neighbourhood(arguments.draws).around(flat, arguments.seed)
    owners = np.repeat(np.arange(len(rows)), near.shape[1])
    shaped = near.reshape(-1, *rows.shape[1:]).astype(rows.dtype)
    kept = (explained.predict(shaped).argmax(1) == classes[owners]).reshape(near.shape[:2])
    lonely = int((~kept.any(axis=1)).sum())
    print(
        f"{explained.name}: {kept.mean():.1%} of the neighbours keep the class; {lonely} rows none"
    )
    judge = Judge(explained, kept, arguments.seed)

    def answers_of(name: str, explain: Explain) -> Answers:
        of_near = np.zeros((*near.shape[:2], explained.n_players))
        counted = kept.ravel()
        of_near[kept] = explain(shaped[counted], classes[owners][counted])
        return Answers(name, explain(rows, classes), of_near)

    explainers = _explainers(explained, arguments)
    found = []
    for name, explain in explainers.items():
        started = time.perf_counter()
        found.append(answers_of(name, explain))
        print(f"  {name}: {time.perf_counter() - started:.0f} s", flush=True)
    combined = [_combined(name, found, make) for name, make in _aggregators(found, judge).items()]
    ava = [
        answers_of(f"AVA of {BASE}, {k} neighbours", _ava(explained, explainers[BASE], k))
        for k in (5, 20)
    ]
    return [*found, *ava, *combined], judge


def _explainers(explained: ExplainedSet, arguments: argparse.Namespace) -> dict[str, Explain]:
    """Return the explainers, all on the same players and with the same budget."""
    model, budget = explained.model, arguments.evaluations
    reference = torch.as_tensor(explained.reference)
    mask = torch.as_tensor(explained.players)
    permutations = max(1, budget // explained.n_players)

    def by(
        attribute: Callable[..., torch.Tensor], is_of_players: bool, **options: object
    ) -> Explain:
        def explain(rows: FloatArray, classes: IntArray) -> FloatArray:
            torch.manual_seed(arguments.seed)  # captum draws from the global generator
            found = attribute(torch.as_tensor(rows), target=torch.as_tensor(classes), **options)
            return explained.of_players(found.detach().numpy(), is_of_players)

        return explain

    groups = {"baselines": reference, "feature_mask": mask}
    draws = {"n_samples": budget}
    smooth = captum.attr.NoiseTunnel(captum.attr.InputXGradient(model)).attribute
    return {
        "KernelSHAP (captum)": by(
            captum.attr.KernelShap(model).attribute, True, **groups, n_samples=budget
        ),
        "permutation (captum)": by(
            captum.attr.ShapleyValueSampling(model).attribute,
            True,
            **groups,
            n_samples=permutations,
            perturbations_per_eval=8,
        ),
        "shear": by(Shear(model, seed=arguments.seed).attribute, True, **groups, **draws),
        BASE: by(OddGP(model, seed=arguments.seed).attribute, True, **groups, **draws),
        "Integrated Gradients": by(
            captum.attr.IntegratedGradients(model).attribute, False, baselines=reference
        ),
        "DeepLIFT": by(captum.attr.DeepLift(model).attribute, False, baselines=reference),
        "SmoothGrad × input": by(
            smooth, False, nt_type="smoothgrad", nt_samples=20, stdevs=explained.radius
        ),
    }


def _aggregators(
    found: Sequence[Answers], judge: Judge
) -> dict[str, Callable[[FloatArray], FloatArray]]:
    """Return the aggregates: candidates (G, …, M) to one explanation."""
    candidates = np.array([one.rows for one in found])
    made: dict[str, Callable[[FloatArray], FloatArray]] = {
        "mean": lambda g: Centroid()(g).values,
        "median": lambda g: Centroid("l1")(g).values,
        "geometric median": lambda g: Centroid("l2", 1)(g).values,
        "Kemeny–Young (ranks)": lambda g: Centroid("kendall", order="magnitude")(g).values,
        "low complexity, descent": lambda g: LowComplexity("descent")(g).values,
        "low complexity, shrinking": lambda g: LowComplexity("shrinking")(g).values,
    }
    losses: dict[str, Loss] = {
        "sensitivity": _sensitivity_loss(found, judge.kept),
        "complexity": complexity_loss(candidates),
        "faithfulness": judge.unfaithfulness(candidates),
    }
    for name, loss in losses.items():
        weights = learned_weights(loss, len(found)).weights
        made[f"convex, learned for {name}"] = partial(_by_weights, weights)
    return made


def _by_weights(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    return Convex(weights)(candidates).values


def _combined(
    name: str, found: Sequence[Answers], make: Callable[[FloatArray], FloatArray]
) -> Answers:
    return Answers(
        name,
        make(np.array([one.rows for one in found])),
        make(np.array([one.near for one in found])),
    )


def _ava(explained: ExplainedSet, explain: Explain, n_neighbors: int) -> Explain:
    """Return AVA over the pool of the set; rows of the pool are explained once for each class."""
    pool = explained.pool
    search = NeighbourSearch(n_neighbors=n_neighbors)
    index = NeighbourIndex(pool.reshape(len(pool), -1).astype(np.float64), search)
    known: dict[tuple[int, int], FloatArray] = {}

    def by_neighbours(rows: FloatArray, classes: IntArray) -> FloatArray:
        near = index.nearest(rows.reshape(len(rows), -1).astype(np.float64))
        pairs = np.stack([near.indices, np.broadcast_to(classes[:, None], near.indices.shape)], 2)
        wanted = [(int(z), int(c)) for z, c in np.unique(pairs.reshape(-1, 2), axis=0)]
        new = [pair for pair in wanted if pair not in known]
        if new:
            places, targets = np.array(new).T
            known.update(zip(new, explain(pool[places], targets), strict=True))
        values = np.array([[known[int(z), int(c)] for z, c in row] for row in pairs])
        return averaged_over_neighbours(near.weights, values)

    return by_neighbours


def _sensitivity_loss(found: Sequence[Answers], kept: BoolArray) -> Loss:
    has_any = kept.any(axis=1)
    moved = np.array([one.rows[has_any, None] - one.near[has_any] for one in found])
    return sensitivity_loss(moved, kept[has_any])


def _print_table(
    explained: ExplainedSet,
    scores: dict[str, FloatArray],
    arguments: argparse.Namespace,
    seconds: float,
) -> None:
    print(
        f"\n{explained.name}: {len(explained.rows)} inputs, {explained.n_players} players, "
        f"{arguments.evaluations} evaluations, radius {explained.radius}, {arguments.draws} "
        f"neighbours, accuracy {explained.accuracy:.1%}, {seconds:.0f} s"
    )
    print(f"{'':32}" + "".join(f"{column:>24}" for column in COLUMNS))
    for name, of_rows in scores.items():
        cells = [f"{np.nanmean(one):.4g} ± {_error(one):.2g}" for one in of_rows]
        print(f"{name:32}" + "".join(f"{cell:>24}" for cell in cells))


def _print_claims(scores: dict[str, FloatArray]) -> None:
    """Say of the poster's claims whether paired differences confirm them."""
    print("\npaired differences, less is better; confirmed where two standard errors below zero")
    base = scores[BASE]
    for name, of_rows in scores.items():
        if name.startswith("AVA"):
            for place in (0, 1):
                _print_claim(f"{name} − {BASE}: {COLUMNS[place]}", of_rows[place] - base[place])
    members = [of_rows[3] for name, of_rows in scores.items() if name in members(scores)]
    for method in ("descent", "shrinking"):
        difference = scores[f"low complexity, {method}"][3] - np.min(members, axis=0)
        _print_claim(f"{method} − simplest explainer: complexity", difference)
        print(f"    never above it: {bool((difference <= 1e-12).all())}")


def members(scores: dict[str, FloatArray]) -> list[str]:
    """Return the names of the explainers that are combined."""
    names = list(scores)
    return names[: next(place for place, name in enumerate(names) if name.startswith("AVA"))]


def _print_claim(claim: str, difference: FloatArray) -> None:
    mean, error = float(np.nanmean(difference)), _error(difference)
    word = "confirmed" if mean < -2 * error else "refuted" if mean > 2 * error else "undecided"
    print(f"  {claim}: {mean:.4g} ± {error:.2g}, {word}")


def _error(of_rows: FloatArray) -> float:
    known = of_rows[~np.isnan(of_rows)]
    return float(known.std(ddof=1) / np.sqrt(len(known)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder_arguments(parser)
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--rows", type=int, default=100, help="inputs of each set")
    parser.add_argument("--pool", type=int, default=1000, help="rows in which AVA looks")
    parser.add_argument("--draws", type=int, default=10, help="neighbours of each input")
    parser.add_argument("--evaluations", type=int, default=416, help="budget of an explanation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="8 inputs, 3 neighbours, a pool of 60")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.draws, arguments.pool = 8, 3, 60
    return arguments


if __name__ == "__main__":
    main()
