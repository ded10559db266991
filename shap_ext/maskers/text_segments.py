"""Texts masked by words, sentences or paragraphs."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..inputs.masked_rows import Mask, MaskerRow
from ..shap_internals import SavedByArguments

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
                    f"{'empty' if not inside else 'not in the text after the entries before it'}. "
                    "Return the segments in their order, as they are in the text."
                )
            end = start + len(inside)
            spans.append((start, end))
        return spans


class TextSegments(SavedByArguments, shap.maskers.Text):  # type: ignore[misc] # shap is untyped
    """Masks texts by words, sentences or paragraphs: the segments are the features, not tokens.

    A word has one attribution, of however many tokens it is for the model. No tokenizer is needed:
    the model gets texts. Explanations are those of `shap.maskers.Text`, for `shap.plots.text`.

    Parameters
    ----------
    segments : {"words", "sentences", "paragraphs"} or function
        The kind of the segments; or a function from a text to the list of its segments, such as
        `nltk.sent_tokenize`, or `jieba.lcut` for Chinese words. Words end at spaces; sentences at
        full stops before a space, so that abbreviations end them, too; paragraphs at empty lines.
    mask_token : str
        What stands for an absent segment, such as `tokenizer.mask_token`; "" leaves it out.
    collapse_mask_token : bool
        Whether one `mask_token` stands for several absent segments in a row.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If an argument cannot be used; or, before the first call of the model, if a text has no
        segments.

    Examples
    --------
    >>> import shap
    >>> import shap_ext
    >>> mentions = lambda texts: [float("not good" in text) for text in texts]
    >>> masker = shap_ext.maskers.TextSegments("words", mask_token="[MASK]")
    >>> explanation = shap.Explainer(mentions, masker, algorithm="enumeration")(["It is not good."])
    >>> dict(zip(explanation.feature_names[0], explanation.values[0].tolist()))
    {'It': 0.0, 'is': 0.0, 'not': 0.5, 'good.': 0.5}
    """

    def __init__(
        self,
        segments: str | Callable[[str], Iterable[str]] = "words",
        mask_token: str = "...",
        collapse_mask_token: bool = True,
    ) -> None:
        if not isinstance(mask_token, str):
            raise InvalidArgumentTypeError(
                f"mask_token must be a text; got {type(mask_token).__name__}. A tokenizer has its "
                'own as tokenizer.mask_token; "" leaves absent segments out.'
            )
        super().__init__(TextSegmentation(segments), mask_token or "...", collapse_mask_token)
        self.mask_token, self.segments = mask_token, segments

    def row(self, text: str, name: str = "the text") -> MaskerRow:
        """Return a text with a copy of the masker, which stores the latest text."""
        if not isinstance(text, str):
            raise InvalidArgumentTypeError(
                f"{name} must be a text; got {type(text).__name__}. For several texts of a row "
                "pass a shap.maskers.Composite."
            )
        if not self.tokenizer.spans(text):
            raise InvalidArgumentError(
                f"{name} is {str(text)!r}, which has no {_kind(self.segments)} to "
                "explain. Leave it out."
            )
        own = copy.copy(self)
        own._s = None
        return MaskerRow((text,), own, is_own=True)

    def token_segments(self, s: str) -> tuple[list[str], list[str]]:
        """Return the segments of a text with the space around them, and without it."""
        spans = self.tokenizer.spans(s)
        cuts = [0, *(start for start, _ in spans[1:]), len(s)]
        around = [s[start:end] for start, end in pairwise(cuts)]
        return around, [s[start:end] for start, end in spans]

    def __call__(self, mask: Mask | bool, s: str) -> tuple[npt.NDArray[Any]]:
        """Return the text with its absent segments masked, (1,)."""
        is_present = self._standardize_mask(mask, s)
        self._update_s_cache(s)
        pieces: list[tuple[str, str]] = []  # each with the space behind it
        begin, end, was_masked = "", "", False
        for place, (around, inside) in enumerate(
            zip(self._segments_s, self._tokenized_s, strict=True)
        ):
            before, end = around.split(inside, 1)
            begin = begin if place else before
            if not (is_present[place] or self.mask_token):
                continue
            if was_masked and not is_present[place] and self.collapse_mask_token:
                pieces.pop()
            pieces.append((inside if is_present[place] else self.mask_token, end))
            was_masked = not is_present[place]
        if pieces:
            pieces[-1] = (pieces[-1][0], end)
        masked = begin + "".join(piece + space for piece, space in pieces)
        return (np.array([masked]),)


def _kind(segments: str | Callable[..., Any]) -> str:
    """Return what the segments of a text are called."""
    return "segments" if callable(segments) else segments
