"""Networks that explain, used as they should not be: other files, other examples, interrupted."""

import weakref
from typing import Any

import numpy as np
import pytest
import torch

from captum_ext import SimShap, Surrogate
from captum_ext.attributions.surrogate import gathered
from shapley_adapters.errors import ShapleyExtError, ShapleyExtWarning
from tests.captum_host.networks import examples, network
from tests.helpers.signed_files import parts_of, signed

pytest.importorskip("safetensors")

N = 5
FEW: dict[str, Any] = {"epochs": 3, "seed": 0, "rows_per_step": 32}
NET = network(N, 2)
X = examples(80, N)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "trained"
    SimShap(NET, **FEW).fit(X).save_trained(path)
    return path


# --- files ---


LAYOUTS = [
    ("inputs", 5),
    ("inputs", []),
    ("inputs", [[[N], "nn"]]),
    ("inputs", [[[N], "complex64"]]),
    ("inputs", [[[10**9, 10**9], "float32"]]),
    ("inputs", [[[N - 1], "float32"]]),
    ("inputs", [[[-N], "float32"]]),
    ("inputs", [[N, "float32"]]),
    ("inputs", [[[N], ["float32"]]]),
    ("inputs", [{}]),
    ("output_shape", None),
    ("output_shape", [3]),
    ("output_shape", [2, 10**6]),
    ("output_shape", [2.0]),
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
    wanted = SimShap(NET, **FEW).fit(X).attribute(X[:4])
    for batches in (
        [X[:50], X[50:]],
        (part for part in X.split(30)),
        torch.utils.data.DataLoader(X),
    ):
        found = SimShap(NET, **FEW).fit(batches).attribute(X[:4])
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    with pytest.raises(KeyboardInterrupt):
        SimShap(NET, **FEW).fit(stopping_batches())


@pytest.mark.parametrize("kind", [SimShap, Surrogate])
@pytest.mark.parametrize(
    "data",
    [X[:0], X[:1], [], iter(()), X.numpy(), 5, "text"],
    ids=["no example", "one example", "empty list", "empty iterator", "array", "number", "text"],
)
def test_what_holds_no_examples_is_refused(kind, data):
    with pytest.raises(ShapleyExtError, match="at least 2|must hold batches|must be|no example"):
        kind(NET, **FEW).fit(data)


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

    sim = SimShap(forward, **FEW).fit(X)
    every = sim.attribute(X[:3])
    assert every.shape[:4] == (3, 2, 2, 1)
    assert torch.equal(sim.attribute(X[:3], target=(1,)), every[:, 1])
    assert torch.equal(sim.attribute(X[:3], target=(1, 0)), every[:, 1, 0])
    assert torch.equal(sim.attribute(X[:3], target=[(0, 1, 0)] * 3), every[:, 0, 1, 0])


# --- training ---


def test_bars_appear_after_a_delay_or_at_once_unless_they_are_switched_off(capfd, monkeypatch):
    every = ("end points", "values of held-out rows", "labels of training rows", "fitting")
    SimShap(NET, **FEW).fit(X)  # too short
    assert capfd.readouterr() == ("", "")
    SimShap(NET, surrogate=True, **FEW).fit(X, show_progress=True)
    shown = capfd.readouterr().err
    assert all(f": {part}: 100%" in shown for part in every)
    assert "Surrogate: outputs: 100%" in shown
    monkeypatch.setattr("captum_ext.attributions.surrogate._DELAY", 0.0)
    SimShap(NET, **FEW).fit(X, show_progress=False)
    Surrogate(NET, **FEW).fit(X, show_progress=False)
    assert capfd.readouterr() == ("", "")
    SimShap(NET, surrogate=True, **FEW).fit(X)
    shown = capfd.readouterr().err
    assert ": fitting: 100%" in shown and ": outputs: 100%" in shown
