"""Reads an exported network in a process of its own, without this package.

    python read_exported.py FILE INPUTS.npz RESULTS.npz

Prints the metadata. The results are those of the inputs `rows`, `active` and `total`.
"""

import sys
import warnings

import numpy as np


def main(path, inputs_path, results_path):
    inputs = dict(np.load(inputs_path))
    read = {".pt2": read_program, ".pt": read_script, ".onnx": read_onnx}[path[path.rindex(".") :]]
    metadata, results = read(path, inputs)
    np.savez(results_path, attributions=results[0], gaps=results[1])
    ours = {"shapley_adapters", "shap_ext", "captum_ext", "shap", "captum"} & set(sys.modules)
    assert not ours, ours
    print(metadata)


def read_program(path, inputs):
    import torch

    entries = {"shapley_ext.json": ""}
    module = torch.export.load(path, extra_files=entries).module()
    return entries["shapley_ext.json"], run(module, inputs)


def read_script(path, inputs):
    import torch

    warnings.simplefilter("ignore", DeprecationWarning)
    entries = {"shapley_ext.json": ""}
    module = torch.jit.load(path, _extra_files=entries)
    metadata = entries["shapley_ext.json"]
    return metadata if isinstance(metadata, str) else metadata.decode(), run(module, inputs)


def run(module, inputs):
    import torch

    with torch.no_grad():
        return module(*(torch.as_tensor(inputs[name]) for name in ("rows", "active", "total")))


def read_onnx(path, inputs):
    import onnx

    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    try:
        from onnxruntime import InferenceSession as Session
    except ImportError:
        from onnx.reference import ReferenceEvaluator as Session
    return metadata["shapley_ext.json"], Session(path).run(None, inputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
