"""Streams of rows: explained chunk after chunk, one file each, and resumed after a stop."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from tqdm.auto import tqdm

from .arguments import checked_count, checked_flag
from .errors import CheckpointError, InvalidArgumentError, rows_counted_from, warnings_once
from .pipeline.one_round import BY_MEAN_SPEED
from .pipeline.run_warnings import RunWarnings, collected_run_warnings
from .row_sources import Block, n_rows_of, rechunked, rows_of
from .streamed_values import (
    RECORD,
    ExplainedBlock,
    Part,
    Record,
    arrays_of,
    checked_out,
    finished_parts,
    read_part,
    read_record,
    write_part,
    write_record,
)
from .torch_support.tensor_arrays import array_of, is_tensor

_READ_ROWS = 1000
"""Rows that are read at a time, and the largest chunk where the user gives no size."""

_CHUNK_NUMBERS = 2**21
"""Bound on the numbers of the rows of a chunk, where the user gives no size."""

_ROUNDING = 1e-5
"""Share of the largest value by which values of the same model may differ: networks in single
precision round by the size of their batches."""

_UNFINISHED = ("_lock", "_part-", f"_{RECORD}")
"""Beginnings of the names of files that a call leaves that is killed before its first chunk."""

_LONGEST_TEXT = 60
"""Up to so many letters, an option is stored as it is; beyond, as a digest."""


@dataclass(frozen=True)
class StreamCall:
    """A call of a host over a stream of rows.

    Attributes
    ----------
    host : str
        "shap" or "captum".
    blocks : callable
        Returns the iterator over blocks of rows, given how many to read at a time.
    explain : callable
        Explains a block by an ordinary call.
    explainer : object
        Has `seed`, and the one that was drawn where the user has chosen none. It takes the seed of
        the checkpoint then.
    options : callable
        Returns the options that identify the call, as texts. It is called when the seed is final.
    out : str or Path
        The folder of the results.
    checkpoint : bool
        Whether to go on with results that are there already.
    chunk_size, n_rows : int, optional
        Rows per chunk, and of the stream where they are known.
    progress_delay : float, optional
        Seconds until a progress bar appears; none where None.
    name : str
        Name of the estimator, for the progress bar.
    """

    host: str
    blocks: Callable[[int], Iterator[Block]]
    explain: Callable[[Block], ExplainedBlock]
    explainer: Any
    options: Callable[[], dict[str, str]]
    out: Any
    checkpoint: bool = False
    chunk_size: int | None = None
    n_rows: int | None = None
    progress_delay: float | None = None
    name: str = ""


def explain_stream(call: StreamCall) -> Path:
    """Explain all rows that are not finished, and return the folder of the results.

    Raises
    ------
    CheckpointError
        If there are results and the call shall not go on with them, or they are of another call;
        if another call is writing there.
    """
    out = checked_out(call.out)
    checked_flag("checkpoint", call.checkpoint)
    if call.chunk_size is not None:
        checked_count("chunk_size", call.chunk_size)
    warnings = RunWarnings()
    try:
        with _only_writer(out), warnings_once(), collected_run_warnings(warnings):
            _explain_missing(call, out, _earlier(call, out))
    finally:
        warnings.warn_of_all()  # also where the stream was stopped, of the rows until then
    return out


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    """Hold the lock of the folder; the system opens it when the process ends, however it ends."""
    from filelock import FileLock, Timeout

    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    is_ours = RECORD in names or all(name.startswith(_UNFINISHED) for name in names)
    if out.exists() and not (out.is_dir() and is_ours):
        raise CheckpointError(
            f"out={str(out)!r} exists, and no stream wrote it. Delete it, or choose another path."
        )
    out.mkdir(exist_ok=True)
    try:
        with FileLock(out / "_lock", timeout=0):
            for cut_off in out.glob("_part-*"):
                cut_off.unlink()
            try:
                yield
            finally:
                # While it is held: filelock takes no lock whose file is gone. Windows removes no
                # open file, and a folder with results stays.
                with suppress(OSError):
                    (out / "_lock").unlink()
                    out.rmdir()
    except Timeout:
        raise CheckpointError(
            f"out={str(out)!r}: another call is writing there, in this process or another. Wait "
            "until it has ended, or choose another out=."
        ) from None


def _earlier(call: StreamCall, out: Path) -> Record | None:
    """Return the record of the results that are there already; None if there are none."""
    if not (out / RECORD).exists():
        return None
    record = read_record(out)
    if record.host != call.host:
        raise CheckpointError(
            f"out={str(out)!r} was written by {record.host}, not by {call.host}. Choose another "
            "path."
        )
    if not call.checkpoint:
        raise CheckpointError(
            f"out={str(out)!r} exists. Pass checkpoint=True to go on with it, or delete it, or "
            "choose another path."
        )
    if call.explainer.seed == call.explainer._drawn_seed:
        call.explainer.seed = call.explainer._drawn_seed = int(record.about["seed"])
    options = {**call.options(), "chunk_size": str(call.chunk_size or record.chunk_size)}
    before = {**record.call, "chunk_size": str(record.chunk_size)}
    differences = [
        f"{name} was {before.get(name, 'not given')}, now it is {options.get(name, 'not given')}"
        for name in {**before, **options}
        if before.get(name) != options.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"checkpoint=True cannot go on with {out}, which holds values of another call: "
            f"{'; '.join(differences)}. Repeat the call as it was, or choose another out=."
        )
    return record


def _explain_missing(call: StreamCall, out: Path, record: Record | None) -> None:
    """Explain the chunks that have no part, and write their parts."""
    options = call.options()  # before a call changes the explainer, as by training
    parts = {} if record is None else {part.first: part for part in finished_parts(out)}
    size = call.chunk_size if record is None else record.chunk_size
    blocks, position = call.blocks(size or _READ_ROWS), 0
    if size is None:
        read = next(blocks, ())
        n_numbers = sum(int(np.prod(np.shape(part)[1:], dtype=np.int64)) for part in read)
        size = int(np.clip(_CHUNK_NUMBERS // max(1, n_numbers), 1, _READ_ROWS))
        blocks = chain([read] if read else [], blocks)
    hidden, delay = call.progress_delay is None, call.progress_delay or 0.0
    with tqdm(
        total=call.n_rows, desc=call.name, unit=" rows", disable=hidden, delay=delay,
        **BY_MEAN_SPEED,
    ) as bar:  # fmt: skip
        for block in rechunked(blocks, size):
            first, position = position, position + n_rows_of(block)
            data, part = digest(*block), parts.get(first)
            if record is not None and record.n_rows is not None and position > record.n_rows:
                raise _other_data(out, f"It has {record.n_rows} rows, but the stream has more.")
            if part is not None and (part.stop, part.data) != (position, data):
                raise _other_data(out, f"Rows {first} to {part.stop - 1} differ.")
            with rows_counted_from(first):
                if part is None or record is None:
                    explained = call.explain(block)
                    record = record or _new_record(call, out, options, size, explained)
                    write_part(out, record, explained, range(first, position), data)
                elif first == 0:
                    _check_model(call, part, record, block)
            bar.update(position - first)
            if part is not None:
                bar.initial = position  # whose time says nothing about that of other rows
    if record is None:
        raise InvalidArgumentError("rows holds no rows; at least one is needed.")
    if position < max((part.stop for part in parts.values()), default=record.n_rows or 0):
        raise _other_data(out, f"The stream has only {position} rows.")
    if record.n_rows is None:
        write_record(out, replace(record, n_rows=position))


def _other_data(out: Path, difference: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint=True cannot go on with {out}, which holds values of other data. {difference} "
        "Pass the same rows in the same order, or choose another out=."
    )


def _check_model(call: StreamCall, part: Part, record: Record, block: Block) -> None:
    """Explain the first row of a finished part again, and compare."""
    with collected_run_warnings(RunWarnings()):
        again = call.explain(rows_of(block, 0, 1)).arrays
    for name, values in read_part(part.path, record.arrays).items():
        allowed = _ROUNDING * np.nanmax(np.abs(values), initial=0.0)
        if not np.allclose(again[name], values[:1], rtol=0.0, atol=allowed, equal_nan=True):
            raise CheckpointError(
                f"checkpoint=True cannot go on with {call.out}: it was made with another model or "
                f"other baselines. For row {part.first}, explained again, the {name} differ. Pass "
                "the same model, or choose another out=."
            )


def _new_record(
    call: StreamCall, out: Path, options: dict[str, str], size: int, explained: ExplainedBlock
) -> Record:
    """Write the record of a stream, of which the first chunk is explained."""
    arrays = arrays_of(explained)
    names = Counter(name for array in arrays for name in array.columns)
    broken = [name for name in names if name.encode(errors="replace").decode() != name]
    for name in broken or [name for name, count in names.items() if count > 1]:
        if out.suffix != ".npz":
            raise InvalidArgumentError(
                f"out={str(out)!r}: the column {name!r} of the table would be there twice, or has "
                "half of a character in its name. Rename the feature or output, or write to .npz."
            )
    record = Record(call.host, options, size, arrays, dict(explained.about))
    write_record(out, record)
    return record


def digest(*parts: Any) -> str:
    """Return a digest of arrays, frames, sparse matrices, tensors or lists of rows."""
    plain: list[Any] = []
    for part in parts:
        if scipy.sparse.issparse(part):
            csr = part.tocsr()
            plain.append((csr.shape, csr.data, csr.indices, csr.indptr))
            continue
        table = part if isinstance(part, pd.DataFrame) else np.asarray(array_of(part))
        plain += [str(type(table)), table.shape]
        if isinstance(table, np.ndarray) and table.dtype == object:
            table = pd.DataFrame(table.reshape(len(table), -1))
        if isinstance(table, pd.DataFrame):  # texts and times as pandas sees them
            plain += [list(map(str, table.columns)), list(map(str, table.dtypes))]
            table = pd.util.hash_pandas_object(table, index=False).to_numpy()
        plain.append(np.ascontiguousarray(table))
    return _hash(plain)


def option_texts(owner: object, left_out: Collection[str]) -> dict[str, str]:
    """Return the texts of the options of an object, which are the parameters of its class."""
    names = inspect.signature(type(owner)).parameters
    return {name: text_of(getattr(owner, name)) for name in names if name not in left_out}


def text_of(value: Any) -> str:
    """Return a text that is the same in each process for the same value.

    Short values are shown as they are, arrays by shape, type and digest, modules of torch by the
    digest of their weights, functions and other objects by their names.
    """
    if value is None or isinstance(value, (bool, int, float, str, np.number)):
        return _shortened(repr(value.item() if isinstance(value, np.number) else value))
    if isinstance(value, Mapping):
        return _shortened(f"{{{', '.join(f'{key!r}: {text_of(value[key])}' for key in value)}}}")
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = [text_of(item) for item in value]
        texts = sorted(texts) if isinstance(value, (set, frozenset)) else texts
        return _shortened(f"[{', '.join(texts)}]")
    if hasattr(value, "state_dict") and hasattr(value, "parameters"):
        weights = [[key, text_of(part)] for key, part in value.state_dict().items()]
        return f"{_name_of(type(value))} with weights {_hash(weights)}"
    is_table = isinstance(value, (np.ndarray, pd.DataFrame)) or scipy.sparse.issparse(value)
    if is_table or is_tensor(value):
        dtype = getattr(value, "dtype", "")
        return f"{type(value).__name__} {dtype} of shape {tuple(value.shape)} ({digest(value)})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return _name_of(value)
    if is_dataclass(value):
        of_fields = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{_name_of(type(value))} {text_of(of_fields)}"
    return _name_of(type(value))


def _name_of(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}".strip(".")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({_hash(text)})"


def _hash(value: Any) -> str:
    import joblib

    return str(joblib.hash(value))[:16]
