"""Convolutional networks: of digits, with squares as players, and of film reviews, with words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from coalition_games import IntArray
from data_files import data_file, in_turns, parts
from explained_models import ExplainedModel
from network_training import Explained, InputArray, LabelArray, accuracy, trained_network
from torch import Tensor, nn

# --- digits ---

DIGITS_FILE = "mnist5k/mnist5k.npz"
SIDE = 28
COMPARED = (3, 8)
"""Explained is the logit of an eight less that of a three, on images of both."""


def digits(folder: Path, cache: Path, n_rows: int, square: int) -> ExplainedModel:
    """Return threes and eights of the test part; absent squares take the mean training image.

    Parameters
    ----------
    square : int
        Pixels along the side of a player: 4 makes 49 players, 2 makes 196.
    """
    images, labels = _read(folder)
    places = parts(len(images))
    inputs = {part: images[place] for part, place in places.items()}
    shown = {part: labels[place] for part, place in places.items()}
    network = trained_network("digits", _digit_network, inputs, shown, cache)
    is_eight = (labels == COMPARED[1]).astype(np.int64)
    compared = places["test"][np.isin(labels[places["test"]], COMPARED)]
    players = _player_of_pixel(square)
    names = [f"pixel {pixel}" for pixel in range(SIDE**2)]
    return ExplainedModel(
        model=Explained(network, classes=COMPARED).eval().requires_grad_(False),
        rows=images[in_turns(is_eight, compared)[:n_rows]],
        reference=inputs["training"].mean(axis=0, keepdims=True),
        column_names=names,
        groups={
            f"square {player}": [names[pixel] for pixel in np.flatnonzero(players == player)]
            for player in range(players.max() + 1)
        },
        player_of_column=players,
        accuracy=accuracy(network, inputs["test"], shown["test"]),
    )


def training_images(folder: Path) -> InputArray:
    """Return the threes and eights that the network was trained on, (R, 784)."""
    images, labels = _read(folder)
    training = parts(len(images))["training"]
    return images[training[np.isin(labels[training], COMPARED)]]


def _read(folder: Path) -> tuple[InputArray, LabelArray]:
    with np.load(data_file(folder, DIGITS_FILE)) as file:
        images = (file["images"].reshape(-1, SIDE**2) / 255).astype(np.float32)
        return images, file["labels"].astype(np.int64)


def _player_of_pixel(square: int) -> IntArray:
    """Return the number of the square that each pixel lies in, row by row, (784,)."""
    band = np.arange(SIDE) // square
    return (band[:, None] * (SIDE // square) + band).ravel()


def _digit_network() -> nn.Sequential:
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, 8, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


# --- film reviews ---

REVIEWS_FILE = "imdb/imdb.csv.gz"
N_WORDS = 64
"""Words that the network reads, the players."""

_N_DIMENSIONS = 32
_ABSENT, _UNKNOWN, _FIRST_WORD = 0, 1, 2
"""Tokens: an absent word, a word that is not in the vocabulary, and the vocabulary."""

_WORD = re.compile(r"[a-z0-9']+")

TokenArray = npt.NDArray[np.int64]


class LostWords(nn.Module):
    """In training, a fifth of the words is absent, so that the network knows what that means."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the tokens, (B, N), some of them absent."""
        if not self.training:
            return tokens
        return torch.where(torch.rand(tokens.shape) < 0.2, _ABSENT, tokens)


class Reader(nn.Module):
    """The network behind the embedding: convolutions of three words, the largest of each."""

    def __init__(self) -> None:
        super().__init__()
        self.of_three = nn.Conv1d(_N_DIMENSIONS, 32, 3)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(32, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, (B, 2), of embedded words, (B, N · dimensions) or (B, N, …)."""
        embedded = x.reshape(len(x), N_WORDS, _N_DIMENSIONS)
        strongest = torch.relu(self.of_three(embedded.transpose(1, 2))).amax(dim=2)
        logits: Tensor = self.last(self.drop(strongest))
        return logits


def film_reviews(folder: Path, cache: Path, n_rows: int) -> ExplainedModel:
    """Return test reviews, embedded word by word; an absent word has an embedding of its own.

    The network learns from all stretches of 64 words; the first 64 words of a review are explained.
    """
    table = pd.read_csv(data_file(folder, REVIEWS_FILE))
    texts = [_WORD.findall(text.lower().replace("<br />", " ")) for text in table["text"]]
    positive = (table["label"] == "positive").to_numpy(np.int64)
    places = parts(len(texts))
    vocabulary = _vocabulary([texts[place] for place in places["training"]])

    stretches = {part: _stretches(texts, positive, places[part], vocabulary) for part in places}
    tokens = {part: found[0] for part, found in stretches.items()}
    labels = {part: found[1] for part, found in stretches.items()}
    n_tokens = _FIRST_WORD + len(vocabulary)
    network = trained_network("imdb", lambda: _word_network(n_tokens), tokens, labels, cache)
    embedding, reader = network[1], network[2]  # type: ignore[index]
    long_enough = [place for place in places["test"] if len(texts[place]) >= N_WORDS][:n_rows]
    first = np.array([_tokens(texts[place][:N_WORDS], vocabulary) for place in long_enough])
    return _explained_reader(
        embedding, reader, first, accuracy(network, tokens["test"], labels["test"])
    )


def _word_network(n_tokens: int) -> nn.Sequential:
    return nn.Sequential(LostWords(), nn.Embedding(n_tokens, _N_DIMENSIONS), Reader())


def _explained_reader(
    embedding: nn.Module, reader: nn.Module, first: TokenArray, share_right: float
) -> ExplainedModel:
    groups = {
        f"word {word}": [f"word {word}, {dimension}" for dimension in range(_N_DIMENSIONS)]
        for word in range(N_WORDS)
    }
    with torch.no_grad():
        rows = embedding(torch.as_tensor(first)).flatten(1).numpy()
        absent = embedding(torch.full((1, N_WORDS), _ABSENT)).flatten(1).numpy()
    return ExplainedModel(
        model=Explained(reader).eval().requires_grad_(False),
        rows=rows,
        reference=absent,
        column_names=[name for columns in groups.values() for name in columns],
        groups=groups,
        player_of_column=np.repeat(np.arange(N_WORDS), _N_DIMENSIONS),
        accuracy=share_right,
    )


def _vocabulary(texts: Sequence[Sequence[str]]) -> dict[str, int]:
    """Number the words that occur at least three times."""
    counts = Counter(word for text in texts for word in text)
    frequent = sorted(word for word, count in counts.items() if count >= 3)
    return {word: number for number, word in enumerate(frequent, start=_FIRST_WORD)}


def _stretches(
    texts: Sequence[Sequence[str]],
    labels: LabelArray,
    places: npt.NDArray[np.intp],
    vocabulary: dict[str, int],
) -> tuple[TokenArray, LabelArray]:
    """Cut the texts into stretches of 64 words; what is left of a text is not used."""
    found = [
        (_tokens(texts[place][start : start + N_WORDS], vocabulary), labels[place])
        for place in places
        for start in range(0, len(texts[place]) - N_WORDS + 1, N_WORDS)
    ]
    return np.array([tokens for tokens, _ in found]), np.array([label for _, label in found])


def _tokens(words: Sequence[str], vocabulary: dict[str, int]) -> list[int]:
    return [vocabulary.get(word, _UNKNOWN) for word in words]
