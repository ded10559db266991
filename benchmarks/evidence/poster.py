"""The claims of the poster on evaluating and aggregating explanations (Bhatt et al., 2020).

On Adult (13 players) and MNIST (49 blocks of 4 × 4 pixels, a small network of convolutions). All
explainers explain the class that the model predicts, have the same budget where they have one, and
get the same neighbours, which keep the class: Euclidean distances to the explanations of these are
the sensitivities. Faithfulness is over 100 subsets of a quarter of the players.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import captum.attr
import numpy as np
import numpy.typing as npt
import torch
from games import BoolArray, FloatArray, IntArray
from models import ADULT_NUMBERS, adult
from torch import Tensor, nn

from captum_ext import OddGP, Shear
from captum_ext.attributions.coalition_attribution import CoalitionAttribution
from shapley_adapters.aggregation import (
    Centroid,
    LowComplexity,
    NeighbourIndex,
    NeighbourSearch,
    averaged_over_neighbours,
)
from shapley_adapters.criteria import Neighbourhood, complexity, faithfulness, sensitivity

from .items import Claim, Item, Outcome, Setting, difference
from .pictures import draw_lines

_COLUMNS = ("max sensitivity", "average sensitivity", "faithfulness", "complexity")
_COMPLEXITY = _COLUMNS.index("complexity")
_BASE, _RIVAL, _MEAN = "oddgp", "permutation (captum)", "mean"
_SIMPLER = ("low complexity, descent", "low complexity, shrinking")
_BLOCK, _N_TRAINED, _EPOCHS = 4, 3000, 8

Explain = Callable[[npt.NDArray[Any], IntArray], FloatArray]
"""Rows and the class of each to attributions of players."""


@dataclass(frozen=True)
class _Set:
    """A model of classes, rows to explain, and players.

    Attributes
    ----------
    rows, pool : array, (R, …) and (D, …)
        What is explained, and where AVA looks for neighbours.
    reference, players : array, (1, …)
        Values of absent numbers, and the player of each number.
    radius : float
        How far neighbours may be in each number.
    movable : array, (F,)
        Which numbers neighbours may differ in.
    budget : int
        Evaluations of an explanation.
    """

    name: str
    model: nn.Module
    rows: npt.NDArray[Any]
    pool: npt.NDArray[Any]
    reference: npt.NDArray[Any]
    players: IntArray
    radius: float
    movable: BoolArray
    budget: int
    accuracy: float

    def of_players(self, attributions: Tensor, is_of_players: bool) -> FloatArray:
        """Return what each player gets, (n, M): the sum of its numbers, or the one they share."""
        flat = attributions.detach().flatten(1).double().numpy()
        player = self.players.ravel()
        sums = np.zeros((len(flat), player.max() + 1))
        np.add.at(sums.T, player, flat.T)
        return sums / np.bincount(player) if is_of_players else sums


def _classes(model: nn.Module, rows: npt.NDArray[Any]) -> IntArray:
    """Return the predicted classes."""
    with torch.no_grad():
        parts = [model(torch.as_tensor(part)) for part in np.array_split(rows, 20)]
    return torch.cat(parts).argmax(1).numpy()


class _TwoSides(nn.Module):
    """The margin f1 − f0 of two logits as the outputs of two classes, −margin and margin."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, 2)."""
        logits = self.network(x)
        return logits - logits.flip(1)


def _adult(setting: Setting, n_rows: int, n_pool: int) -> _Set:
    explained = adult(setting.data, setting.cache, n_rows + n_pool, seed=setting.seed)
    rows, pool = np.split(explained.rows, [n_rows])
    return _Set(
        "Adult", _TwoSides(copy.deepcopy(explained.model.network)).eval(), rows, pool,
        explained.reference.astype(rows.dtype), explained.player_of_column[None],
        0.2, np.isin(explained.column_names, ADULT_NUMBERS), 106, explained.accuracy,
    )  # fmt: skip


def _mnist(setting: Setting, n_rows: int, n_pool: int) -> _Set:
    with np.load(setting.data / "mnist5k" / "mnist5k.npz") as file:
        images, labels = file["images"], file["labels"].astype(np.int64)
    order = np.random.default_rng(setting.seed).permutation(len(images))
    x, labels = (images[order, None] / 255).astype(np.float32), labels[order]
    torch.manual_seed(setting.seed)
    network = nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ELU(), nn.Conv2d(16, 32, 3, stride=2), nn.ELU(),
        nn.Flatten(), nn.Linear(32 * 5 * 5, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(_EPOCHS):
        for batch in torch.randperm(_N_TRAINED).split(64):
            optimizer.zero_grad()
            told = network(torch.as_tensor(x[batch]))
            nn.functional.cross_entropy(told, torch.as_tensor(labels[batch])).backward()
            optimizer.step()
    places = np.arange(28) // _BLOCK
    players = (places[:, None] * (28 // _BLOCK) + places)[None, None]
    told = _classes(network.eval(), x[_N_TRAINED:])
    return _Set(
        "MNIST", network.requires_grad_(False), x[_N_TRAINED : _N_TRAINED + n_rows],
        x[:n_pool], np.zeros((1, 1, 28, 28), np.float32), players,
        0.1, np.ones(28 * 28, bool), 416, float((told == labels[_N_TRAINED:]).mean()),
    )  # fmt: skip


def _explainers(explained: _Set, seed: int) -> dict[str, Explain]:
    """Return the explainers, all on the same players and with the same budget."""
    model, reference = explained.model, torch.as_tensor(explained.reference)
    mask = torch.as_tensor(explained.players)
    groups = {"baselines": reference, "feature_mask": mask}
    budget = {"n_samples": explained.budget}
    permutations = explained.budget // (int(mask.max()) + 1)

    def by(attribute: Callable[..., Tensor], is_of_players: bool, **options: object) -> Explain:
        def explain(rows: npt.NDArray[Any], classes: IntArray) -> FloatArray:
            torch.manual_seed(seed)  # captum draws from the global generator
            found = attribute(torch.as_tensor(rows), target=torch.as_tensor(classes), **options)
            return explained.of_players(found, is_of_players)

        return explain

    integrated, lift = captum.attr.IntegratedGradients(model), captum.attr.DeepLift(model)
    smooth = captum.attr.NoiseTunnel(captum.attr.InputXGradient(model)).attribute
    return {
        "KernelSHAP (captum)": by(
            captum.attr.KernelShap(model).attribute, True, **budget, **groups
        ),
        _RIVAL: by(
            captum.attr.ShapleyValueSampling(model).attribute, True, n_samples=permutations,
            perturbations_per_eval=8, **groups,
        ),
        "shear": by(Shear(model, seed=seed).attribute, True, **budget, **groups),
        _BASE: by(OddGP(model, seed=seed).attribute, True, **budget, **groups),
        "Integrated Gradients": by(integrated.attribute, False, baselines=reference),
        "DeepLIFT": by(lift.attribute, False, baselines=reference),
        "SmoothGrad × input": by(
            smooth, False, nt_type="smoothgrad", nt_samples=20, stdevs=explained.radius
        ),
    }  # fmt: skip


def _ava(explained: _Set, explain: Explain, n_neighbors: int) -> Explain:
    """Return AVA over the pool of the set."""
    pool = explained.pool
    flat = pool.reshape(len(pool), -1).astype(np.float64)
    index = NeighbourIndex(flat, NeighbourSearch(n_neighbors=n_neighbors))

    def by_neighbours(rows: npt.NDArray[Any], classes: IntArray) -> FloatArray:
        near = index.nearest(rows.reshape(len(rows), -1).astype(np.float64))
        wanted = np.stack([near.indices, np.broadcast_to(classes[:, None], near.indices.shape)])
        pairs, places = np.unique(wanted.reshape(2, -1), axis=1, return_inverse=True)
        values = explain(pool[pairs[0]], pairs[1])[places.ravel()]
        return averaged_over_neighbours(near.weights, values.reshape(*near.indices.shape, -1))

    return by_neighbours


def _scores(explained: _Set, n_draws: int, seed: int) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the criteria of each row, (4, R), by explainer, and which of these are combined."""
    rows, classes = explained.rows, _classes(explained.model, explained.rows)
    around = Neighbourhood(explained.radius, n_draws=n_draws, keep="all", columns=explained.movable)
    near, _ = around.around(rows.reshape(len(rows), -1).astype(np.float64), seed)
    shaped = near.reshape(-1, *rows.shape[1:]).astype(rows.dtype)
    owners = np.repeat(classes, n_draws)
    kept = (_classes(explained.model, shaped) == owners).reshape(near.shape[:2])

    def answers(explain: Explain) -> tuple[FloatArray, FloatArray]:
        own = explain(rows, classes)
        of_near = np.zeros((*kept.shape, own.shape[1]))
        of_near[kept] = explain(shaped[kept.ravel()], owners[kept.ravel()])
        return own, of_near

    explainers = _explainers(explained, seed)
    found = {name: answers(explain) for name, explain in explainers.items()}
    members = list(found)
    combined = {
        _MEAN: Centroid(), _SIMPLER[0]: LowComplexity("descent"),
        _SIMPLER[1]: LowComplexity("shrinking"),
    }  # fmt: skip
    both = [np.array([found[name][part] for name in members]) for part in (0, 1)]
    for name, aggregate in combined.items():
        found[name] = aggregate(both[0]).values, aggregate(both[1]).values
    for k in (5, 20):
        found[f"AVA of {_BASE}, {k} neighbours"] = answers(_ava(explained, explainers[_BASE], k))
    method = CoalitionAttribution(explained.model, seed=0)
    game = method.checked_call(
        torch.as_tensor(rows), torch.as_tensor(explained.reference), torch.as_tensor(classes),
        None, torch.as_tensor(explained.players), None,
    ).game  # fmt: skip
    scores = {}
    for name, (own, of_near) in found.items():
        moved = sensitivity(own, of_near, is_neighbour=kept)
        faithful = faithfulness(own, game, seed=seed)
        scores[name] = np.array([moved.maximum, moved.average, faithful, complexity(own)])
    return scores, members


def _claims(setting: Setting) -> Outcome:
    """Compare AVA with what it averages, and both simpler aggregates with the simplest member."""
    n_rows, n_draws, n_pool = (4, 2, 30) if setting.is_quick else (16, 4, 100)
    comparisons, settings, note = [], {}, "The poster has no numbers."
    panels = {}

    def below(quantity: str, claim: int, *gaps: FloatArray) -> None:
        ours, control = (float(np.nanmean(gap)) for gap in gaps)
        comparisons.append(difference(quantity, ours, control, "below", claim=claim))

    for prepare in (_adult, _mnist):
        explained = prepare(setting, n_rows, n_pool)
        name = explained.name
        scores, members = _scores(explained, n_draws, setting.seed)
        for ava in (one for one in scores if one.startswith("AVA")):
            for column in (0, 1):
                base = scores[_BASE][column]
                quantity = f"{name}: {_COLUMNS[column]} of {ava} less that of it"
                below(quantity, 0, scores[ava][column] - base, scores[_RIVAL][column] - base)
        simple = {one: of[_COMPLEXITY] for one, of in scores.items()}
        least = np.min([simple[one] for one in members], axis=0)
        for method in _SIMPLER:
            quantity = f"{name}: {method}, less that of the simplest member"
            below(quantity, 1, simple[method] - least, simple[_MEAN] - least)
        settings[name] = f"network, accuracy {explained.accuracy:.3f}"
        ava, base = (
            f"{np.nanmean(scores[one][2]):.2f}" for one in (f"AVA of {_BASE}, 20 neighbours", _BASE)
        )
        note += f" AVA's faithfulness to the row on {name}: {ava}, that of {_BASE} {base}."
        panels[name] = {one: (np.nanmean(of[1]), np.nanmean(of[3])) for one, of in scores.items()}
    settings |= {
        "rows": str(n_rows), "neighbours of each": str(n_draws), "evaluations": "106, of MNIST 416",
        "rows in which AVA looks": str(n_pool),
    }  # fmt: skip
    draw = partial(draw_lines, panels, "average sensitivity", "complexity")
    return Outcome(comparisons, settings, (note,), draw)


ITEMS = (
    Item(
        "poster", "Lower sensitivity and lower complexity by aggregates",
        "poster of Bhatt et al.",
        (Claim("derive a new aggregate Shapley value explanation function that minimizes "
               "sensitivity", "Abstract", f"{_RIVAL} of the row itself in AVA's place"),
         Claim("yet has entropy less than or equal to that of each explanation",
               "Lowering Complexity", "the mean of the members")),
        ("adult/adult.csv.gz", "mnist5k/mnist5k.npz"), 1, _claims,
    ),
)  # fmt: skip
