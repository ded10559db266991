"""Blocks of rows, cut and joined to chunks of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from ..errors import InvalidArgumentError, row_number

Block = tuple[Any, ...]
"""Tables or arrays with one entry per row each, such as the inputs and the targets of a model."""


def n_rows_of(block: Block) -> int:
    """Return the number of rows of a block.

    Raises
    ------
    InvalidArgumentError
        If the parts of the block have different numbers of rows.
    """
    lengths = {_length(part) for part in block}
    if len(lengths) != 1:
        raise InvalidArgumentError(
            f"rows: the parts of a batch must have the same number of rows; after row "
            f"{row_number(0)} they have {sorted(lengths)}."
        )
    return lengths.pop()


def rows_of(block: Block, start: int, stop: int) -> Block:
    """Return some rows of a block."""
    return tuple(
        part.iloc[start:stop] if isinstance(part, pd.DataFrame) else part[start:stop]
        for part in block
    )


def rechunked(
    blocks: Iterable[Block], size: int, join: Callable[[Sequence[Any]], Any]
) -> Iterator[Block]:
    """Yield the rows of blocks of any sizes in chunks of `size` rows; the last may be smaller.

    Parameters
    ----------
    blocks : iterable of Block
        The blocks.
    size : int
        Rows per chunk.
    join : callable
        Joins the pieces of one part of the blocks along their rows.
    """
    pieces: list[Block] = []
    n_waiting = 0
    for block in blocks:
        start, n_rows = 0, n_rows_of(block)
        if pieces and len(block) != len(pieces[0]):
            raise InvalidArgumentError(
                f"rows: each batch must have the same number of parts; got one of {len(block)} "
                f"after one of {len(pieces[0])}."
            )
        while start < n_rows:
            stop = min(n_rows, start + size - n_waiting)
            pieces.append(rows_of(block, start, stop))
            n_waiting += stop - start
            start = stop
            if n_waiting == size:
                yield _joined(pieces, join)
                pieces, n_waiting = [], 0
    if pieces:
        yield _joined(pieces, join)


def join_tables(pieces: Sequence[Any]) -> Any:
    """Return arrays, frames or sparse matrices as one, along their rows."""
    if isinstance(pieces[0], pd.DataFrame):
        return pd.concat(pieces)
    if scipy.sparse.issparse(pieces[0]):
        return scipy.sparse.vstack(pieces, format="csr")
    return np.concatenate(pieces)


def _joined(pieces: Sequence[Block], join: Callable[[Sequence[Any]], Any]) -> Block:
    if len(pieces) == 1:
        return pieces[0]
    try:
        return tuple(join(parts) for parts in zip(*pieces, strict=True))
    except (ValueError, TypeError, RuntimeError) as error:  # of NumPy, pandas and torch
        shapes = [getattr(part, "shape", type(part).__name__) for part in (p[0] for p in pieces)]
        raise InvalidArgumentError(
            f"rows: batches of one chunk cannot be joined; they have the shapes {shapes[:4]}. "
            "All rows must have the same shape and type."
        ) from error


def _length(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)
