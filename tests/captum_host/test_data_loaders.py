"""Metrics over a data loader, explained through captum's DataLoaderAttribution."""

from typing import Any

import captum.attr
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from captum_ext import DataLoaderAttribution, Exact, Shear
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from tests.captum_host.networks import examples, network
from tests.helpers.brute_force import shapley_values
from tests.helpers.estimator_table import OF_KINDS, over

pytestmark = pytest.mark.filterwarnings("error")

# captum hands its methods ones in float32, and ours answer in the wider type of the output.
ROUNDING: dict[str, Any] = {"rtol": 0, "atol": 1e-5, "check_dtype": False}
X, Y = examples(7, 4), examples(7, 2, seed=2)
NET = network(6)


def forward(x, y):
    with torch.no_grad():
        return NET(torch.cat([x, y], dim=1))


def loader(batch_size=3):
    return DataLoader(TensorDataset(X, Y), batch_size=batch_size)


def by_hand(metric, baselines=(0.0, 0.0)):
    """Return the Shapley values of the metric by the definition; all examples are masked alike."""

    def value(coalition):
        kept = torch.tensor([i in coalition for i in range(6)])
        x = torch.where(kept[:4], X, torch.as_tensor(baselines[0], dtype=X.dtype))
        y = torch.where(kept[4:], Y, torch.as_tensor(baselines[1], dtype=X.dtype))
        return metric(forward(x, y)).numpy()

    return torch.as_tensor(shapley_values(6, value), dtype=torch.float32)


def mean_square(outputs):
    return outputs.square().mean()


def two_metrics(outputs):
    return torch.stack([outputs.square().mean(), outputs.max()])


@over(OF_KINDS)
def test_metrics_get_their_shapley_values(row):
    method = row.attribution(forward, seed=0, **row.options)
    explainer = DataLoaderAttribution(method)
    made = explainer.attribute(loader(), to_metric=mean_square)
    wanted = by_hand(mean_square)
    assert [part.shape for part in made] == [(1, 4), (1, 2)]
    torch.testing.assert_close(torch.cat(made, dim=1)[0], wanted, **ROUNDING)
    assert explainer.attr_method.last_estimate.evaluations.tolist() == [2**6]
    assert method.forward_func is forward
    assert method.last_estimate is None


def test_several_metrics_at_once():
    made = DataLoaderAttribution(Exact(forward)).attribute(loader(), to_metric=two_metrics)
    assert [part.shape for part in made] == [(1, 2, 4), (1, 2, 2)]
    torch.testing.assert_close(torch.cat(made, dim=2)[0], by_hand(two_metrics).T, **ROUNDING)


def test_baselines_groups_and_running_sums():
    baseline = examples(1, 4, seed=5)
    mask = torch.tensor([[0, 0, 1, 1]]), torch.tensor([[2, 1]])

    def total(accumulated, output, _inputs):
        new = output.square().sum()
        return new if accumulated is None else accumulated + new

    explainer = DataLoaderAttribution(Exact(forward))
    made = explainer.attribute(
        loader(),
        baselines=(baseline, 0.5),
        feature_mask=mask,
        reduce=total,
        return_input_shape=False,
    )

    def value(coalition):
        kept = torch.tensor([i in coalition for i in range(3)])
        x = torch.where(kept[mask[0]], X, baseline)
        y = torch.where(kept[mask[1]], Y, torch.tensor(0.5, dtype=Y.dtype))
        return float(forward(x, y).square().sum())

    wanted = torch.as_tensor(shapley_values(3, value), dtype=torch.float64)
    torch.testing.assert_close(made[0], wanted, check_dtype=False, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("per_pass", [1, 5, 100])
def test_perturbations_share_passes(per_pass):
    passes = []

    class Counted(DataLoader):
        def __iter__(self):
            passes.append(1)
            return super().__iter__()

    counted = Counted(TensorDataset(X, Y), batch_size=3)
    made = DataLoaderAttribution(Exact(forward)).attribute(
        counted, to_metric=mean_square, perturbations_per_pass=per_pass
    )
    torch.testing.assert_close(torch.cat(made, dim=1)[0], by_hand(mean_square), **ROUNDING)
    # One to see the shapes, one that holds the data as they are, the rest of 64 in full, and three
    # to check that the model is deterministic.
    assert len(passes) <= 2 + -(-64 // per_pass) + 4


def test_budgets_and_cooperators():
    wide = network(12)
    data = DataLoader(TensorDataset(examples(7, 12)), batch_size=4)
    explainer = DataLoaderAttribution(Shear(wide, seed=0), n_samples=300)
    (made,) = explainer.attribute(data, to_metric=mean_square, perturbations_per_pass=50)
    estimate = explainer.attr_method.last_estimate
    # captum's masks have no derivative for features that are all present.
    assert estimate.cooperators.tolist() == ["difference"]
    assert estimate.evaluations[0] <= 300
    with torch.no_grad():
        whole, nothing = wide(examples(7, 12)), wide(torch.zeros(7, 12, dtype=torch.float64))
    gap = (mean_square(whole) - mean_square(nothing)).item()
    assert float(made.sum()) == pytest.approx(gap, abs=1e-5)


def test_captums_own_method_works_as_before():
    theirs = captum.attr.DataLoaderAttribution(captum.attr.FeatureAblation(forward))
    ours = DataLoaderAttribution(captum.attr.FeatureAblation(forward))
    for a, b in zip(
        ours.attribute(loader(), to_metric=mean_square),
        theirs.attribute(loader(), to_metric=mean_square),
        strict=True,
    ):
        assert torch.equal(a, b)
    with pytest.raises(AssertionError, match="not support"):
        DataLoaderAttribution(captum.attr.ShapleyValueSampling(forward))


def test_wrong_calls():
    with pytest.raises(InvalidArgumentError, match=r"n_samples=10.*FeatureAblation"):
        DataLoaderAttribution(captum.attr.FeatureAblation(forward), n_samples=10)
    with pytest.raises(InvalidArgumentTypeError, match="n_samples"):
        DataLoaderAttribution(Exact(forward), n_samples=10.0)  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(BudgetError, match=r"n_samples=10.*64"):
        DataLoaderAttribution(Exact(forward), n_samples=10).attribute(
            loader(), to_metric=mean_square
        )
