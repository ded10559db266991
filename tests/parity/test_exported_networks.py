"""The trained network of an explainer as a program of `torch.export`."""

from typing import Any

import numpy as np
import pytest

import shap_ext

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")
captum_ext: Any = pytest.importorskip("captum_ext")

N = 5
X = np.random.default_rng(0).normal(size=(90, N)).astype(np.float32)
REFERENCE = np.full((1, N), 0.25, dtype=np.float32)
FEW: dict[str, Any] = {"epochs": 2, "seed": 0, "efficient": False}


def outputs(module, x):
    return module.stack([module.tanh(x).sum(1), 1 + x[:, 0] * x[:, 1]], 1)


@pytest.mark.parametrize("student", ["embeddings", "mlp"])
def test_exported_networks_give_the_explainers_numbers(student, tmp_path):
    of_shap = shap_ext.SimShapExplainer(
        lambda x: outputs(np, x.astype(float)), REFERENCE, training_data=X, student=student, **FEW
    ).fit()
    of_captum = captum_ext.SimShap(lambda x: outputs(torch, x), student=student, **FEW)
    tensors, baselines = torch.as_tensor(X), torch.as_tensor(REFERENCE)
    of_captum.fit(tensors, baselines)
    rows = tensors[:7].clone()
    rows[:3, 1] = float(REFERENCE[0, 1])
    wanted = [
        of_shap(rows.numpy()).values,
        of_captum.attribute(rows, baselines, return_input_shape=False).movedim(1, 2).numpy(),
    ]
    active, n_rows = rows != baselines, {0: torch.export.Dim("n_rows")}
    for explainer, values in zip((of_shap, of_captum), wanted, strict=True):
        arguments = (rows[:4], active[:4])
        program = torch.export.export(explainer.network, arguments, dynamic_shapes=(n_rows, n_rows))
        torch.export.save(program, tmp_path / "network.pt2")
        loaded = torch.export.load(tmp_path / "network.pt2").module()
        found = loaded(rows, active).detach().numpy()
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)
        assert (found[:3, 1] == 0).all()
