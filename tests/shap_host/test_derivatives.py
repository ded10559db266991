"""SHEAR's cross-contributions from derivatives, through shap's arguments."""

import functools

import numpy as np
import pytest
import shap
import torch
from torch import nn

from shap_ext import ShearExplainer
from shap_ext.games.links import LinkedAverage
from shap_ext.games.table_games import TabularGame
from shapley_adapters.cooperators.derivatives_torch import gradient_scores, hessian_scores
from shapley_adapters.errors import DerivativeError, InvalidArgumentError
from shapley_adapters.torch_support.array_module import ArrayModule
from tests.helpers.stubborn_networks import CASES, N_FEATURES, examples, fixed, layers, scripted
from tests.helpers.tolerances import Tolerances

ROUNDING: Tolerances = {"rtol": 1e-9, "atol": 1e-10}
GROUPS = np.array([3, 0, 0, 1, 2, 3, 1, 1, 4, 2, 0, 4])

built = functools.cache(lambda name: CASES[name].build())
SMOOTH = [name for name, case in CASES.items() if case.is_smooth]
ONCE = [name for name, case in CASES.items() if case.has_slopes]


def game_of(net, rows, background, players=None):
    players = np.arange(rows.shape[1]) if players is None else players
    average = LinkedAverage(shap.links.identity)
    module = ArrayModule(net)
    return TabularGame(
        predict=module,
        rows=rows,
        background=background,
        players=players,
        average=average,
        to_model_input=lambda x: x,
        module=module,
        row_shape=rows.shape[1:],
    )


def directions(row, reference, players):
    """Return how far each player moves each column, (M, D)."""
    members = players == np.arange(players.max() + 1)[:, None]
    return torch.as_tensor(members * (row - reference))


def by_hand(net, row, background, players, moment):
    """Average moment(output, point, directions) over the background, for each output in turn."""
    n_outputs = net(torch.tensor(row[None])).numel()  # a copy, because some write into it
    return [
        sum(
            moment(
                lambda z, k=k: net(z[None] * 1.0).reshape(-1)[k],
                torch.as_tensor(row),
                directions(row, reference, players),
            )
            for reference in background
        )
        / len(background)
        for k in range(n_outputs)
    ]


def curvature(function, point, moves):
    return moves @ torch.autograd.functional.hessian(function, point) @ moves.T


def slope_changes(function, point, moves):
    """Return how much the slope of i (rows) changes when j (columns) leaves."""

    def slopes(at):
        return moves @ torch.autograd.functional.jacobian(function, at)

    return torch.stack([slopes(point) - slopes(point - move) for move in moves], dim=1)


def off_diagonal(scores):
    return (scores - torch.diag(scores.diag())).detach().numpy()


@pytest.mark.parametrize("players", [np.arange(N_FEATURES), GROUPS], ids=["columns", "groups"])
@pytest.mark.parametrize(
    ("name", "take", "moment"),
    [
        *((name, hessian_scores, curvature) for name in SMOOTH),
        *((name, gradient_scores, slope_changes) for name in ONCE),
    ],
)
def test_derivatives_are_contracted_and_averaged(name, take, moment, players):
    net, rows, background = built(name), examples(2).numpy(), examples(2, seed=5).numpy()
    found = take(game_of(net, rows, background, players), np.arange(2))
    for row in range(2):
        moments = by_hand(net, rows[row], background, players, moment)
        wanted = off_diagonal(sum(one.abs() + one.T.abs() for one in moments))
        np.testing.assert_allclose(found.values[row], wanted, **ROUNDING)
    assert not found.are_partial.any()
    assert found.backward_passes.tolist() == [found.backward_passes[0]] * 2
    assert found.backward_passes[0] >= len(moments) * (1 + players.max() + 1)


def test_columns_are_present_or_absent_exactly():
    """-1.1 + (3 - -1.1) is less than 3, and rounds down to 2."""
    seen = []

    class Lookup(nn.Module):
        def forward(self, x):
            if x.requires_grad:
                seen.extend(x[:, 0].tolist())
            return x.tanh().sum(dim=1)

    rows, background = np.full((1, N_FEATURES), 3.0), np.full((1, N_FEATURES), -1.1)
    assert -1.1 + (3.0 - -1.1) < 3.0
    ShearExplainer(Lookup(), background, seed=0, cooperators="gradient")(rows, max_evals=200)
    assert set(seen) == {3.0, -1.1}


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_scripted_embeddings_take_whole_numbers(kind):
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = kind(30, 3)

        def forward(self, ids):
            return self.embedding(ids).tanh().reshape(len(ids), -1).sum(dim=1)

    net = fixed(Tokens())
    ids = CASES["embedding"].inputs(2)
    made = ShearExplainer(scripted(net), np.zeros((1, 12), dtype=int), seed=0)(ids.numpy())
    total = (net(ids) - net(torch.zeros_like(ids))).detach().numpy()
    np.testing.assert_allclose(made.values.sum(axis=1), total, rtol=0, atol=1e-10)


def test_gradients_of_a_module_beside_its_values():
    """Of any number of background rows; gradients before a link are named."""
    net, x = layers(nn.Tanh)(), examples(3).numpy()
    for n_background in (1, 5):
        background = np.zeros((1, N_FEATURES)) if n_background == 1 else examples(5).numpy()
        explainer = shap.Explainer(net, background, algorithm="oddgp", seed=0, gradients=True)
        found, spent = explainer(x, max_evals=60), explainer.last_estimate
        assert (spent.backward_passes > 0).all()
        n_points = spent.evaluations - 2 * spent.backward_passes
        assert (spent.model_rows == n_background * n_points).all()
        exact = shap.Explainer(net, background, algorithm="oddgp", seed=0)(
            x, max_evals=2**N_FEATURES
        )
        near = 0.1 * np.abs(exact.values).max()
        np.testing.assert_allclose(found.values, exact.values, atol=near)
    of_odds = nn.Sequential(net, nn.Sigmoid())
    for model, options, reason in (
        (of_odds, {"link": shap.links.logit}, "with a link"),
        (np.sum, {}, "torch"),
    ):
        options.update(algorithm="oddgp", seed=0, gradients=True)
        with pytest.raises((DerivativeError, InvalidArgumentError), match=reason):
            shap.Explainer(model, background, **options)(x, max_evals=60)


def test_maskers_of_other_kinds_than_arrays_are_said_to_have_no_gradients():
    net, x = layers(nn.Tanh)(), examples(3).numpy()

    def masker(mask, row):
        return (row * mask)[None]

    reason = "the masker is not a background of dense rows"
    of_arrays = (lambda rows: rows.sum(axis=1)), x[:1], ""  # a model without gradients
    for model, given, choice in ((net, masker, f"values alone: {reason}"), of_arrays):
        explainer = shap.Explainer(model, given, algorithm="oddgp", seed=0)
        explainer(x, max_evals=60)
        assert explainer.last_estimate.choice == choice
    with pytest.raises(DerivativeError, match=reason):
        shap.Explainer(net, masker, algorithm="oddgp", gradients=True)(x, max_evals=60)
