"""What captum and its tools expect, of every attribution in `captum_ext.__all__`."""

import copy
import functools
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import captum.attr
import pytest
import torch
from captum.attr import NoiseTunnel
from torch.futures import Future

import captum_ext
from captum_ext import DataLoaderAttribution
from captum_ext.attributions.coalition_attribution import CoalitionAttribution
from shapley_adapters.errors import (
    FutureError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    ShapleyExtError,
)
from tests.captum_host.networks import examples, network
from tests.helpers.estimator_table import OF_CLASSES
from tests.helpers.tolerances import Tolerances

pytestmark = pytest.mark.filterwarnings("error")

N_FEATURES = 5
CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]
ROUNDING: Tolerances = {"rtol": 0, "atol": 1e-5}  # float32
NET = network(N_FEATURES, 2, dtype=torch.float32)
OTHER_NET = network(N_FEATURES, 2, dtype=torch.float32, seed=7)
X = examples(3, N_FEATURES, dtype=torch.float32)
DATA = examples(40, N_FEATURES, dtype=torch.float32, seed=9)

# They wrap another attribution, and have tests of their own.
WRAPPERS = {"LLMAttribution", "RemoteLLMAttribution", "DataLoaderAttribution"}


def of_two_inputs(a, b):
    return NET(torch.cat([a, b], dim=1))


@functools.cache
def fitted(name, forward_func, as_pair):
    """Return a trained network; training is short, because its quality does not matter here."""
    pytest.importorskip("safetensors")
    method = getattr(captum_ext, name)(forward_func, seed=0, epochs=2, rows_per_step=20)
    return method.fit((DATA[:, :3], DATA[:, 3:]) if as_pair else DATA)


@dataclass(frozen=True)
class Row:
    """How an attribution of a forward function is made.

    Attributes
    ----------
    build : callable
        Returns the attribution of a forward function; `as_pair` says that it takes two inputs.
    """

    name: str
    build: Callable[..., Any]

    @property
    def cls(self):
        return getattr(captum_ext, self.name)

    @property
    def is_trained(self):
        return self.name in ("SimShap", "FastShap")

    @property
    def is_aggregate(self):
        return not issubclass(self.cls, CoalitionAttribution)


def estimator(name, **options):
    cls = getattr(captum_ext, name)
    return Row(name, lambda forward_func, as_pair=False: cls(forward_func, seed=0, **options))


def network_of(name):
    return Row(name, lambda forward_func, as_pair=False: fitted(name, forward_func, as_pair))


def aggregate(name):
    def build(forward_func, as_pair=False):
        members = [captum_ext.Exact(forward_func), captum_ext.RandomOrder(forward_func, seed=0)]
        return getattr(captum_ext, name)(members)

    return Row(name, build)


def ava(forward_func, as_pair=False):
    data = (DATA[:, :3], DATA[:, 3:]) if as_pair else DATA
    return captum_ext.AVA(captum_ext.Exact(forward_func), data, n_neighbors=3)


ROWS = [
    *(estimator(row.attribution.__name__) for row in OF_CLASSES),
    estimator("LShapley", graph=CHAIN),
    estimator("CShapley", graph=CHAIN),
    estimator("Myerson", graph=CHAIN),
    estimator("Hierarchy", hierarchy=[[0, 1], [2, [3, 4]]]),
    estimator("Asymmetric", order=[[0, 1], [2, 3, 4]]),
    network_of("SimShap"),
    network_of("FastShap"),
    aggregate("Centroid"),
    aggregate("Convex"),
    aggregate("LowComplexity"),
    Row("AVA", ava),
]


def over(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


every_class = over(ROWS)
some_classes = over(
    [
        row
        for row in ROWS
        if row.name in {"RandomOrder", "OddGP", "LShapley", "SimShap", "Centroid", "AVA"}
    ]
)
networks_and_aggregates = over([row for row in ROWS if row.is_trained or row.is_aggregate])
every_trained = over([row for row in ROWS if row.is_trained])


def test_the_table_has_every_attribution():
    public = {name: getattr(captum_ext, name) for name in captum_ext.__all__}
    attributions = {
        name
        for name, thing in public.items()
        if isinstance(thing, type) and issubclass(thing, captum.attr.Attribution)
    }
    assert {row.name for row in ROWS} == attributions - WRAPPERS
    assert attributions >= WRAPPERS


# The class


@some_classes
def test_wrapped_is_the_plain_method(row):
    plain = row.cls.attribute.__wrapped__
    assert inspect.isfunction(plain)
    assert not hasattr(plain, "__wrapped__")  # captum peels one wrapper
    method = row.build(NET)
    torch.testing.assert_close(plain(method, X, target=1), method.attribute(X, target=1))


@every_class
def test_names_flags_and_arguments_that_captums_tools_read(row):
    method = row.build(NET)
    assert method.get_name()
    assert method.has_convergence_delta() is False
    assert method.multiplies_by_inputs is True
    assert inspect.signature(row.cls.attribute_future) == inspect.signature(row.cls.attribute)


# Containers and types


@some_classes
def test_container_type_and_device_are_those_of_the_inputs(row):
    method = row.build(NET)
    single = method.attribute(X, target=0)
    assert isinstance(single, torch.Tensor)
    assert (single.shape, single.dtype, single.device) == (X.shape, X.dtype, X.device)
    assert not single.requires_grad
    of_tuple = method.attribute((X,), target=0)
    assert isinstance(of_tuple, tuple)
    torch.testing.assert_close(of_tuple[0], single)


@some_classes
def test_several_inputs(row):
    method = row.build(of_two_inputs, as_pair=True)
    pair = method.attribute((X[:, :3], X[:, 3:]), target=0)
    assert isinstance(pair, tuple)
    assert [part.shape for part in pair] == [(3, 3), (3, 2)]
    single = row.build(NET).attribute(X, target=0)
    if not row.is_trained:  # one network for two inputs and one for one start differently
        torch.testing.assert_close(torch.cat(pair, dim=1), single, **ROUNDING)


@some_classes
def test_all_outputs_without_a_target(row):
    method = row.build(NET)
    every = method.attribute(X)
    assert every.shape == (3, 2, N_FEATURES)
    torch.testing.assert_close(every[:, 1], method.attribute(X, target=1), **ROUNDING)


# Repeated calls, copies, and the caller's state


@every_class
def test_survives_pickle_and_copies(row):
    method = row.build(NET)
    wanted = method.attribute(X, target=1)
    for twin in (pickle.loads(pickle.dumps(method)), copy.deepcopy(method), copy.copy(method)):
        assert type(twin) is row.cls
        torch.testing.assert_close(twin.attribute(X, target=1), wanted)


@over([row for row in ROWS if row.name in {"RandomOrder", "OddGP", "LShapley"}])
def test_forward_func_may_be_reassigned_on_a_copy(row):
    # captum's LLMAttribution does so.
    method = row.build(NET)
    before = method.attribute(X, target=1)
    other = copy.copy(method)
    other.forward_func = OTHER_NET
    wanted = row.build(OTHER_NET).attribute(X, target=1)
    assert torch.equal(other.attribute(X, target=1), wanted)
    assert not torch.allclose(wanted, before)
    assert torch.equal(method.attribute(X, target=1), before)


@every_trained
def test_trained_ones_refuse_another_forward_func(row):
    # Their network knows the forward function of `fit` only.
    other = copy.copy(row.build(NET))
    other.forward_func = OTHER_NET
    with pytest.raises(InvalidArgumentError, match=r"trained to explain another.*fit"):
        other.attribute(X, target=1)


# captum's tools


@every_class
@pytest.mark.parametrize("kind", ["smoothgrad", "vargrad"])
def test_noise_tunnel(row, kind):
    method = row.build(NET)
    plain = method.attribute(X, target=1)
    wanted = {"smoothgrad": plain, "smoothgrad_sq": plain**2, "vargrad": 0 * plain}[kind]
    tunnel = NoiseTunnel(method)
    made = tunnel.attribute(X, nt_type=kind, nt_samples=3, stdevs=0.0, target=1)
    torch.testing.assert_close(made, wanted, **ROUNDING)


@some_classes
def test_data_loader_attribution_takes_estimators_only(row):
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X), batch_size=2)

    def explain():
        return DataLoaderAttribution(row.build(NET)).attribute(loader, to_metric=torch.mean)

    if row.is_trained:
        with pytest.raises(InvalidArgumentError, match=r"attr_method.*trained"):
            explain()
    elif row.is_aggregate:
        with pytest.raises(AssertionError, match="support|method"):  # captum's own gate
            explain()
    else:
        (made,) = explain()
        assert made.shape == (1, N_FEATURES)


# Wrong calls


@every_class
def test_misspelt_arguments_are_refused(row):
    method = row.build(NET)
    with pytest.raises(TypeError, match="n_sample"):
        method.attribute(X, n_sample=10)
    with pytest.raises(TypeError, match="n_sample"):  # aggregates ask their methods later
        method.attribute_future(X, n_sample=10).wait()


@networks_and_aggregates
@pytest.mark.parametrize("mask", [torch.zeros(1, 4).long(), "mask"], ids=repr)
def test_wrong_masks_are_refused(row, mask):
    with pytest.raises(ShapleyExtError, match="feature_mask"):
        row.build(NET).attribute(X, target=0, feature_mask=mask)


@every_class
def test_positional_calls_of_captum_are_right_or_refused(row):
    method = row.build(NET)
    mask = torch.arange(N_FEATURES)[None]
    if row.is_aggregate:
        with pytest.raises(InvalidArgumentTypeError, match=r"by position.*by name: target"):
            method.attribute(X, 0)
        return
    by_position = method.attribute(X, None, 1, None, mask)
    torch.testing.assert_close(by_position, method.attribute(X, target=1, feature_mask=mask))
    if row.is_trained:
        refined = method.attribute(X, None, 1, None, mask, 20)
        torch.testing.assert_close(refined, method.attribute(X, target=1, n_samples=20))
        with pytest.raises(InvalidArgumentTypeError, match=r"by position"):
            method.attribute(X, None, 1, None, mask, 20, 2)
        return
    assert method.attribute(X, None, 1, None, mask, 32, 2).shape == X.shape
    for eighth in ((True,), (True, False)):  # show_progress, or return_input_shape and it
        with pytest.raises(InvalidArgumentTypeError, match=r"show_progress, return_input_shape"):
            method.attribute(X, None, 1, None, mask, 32, 2, *eighth)


# One number for each feature


@networks_and_aggregates
def test_one_number_for_each_feature(row):
    """Estimators group by a mask, which networks are trained with and aggregates pass on."""
    method = row.build(NET)
    made = method.attribute(X, target=1, return_input_shape=False)
    torch.testing.assert_close(made, method.attribute(X, target=1))


# Futures


def completed_futures(x):
    future = Future()
    future.set_result(NET(x).detach())
    return future


def failed_futures(_x):
    future = Future()
    future.set_exception(ValueError("the server is down"))
    return future


@some_classes
def test_futures(row):
    made = row.build(completed_futures).attribute_future(X, target=1)
    assert isinstance(made, Future)
    wanted = row.build(lambda x: NET(x).detach()).attribute(X, target=1)
    torch.testing.assert_close(made.wait(), wanted, **ROUNDING)


@over([row for row in ROWS if row.name in {"RandomOrder", "Centroid", "AVA"}])
def test_errors_of_futures_surface_and_attribute_points_to_attribute_future(row):
    with pytest.raises(FutureError, match=r"forward_func.*the server is down"):
        row.build(failed_futures).attribute_future(X, target=1).wait()
    with pytest.raises(ModelOutputError, match="attribute_future"):
        row.build(completed_futures).attribute(X, target=1)
