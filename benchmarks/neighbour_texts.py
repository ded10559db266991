"""Texts as numbers: words, characters, and vectors of words from their neighbours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse
import torch
from sklearn.decomposition import TruncatedSVD
from torch import Tensor

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/|_@#$%&*+=<>()[]{}\n "
_WINDOW = 8
_DIMENSIONS = 100
_LENGTH = 10.0
"""Of a word's vector: an LSTM whose weights start small wants large inputs."""

Text = list[str]


def texts(data: Path, name: str) -> tuple[list[Text], Tensor, int]:
    """Return the words of each text, its class, and the number of classes."""
    folder = {"yahoo": "yahoo_answers"}.get(name, name)
    table = pd.read_csv(data / folder / f"{folder}.csv.gz")
    whole = table["text"] if "title" not in table else table["title"] + ". " + table["text"]
    classes = sorted(table["label"].unique())
    labels = torch.tensor([classes.index(label) for label in table["label"]])
    return [_words(text) for text in whole], labels, len(classes)


def _words(text: str) -> Text:
    return re.findall(r"\w+(?:'\w+)?|[^\w\s]", text.replace("<br />", " ").lower()) or ["."]


def vocabulary(read: Sequence[Text], most: int = 20_000) -> dict[str, int]:
    """Number the words that come up twice or more; 0 is padding, 1 is all others."""
    counts = Counter(word for text in read for word in text)
    return {word: n + 2 for n, (word, count) in enumerate(counts.most_common(most)) if count > 1}


def letters(words: Sequence[Text], most: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the characters of each text, and the word that each belongs to."""
    number = {letter: n + 1 for n, letter in enumerate(LETTERS)}
    coded, masks = [], []
    for text in words:
        pairs = [
            (number.get(letter, len(LETTERS)), place)
            for place, word in enumerate(text[:most])
            for letter in f"{word} "
        ]
        coded.append(torch.tensor([letter for letter, _ in pairs]))
        masks.append(torch.tensor([place for _, place in pairs]))
    return coded, masks


def co_occurrence_vectors(
    read: Sequence[Text], number: Mapping[str, int]
) -> npt.NDArray[np.float32]:
    """Return a vector for each word, (V, D), by the words that stand around it.

    Singular vectors of the positive pointwise mutual information, smoothed as by Levy, Goldberg
    and Dagan (2015). Needs no labels. Padding and unknown words get zeros.
    """
    size = max(number.values()) + 1
    counts = _co_occurrences([np.array([number[w] for w in t if w in number]) for t in read], size)
    often = np.asarray(counts.sum(axis=1)).ravel() + 1e-9
    around = often**0.75 / (often**0.75).sum()
    pairs = counts.tocoo()
    information = np.log(pairs.data / (often[pairs.row] * around[pairs.col]))
    kept = information > 0
    matrix = scipy.sparse.csr_matrix(
        (information[kept], (pairs.row[kept], pairs.col[kept])), shape=(size, size)
    )
    svd = TruncatedSVD(_DIMENSIONS, random_state=0)
    vectors = svd.fit_transform(matrix) / np.sqrt(svd.singular_values_)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: npt.NDArray[Any] = (_LENGTH * vectors / np.maximum(lengths, 1e-9)).astype(np.float32)
    return scaled


def _co_occurrences(coded: Sequence[npt.NDArray[np.intp]], size: int) -> scipy.sparse.csr_matrix:
    """Count how often two words stand within the window, (V, V)."""
    first, second = [], []
    for gap in range(1, _WINDOW + 1):
        first += [text[:-gap] for text in coded]
        second += [text[gap:] for text in coded]
    row, column = np.concatenate(first), np.concatenate(second)
    shape = (size, size)
    one_way = scipy.sparse.coo_matrix((np.ones(len(row)), (row, column)), shape=shape).tocsr()
    return one_way + one_way.T
