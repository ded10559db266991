"""Streams of rows: explained chunk after chunk, written to files, and resumed after a stop."""

from .results import StreamedValues

__all__ = ["StreamedValues"]
