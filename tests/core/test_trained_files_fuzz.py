"""Files of trained networks that were changed: refused by our error, and nothing in them is run."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.fitting import built  # noqa: E402
from shapley_adapters.amortized.training import Training  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError  # noqa: E402
from shapley_adapters.surrogates.surrogate_training import TrainedSurrogate  # noqa: E402
from shapley_adapters.training_options import SurrogateOptions  # noqa: E402
from tests.helpers.reference_games import RowsGame  # noqa: E402

ROWS = np.random.default_rng(0).normal(size=(24, 1, 4, 4)).astype(np.float32)


class Own(torch.nn.Module):
    """A module of the user's own: attributions of 16 players, or the output of a surrogate."""

    def __init__(self, n_inputs=16, n_players=16):
        super().__init__()
        self.layer = torch.nn.Linear(n_inputs, n_players)

    def forward(self, x):
        return self.layer(x.flatten(1)).unflatten(1, (-1, 1))


def trained(network, options=None):
    few: dict[str, Any] = {"epochs": 1, "seed": 0, "evaluations": 8, "validation_evaluations": 8}
    training = Training(student=network, student_options=options, **few)
    sums = RowsGame(lambda x: x.sum(axis=1, keepdims=True), ROWS.reshape(24, 16))
    return AmortizedShapley.fit(sums, ROWS, training)


def surrogate(network, options=None):
    return TrainedSurrogate.fit(
        ROWS,
        ROWS.sum(axis=(1, 2, 3))[:, None].astype(float),
        np.arange(16),
        SurrogateOptions(epochs=1, seed=0, coalitions=2, network=network, network_options=options),
    )


KINDS: dict[str, tuple[Any, Any]] = {
    "mlp": (lambda: trained("mlp", {"widths": (8,)}), AmortizedShapley.load),
    "unet": (lambda: trained("unet", {"width": 2, "depth": 1}), AmortizedShapley.load),
    "own": (lambda: trained(built(0, Own)), lambda path: AmortizedShapley.load(path, Own())),
    "surrogate, unet": (lambda: surrogate("unet", {"width": 2, "depth": 1}), TrainedSurrogate.load),
}


class Files(dict):
    """The bytes of a file of each kind."""

    def __repr__(self):
        return "files"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    made = Files()
    for name, (make, _) in KINDS.items():
        make().save(folder / "a")
        made[name] = (folder / "a").read_bytes()
    return made


each_kind = pytest.mark.parametrize("kind", KINDS)


def outcome(kind, data, path):
    """Return what loading gives: the weights, or None where our error is raised."""
    path.write_bytes(data)
    try:
        loaded = KINDS[kind][1](path)
    except InvalidArgumentError:
        return None
    network = getattr(loaded, "network", None) or loaded.network
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


@each_kind
@settings(max_examples=40, derandomize=True)
@given(data=st.data())
def test_bytes_that_were_changed_are_refused(kind, files, tmp_path, data):
    whole = files[kind]
    how = data.draw(st.sampled_from(["cut", "longer", "noise", "overwritten"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    some = data.draw(st.binary(min_size=1, max_size=64))
    changed = {
        "cut": whole[:at],
        "longer": whole + some,
        "noise": some * (1 + at % 100),
        "overwritten": whole[:at] + some + whole[at + len(some) :],
    }[how]
    assert (outcome(kind, changed, tmp_path / "a") is None) == (changed != whole)


def test_loading_unpickles_nothing(files, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    for kind, data in files.items():
        assert outcome(kind, data, tmp_path / "a") is not None
