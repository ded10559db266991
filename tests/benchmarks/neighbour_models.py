"""Models and inputs of the benchmark on features with neighbours (Chen et al., ICLR 2019, §5).

Smaller than the paper's, because the data at hand are: word and character CNNs, a bidirectional
LSTM, and CNNs for images of two classes.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

CASES = ("imdb", "ag_news", "yahoo", "mnist", "cifar10")
_SEED = 2019
_TEST_SHARE = 0.2
_WORD_SPREAD = 0.05
_RATES = {"yahoo": 4e-3}
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/|_@#$%&*+=<>()[]{}\n "


@dataclass(frozen=True)
class Item:
    """One input to explain.

    Attributes
    ----------
    inputs : Tensor, (1, …)
        The input.
    baseline : Tensor, (1, …)
        What absent players become.
    mask : Tensor, (1, …)
        The player of each number.
    n_players : int
        How many there are.
    shape : tuple of int
        The line or the grid of the players.
    """

    inputs: Tensor
    baseline: Tensor
    mask: Tensor
    n_players: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A trained model, its accuracy on held-out data, and inputs of these."""

    name: str
    title: str
    model: nn.Module
    accuracy: float
    items: list[Item]

    @property
    def is_text(self) -> bool:
        """Whether the players are words."""
        return len(self.items[0].shape) == 1


class WordCNN(nn.Module):
    """Embedding, one convolution of three words, the largest of each filter, a hidden layer."""

    def __init__(self, n_words: int, n_classes: int, width: int = 250) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, 50, padding_idx=0)
        self.convolution = nn.Conv1d(50, width, 3, padding=1)
        self.dropout = nn.Dropout(0.5)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, n_classes)

    def forward(self, words: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        found = torch.relu(self.convolution(self.embedding(words).movedim(1, 2))).amax(2)
        logits: Tensor = self.head(self.dropout(torch.relu(self.hidden(self.dropout(found)))))
        return logits


class CharacterCNN(nn.Module):
    """Three convolutions over characters, as in Zhang et al. (2015) but narrower and fewer."""

    def __init__(self, n_letters: int, n_classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_letters, 24, padding_idx=0)
        self.layers = nn.Sequential(
            nn.Conv1d(24, 96, 7, padding=3), nn.ReLU(), nn.MaxPool1d(3),
            nn.Conv1d(96, 96, 5, padding=2), nn.ReLU(), nn.MaxPool1d(3),
            nn.Conv1d(96, 96, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(96, n_classes)

    def forward(self, letters: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        found = self.layers(self.embedding(letters).movedim(1, 2)).amax(2)
        logits: Tensor = self.head(self.dropout(found))
        return logits


class BiLSTM(nn.Module):
    """A bidirectional LSTM over word embeddings, its last states into the output."""

    def __init__(self, n_words: int, n_classes: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, 100, padding_idx=0)
        self.lstm = nn.LSTM(100, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(2 * width, n_classes)

    def forward(self, words: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        states, _ = self.lstm(self.dropout(self.embedding(words)))
        logits: Tensor = self.head(self.dropout(states.amax(1)))
        return logits


def image_network(shape: Sequence[int], widths: Sequence[int]) -> nn.Module:
    """Return convolutions of 5 × 5 with a pool after each, and a linear layer, for two classes."""
    layers: list[nn.Module] = []
    before, side = shape[0], shape[1]
    for width in widths:
        layers += [nn.Conv2d(before, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        before, side = width, side // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * side**2, 2))


def build(name: str, data: Path, cache: Path, n_items: int) -> Case:
    """Return a case: read its data, train its model or read it from the cache, pick inputs."""
    if name in ("mnist", "cifar10"):
        return _image_case(name, data, cache, n_items)
    return _text_case(name, data, cache, n_items)


# --- texts ---


def _text_case(name: str, data: Path, cache: Path, n_items: int) -> Case:
    folder = {"yahoo": "yahoo_answers"}.get(name, name)
    table = pd.read_csv(data / folder / f"{folder}.csv.gz")
    texts = table["text"] if "title" not in table else table["title"] + ". " + table["text"]
    classes = sorted(table["label"].unique())
    labels = torch.tensor([classes.index(label) for label in table["label"]])
    words = [_words(text) for text in texts]
    train, test = _split(len(words))
    if name == "ag_news":
        coded, masks = _letters(words, most=40)
        network: nn.Module = CharacterCNN(len(_LETTERS) + 1, len(classes))
        title = "AG's News, character CNN"
    else:
        most = 400 if name == "imdb" else 100
        vocabulary = _vocabulary([words[place] for place in train])
        coded = [torch.tensor([vocabulary.get(w, 1) for w in own[:most]]) for own in words]
        masks = [torch.arange(len(own)) for own in coded]
        kind = WordCNN if name == "imdb" else BiLSTM
        network = kind(len(vocabulary) + 2, len(classes))
        title = "IMDB, word CNN" if name == "imdb" else "Yahoo! Answers, biLSTM"

    def batch(places: Sequence[int]) -> Tensor:
        return nn.utils.rnn.pad_sequence([coded[p] for p in places], batch_first=True)

    model = _trained(network, batch, labels, train, cache, name)
    accuracy = _accuracy(model, batch, labels, test)
    longer = [place for place in test if int(masks[place].max()) >= 7]
    items = []
    for place in longer[:n_items]:
        n_players = int(masks[place].max()) + 1
        own = coded[place][None]
        items.append(Item(own, torch.zeros_like(own), masks[place][None], n_players, (n_players,)))
    return Case(name, title, model, accuracy, items)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+(?:'\w+)?|[^\w\s]", text.replace("<br />", " ").lower()) or ["."]


def _vocabulary(texts: Sequence[Sequence[str]], most: int = 10_000) -> dict[str, int]:
    """Number the words that come up twice or more; 0 is padding, 1 is all others."""
    counts = Counter(word for text in texts for word in text)
    return {word: n + 2 for n, (word, count) in enumerate(counts.most_common(most)) if count > 1}


def _letters(words: Sequence[Sequence[str]], most: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the characters of each text, and the word that each belongs to."""
    number = {letter: n + 1 for n, letter in enumerate(_LETTERS)}
    coded, masks = [], []
    for text in words:
        pairs = [
            (number.get(letter, len(_LETTERS)), place)
            for place, word in enumerate(text[:most])
            for letter in f"{word} "
        ]
        coded.append(torch.tensor([letter for letter, _ in pairs]))
        masks.append(torch.tensor([place for _, place in pairs]))
    return coded, masks


# --- images ---


def _image_case(name: str, data: Path, cache: Path, n_items: int) -> Case:
    if name == "mnist":
        stored = np.load(data / "mnist5k" / "mnist5k.npz")
        images, labels = stored["images"][:, None], stored["labels"]
        pair, widths, title = (3, 8), (8, 16), "MNIST 3 and 8, CNN"
    else:
        parts = [np.load(data / "cifar10" / f"cifar10_{part}.npz") for part in ("train", "test")]
        images = np.moveaxis(np.concatenate([part["images"] for part in parts]), 3, 1)
        labels = np.concatenate([part["labels"] for part in parts])
        names = parts[0]["class_names"].tolist()
        pair, widths = (names.index("deer"), names.index("horse")), (32, 48, 64)
        title = "CIFAR-10 deer and horse, CNN"
    chosen = np.isin(labels, pair)
    x = torch.tensor(images[chosen] / 255.0, dtype=torch.float32)
    y = torch.tensor((labels[chosen] == pair[1]).astype(np.int64))
    train, test = _split(len(x))
    model = _trained(
        image_network(x.shape[1:], widths), lambda places: x[list(places)], y, train, cache, name
    )
    accuracy = _accuracy(model, lambda places: x[list(places)], y, test)
    height, width = x.shape[2:]
    mask = torch.arange(height * width).reshape(1, 1, height, width)
    # The paper's reference: the average strength of the pixels.
    average = x[train].mean(dim=(0, 2, 3)).reshape(1, -1, 1, 1).expand(1, *x.shape[1:])
    items = [
        Item(x[place][None], average, mask, height * width, (height, width))
        for place in test[:n_items]
    ]
    return Case(name, title, model, accuracy, items)


# --- training ---


def _split(n: int) -> tuple[list[int], list[int]]:
    order = np.random.default_rng(_SEED).permutation(n).tolist()
    n_test = int(n * _TEST_SHARE)
    return order[n_test:], order[:n_test]


def _trained(
    network: nn.Module,
    batch: Callable[[Sequence[int]], Tensor],
    labels: Tensor,
    train: Sequence[int],
    cache: Path,
    name: str,
) -> nn.Module:
    """Return the network trained by Adam, or as it was kept."""
    key = hashlib.sha256(Path(__file__).read_bytes() + torch.__version__.encode()).hexdigest()
    path = cache / f"neighbours-{name}-{key[:12]}.pt"
    if path.is_file():
        network.load_state_dict(torch.load(path, weights_only=True))
        return network.eval()
    generator = torch.Generator().manual_seed(_SEED)
    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        for layer in network.modules():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
            if isinstance(layer, nn.Embedding):  # of few texts: words start near each other
                nn.init.normal_(layer.weight, std=_WORD_SPREAD)
                nn.init.zeros_(layer.weight.data[0])
        optimizer = torch.optim.Adam(network.parameters(), lr=_RATES.get(name, 1e-3))
        for _ in range(_epochs(name)):
            for some in torch.randperm(len(train), generator=generator).split(32):
                places = [train[place] for place in some.tolist()]
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(batch(places)), labels[places])
                torch.autograd.backward(loss)
                optimizer.step()
    cache.mkdir(parents=True, exist_ok=True)
    torch.save(network.state_dict(), path)
    return network.eval()


def _epochs(name: str) -> int:
    return {"imdb": 12, "ag_news": 10, "yahoo": 20, "mnist": 12, "cifar10": 15}[name]


def _accuracy(
    model: nn.Module,
    batch: Callable[[Sequence[int]], Tensor],
    labels: Tensor,
    test: Sequence[int],
) -> float:
    hits = 0
    with torch.no_grad():
        for start in range(0, len(test), 64):
            places = test[start : start + 64]
            hits += int((model(batch(places)).argmax(1) == labels[places]).sum())
    return hits / len(test)
