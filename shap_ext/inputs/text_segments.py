"""Segments of texts: words, sentences, paragraphs, and those of a function of the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

PATTERNS = {
    "words": r"\S+",
    # Until the end of a paragraph, a full stop before a space, or one of Chinese or Japanese.
    "sentences": r"\S[\s\S]*?(?:[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|(?=\s*\n\s*\n|\s*$))",
    "paragraphs": r"\S[\s\S]*?(?=\s*\n\s*\n|\s*$)",
}
"""What a segment of each kind matches; the space behind it belongs to it, too."""


@dataclass
class TextSegmentation:
    """Divides texts into segments.

    Attributes
    ----------
    segments : {"words", "sentences", "paragraphs"} or callable
        Their kind, or a function from a text to the list of its segments.
    """

    segments: str | Callable[[str], Iterable[str]]

    def __post_init__(self) -> None:
        if callable(self.segments) or self.segments in list(PATTERNS):
            return
        raise InvalidArgumentError(
            f"segments={self.segments!r} must be one of {', '.join(map(repr, PATTERNS))}, or a "
            "function that returns the list of a text's segments, such as nltk.sent_tokenize."
        )

    def __call__(self, text: str) -> dict[str, list[str]]:
        """Return a text as one token, for shap's Text, which asks for that of the mask."""
        return {"input_ids": [text] if text else []}

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the segments of a text begin and end, without the space between them.

        Raises
        ------
        InvalidArgumentError
            If a segment of the user's function is empty, or is not in the text behind the one
            before it.
        InvalidArgumentTypeError
            If the function does not return texts.
        """
        if not callable(self.segments):
            return [match.span() for match in re.finditer(PATTERNS[self.segments], text)]
        spans, end = [], 0
        for number, segment in enumerate(self.segments(text)):
            if not isinstance(segment, str):
                raise InvalidArgumentTypeError(
                    f"segments(text) must return a list of texts; entry {number} is a "
                    f"{type(segment).__name__}."
                )
            inside = segment.strip()
            start = text.find(inside, end)
            if not inside or start < 0:
                raise InvalidArgumentError(
                    f"segments(text) returned {segment!r} as entry {number}, which is "
                    f"{'empty' if not inside else 'not in the text behind the entries before it'}. "
                    "Return the segments in their order, as they are in the text."
                )
            end = start + len(inside)
            spans.append((start, end))
        return spans
