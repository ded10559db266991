"""The results of a stream, read from their files when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..arguments import checked_flag
from ..errors import CheckpointError
from .files import ResultFiles, check_results, checked_out, journal_path, result_files
from .journal import Journal


@dataclass(frozen=True)
class StreamedValues:
    """The values of a stream of rows in files, which may still grow.

    Attributes
    ----------
    out : Path
        Where the values are.
    journal : Journal
        The finished chunks.
    rows : object, optional
        The explained rows, where they can be read again.
    """

    out: Path
    journal: Journal
    rows: Any = field(default=None, repr=False)

    host: ClassVar[str] = ""

    @classmethod
    def open(cls, out: str | Path, verify: bool = False) -> Self:
        """Open the results of a call that has ended, was stopped, or is still running.

        Parameters
        ----------
        out : str or Path
            The argument `out` of the call that wrote the results.
        verify : bool, default False
            Whether to read all results once, and to compare each byte with what was written; else
            the journal and the sizes of the files are checked.

        Raises
        ------
        CheckpointError
            If there are no results, or they are damaged.
        """
        path = checked_out(out)
        checked_flag("verify", verify)
        if not journal_path(path).is_file():
            raise CheckpointError(
                f"out={str(out)!r}: there are no results with a journal, {journal_path(path)}. "
                "Pass the out= of a call that has finished at least one chunk."
            )
        journal = Journal.read(journal_path(path))
        if cls.host not in ("", journal.header.host):
            raise CheckpointError(
                f"out={str(out)!r} was written by {journal.header.host}, not by {cls.host}. Open "
                "it with the class of that host."
            )
        if verify:
            files = result_files(path, journal.header.arrays)
            for chunk in journal.chunks:
                check_results(path, files, chunk)
        return cls(path, journal)

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.journal.chunks:
            yield self[chunk.first : chunk.first + chunk.n_rows]

    def __getitem__(self, rows: Any) -> Any:
        """Return the results of a slice of rows in the form of the host."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "not complete"
        return f"{type(self).__name__}({str(self.out)!r}: {self.n_rows:,} rows, {state})"

    @property
    def n_rows(self) -> int:
        """The number of finished rows."""
        return self.journal.n_rows

    @property
    def is_complete(self) -> bool:
        """Whether all rows of the stream are finished."""
        return self.journal.is_complete

    @property
    def seed(self) -> int:
        """The seed of all random choices."""
        return int(self.journal.header.about["seed"])

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The attributions, (R, shape of a row's attributions).

        A memory map for `out="….npy"`; for Parquet and Arrow, read into memory.
        """
        return self.array("values")

    @property
    def base_values(self) -> npt.NDArray[np.float64]:
        """The values without any feature, (R,) or (R, K)."""
        return self.array("base_values")

    @property
    def standard_errors(self) -> npt.NDArray[np.float64] | None:
        """The standard errors, in the shape of the values; None if the call had none."""
        if "standard_errors" not in self._names:
            return None
        return self.array("standard_errors")

    @property
    def evaluations(self) -> npt.NDArray[np.int64]:
        """The coalitions evaluated for each row, (R,)."""
        return self.array("evaluations")

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return one of the stored arrays of all finished rows."""
        chunks = [(chunk.first, chunk.n_rows) for chunk in self.journal.chunks]
        return self._files.whole(name, chunks)

    def chunks(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Yield all arrays of one chunk after the other, in bounded memory."""
        for chunk in self.journal.chunks:
            yield self._arrays_of(chunk.first, chunk.n_rows)

    def _arrays_of(self, first: int, n_rows: int) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays of some rows, which may begin and end within chunks."""
        arrays = {}
        for name in self._names:
            pieces = [
                self._files.read(name, chunk.first, chunk.n_rows)[
                    max(0, first - chunk.first) : first + n_rows - chunk.first
                ]
                for chunk in self.journal.chunks
                if chunk.first < first + n_rows and first < chunk.first + chunk.n_rows
            ]
            pieces = pieces or [self._files.whole(name, [])]
            arrays[name] = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return arrays

    @property
    def _names(self) -> list[str]:
        return [array.name for array in self.journal.header.arrays]

    @property
    def _files(self) -> ResultFiles:
        return result_files(self.out, self.journal.header.arrays)
