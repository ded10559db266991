"""SHEAR on real data: census records, 13 features of which eight are one-hot blocks."""

import numpy as np
import pandas as pd
import pytest
import torch

from captum_ext import Exact, Shear

N_ROWS = 25
SEEDS = range(3)


@pytest.fixture(scope="module")
def census(data_folder):
    """Return a network of the paper's shape, rows, their mean, and the player of each column."""
    table = pd.read_csv(data_folder / "adult" / "adult.csv.gz").drop(columns="fnlwgt")
    income = (table.pop("income").str.strip() == ">50K").to_numpy().astype(np.int64)
    blocks = [
        pd.get_dummies(table[name], dummy_na=True) if table[name].dtype.kind not in "if"
        # Standardised, as networks like it.
        else ((table[[name]] - table[name].mean()) / table[name].std())
        for name in table
    ]  # fmt: skip
    players = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    inputs = torch.tensor(np.concatenate([b.to_numpy(float) for b in blocks], axis=1))
    rng = np.random.default_rng(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Linear(len(players), 64),
            torch.nn.ELU(),
            torch.nn.Linear(64, 64),
            torch.nn.ELU(),
            torch.nn.Linear(64, 2),
        ).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    labels = torch.as_tensor(income)
    for _ in range(300):
        batch = rng.choice(len(inputs), 256)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
        optimizer.step()
    rows = inputs[rng.choice(len(inputs), N_ROWS, replace=False)]
    return network.eval(), rows, inputs.mean(dim=0, keepdim=True), torch.as_tensor(players)


def errors(census, attribution, n_samples):
    """Return Σ|φ̂ − φ| of each row, over seeds, for a class with options."""
    network, rows, reference, players = census

    def margin(x):
        output = network(x)
        return output[:, 1] - output[:, 0]

    def values(method, n_samples):
        method.attribute(rows, baselines=reference, feature_mask=players, n_samples=n_samples)
        return method.last_estimate.values[:, :, 0]

    exact = values(Exact(margin), 2**13)
    made = [values(attribution(margin, seed), n_samples) for seed in SEEDS]
    return np.abs(np.array(made) - exact).sum(axis=2)


def authors_form(forward, seed):
    return Shear(forward, seed=seed, complement="uniform", efficient=False)


@pytest.mark.slow
def test_unbiased_shear_has_at_most_six_tenths_of_the_error_of_the_authors_form(census):
    n_samples = 64 * 13 + 2
    ours = errors(census, lambda forward, seed: Shear(forward, seed=seed), n_samples)
    theirs = errors(census, authors_form, n_samples)
    assert ours.mean() <= 0.6 * theirs.mean()


@pytest.mark.slow
def test_more_evaluations_err_less(census):
    few = errors(census, lambda forward, seed: Shear(forward, seed=seed), 8 * 13 + 2)
    many = errors(census, lambda forward, seed: Shear(forward, seed=seed), 64 * 13 + 2)
    assert many.mean() < few.mean() / 3  # at least as fast as the square root, √8 ≈ 2.8
