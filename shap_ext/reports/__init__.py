"""Reports of Explanations as HTML pages."""

from .report import report

__all__ = ["report"]
