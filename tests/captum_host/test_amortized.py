"""SimSHAP and FastSHAP through captum."""

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import visualization
from torch import nn

from captum_ext import Exact, FastShap, OddGP, SimShap, Surrogate, ValueFunction
from captum_ext.attributions.surrogate import gathered
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtError,
    ShapleyExtWarning,
)
from tests.captum_host.networks import examples, network
from tests.helpers.brute_force import conditional_values, shapley_values
from tests.helpers.signed_files import parts_of, signed

pytest.importorskip("safetensors")

N = 6
FEW: dict[str, Any] = {"epochs": 15, "seed": 0, "rows_per_step": 32}


@pytest.fixture(scope="module")
def net():
    return network(N, 3)


@pytest.fixture(scope="module")
def fitted(net):
    return SimShap(net, **FEW).fit(examples(300, N))


def test_of_a_value_function_there_is_one_output(net):
    x = examples(60, N)
    sim = SimShap(net, value_function=ValueFunction("log_probability", scale="logits"), **FEW)
    made = sim.fit(x).attribute(x[:5])
    assert made.shape == (5, N)
    for target in (0, torch.tensor([0, 1, 2, 0, 1])):
        with pytest.raises(InvalidArgumentError, match=r"target.*value_function='log_prob.*raw"):
            sim.attribute(x[:5], target=target)


@pytest.mark.parametrize("efficient", [True, False])
def test_other_baselines_are_refused(net, efficient):
    x, reference = examples(60, N), examples(1, N, seed=8)
    sim = SimShap(net, efficient=efficient, **FEW).fit(x, baselines=reference)
    sim.attribute(x[:5], baselines=reference)
    sim.attribute(x[:5], baselines=reference.repeat(5, 1))
    for other in (None, reference + 1, x[5:10]):
        with pytest.raises(InvalidArgumentError, match="baselines"):
            sim.attribute(x[:5], baselines=other)
    with pytest.raises(InvalidArgumentError, match="baselines"):
        SimShap(net, **FEW).fit(x).attribute(x[:5], baselines=reference)


def test_baselines_that_differ_by_example_may_be_others(net):
    x = examples(60, N)
    sim = SimShap(net, **FEW).fit(x, baselines=x.flip(0))
    made = sim.attribute(x[:5], baselines=x[5:10], target=1)
    torch.testing.assert_close(made.sum(dim=1), (net(x[:5]) - net(x[5:10]))[:, 1])


def test_targets_that_are_no_outputs_are_named(fitted):
    with pytest.raises(InvalidArgumentError, match=r"target=7 does not select.*\(3,\)"):
        fitted.attribute(examples(2, N), target=7)
    with pytest.raises(InvalidArgumentTypeError, match="whole numbers; got function"):
        fitted.attribute(examples(2, N), target=lambda outputs: outputs[:, 0])


def test_loaders_of_several_inputs(net):
    x = examples(100, N)

    def of_two(a, b):
        return net(torch.cat([a, b], dim=1))

    pairs: Any = [((one[:2], one[2:]), 0) for one in x]  # of which it makes lists of tuples
    loader = torch.utils.data.DataLoader(pairs, batch_size=30)
    by_loader, by_tuple = (
        SimShap(of_two, **FEW).fit(data) for data in (loader, (x[:, :2], x[:, 2:]))
    )
    few = x[:3, :2], x[:3, 2:]
    for one, other in zip(by_loader.attribute(few), by_tuple.attribute(few), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    with pytest.raises(InvalidArgumentTypeError, match="batches"):
        SimShap(of_two, **FEW).fit([((x, x), 0), (x, 0)])


def whole_numbers(n):
    return torch.randint(0, 5, (n, N), generator=torch.Generator().manual_seed(0))


def test_whole_numbers_are_measures_to_dense_layers():
    net = network(N, 3).float()
    x = whole_numbers(60)
    by_whole = SimShap(lambda x: net(x.float()), **FEW).fit(x)
    by_float = SimShap(net, **FEW).fit(x.float())
    torch.testing.assert_close(by_whole.attribute(x[:5]), by_float.attribute(x[:5].float()))


def test_files_of_all_inputs(net, tmp_path):
    """The model gets what it was explained with: several inputs, and whole numbers as such."""
    x, whole = examples(60, N), whole_numbers(60)

    def of_two(a, b):
        assert b.dtype == torch.long
        return net(a + torch.nn.functional.one_hot(b[:, 0], N))

    for inputs, forward in (
        ((x, whole), of_two),
        (whole, lambda x: x.bitwise_and(3).sum(dim=1).double()),
    ):
        sim = SimShap(forward, **FEW).fit(inputs)
        sim.save_trained(tmp_path / "a")
        SimShap(forward, **FEW).load_trained(tmp_path / "a")
        with pytest.raises(InvalidArgumentError, match="another model"):
            SimShap(lambda *given, f=forward: -f(*given), **FEW).load_trained(tmp_path / "a")


def test_groups_and_images():
    net = nn.Sequential(nn.Flatten(), network(64, 2)).double().eval()
    x = examples(60, 1, 8, 8)
    mask = ((torch.arange(8)[:, None] // 2) * 4 + torch.arange(8) // 2)[None, None]
    options: dict[str, Any] = {"student": "unet", "student_options": {"depth": 1}}
    sim = SimShap(net, surrogate=True, epochs=2, seed=0, **options)
    made = sim.fit(x, feature_mask=mask).attribute(x[:3], target=1, feature_mask=mask)
    assert made.shape == (3, 1, 8, 8)
    cells = made[:, 0].unfold(1, 2, 2).unfold(2, 2, 2).flatten(3)
    assert (cells == cells[..., :1]).all()  # the pixels of a superpixel are one player
    figure, _ = visualization.visualize_image_attr(
        made[0].permute(1, 2, 0).numpy(), x[0].permute(1, 2, 0).numpy(), use_pyplot=False
    )
    assert figure.axes


def test_tokens():
    class Texts(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.EmbeddingBag(9, 3, padding_idx=0)

        def forward(self, ids):
            return torch.tanh(self.embedding(ids)).sum(dim=1, keepdim=True)

    net = Texts().eval()
    ids = torch.randint(1, 9, (80, 7), generator=torch.Generator().manual_seed(0))
    student = nn.Sequential(
        nn.Embedding(9, 8), nn.Flatten(), nn.Linear(56, 7), nn.Unflatten(1, (7, 1))
    )
    sim = SimShap(net, student=student, epochs=4, seed=0)
    made = sim.fit(ids).attribute(ids[:3], target=0)
    assert made.shape == (3, 7)
    assert made.dtype.is_floating_point


def test_both_hosts_learn_the_same(net, tmp_path):
    shap = pytest.importorskip("shap")
    import shap_ext  # noqa: F401

    x, options = examples(60, N), {**FEW, "n_mixed_rows": 30}
    by_captum = SimShap(net, **options).fit(x).attribute(x[:5])
    explainer = shap.Explainer(
        net, np.zeros((1, N)), algorithm="simshap", training_data=x.numpy(), **options
    )
    np.testing.assert_allclose(
        explainer(x[:5].numpy()).values, by_captum.transpose(1, 2).numpy(), atol=1e-5
    )
    explainer.save_trained(tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match="another host"):
        SimShap(net).load_trained(tmp_path / "a")


def test_wrong_calls(net):
    with pytest.raises(InvalidArgumentError, match=r"fit\(inputs\)"):
        SimShap(net).attribute(examples(2, N))
    with pytest.raises(InvalidArgumentError, match="labels"):
        FastShap(net, labels="oddgp")
    with pytest.raises(InvalidArgumentTypeError, match="inputs"):
        SimShap(net).fit(5)  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(InvalidArgumentTypeError, match="batches"):
        SimShap(net).fit([1, 2])


def test_mixed_examples(net):
    x = examples(60, N)
    made = SimShap(net, n_mixed_rows=100, **FEW).fit(x)
    alone = SimShap(net, **FEW).fit(x)
    assert made.trained.evaluations > 2 * alone.trained.evaluations
    assert made.trained.validation_evaluations == alone.trained.validation_evaluations
    two = SimShap(lambda a, b: net(torch.cat([a, b], dim=1)), n_mixed_rows=5, **FEW)
    with pytest.raises(InvalidArgumentError, match="n_mixed_rows"):
        two.fit((x[:, :2], x[:, 2:]))


def test_embeddings_know_the_features_of_a_mask(tmp_path):
    """Ids in another order than the numbers, several numbers of a feature, and whole numbers."""
    net = network(4, 2, dtype=torch.float32)
    x = torch.randint(0, 5, (200, 4), generator=torch.Generator().manual_seed(0))

    def forward(numbers):
        return net(numbers.float())

    mask = torch.tensor([[7, 2, 7, 5]])
    sim = SimShap(forward, **FEW).fit(x, feature_mask=mask)
    assert sim.trained.description.options["players"] == [2, 0, 2, 1]
    found = sim.attribute(x[:9], target=1, feature_mask=mask)
    exact = Exact(forward).attribute(x[:9], target=1, feature_mask=mask)
    assert (found - exact).abs().mean() < 0.3 * exact.abs().mean()
    sim.save_trained(tmp_path / "a")
    loaded = SimShap(forward).load_trained(tmp_path / "a", feature_mask=mask)
    assert torch.equal(loaded.attribute(x[:9], target=1, feature_mask=mask), found)


# Errors that networks state, and attributions refined by evaluations. Embeddings are constant
# beyond the training rows, and say so of rows farther out.

beyond = pytest.mark.filterwarnings("ignore:.* unlike the rows that the network was trained on")


@beyond
def test_tolerance_and_zero(fitted):
    x = examples(40, N, seed=6)
    values, errors = fitted.attribute(x, return_standard_error=True)
    assert errors.shape == values.shape == (40, 3, N)
    of_one = fitted.attribute(x, target=1, return_standard_error=True)[1]
    torch.testing.assert_close(of_one, errors[:, 1])
    tolerance = float(errors.amax(dim=(1, 2)).median())
    _, refined = fitted.attribute(x, tolerance=tolerance, return_standard_error=True)
    assert refined.max() <= tolerance * 1.0001
    assert (fitted.last_estimate.evaluations <= 2).sum() >= 20
    torch.testing.assert_close(fitted.attribute(x, n_samples=0), fitted.attribute(x))


def test_refinement_needs_evaluations(net):
    made = SimShap(net, efficient=False, **{**FEW, "epochs": 1}).fit(examples(40, N))
    with pytest.raises(InvalidArgumentError, match="n_samples needs efficient=True"):
        made.attribute(examples(3, N), n_samples=20)


def test_arguments_with_as_many_entries_as_artificial_examples_are_shared():
    """16 artificial examples, of which no number belongs to an example of the user."""
    weights = torch.linspace(0.5, 1.0, 16)

    def forward(x, of_rows):
        return torch.tanh(x.sum(dim=1)) * of_rows.sum()

    made = SimShap(forward, epochs=1, seed=0)
    made.fit(examples(40, N), additional_forward_args=weights)
    assert made.trained.errors.slope != 1.0


# --- other files, other examples, interrupted ---


QUICK: dict[str, Any] = {**FEW, "epochs": 3}
NET = network(N, 2)
X = examples(80, N)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "trained"
    SimShap(NET, **QUICK).fit(X).save_trained(path)
    return path


# --- files ---


def test_files_of_another_method_are_refused_with_the_right_one(path):
    with pytest.raises(InvalidArgumentError, match=r"trained by simshap.*algorithm='simshap'"):
        FastShap(NET).load_trained(path)


LAYOUTS = [
    ("inputs", 5),
    ("inputs", []),
    ("inputs", [[[N], "nn"]]),
    ("inputs", [[[N], "complex64"]]),
    ("inputs", [[[10**9, 10**9], "float32"]]),
    ("inputs", [[[N - 1], "float32"]]),
    ("inputs", [[[-N], "float32"]]),
    ("output_shape", [3]),
    ("output_shape", "2"),
]


def test_layouts_that_were_changed_are_refused(path, tmp_path):
    header, about, tensors = parts_of(path.read_bytes())
    host = about["description"]["host"]
    for name, value in LAYOUTS:
        about["description"]["host"] = host | {name: value}
        (tmp_path / "a").write_bytes(signed(header, about, tensors))
        with pytest.raises(ShapleyExtError, match="again"):
            SimShap(NET).load_trained(tmp_path / "a")


# --- examples ---


def stopping_batches():
    yield X[:40]
    raise KeyboardInterrupt


def test_batches_are_let_go_as_they_are_read():
    """Their rows wait in a file, so that a loader may give more than memory holds."""
    given = []

    def batches():
        for part in X.split(20):
            batch = part.clone()
            given.append(weakref.ref(batch))
            yield batch, None
            del batch
            assert sum(batch() is not None for batch in given) <= 1

    assert torch.equal(gathered(batches()), X)
    assert len(given) > 3


def test_batches_of_all_kinds():
    wanted = SimShap(NET, **QUICK).fit(X).attribute(X[:4])
    for batches in (
        [X[:50], X[50:]],
        (part for part in X.split(30)),
        torch.utils.data.DataLoader(X),
    ):
        found = SimShap(NET, **QUICK).fit(batches).attribute(X[:4])
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    with pytest.raises(KeyboardInterrupt):
        SimShap(NET, **QUICK).fit(stopping_batches())


@pytest.mark.parametrize("kind", [SimShap, Surrogate])
@pytest.mark.parametrize(
    "data",
    [X[:0], X[:1], [], iter(()), X.numpy(), 5, "text"],
    ids=["no example", "one example", "empty list", "empty iterator", "array", "number", "text"],
)
def test_what_holds_no_examples_is_refused(kind, data):
    with pytest.raises(ShapleyExtError, match="at least 2|must hold batches|must be|no example"):
        kind(NET, **QUICK).fit(data)


def test_examples_unlike_those_trained_on_are_warned_of():
    sim = SimShap(NET, epochs=20, seed=0).fit(X.repeat(4, 1))
    sim.attribute(X, target=1)  # no warning, which would be an error
    assert len(sim.last_unlike_rows) == 0
    far = X.clone()
    far[[3, 30]] *= 100
    with pytest.warns(ShapleyExtWarning, match=r"2 of 80 rows are unlike.*rows 3, 30"):
        sim.attribute(far, target=1)
    np.testing.assert_array_equal(sim.last_unlike_rows, [3, 30])
    sim.attribute_future(X).wait()
    assert len(sim.last_unlike_rows) == 0


def test_targets_of_several_dimensions():
    """As captum selects them: a short tuple leaves the other dimensions of the output."""

    def forward(x):
        return NET(x)[:, :2].reshape(-1, 1, 2, 1).expand(-1, 2, 2, 1)

    sim = SimShap(forward, **QUICK).fit(X)
    every = sim.attribute(X[:3])
    assert every.shape[:4] == (3, 2, 2, 1)
    assert torch.equal(sim.attribute(X[:3], target=(1,)), every[:, 1])
    assert torch.equal(sim.attribute(X[:3], target=(1, 0)), every[:, 1, 0])
    assert torch.equal(sim.attribute(X[:3], target=[(0, 1, 0)] * 3), every[:, 0, 1, 0])


# --- training ---


def test_bars_appear_after_a_delay_or_at_once_unless_they_are_switched_off(capfd, monkeypatch):
    every = ("end points", "values of held-out rows", "labels of training rows", "fitting")
    SimShap(NET, **QUICK).fit(X)  # too short
    assert capfd.readouterr() == ("", "")
    SimShap(NET, surrogate=True, **QUICK).fit(X, show_progress=True)
    shown = capfd.readouterr().err
    assert all(f": {part}: 100%" in shown for part in every)
    assert "Surrogate: outputs: 100%" in shown
    monkeypatch.setattr("captum_ext.attributions.surrogate._DELAY", 0.0)
    SimShap(NET, **QUICK).fit(X, show_progress=False)
    Surrogate(NET, **QUICK).fit(X, show_progress=False)
    assert capfd.readouterr() == ("", "")
    SimShap(NET, surrogate=True, **QUICK).fit(X)
    shown = capfd.readouterr().err
    assert ": fitting: 100%" in shown and ": outputs: 100%" in shown


# --- surrogates ---


# The second column is a copy of the first.
KINDS = torch.tensor(
    [[a, a, b, c] for a in range(3) for b in range(2) for c in range(2)], dtype=torch.float32
)
COPIES = KINDS.repeat(40, 1)
LONG: dict[str, Any] = {**FEW, "epochs": 30}


def of_kinds(x):
    one = x[:, 0] * (1 + x[:, 2]) + x[:, 2] * x[:, 3]
    return torch.stack([one, x[:, 0]], dim=1)


@pytest.fixture(scope="module")
def surrogate():
    return Surrogate(of_kinds, **LONG).fit(COPIES)


@pytest.fixture(scope="module")
def conditional():
    def predict(rows):
        return of_kinds(torch.as_tensor(rows)).numpy()

    kinds = KINDS.numpy()
    return np.array([shapley_values(4, conditional_values(predict, row, kinds)) for row in kinds])


@pytest.mark.parametrize("method", [Exact, OddGP])
def test_it_is_a_forward_function_for_any_method(surrogate, conditional, method):
    found = method(surrogate).attribute(KINDS, baselines=surrogate.reference, target=0)
    assert found.dtype == KINDS.dtype
    size = np.abs(conditional[..., 0]).sum(axis=1).mean()
    assert np.abs(found.numpy() - conditional[..., 0]).sum(axis=1).mean() < 0.12 * size


def test_networks_that_explain_are_trained_on_it(surrogate, conditional):
    sim = SimShap(of_kinds, surrogate=surrogate, **LONG).fit(COPIES)
    found = sim.attribute(KINDS)
    size = np.abs(conditional).sum(axis=1).mean()
    assert np.abs(found.transpose(1, 2).numpy() - conditional).sum(axis=1).mean() < 0.25 * size
    rise = surrogate(KINDS) - surrogate(surrogate.reference)
    torch.testing.assert_close(found.sum(dim=2), rise, atol=1e-5, rtol=0)
    with pytest.raises(InvalidArgumentError, match="baselines have no meaning"):
        sim.attribute(KINDS, baselines=0.0)


def test_one_is_made_where_it_is_asked_for(tmp_path):
    fast = FastShap(of_kinds, surrogate=True, epochs=3, seed=0).fit(COPIES)
    assert fast.surrogate.evaluations == len(COPIES)
    fast.save_trained(tmp_path / "network")
    fast.surrogate.save(tmp_path / "surrogate")
    loaded = Surrogate.load(tmp_path / "surrogate", model=of_kinds)
    again = FastShap(of_kinds, surrogate=loaded).load_trained(tmp_path / "network")
    torch.testing.assert_close(again.attribute(KINDS), fast.attribute(KINDS), rtol=0, atol=0)
    with pytest.raises(InvalidArgumentError, match="another model"):
        Surrogate.load(tmp_path / "surrogate", model=lambda x: of_kinds(x) + 1)


def test_wrong_calls_of_surrogates():
    with pytest.raises(InvalidArgumentTypeError, match="whole numbers"):
        Surrogate(of_kinds, **LONG).fit(COPIES.long())
    with pytest.raises(InvalidArgumentError, match="takes one"):
        Surrogate(of_kinds, **LONG).fit((COPIES, COPIES))
    mask = torch.arange(4).expand(len(COPIES), 4).contiguous()
    with pytest.raises(InvalidArgumentError, match="same for all examples"):
        Surrogate(of_kinds, **LONG).fit(COPIES, feature_mask=mask)
    with pytest.raises(TypeError, match="model must be .* got None"):
        Surrogate(None)
