"""Files of trained networks that were changed: refused by our error, at little memory, unexecuted.

Two kinds of changes: of the bytes, which the checksum refuses; and of the contents, after which the
checksum is made anew, so that the checks of the header are what is tried.
"""

import json
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from shapley_adapters import Game  # noqa: E402
from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.fitting import built  # noqa: E402
from shapley_adapters.amortized.training import Training  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError  # noqa: E402
from shapley_adapters.surrogates.surrogate_training import (  # noqa: E402
    SurrogateTraining,
    TrainedSurrogate,
)
from tests.helpers.signed_files import parts_of, signed  # noqa: E402

ROOT = Path(__file__).parents[2]
ROWS = np.random.default_rng(0).normal(size=(24, 1, 4, 4)).astype(np.float32)
BOUNDED = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Sums(Game):
    """Sums of the pixels that are present."""

    n_rows, n_players, evaluations_per_batch = 24, 16, 4096

    def __call__(self, rows, coalitions):
        return (ROWS.reshape(24, 16)[rows] * coalitions).sum(axis=1, keepdims=True)


class Own(torch.nn.Module):
    """A module of the user's own: attributions of 16 players, or the output of a surrogate."""

    def __init__(self, n_inputs=16, n_players=16):
        super().__init__()
        self.layer = torch.nn.Linear(n_inputs, n_players)

    def forward(self, x):
        return self.layer(x.flatten(1)).unflatten(1, (-1, 1))


def trained(network, options=None):
    few = Training(epochs=1, seed=0, evaluations=8, validation_evaluations=8)
    return AmortizedShapley.fit(Sums(), ROWS, few, network, options)


def surrogate(network, options=None):
    return TrainedSurrogate.fit(
        ROWS,
        ROWS.sum(axis=(1, 2, 3))[:, None].astype(float),
        np.arange(16),
        SurrogateTraining(epochs=1, seed=0, coalitions=2),
        network,
        options,
    )


KINDS: dict[str, tuple[Any, Any]] = {
    "mlp": (lambda: trained("mlp", {"widths": (8,)}), AmortizedShapley.load),
    "unet": (lambda: trained("unet", {"width": 2, "depth": 1}), AmortizedShapley.load),
    "own": (
        lambda: trained(built(0, Own)),
        lambda path: AmortizedShapley.load(path, Own()),
    ),
    "surrogate, unet": (
        lambda: surrogate("unet", {"width": 2, "depth": 1}),
        TrainedSurrogate.load,
    ),
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
    network = getattr(loaded, "network", None) or loaded.trained.network
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


@each_kind
def test_signing_anew_what_was_not_changed_loads_it(kind, files, tmp_path):
    found = outcome(kind, signed(*parts_of(files[kind])), tmp_path / "a")
    assert found is not None
    assert found == outcome(kind, files[kind], tmp_path / "a")


# --- bytes ---


@each_kind
def test_every_bit_is_covered_by_the_checksum(kind, files, tmp_path):
    """All bits of the first bytes, which say how long the header is, and one of each 97th byte."""
    data = files[kind]
    bits = [*range(64), *range(64, 8 * len(data), 8 * 97 + 1)]
    for bit in bits[:: max(1, len(bits) // 150)]:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert outcome(kind, bytes(changed), tmp_path / "a") is None, bit


@each_kind
@BOUNDED
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


# --- contents ---

HUGE = [10**6, 10**9, 2**31 - 1, 2**63, 10**400, -1, 0, 1.5, 1e308, float("nan"), True]
WORDS = ["<U100000000", "unet", "mlp", "tokens", "oddgp", "x" * 5000, "", "\x00", "torch"]
ODD = [None, [], {}, [[]], {"a": 1}, [20000, 20000], [1] * 5000, [10**6, 10**6], [None]]
VALUES = st.sampled_from([*HUGE, *WORDS, *ODD]) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value, path=()):
    """Yield the places of all values within a value of JSON."""
    yield path
    inner = {}
    if isinstance(value, (dict, list)):
        inner = value if isinstance(value, dict) else dict(enumerate(value))
    for key, one in inner.items():
        yield from places(one, (*path, key))


def changed_at(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed_at(value[path[0]], path[1:], new)
    return copy


@pytest.mark.slow
@each_kind
@BOUNDED
@given(data=st.data())
def test_headers_that_were_changed_are_refused_or_describe_a_network(kind, files, tmp_path, data):
    header, about, tensors = parts_of(files[kind])
    path = data.draw(st.sampled_from(list(places(about))))
    about = changed_at(about, path, data.draw(VALUES))
    outcome(kind, signed(header, about, tensors), tmp_path / "a")


@each_kind
def test_fields_that_are_missing_or_unknown_are_refused(kind, files, tmp_path):
    header, about, tensors = parts_of(files[kind])
    for path in places(about):
        if not path or not isinstance(path[-1], str) or {"options", "host"} & {*path[:-1]}:
            continue
        outer = about
        for key in path[:-1]:
            outer = outer[key]
        without = {name: one for name, one in outer.items() if name != path[-1]}
        for other in (without, {**outer, "unknown": 1}):
            changed = changed_at(about, path[:-1], other)
            assert outcome(kind, signed(header, changed, tensors), tmp_path / "a") is None


@each_kind
def test_tensors_that_were_changed_are_refused(kind, files, tmp_path):
    """Renamed, of another shape, or with NaN, with the right checksum."""
    header, about, tensors = parts_of(files[kind])
    for name in set(header) - {"__metadata__"}:
        entry = header[name]
        n_numbers = int(np.prod(entry["shape"]))
        others = [
            {("x" if key == name else key): one for key, one in header.items()},
            {**header, name: {**entry, "shape": [n_numbers, 1, 1, 1]}},
            {**header, name: {**entry, "data_offsets": [0, 10**12]}},
            {**header, name: {**entry, "dtype": "F8_E4M3"}},
        ]
        for other in others:
            assert outcome(kind, signed(other, about, tensors), tmp_path / "a") is None
        start, stop = entry["data_offsets"]
        if entry["dtype"].startswith("F") and stop > start and not name.endswith("empty"):
            broken = tensors[:start] + b"\xff" * (stop - start) + tensors[stop:]
            assert outcome(kind, signed(header, about, broken), tmp_path / "a") is None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" + "[]," * 10**6,
        "5",
        "null",
        "{}",
        "not JSON",
        "1" * 9999,
    ],
)
def test_headers_of_any_text_are_refused(text, files, tmp_path):
    header, _, tensors = parts_of(files["mlp"])
    assert outcome("mlp", signed(header, text, tensors), tmp_path / "a") is None


# --- memory ---


def large():
    """Return changes that ask for gigabytes, or for a long time."""
    yield ("description", "n_outputs"), 10**6
    yield ("description", "n_players"), 10**6
    yield ("description", "options", "widths"), [20000, 20000]
    yield ("description", "options", "widths"), [10**6] * 4
    yield ("description", "options", "widths"), [1] * 100_000
    yield ("description", "options"), {"widths": [2**31 - 1]}
    yield ("description", "network"), "unet"
    yield ("description", "options"), {"depth": 10**9}
    yield ("description", "input_shape"), [10**6, 10**6]
    yield ("trained", "gaps", "sizes"), [1.0] * 200_000
    yield ("trained", "history"), [0] * 400_000


LOAD_ALL = """
import resource, sys, time
from pathlib import Path
from shapley_adapters.amortized.amortized import AmortizedShapley
from shapley_adapters.errors import InvalidArgumentError
AmortizedShapley.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.monotonic()
for path in sys.argv[2:]:
    try:
        AmortizedShapley.load(path)
    except InvalidArgumentError:
        continue
    raise SystemExit(f"{path} was loaded")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is in other units elsewhere")
def test_no_file_takes_much_memory(files, tmp_path):
    paths = [tmp_path / "whole"]
    paths[0].write_bytes(files["mlp"])
    header, about, tensors = parts_of(files["mlp"])
    changed = [
        *(json.dumps(changed_at(about, path, value)) for path, value in large()),
        *("[" + "[]," * 2_000_000, '"' + "\N{GRINNING FACE}" * 10**6 + '"', "[" * 7 * 10**6),
    ]
    for number, text in enumerate(changed):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(signed(header, text, tensors))
    paths.append(tmp_path / "length")
    paths[-1].write_bytes(struct.pack("<Q", 2**62) + files["mlp"][8:])
    limit = 8 * 2**30  # address space: torch alone maps gigabytes, of which it uses few
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ALL, *map(str, paths)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'adapters'}", "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 200


# --- nothing is run ---


def test_loading_unpickles_nothing(files, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    for kind, data in files.items():
        assert outcome(kind, data, tmp_path / "a") is not None


def test_stated_errors_outside_the_limits_of_fits_are_refused(files, tmp_path):
    """Also those that would divide by zero or overflow."""
    header, about, tensors = parts_of(files["mlp"])
    names = ["usual", "largest", "slope", "slope_beyond", "gap_weight", "freedom"]
    wrong: list[tuple[str, object]] = [
        (name, value) for name in names for value in (np.nan, np.inf, 1e308, -1.0)
    ]
    wrong += [("freedom", 2.0), ("usual", 0), ("largest", 0)]
    wrong += [("gap_sizes", [1e308]), ("gap_sizes", [1e-308])]
    for name, value in wrong:
        changed = changed_at(about, ("trained", "errors", name), value)
        assert outcome("mlp", signed(header, changed, tensors), tmp_path / "a") is None, name
