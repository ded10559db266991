"""Streams of rows through captum: any source, and the attributions of `attribute`, bit for bit."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import captum_ext
from captum_ext import BaselineDistribution, PerExample, Shared
from shapley_adapters.errors import CheckpointError, InvalidArgumentError, InvalidArgumentTypeError

N_ROWS, N_FEATURES = 53, 8
X = torch.randn(N_ROWS, N_FEATURES, generator=torch.Generator().manual_seed(0))
TARGETS = torch.arange(N_ROWS) % 3
BUDGET = 60


def forward(x):
    """Return three outputs whose rows have no influence on each other, not even by rounding."""
    first = torch.sin(x[:, 0] * x[:, 1]) + x[:, 2] * x[:, 3]
    return torch.stack([first + x[:, 4], first * x[:, 5], x[:, 6] * x[:, 7] + x[:, 0]], dim=1)


def method(function=forward, **options):
    return captum_ext.RandomOrder(function, seed=3, **options)


def assert_same_rows(stream, attributions):
    assert torch.equal(torch.cat(list(stream)), attributions)


def assert_same(stream, attributions, errors=None):
    assert stream.is_complete
    np.testing.assert_array_equal(stream.values, attributions.numpy())
    if errors is not None:
        np.testing.assert_array_equal(stream.standard_errors, errors.numpy())
    assert stream.values.dtype == attributions.numpy().dtype
    assert_same_rows(stream, attributions)


def saved_array(folder):
    np.save(folder / "rows.npy", X.numpy())
    return folder / "rows.npy"


def in_one_buffer():
    buffer = torch.empty_like(X[:1])
    for row in X:
        yield buffer.copy_(row)


SOURCES = {
    "tensor": lambda _: X,
    "generator of one buffer": lambda _: in_one_buffer(),
    "array": lambda _: X.numpy(),
    "path of an array": saved_array,
    "memory map": lambda folder: np.load(saved_array(folder), mmap_mode="r"),
    "loader": lambda _: loader_of(X),
    "generator": lambda _: (X[start : start + 5] for start in range(0, N_ROWS, 5)),
    "list": lambda _: list(X.split(11)),
}


def loader_of(*tensors):
    data = torch.utils.data.TensorDataset(*tensors)
    return torch.utils.data.DataLoader(data, batch_size=8)


@pytest.mark.parametrize("source", SOURCES)
def test_any_source(source, tmp_path):
    stream = method().attribute_stream(
        SOURCES[source](tmp_path),
        tmp_path / "values.npz",
        target=1,
        n_samples=BUDGET,
        return_standard_error=True,
        chunk_size=10,
    )
    whole = method().attribute(X, target=1, n_samples=BUDGET, return_standard_error=True)
    assert_same(stream, *whole)


def test_rows_from_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {f"x{index}": X[:, index].numpy() for index in range(N_FEATURES)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
    stream = method().attribute_stream(tmp_path / "rows.parquet", tmp_path / "a.npz", target=0)
    assert_same(stream, method().attribute(X, target=0))
    parquet.write_table(pyarrow.table({"x": ["a", "b"]}), tmp_path / "texts.parquet")
    with pytest.raises(InvalidArgumentTypeError, match="table of numbers"):
        method().attribute_stream(tmp_path / "texts.parquet", tmp_path / "b.npz")


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".csv"])
@pytest.mark.parametrize("target", [0, None])
def test_formats(ending, target, tmp_path):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"values{ending}"
    options = {"target": target, "n_samples": BUDGET, "return_standard_error": True}
    whole = method().attribute(X, **options)
    stream = method().attribute_stream(X, out, chunk_size=20, **options)
    for opened in (stream, captum_ext.StreamedAttributions.open(out)):
        assert_same(opened, *whole)
        np.testing.assert_array_equal(opened[18:22], whole[0][18:22])
        assert opened.seed == 3
        assert opened.base_values.shape == (N_ROWS, 1 if target == 0 else 3)
    with pytest.raises(InvalidArgumentTypeError, match="slice"):
        stream[3]


def test_targets_and_baselines_that_stream_beside_the_inputs(tmp_path):
    baselines, scale = X.flip(0), torch.linspace(1, 2, N_ROWS)

    def scaled(x, factor, scale):
        return forward(x) * factor * scale[:, None]

    stream = method(scaled).attribute_stream(
        loader_of(X, torch.zeros(N_ROWS), TARGETS, baselines, scale),
        tmp_path / "a.npz",
        roles=("inputs", "unused", "target", "baselines", "additional_forward_args"),
        additional_forward_args=2.0,
        n_samples=BUDGET,
        chunk_size=20,
    )
    whole = method(scaled).attribute(X, baselines, TARGETS, (2.0, scale), n_samples=BUDGET)
    assert_same(stream, whole)


def test_several_inputs_and_targets_of_two_dimensions(tmp_path):
    pair = (X[:, :4].reshape(-1, 2, 2), X[:, 4:])
    targets = torch.stack([TARGETS, TARGETS % 2], dim=1)

    def two(a, b):
        sums = a.sum(dim=2) * b[:, :1]
        return torch.stack([sums, sums * b[:, 1:2], sums + b[:, 2:3]], dim=1)

    stream = method(two).attribute_stream(
        (*pair, targets),
        tmp_path / "a.npz",
        roles=("inputs", "inputs", "target"),
        n_samples=BUDGET,
        chunk_size=20,
    )
    wanted = method(two).attribute(
        pair, target=[tuple(target) for target in targets.tolist()], n_samples=BUDGET
    )
    for index, attributions in enumerate(wanted):
        assert torch.equal(torch.cat([chunk[index] for chunk in stream]), attributions)
    np.testing.assert_array_equal(stream.array("values_1"), wanted[1])
    alone = method(lambda a, b: a.sum((1, 2)) * b.sum(1)).attribute_stream(pair, tmp_path / "b.npz")
    assert isinstance(alone[:2], tuple)


def test_shared_arguments_and_distributions_of_baselines(tmp_path):
    edges = torch.tensor([[0, 1], [1, 2]])
    background = BaselineDistribution(X[:10])

    def on_graph(x, edges):
        return (x[:, edges[0]] * x[:, edges[1]]).sum(dim=1)

    options = {
        "baselines": background,
        "additional_forward_args": Shared(edges),
        "feature_mask": torch.arange(N_FEATURES)[None] // 2,
    }
    stream = method(on_graph).attribute_stream(X, tmp_path / "a.npz", chunk_size=10, **options)
    assert_same(stream, method(on_graph).attribute(X, **options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baselines": X[:10]}, "BaselineDistribution"),
        ({"target": TARGETS}, "'target' in roles"),
        ({"target": TARGETS.tolist()}, "'target' in roles"),
        ({"additional_forward_args": X}, "Shared"),
        ({"additional_forward_args": PerExample(X)}, "Shared"),
        ({"feature_mask": torch.zeros(N_ROWS, N_FEATURES, dtype=torch.long)}, "feature_mask has"),
        ({"roles": ("target",)}, "'inputs' among"),
        ({"roles": "inputs"}, "'inputs' among"),
        ({"roles": ("inputs", "labels")}, "'labels'"),
        ({"roles": ("inputs", "target")}, "names 2 parts"),
        ({"roles": ("inputs", "target"), "target": 1}, "given twice"),
        ({"rows": loader_of(X, TARGETS)}, r"roles=\('inputs', 'unused'\)"),
        ({"function": lambda x: x.sum() ** 2}, "one value for a whole batch"),
    ],
)
def test_arguments_that_depend_on_the_chunk_are_refused(options, words, tmp_path):
    options = {"rows": X, "n_samples": BUDGET, **options}
    with pytest.raises(InvalidArgumentError, match=words):
        method(options.pop("function", forward)).attribute_stream(out=tmp_path / "a.npz", **options)
    assert list(tmp_path.iterdir()) == []


def stopping_after(n_rows):
    """Yield rows, and raise Ctrl-C's error after some of them."""
    yield from X[:n_rows].split(3)
    raise KeyboardInterrupt


def stopped(out, function=forward, **options):
    with pytest.raises(KeyboardInterrupt):
        method(function).attribute_stream(stopping_after(30), out, chunk_size=8, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"target": 2}, "target was 1, now it is 2"),
        ({"baselines": 0.5}, "baselines was None, now it is 0.5"),
        ({"baselines": X[:1]}, "now it is Tensor torch.float32 of shape"),
        ({"feature_mask": torch.arange(N_FEATURES)[None] // 2}, "feature_mask was None, now"),
        ({"roles": ("inputs",)}, "roles was None, now it is"),
        ({"rows": X.double()}, "other data"),
    ],
)
def test_another_call_is_refused_with_the_difference(call, words, tmp_path):
    options = {"target": 1, "n_samples": BUDGET}
    stopped(tmp_path / "a.npz", **options)
    arguments = {"rows": X, **options, **call}
    with pytest.raises(CheckpointError, match=words):
        method().attribute_stream(out=tmp_path / "a.npz", checkpoint=True, **arguments)


def test_another_model_is_refused(tmp_path):
    torch.manual_seed(0)
    layer = torch.nn.Linear(N_FEATURES, 4)
    net = torch.nn.Sequential(layer, torch.nn.Tanh()).eval()
    options = {"target": 1, "n_samples": BUDGET}
    stopped(tmp_path / "a.npz", net, **options)
    stopped(tmp_path / "b.npz", lambda x: net(x), **options)
    with torch.no_grad():
        layer.bias[1] += 0.1
    with pytest.raises(CheckpointError, match="forward_func was .*Sequential with weights"):
        method(net).attribute_stream(X, tmp_path / "a.npz", checkpoint=True, **options)
    with pytest.raises(CheckpointError, match=r"forward_func was .*, now it is "):
        method(net).attribute_stream(X, tmp_path / "b.npz", checkpoint=True, **options)


def test_a_checkpoint_of_shap_is_refused(tmp_path):
    shap_ext = pytest.importorskip("shap_ext")
    explainer = shap_ext.RandomOrderExplainer(lambda X: X.sum(1), np.zeros((1, N_FEATURES)), seed=3)
    explainer.explain_stream(X.numpy(), tmp_path / "a.npz", silent=True)
    with pytest.raises(CheckpointError, match="written by shap"):
        method().attribute_stream(X, tmp_path / "a.npz", target=0, checkpoint=True)
    with pytest.raises(CheckpointError, match="written by shap"):
        captum_ext.StreamedAttributions.open(tmp_path / "a.npz")


def test_a_trained_network_explains_streams(tmp_path):
    pytest.importorskip("safetensors")
    net = captum_ext.SimShap(forward, epochs=1, seed=0).fit(X)
    with pytest.raises(InvalidArgumentError, match="perturbations_per_eval cannot be chosen"):
        net.attribute_stream(X, tmp_path / "a.npz", target=0, perturbations_per_eval=2)
    refined = net.attribute_stream(X, tmp_path / "b.npz", target=0, chunk_size=20, n_samples=12)
    expected = net.attribute(X, target=0, n_samples=12)
    np.testing.assert_allclose(refined.values, expected, atol=1e-4)


# --- tables of pandas and other packages, as batches and streams ---


def of_product(inputs):
    return torch.nan_to_num(inputs, nan=9.0).prod(dim=1)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
@pytest.mark.parametrize("last", [1, None])
def test_nullable_columns_become_floats(dtype, last, tmp_path):
    frame = pd.DataFrame({"x": pd.array([1, last], dtype=dtype), "y": [3.0, 4.0]})
    method = captum_ext.Exact(of_product)
    floats = torch.tensor(frame.to_numpy(dtype=float, na_value=np.nan))
    expected = method.attribute(floats.float()).numpy()
    batch = method.batch_function(frame.head(1))(frame)
    np.testing.assert_array_equal(batch.iloc[:, :2], expected)
    stream = method.attribute_stream(frame, tmp_path / "out.npz")
    np.testing.assert_allclose(stream[:], expected, rtol=1e-6)


def test_a_column_of_texts_is_named():
    frame = pd.DataFrame({"x": [1.0], "word": ["a"]})
    with pytest.raises(InvalidArgumentError, match="'word' holds .*features="):
        captum_ext.Exact(of_product).batch_function(frame)


@pytest.mark.parametrize("has_nulls", [False, True])
def test_polars_equals_pandas(has_nulls, tmp_path):
    polars = pytest.importorskip("polars")
    columns = {"x": [1, None if has_nulls else 2], "y": [3.0, 4.0]}
    table = polars.DataFrame(columns)
    frame = pd.DataFrame({"x": np.array(columns["x"], dtype=float), "y": columns["y"]})
    method = captum_ext.Exact(of_product)
    batch = method.batch_function(table[:1])(table)
    assert isinstance(batch, polars.DataFrame)
    expected = method.batch_function(frame.head(1))(frame)
    np.testing.assert_array_equal(batch.to_numpy(), expected.to_numpy())
    streams: list[Any] = [
        method.attribute_stream(rows, tmp_path / f"{index}.npz")[:]
        for index, rows in enumerate((table, frame))
    ]
    assert torch.equal(*streams)
