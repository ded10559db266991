"""Models that pickle, networks with fixed weights, and the oracle's view of a masked table."""

import io

import numpy as np

from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.optional import nn, torch
from tests.helpers.tolerances import Tolerances

ROUNDING: Tolerances = {"rtol": 0, "atol": 1e-11}
"""For float64 values of order one, sums of at most 512 terms."""


def curved(x):
    """Return an output of each row, with interactions of all orders."""
    x = np.asarray(x, dtype=float)
    steps = np.cos(np.arange(x.shape[1]))
    return np.tanh(x @ steps) + np.sin(x).prod(axis=1) + x[:, 0] * x[:, -1] ** 2


def curved_columns(x):
    """Return three outputs of each row."""
    x = np.asarray(x, dtype=float)
    return np.stack([curved(x), curved(x[:, ::-1]), x.sum(axis=1) ** 2], axis=1)


def probability(x):
    """Return two probabilities of each row."""
    p = 1 / (1 + np.exp(-curved(x)))
    return np.stack([1 - p, p], axis=1)


def rows(n_rows, n_columns, seed=0):
    """Return normal numbers."""
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def network(n_inputs, n_outputs=1, activation=nn.ELU, dtype=torch.float64, seed=0, scale=2.0):
    """Return a network of two layers in eval mode, with weights of its own."""
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(n_inputs, 16), activation(), nn.Linear(16, n_outputs))
    with torch.no_grad():
        for parameter in net.parameters():
            values = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(values * (2.0 if parameter.dim() == 1 else scale) / n_inputs**0.5)
    return net.to(dtype).eval()


def of_module(net):
    """Return the function of arrays that a module computes."""

    def function(x):
        with torch.no_grad():
            return net(torch.as_tensor(x)).double().numpy()

    return function


def oracle(model, explained, background):
    """Return the Shapley values of the columns of each row, straight from the definition."""
    explained, background = np.asarray(explained), np.asarray(background)
    return np.array(
        [
            shapley_values(explained.shape[1], masked_model_values(model, row, background))
            for row in explained
        ]
    )


def oracle_of(value, n_players, explained):
    """Return the Shapley values where `value(row, coalition)` is the game of each row."""
    return np.array(
        [
            shapley_values(n_players, lambda coalition, row=row: value(row, coalition))
            for row in explained
        ]
    )


def oracle_of_frame(model, explained, background):
    """Return the Shapley values of a model of frames, put together cell by cell."""

    def value(place, coalition):
        masked = background.astype(object).copy()
        for column in coalition:
            masked.iloc[:, column] = [explained.iloc[place, column]] * len(background)
        return np.mean(model(masked), axis=0)

    return oracle_of(value, explained.shape[1], range(len(explained)))


def reloaded(saved, kind):
    """Return what a class reads from the file of an object."""
    file = io.BytesIO()
    saved.save(file)
    file.seek(0)
    return kind.load(file)


class Seen:
    """A model that keeps what it is called with."""

    def __init__(self, model):
        self.model = model
        self.calls = []

    def __call__(self, *arguments):
        self.calls.append(arguments[0] if len(arguments) == 1 else arguments)
        return self.model(*arguments)
