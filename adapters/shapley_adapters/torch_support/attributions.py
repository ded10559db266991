"""captum's attribution methods as explainers of arrays, and fingerprints of torch modules.

The methods are recognised by what they can do, so that no host is imported.
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
    """Return what `method.attribute` makes of rows, (R, …).

    Parameters
    ----------
    method : Attribution
        With `attribute` and, where it is known, a module as `forward_func`.
    rows : array, (R, …)
        Are handed over in the precision and on the device of the module.
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
    found = method.attribute(inputs, **arguments)
    if isinstance(found, tuple):
        found = found[0]
    if not isinstance(found, torch.Tensor):
        raise InvalidArgumentTypeError(
            f"{type(method).__name__}.attribute must return a tensor; it returned "
            f"{type(found).__name__}."
        )
    array: npt.NDArray[Any] = array_of_tensor(found)
    n_outputs = array.ndim - rows.ndim
    if n_outputs > 0:  # captum puts outputs first, shap last
        array = np.moveaxis(array.reshape(len(array), -1, *rows.shape[1:]), 1, -1)
    return array


def module_version(module: Any) -> tuple[int, bytes] | tuple[()]:
    """Return a mark of a module that differs after its parameters or buffers were changed.

    It is made of their contents, which takes a second or two for each gigabyte: torch's own count
    of changes misses what is written through `.data` or shared memory.
    """
    if not isinstance(module, nn.Module):
        return ()
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(_content(tensor.detach()))
    return id(module), digest.digest()


def _content(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor, of types that NumPy does not know, too."""
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    content: npt.NDArray[np.uint8] = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return content.tobytes()
