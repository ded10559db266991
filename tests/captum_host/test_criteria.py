"""Criteria of captum's attributions: against captum's metrics, and against the core's arrays."""

import captum.attr
import numpy as np
import pytest
import torch
from captum.metrics import sensitivity_max

from captum_ext import BaselineDistribution, Exact, criteria
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError
from tests.captum_host.networks import examples, game_of, network
from tests.helpers import criteria_oracle

THREE = network(5, 3)
X = examples(4, 5)


def one(inputs):
    return network(5)(inputs)[:, 0]


def doubled(inputs):
    return 2 * inputs


ALL = Neighbourhood(1.0, keep="all")


@pytest.mark.parametrize("as_tuple", [False, True])
def test_criteria_of_games_are_those_of_the_definition(as_tuple):
    attributions, inputs = examples(4, 5, seed=8), X
    baselines = 0.5
    given = ((attributions,), (inputs,)) if as_tuple else (attributions, inputs)
    arguments = (given[0], THREE, given[1], baselines, 1)
    faithful = criteria.faithfulness(*arguments, subset_size=2)
    monotone = criteria.monotonicity(*arguments)
    inserted, deleted = (criteria.insertion_curve(*arguments), criteria.deletion_curve(*arguments))
    for row in range(4):
        own = attributions[row].tolist()
        value = game_of(lambda x: THREE(x)[:, 1], X[row], torch.tensor(0.5).double())
        expected = criteria_oracle.subset_faithfulness(own, value, 2)
        np.testing.assert_allclose(faithful[row], expected, atol=1e-10)
        np.testing.assert_allclose(monotone[row], criteria_oracle.monotonicity(own, value))
        np.testing.assert_allclose(inserted.values[row], criteria_oracle.insertion(own, value))
        np.testing.assert_allclose(deleted.values[row], criteria_oracle.deletion(own, value))


def test_distributions_of_baselines_belong_to_no_example():
    """As many rows as there are examples; the neighbours in a call are more."""
    background, around = BaselineDistribution(examples(2, 5)), Neighbourhood(0.1, keep="all")
    found = criteria.sensitivity(Exact(one).attribute, X[:2], around, baselines=background)
    alone = criteria.sensitivity(Exact(one).attribute, X[:1], around, baselines=background)
    np.testing.assert_allclose(found.average[:1], alone.average)


def test_criteria_of_several_inputs_are_those_of_all_numbers():
    values, exact = examples(6, 5), examples(6, 5, seed=4)
    given = values.split([2, 3], dim=1), exact.split([2, 3], dim=1)
    entropies = [criteria_oracle.entropy(row) for row in values.tolist()]
    np.testing.assert_allclose(criteria.complexity(given[0]), entropies, atol=1e-12)
    np.testing.assert_allclose(criteria.absolute_error(*given), (values - exact).abs().sum(1))
    pairs = zip(values.tolist(), exact.tolist(), strict=True)
    ranks = [criteria_oracle.ranking_accuracy(*pair) for pair in pairs]
    np.testing.assert_allclose(criteria.ranking_accuracy(*given), ranks)


def test_groups_share_a_number_or_are_summed():
    mask = torch.tensor([[0, 0, 1, 2, 2]])
    exact = Exact(one).attribute(X, feature_mask=mask)
    shared = criteria.faithfulness(exact, one, X, feature_mask=mask, subset_size=1)
    gradients = captum.attr.InputXGradient(one).attribute(X)
    with pytest.raises(InvalidArgumentError, match="of_groups='sum'"):
        criteria.faithfulness(gradients, one, X, feature_mask=mask, subset_size=1)
    summed = criteria.faithfulness(
        exact / torch.tensor([2, 2, 1, 2, 2]),
        one,
        X,
        feature_mask=mask,
        subset_size=1,
        of_groups="sum",
    )
    torch.testing.assert_close(shared, summed, rtol=0, atol=1e-10)


def test_sensitivity_is_that_of_captum_for_the_same_neighbours():
    """captum draws with torch; here both get the steps of our neighbourhood."""
    around = Neighbourhood(0.05, n_draws=7, keep="all")
    method = captum.attr.InputXGradient(THREE)
    found = criteria.sensitivity(
        method.attribute, X, around, target=[0, 1, 2, 1], relative=True, seed=3
    )
    steps = torch.as_tensor(around.around(X.numpy(), 3)[0] - X.numpy()[:, None])

    def perturb(inputs):  # captum repeats each example for its draws, in order
        given = inputs[0] if isinstance(inputs, tuple) else inputs
        moved = given + steps.reshape(given.shape)
        return (moved,) if isinstance(inputs, tuple) else moved

    theirs = sensitivity_max(
        method.attribute,
        X,
        perturb,
        n_perturb_samples=7,
        target=[0, 1, 2, 1],
        max_examples_per_batch=100,
    )
    np.testing.assert_allclose(found.maximum, theirs.detach().numpy(), atol=1e-10)


def test_log_odds_of_the_predicted_class():
    curve = criteria.masked_log_odds(X, THREE, X, target=THREE(X).argmax(1))
    p = THREE(X).softmax(1).amax(1).detach()
    without = THREE(torch.zeros(1, 5, dtype=torch.float64)).softmax(1)[0, THREE(X).argmax(1)]
    expected = torch.logit(without.detach()) - torch.logit(p)
    np.testing.assert_allclose(curve.values[:, -1], expected.numpy(), atol=1e-8)
    np.testing.assert_array_equal(curve.values[:, 0], 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: criteria.complexity(torch.zeros(0, 4)), "no examples"),
        (lambda: criteria.complexity(torch.zeros(3, 0)), "at least one feature"),
        (lambda: criteria.complexity(torch.ones(3)), r"x\[None\]"),
        (lambda: criteria.monotonicity(X[:, :3], one, X), r"shapes of the inputs, \[\(4, 5\)\]"),
        (lambda: criteria.sensitivity(doubled, X, Neighbourhood(1.0)), "forward_func= is needed"),
        (lambda: criteria.sensitivity(doubled, X.long(), ALL), "floating point"),
        (lambda: criteria.faithfulness(X, one, X, of_groups="both"), "'shared', 'sum'"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, words):
    with pytest.raises(InvalidArgumentError, match=words):
        call()


def test_groups_are_compared_by_the_size_of_their_own_input():
    large, small = torch.tensor([[1e7, 1e7]]), torch.tensor([[0.0, 3.0]])
    inputs = torch.ones(1, 2), torch.tensor([[1.0, 2.0]])
    masks = torch.tensor([[0, 0]]), torch.tensor([[1, 1]])
    with pytest.raises(InvalidArgumentError, match="differ within groups"):
        criteria.insertion_curve(
            (large, small), lambda a, b: a.sum(1) + b.sum(1), inputs, feature_mask=masks
        )
