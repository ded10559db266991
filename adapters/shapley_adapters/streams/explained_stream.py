"""The loop over the chunks of a stream: explain, write, record; and go on where it was stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from ..arguments import checked_count, checked_flag
from ..errors import CheckpointError, InvalidArgumentError, rows_counted_from, warnings_once
from ..ownership import only_owner
from ..pipeline.one_round import BY_MEAN_SPEED
from ..pipeline.run_warnings import RunWarnings, collected_run_warnings
from .files import (
    ResultFiles,
    check_columns,
    check_results,
    checked_out,
    journal_path,
    result_files,
)
from .journal import ChunkRecord, Journal, JournalHeader, ResultArray, check_same, digest
from .sources import Block, n_rows_of, rechunked, rows_of

READ_ROWS = 1000
"""Rows that are read at a time, and the largest chunk where the user gives no size."""

_CHUNK_NUMBERS = 2**21
"""Bound on the numbers of the rows of a chunk, and on those of their attributions."""

_PROBED = 4
"""Rows that are explained again, to see whether the model is that of the checkpoint."""

_ROUNDING = 1e-5
"""Share of the largest value by which these may differ: networks in single precision round by the
size of their batches."""


@dataclass(frozen=True)
class ExplainedBlock:
    """The results of an ordinary call for a block of rows.

    Attributes
    ----------
    arrays : dict
        The results by name, with one entry per row. "values" and "base_values" are among them.
    columns : dict
        The names of the columns of those arrays that are tables, for Parquet and Arrow.
    about : dict
        Further data of the results, such as names, as plain data for JSON.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


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
    join : callable
        Joins pieces of a part of the blocks.
    explainer : object
        Has `seed`, and the one that was drawn where the user has chosen none. It takes the seed of
        the checkpoint then.
    options : callable
        Returns the options that identify the call, as texts. It is called when the seed is final.
    out : str or Path
        Where results go.
    checkpoint : bool
        Whether to go on with results that are there already.
    chunk_size : int, optional
        Rows per chunk.
    n_rows : int, optional
        The number of rows, where it is known.
    progress_delay : float, optional
        Seconds until a progress bar appears; none where None.
    name : str
        Name of the estimator, for the progress bar.
    """

    host: str
    blocks: Callable[[int], Iterator[Block]]
    explain: Callable[[Block], ExplainedBlock]
    join: Callable[[Sequence[Any]], Any]
    explainer: Any
    options: Callable[[], dict[str, str]]
    out: Any
    checkpoint: bool = False
    chunk_size: int | None = None
    n_rows: int | None = None
    progress_delay: float | None = None
    name: str = ""


def _earlier_journal(call: StreamCall, out: Path) -> Journal | None:
    """Return the journal of the results that are there already; None if there are none."""
    path = journal_path(out)
    if not path.exists():
        _refuse_foreign(out)
        return None
    if not call.checkpoint:
        raise CheckpointError(
            f"out={str(call.out)!r} exists. Pass checkpoint=True to go on with it, or delete it, "
            "or choose another path."
        )
    journal = Journal.read(path)
    if journal.header.host != call.host:
        raise CheckpointError(
            f"out={str(call.out)!r} was written by {journal.header.host}, not by {call.host}. "
            "Choose another path."
        )
    return journal


def explain_stream(call: StreamCall) -> Journal:
    """Explain all rows that are not finished, and return the complete journal.

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
    with only_owner(out, "out"):
        journal = _earlier_journal(call, out)
        if journal is not None and call.explainer.seed == call.explainer._drawn_seed:
            seed = int(journal.header.about["seed"])
            call.explainer.seed = call.explainer._drawn_seed = seed
        loop = _Loop(call, out, journal)
        with loop.bar, warnings_once(), collected_run_warnings(loop.warnings):
            loop.run()
        return loop.finished()


@dataclass
class _Loop:
    """A call on its way through the stream."""

    call: StreamCall
    out: Path
    journal: Journal | None
    warnings: RunWarnings = field(default_factory=RunWarnings)
    position: int = 0

    def __post_init__(self) -> None:
        call = self.call
        self.options = call.options()  # before a call changes the explainer, as by training
        self.bar = tqdm(
            total=call.n_rows,
            desc=call.name,
            unit=" rows",
            disable=call.progress_delay is None,
            delay=call.progress_delay or 0.0,
            **BY_MEAN_SPEED,
        )

    def run(self) -> None:
        """Verify the finished chunks, and explain all others."""
        call = self.call  # chunks have the size in the checkpoint, if there is one
        size = call.chunk_size
        if self.journal is not None:
            size = self.journal.header.chunk_size
        blocks = call.blocks(size or READ_ROWS)
        if size is None:
            first = next(blocks, None)
            size = READ_ROWS if first is None else _default_size(first)
            blocks = blocks if first is None else chain([first], blocks)
        self._size = size
        chunks = rechunked(blocks, size, call.join)
        if self.journal is not None:
            self._verify(self.journal, chunks)
        for block in chunks:
            if self.journal is not None and self.journal.is_complete:
                raise CheckpointError(
                    f"checkpoint=True: {self.out} is complete with {self.journal.n_rows} rows, but "
                    "the stream has more. Pass the same rows, or choose another out=."
                )
            self._explain(block)

    def finished(self) -> Journal:
        """Close the journal, and give the warnings for all rows."""
        if self.journal is None:
            raise InvalidArgumentError("rows holds no rows; at least one is needed.")
        if not self.journal.is_complete:
            self.journal.complete()
        self.warnings.warn_of_all()
        return self.journal

    def _explain(self, block: Block) -> None:
        """Explain a chunk, write the results, and then record it."""
        n_rows, data = n_rows_of(block), digest(*block)
        with rows_counted_from(self.position):
            explained = self.call.explain(block)
        arrays = _arrays(explained)
        if self.journal is None:
            # The header of the journal has the shapes of the results of the first chunk.
            check_columns(self.out, arrays)
            path = journal_path(self.out)
            path.parent.mkdir(exist_ok=True)
            header = JournalHeader(
                self.call.host, arrays, self.options, self._size, dict(explained.about)
            )
            self.journal = Journal.create(path, header)
        files = self._files()
        if arrays != self._header.arrays:
            raise InvalidArgumentError(
                _other_shape_message(self.position, self._header.arrays, arrays)
            )
        results = files.append(self.position, explained.arrays)
        counts = self.warnings.as_record()
        record = ChunkRecord(self.position, n_rows, data, results, counts)
        self._present_journal.add(record)
        self.position += n_rows
        files.announce(self.position)
        self.bar.update(n_rows)

    def _verify(self, journal: Journal, chunks: Iterator[Block]) -> None:
        """Refuse a checkpoint of another call, or of other rows, or one that was damaged."""
        size = self.call.chunk_size
        earlier_call = {**journal.header.call, "chunk_size": str(journal.header.chunk_size)}
        present_call = {**self.options, "chunk_size": str(size or journal.header.chunk_size)}
        check_same(self.out, earlier_call, present_call)
        files = self._files()
        files.keep(journal.n_rows)
        probed = set(np.linspace(0, len(journal.chunks) - 1, _PROBED).astype(int).tolist())
        for index, record in enumerate(journal.chunks):
            block = next(chunks, None)
            self._check_data(record, block)
            check_results(self.out, files, record)
            if index in probed and block is not None:
                self._check_model(files, record, block)
            self.position += record.n_rows
            self.bar.update(record.n_rows)
        self.bar.initial = self.position  # their time says nothing about that of other rows
        if journal.chunks:
            files.announce(journal.n_rows)
            self.warnings.restore(journal.chunks[-1].warnings)

    def _check_data(self, record: ChunkRecord, block: Block | None) -> None:
        last = record.first + record.n_rows - 1
        if block is None or n_rows_of(block) != record.n_rows:
            n_rows = record.first + (0 if block is None else n_rows_of(block))
            count = f"{n_rows} rows" if n_rows <= last else f"more than {last + 1} rows"
            raise CheckpointError(
                f"checkpoint=True cannot go on with {self.out}: it was made of other data. Rows "
                f"{record.first} to {last} were explained, but the stream has {count}. Pass "
                "the same rows in the same order, or choose another out=."
            )
        if digest(*block) != record.data:
            raise CheckpointError(
                f"checkpoint=True cannot go on with {self.out}: it was made of other data. Among "
                f"rows {record.first} to {last}, numbers, types or names of columns differ. Pass "
                "the same rows in the same order, or choose another out=."
            )

    def _check_model(self, files: ResultFiles, record: ChunkRecord, block: Block) -> None:
        """Explain the first row of a chunk again, and compare."""
        counts = self.warnings.as_record()
        with rows_counted_from(record.first):
            again = self.call.explain(rows_of(block, 0, 1)).arrays
        self.warnings.restore(counts)
        for array in self._header.arrays:
            earlier = files.read(array.name, record.first, record.n_rows)[:1]
            present = again.get(array.name, np.zeros(0))
            if earlier.shape != present.shape or not _are_close(earlier, present):
                raise CheckpointError(
                    f"checkpoint=True cannot go on with {self.out}: it was made with another model "
                    f"or other baselines. For row {record.first}, explained again, the "
                    f"{array.name} differ. Pass the same model, or choose another out=."
                )

    def _files(self) -> ResultFiles:
        return result_files(self.out, self._header.arrays)

    @property
    def _header(self) -> JournalHeader:
        return self._present_journal.header

    @property
    def _present_journal(self) -> Journal:
        if self.journal is None:
            raise RuntimeError("the journal begins with the first chunk")
        return self.journal


def _arrays(explained: ExplainedBlock) -> list[ResultArray]:
    """Return the names, shapes and types of the results of a chunk."""
    return [
        ResultArray(name, tuple(array.shape[1:]), array.dtype.str, explained.columns.get(name))
        for name, array in explained.arrays.items()
    ]


def _other_shape_message(
    position: int, earlier: Sequence[ResultArray], present: Sequence[ResultArray]
) -> str:
    """Return the message about a chunk whose results differ in form from those before."""
    for before, now in zip(earlier, present, strict=False):
        if before != now:
            shapes = f"{before.row_shape} before and {now.row_shape} now"
            names = " or other names of columns" if before.row_shape == now.row_shape else ""
            return (
                f"rows: from row {position} on, the {before.name} of a row have the shape {shapes}"
                f"{names}. All rows of a stream must have the same features and outputs."
            )
    return f"rows: from row {position} on, the call returns other results than before."


def _default_size(block: Block) -> int:
    """Return the number of rows whose numbers are not too many."""
    n_numbers = sum(int(np.prod(np.shape(part)[1:], dtype=np.int64)) for part in block)
    return int(np.clip(_CHUNK_NUMBERS // max(1, n_numbers), 1, READ_ROWS))


def _are_close(earlier: npt.NDArray[Any], present: npt.NDArray[Any]) -> bool:
    if earlier.dtype.kind != "f":
        return True  # counts of evaluations depend on nothing else
    largest = np.nanmax(np.abs(earlier), initial=0.0)
    return np.allclose(present, earlier, rtol=0.0, atol=_ROUNDING * largest, equal_nan=True)


def _refuse_foreign(out: Path) -> None:
    """Refuse files that no stream wrote; remove files of a call that stopped before its journal."""
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
    if out.is_dir() and all(path.name.startswith("__journal") for path in out.iterdir()):
        shutil.rmtree(out)
    if out.exists():
        raise CheckpointError(
            f"out={str(out)!r} exists, and has no journal of a stream. Delete it, or choose "
            "another path."
        )
