"""captum's attribution methods as explainers of arrays, and fingerprints of torch modules.

The methods are recognised by their attributes, so that no host is imported.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ..errors import InvalidArgumentTypeError
from .tensor_arrays import array_of_tensor


def attributions_of_rows(
    method: Any, rows: npt.NDArray[Any], arguments: dict[str, Any]
) -> npt.NDArray[Any]:
    """Return the attributions of `method.attribute` for rows, (R, …).

    Parameters
    ----------
    method : Attribution
        An object with `attribute` and, optionally, a module as `forward_func`.
    rows : array, (R, …)
        The rows. They are converted to the precision and the device of the module.
    arguments : dict
        Further arguments of `attribute`.
    """
    inputs = torch.as_tensor(
        np.array(rows, order="C")
    )  # a copy, because models may write into their input
    module = getattr(method, "forward_func", None)
    if isinstance(module, nn.Module):
        parameter = next(iter(module.parameters()), None)
        if parameter is not None:
            dtype = parameter.dtype if inputs.is_floating_point() else inputs.dtype
            inputs = inputs.to(device=parameter.device, dtype=dtype)
    attributions = method.attribute(inputs, **arguments)
    if isinstance(attributions, tuple):
        attributions = attributions[0]
    if not isinstance(attributions, torch.Tensor):
        raise InvalidArgumentTypeError(
            f"{type(method).__name__}.attribute must return a tensor; it returned "
            f"{type(attributions).__name__}."
        )
    array: npt.NDArray[Any] = array_of_tensor(attributions)
    n_outputs = array.ndim - rows.ndim
    if n_outputs > 0:  # captum puts outputs first, shap last
        array = np.moveaxis(array.reshape(len(array), -1, *rows.shape[1:]), 1, -1)
    return array


def module_version(module: Any) -> tuple[int, bytes] | tuple[()]:
    """Return a digest of a module that differs after its parameters or buffers were changed.

    It is computed from their contents, which takes one or two seconds per gigabyte. Torch's own
    counter of changes misses writes through `.data` or shared memory.
    """
    if not isinstance(module, nn.Module):
        return ()
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(_content(tensor.detach()))
    return id(module), digest.digest()


def _content(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor, including types that NumPy does not have."""
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    content: npt.NDArray[np.uint8] = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return content.tobytes()
