"""The identity of a call: texts and digests of its options, and of the rows of a chunk."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from ..errors import CheckpointError, InvalidArgumentTypeError
from ..torch_support.tensor_arrays import array_of, is_tensor

_LONGEST_TEXT = 60
"""Up to so many letters, an option is stored as it is; beyond, as a digest."""


def text_of(value: Any) -> str:
    """Return a text that is the same in each process for the same value.

    Short values are shown as they are, arrays by shape, type and digest, modules of torch by the
    digest of their weights, functions and other objects by their names.
    """
    if value is None or isinstance(value, (bool, int, float, str, np.number)):
        text = repr(value.item() if isinstance(value, np.number) else value)
        return text if len(text) <= _LONGEST_TEXT else f"{text[:20]}… ({digest(text)})"
    if isinstance(value, Mapping):
        return _shortened("{", [f"{k!r}: {text_of(value[k])}" for k in value], "}")
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = [text_of(item) for item in value]
        return _shortened("[", sorted(texts) if isinstance(value, (set, frozenset)) else texts, "]")
    if hasattr(value, "state_dict") and hasattr(value, "parameters"):
        return f"{_name_of(type(value))} with weights {_digest_of_module(value)}"
    if _is_data(value):
        dtype = "" if isinstance(value, pd.DataFrame) else f" {value.dtype}"
        return f"{type(value).__name__}{dtype} of shape {tuple(value.shape)} ({digest(value)})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return _name_of(value)
    if is_dataclass(value):
        of_fields = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{_name_of(type(value))} {text_of(of_fields)}"
    return _name_of(type(value))


def option_texts(owner: object, left_out: Collection[str]) -> dict[str, str]:
    """Return the texts of the options of an object, which are the parameters of its class."""
    names = inspect.signature(type(owner)).parameters
    return {name: text_of(getattr(owner, name)) for name in names if name not in left_out}


def digest(*parts: Any) -> str:
    """Return a digest of arrays, frames, sparse matrices, tensors or lists of rows.

    Raises
    ------
    InvalidArgumentTypeError
        If they hold objects whose content is unknown.
    """
    hasher = blake2b(digest_size=16)
    for part in parts:
        for data in _bytes_of(part):
            hasher.update(data)
    return hasher.hexdigest()


def check_same(path: object, earlier: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Refuse to go on with the results of another call; the error names each difference."""
    differences = [
        f"{name} was {earlier.get(name, 'not given')}, now it is {present.get(name, 'not given')}"
        for name in {**earlier, **present}
        if earlier.get(name) != present.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"checkpoint=True cannot go on with {path}, which holds values of another call: "
            f"{'; '.join(differences)}. Repeat the call as it was, or choose another out=."
        )


def _bytes_of(part: Any) -> Iterator[bytes]:
    if scipy.sparse.issparse(part):
        csr = part.tocsr()
        yield b"sparse"
        for array in (csr.data, csr.indices, csr.indptr):
            yield from _bytes_of(np.asarray(array))
    elif isinstance(part, pd.DataFrame):
        yield repr(list(part.columns)).encode()
        for column in range(part.shape[1]):
            yield from _bytes_of(part.iloc[:, column].to_numpy())
    elif is_tensor(part):
        yield str(part.dtype).encode()
        yield from _bytes_of_array(array_of(part))
    else:
        yield from _bytes_of_array(np.asarray(part))


def _bytes_of_array(array: Any) -> Iterator[bytes]:
    yield f"{array.dtype.str}{array.shape}".encode()
    if array.dtype.kind != "O":
        yield np.ascontiguousarray(array).tobytes()
        return
    for item in array.ravel():
        if not _is_cell(item):
            raise InvalidArgumentTypeError(
                "rows must hold numbers, texts or times, from which a checkpoint recognises them; "
                f"got {type(item).__name__}."
            )
        yield f"{type(item).__name__}:{item!r}\n".encode("utf-8", "surrogatepass")


def _is_cell(item: Any) -> bool:
    """Return whether the text of an item says all about it."""
    module = type(item).__module__.partition(".")[0]
    is_plain = item is None or isinstance(item, (str, bytes, bool, int, float, complex))
    return is_plain or module in ("numpy", "pandas", "datetime", "decimal")


def _is_data(value: Any) -> bool:
    is_array = isinstance(value, (np.ndarray, pd.DataFrame)) or scipy.sparse.issparse(value)
    return is_array or is_tensor(value)


def _digest_of_module(module: Any) -> str:
    """Return a digest of the weights of a module of torch, and of its other stored data."""
    state = module.state_dict()
    digests = [digest(part) if _is_data(part) else text_of(part) for part in state.values()]
    return digest(repr([*zip(state, digests, strict=True)]))


def _name_of(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}".strip(".")


def _shortened(start: str, texts: list[str], end: str) -> str:
    text = f"{start}{', '.join(texts)}{end}"
    return text if len(text) <= 4 * _LONGEST_TEXT else f"{len(texts)} entries ({digest(text)})"
