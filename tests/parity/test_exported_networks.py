"""Exported networks, read by a process that does not have this package."""

import importlib.util
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, MissingPackageError

torch: Any = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("safetensors")
captum_ext: Any = pytest.importorskip("captum_ext")

HAS_ONNX = all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript"))
pytestmark = pytest.mark.slow  # starts processes that import torch

ENDS = [
    "pt2",
    "pt",
    pytest.param(
        "onnx", marks=pytest.mark.skipif(not HAS_ONNX, reason="onnx or onnxscript is missing")
    ),
]
READER = Path(__file__).parents[1] / "helpers" / "read_exported.py"
N = 5
X = np.random.default_rng(0).normal(size=(90, N)).astype(np.float32)
REFERENCE = np.full((1, N), 0.25, dtype=np.float32)
FEW: dict[str, Any] = {"epochs": 3, "seed": 0}
each_end = pytest.mark.parametrize("end", ENDS)


def curved(x):
    x = np.asarray(x, dtype=float)
    return np.stack([np.tanh(x).sum(axis=1), 1 + x[:, 0] * x[:, 1]], axis=1)


def forward(x):
    return torch.stack([torch.tanh(x).sum(dim=1), 1 + x[:, 0] * x[:, 1]], dim=1)


def read(path, folder, rows, n_players, total=None):
    """Return the results for rows in a new process, and the metadata."""
    active = np.ones((len(rows), n_players), dtype=bool)
    total = np.full((len(rows), 2), np.nan) if total is None else np.asarray(total, dtype=float)
    np.savez(folder / "inputs.npz", rows=rows, active=active, total=total)
    keep = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    # The packages of the test's path may hold onnx, but not this repository.
    root = str(Path(__file__).parents[2])
    further = [p for p in os.environ.get("PYTHONPATH", "").split(":") if not p.startswith(root)]
    done = subprocess.run(
        [sys.executable, READER, path, folder / "inputs.npz", folder / "results.npz"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**keep, "PYTHONPATH": ":".join(further)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = np.load(folder / "results.npz")
    return results["attributions"], results["gaps"], json.loads(done.stdout)


def assert_close(found, needed):
    np.testing.assert_allclose(found, needed, rtol=1e-6, atol=1e-6 * np.abs(needed).max())


@each_end
def test_shap_s_networks(end, tmp_path):
    """Rows, some of whose features equal the reference, with and without the model's sums."""
    names = {"feature_names": list("abcde"), "output_names": ["first", "second"]}
    made = shap.Explainer(
        curved, REFERENCE, algorithm="simshap", training_data=X, **names, **FEW
    ).fit()
    path = tmp_path / f"network.{end}"
    made.export(path)
    assert os.listdir(tmp_path) == [path.name]
    rows = X[:7].copy()
    rows[:3, 1] = REFERENCE[0, 1]
    rows[3] = REFERENCE
    total = curved(rows) - curved(REFERENCE)
    found, gaps, metadata = read(path, tmp_path, rows, N, total)
    assert_close(found, made(rows).values)
    assert_close(gaps, made.last_efficiency_gaps)
    assert (found[:3, 1] == 0).all() and (found[3] == 0).all()
    made.efficient = False
    found, gaps, _ = read(path, tmp_path, rows[:1], N)
    assert_close(found, made(rows[:1]).values)
    assert np.isnan(gaps).all()
    assert metadata["players"] == list("abcde")
    assert metadata["outputs"] == ["first", "second"]
    assert metadata["reference"] == {
        "rows": REFERENCE.tolist(),
        "player_of_each_number": list(range(N)),
    }
    assert metadata["base_values"] == pytest.approx(curved(REFERENCE)[0].tolist())
    assert metadata["method"] == "simshap"
    assert metadata["settings"]["epochs"] == "3"
    assert metadata["inputs"]["rows"]["shape"] == ["rows", N]
    assert {"torch", "shap", "Python", "shapley-ext"} <= set(metadata["versions"])


@each_end
def test_embeddings_of_groups(end, tmp_path):
    made = shap.Explainer(
        curved,
        REFERENCE,
        algorithm="simshap",
        training_data=X,
        groups={"first": [0, 2], "second": [1, 3, 4]},
        **FEW,
    ).fit()
    path = tmp_path / f"network.{end}"
    made.export(path)
    total = curved(X[:7]) - curved(REFERENCE)
    found, _, metadata = read(path, tmp_path, X[:7], 2, total)
    assert_close(found, made(X[:7]).values)
    assert metadata["network"] == "embeddings"
    assert metadata["values"] == {"of": "the model", "link": "identity", "value_function": "raw"}


@pytest.mark.parametrize("end", ["pt2", "pt"])
def test_networks_of_tokens(end, tmp_path):
    tokens = torch.randint(0, 9, (40, 6), generator=torch.Generator().manual_seed(0))
    made = captum_ext.SimShap(
        lambda x: (x % 3).float().sum(dim=1),
        student="tokens",
        student_options={"n_tokens": 9},
        **FEW,
    ).fit(tokens)
    made.export(tmp_path / f"network.{end}")


def test_a_reference_with_missing_numbers(tmp_path):
    reference = np.where(np.arange(N) == 0, np.nan, REFERENCE)

    def model(x):
        return np.nan_to_num(x, nan=5.0).sum(axis=1)

    made = shap.Explainer(model, reference, algorithm="simshap", training_data=X, **FEW).fit()
    made.export(tmp_path / "network.pt2")
    texts = {"shapley_ext.json": ""}
    torch.export.load(tmp_path / "network.pt2", extra_files=texts)
    (row,) = json.loads(texts["shapley_ext.json"])["reference"]["rows"]
    assert row == [None, *reference[0, 1:].tolist()]


@each_end
def test_captum_s_networks_with_groups_and_a_distribution_of_baselines(end, tmp_path):
    baselines = torch.as_tensor(X[:3]).clone()
    baselines[:, 2] = 0.5
    mask = torch.tensor([[4, 4, 7, 7, 9]])
    arguments = {"baselines": baselines, "feature_mask": mask}
    made = captum_ext.FastShap(forward, preset="paper", **FEW).fit(torch.as_tensor(X), **arguments)
    path = tmp_path / f"network.{end}"
    made.export(path, **arguments)
    rows = X[:6].copy()
    rows[0, 2] = 0.5
    inputs = torch.as_tensor(rows)
    values = made.attribute(inputs, return_input_shape=False, **arguments).numpy()
    values = np.moveaxis(values, 1, 2)[:, [0, 3, 5]]  # there is a column for each id from 4 to 9
    total = forward(inputs).numpy() - forward(baselines).mean(dim=0).numpy()
    found, _, metadata = read(path, tmp_path, rows, 3, total)
    assert_close(found, values)
    assert metadata["players"] == ["4", "7", "9"]
    assert metadata["reference"]["rows"] == baselines.tolist()
    assert metadata["reference"]["player_of_each_number"] == [0, 0, 1, 1, 2]
    assert metadata["settings"]["preset"] == "paper"
    with pytest.raises(InvalidArgumentError, match="another reference"):
        made.export(path, baselines=baselines + 1, feature_mask=mask)


@each_end
def test_networks_of_images(end, tmp_path):
    """Shap has channels last, the network first; players are squares of pixels."""
    black = np.zeros((1, 4, 4, 2), dtype=np.float32)
    images = np.random.default_rng(1).normal(size=(40, 4, 4, 2)).astype(np.float32)
    side = np.arange(4) // 2
    cells = np.repeat(side[:, None] * 2 + side, 2).reshape(4, 4, 2)
    groups = {f"cell {c}": np.flatnonzero(cells.ravel() == c).tolist() for c in range(4)}

    def model(x):
        total = np.asarray(x, dtype=float).reshape(len(x), -1)[:, :20].sum(axis=1)
        return np.stack([np.tanh(total), total], axis=1)

    made = shap_ext.SimShapExplainer(
        model,
        black,
        training_data=images,
        groups=groups,
        student="unet",
        student_options={"width": 2, "depth": 1},
        **FEW,
    ).fit()
    path = tmp_path / f"network.{end}"
    made.export(path)
    rows = images[:5].copy()
    rows[1, :2, :2] = 0
    explained = made(rows).values
    found, _, metadata = read(
        path,
        tmp_path,
        np.moveaxis(rows, -1, 1).copy(),
        4,
        model(rows) - model(black),
    )
    assert metadata["players"] == list(groups)
    assert (found[1, 0] == 0).all()
    assert_close(found, explained)


class Sums(torch.nn.Module):
    """A module of a user."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(N, 2 * N)

    def forward(self, x):
        return self.layer(x).unflatten(1, (N, 2))


class CountsRows(Sums):
    """Its result depends on the number of rows."""

    def forward(self, x):
        return super().forward(x) * (2.0 if len(x) == 1 else 1.0)


@each_end
def test_modules_of_users(end, tmp_path):
    made = shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X, student=Sums(), **FEW)
    made.export(tmp_path / f"a.{end}")  # trains first
    total = curved(X[:4]) - curved(REFERENCE)
    found, _, _ = read(tmp_path / f"a.{end}", tmp_path, X[:4], N, total)
    assert_close(found, made(X[:4]).values)


@each_end
def test_networks_that_cannot_be_exported_leave_no_file(end, tmp_path):
    made = shap_ext.SimShapExplainer(
        curved, REFERENCE, training_data=X, student=CountsRows(), **FEW
    )
    with pytest.raises(InvalidArgumentError, match="cannot be exported as"):
        made.export(tmp_path / f"a.{end}")
    assert os.listdir(tmp_path) == []


def test_frames_with_features_name_their_players(tmp_path):
    """The network sees other numbers than the rows, so that there is no reference for it."""
    frame = pd.DataFrame({"a": ["x", "y"] * 45, "b": X[:, 0]})

    def model(rows):
        return curved(np.stack([rows["a"] == "x", rows["b"]], axis=1))

    def features(rows):
        return np.stack([rows["a"] == "x", rows["b"], rows["b"] ** 2], axis=1).astype(np.float32)

    made = shap_ext.SimShapExplainer(
        model, frame[:1], training_data=frame, features=features, **FEW
    )
    made.fit().export(tmp_path / "a.pt2")
    rows = frame[1:2]
    total = model(rows) - model(frame[:1])
    found, _, metadata = read(tmp_path / "a.pt2", tmp_path, features(rows), 2, total)
    assert_close(found, made(rows).values)
    assert metadata["players"] == ["a", "b"]
    assert metadata["reference"] is None
    assert "features" in metadata["rows_are_changed_by"]


def test_a_network_that_was_loaded_is_exported_alike(tmp_path):
    made = shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X, **FEW).fit()
    made.save_trained(tmp_path / "trained")
    loaded = shap_ext.SimShapExplainer(curved, REFERENCE, trained=tmp_path / "trained")
    loaded.export(tmp_path / "a", format="torchscript")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript, in new versions
        module = torch.jit.load(str(tmp_path / "a"))
    total = torch.as_tensor(curved(X[:3]) - curved(REFERENCE))
    with torch.no_grad():
        found, _ = module(torch.as_tensor(X[:3]), torch.ones(3, N, dtype=torch.bool), total)
    assert_close(found.numpy(), made(X[:3]).values)


def test_unknown_formats_are_refused(tmp_path):
    made = shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X, **FEW).fit()
    with pytest.raises(InvalidArgumentError, match=r"'\.bin'.*\.pt2, \.pt, \.onnx.*'torchscript'"):
        made.export(tmp_path / "a.bin")
    with pytest.raises(InvalidArgumentError, match="format must be one of 'pt2', 'torchscript'"):
        made.export(tmp_path / "a.pt2", format="pickle")


@pytest.mark.skipif(HAS_ONNX, reason="onnx and onnxscript are there")
def test_onnx_is_asked_for_where_it_is_missing(tmp_path):
    made = shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X, **FEW).fit()
    with pytest.raises(MissingPackageError, match=r"shapley-ext\[onnx\]"):
        made.export(tmp_path / "a.onnx")
    assert os.listdir(tmp_path) == []
