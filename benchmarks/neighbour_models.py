"""Models and inputs of the experiments on features with neighbours (Chen et al., ICLR 2019, 5).

Smaller than the paper's, because the data at hand are: word and character CNNs, a bidirectional
LSTM, and CNNs for images of two classes. Texts are numbers of words or characters; vectors of words
follow from their neighbours.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse
import torch
from games import FloatArray
from network_training import kept_or_trained
from sklearn.decomposition import TruncatedSVD
from torch import Tensor, nn

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
    return (_LENGTH * vectors / np.maximum(lengths, 1e-9)).astype(np.float32)


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


CASES = ("imdb", "ag_news", "yahoo", "mnist", "cifar10")
_SEED = 2019
_TEST_SHARE = 0.2
_BATCH = 32


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes
    ----------
    epochs, rate : int, float
        Passes over the data, and the largest learning rate.
    words_left_out : float
        Share of the words. Texts are few, and networks are to expect absent words.
    word_spread : float
        Standard deviation of the numbers with which words start, where they are learned.
    flips : bool
        Whether images are mirrored at random.
    """

    epochs: int
    rate: float
    words_left_out: float = 0.0
    word_spread: float = 1.0
    flips: bool = False


_RECIPES = {
    "imdb": Recipe(12, 2e-3, words_left_out=0.15, word_spread=0.05),
    "ag_news": Recipe(15, 4e-3, words_left_out=0.15),
    "yahoo": Recipe(25, 4e-3, words_left_out=0.2),
    "mnist": Recipe(20, 4e-3),
    "cifar10": Recipe(60, 1e-3, flips=True),
}


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


Contender = Callable[[nn.Module, Item, int, int], tuple[FloatArray, int]]
"""Takes model, input, budget and seed; returns attributions, (M,), and the evaluations spent."""


def ours(kind: type[Any], **options: Any) -> Contender:
    """Return a contender by one of our attributions of captum."""

    def explain(model: nn.Module, item: Item, budget: int, seed: int) -> tuple[FloatArray, int]:
        attribution = kind(model, seed=seed, value_function="log_probability", **options)
        attribution.attribute(
            item.inputs, baselines=item.baseline, feature_mask=item.mask, n_samples=budget
        )
        made = attribution.last_estimate
        return made.values[0, :, 0], int(made.evaluations[0])

    return explain


def masked(item: Item, present: npt.NDArray[np.bool_]) -> torch.Tensor:
    """Return the input with absent players at the baseline, for each coalition, (P, M)."""
    where = torch.from_numpy(present)[:, item.mask[0].flatten()]
    spread = where.reshape(-1, *item.mask.shape[1:])
    return torch.where(spread, item.inputs, item.baseline)


def log_probabilities(
    model: nn.Module, item: Item, present: npt.NDArray[np.bool_], target: int
) -> FloatArray:
    """Return the log-probability of a class for each coalition, (P,)."""
    with torch.no_grad():
        parts = [
            torch.log_softmax(model(masked(item, some)).double(), dim=1)[:, target]
            for some in np.array_split(present, -(-len(present) // 256))
        ]
    return torch.cat(parts).numpy()


def log_odds(
    model: nn.Module, item: Item, present: npt.NDArray[np.bool_], target: int
) -> FloatArray:
    """Return the log-odds of a class for each coalition, (P,)."""
    logs = log_probabilities(model, item, present, target)
    return logs - np.log(np.maximum(-np.expm1(logs), 1e-15))


# --- networks ---


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
        return self.head(self.dropout(torch.relu(self.hidden(self.dropout(found)))))


class CharacterCNN(nn.Module):
    """Convolutions of four, six and eight characters, the largest of each filter, a linear layer.

    One layer where Zhang et al. (2015) have six, for a hundredth of their texts.
    """

    def __init__(self, n_letters: int, n_classes: int, width: int = 160) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_letters, 16, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(16, width, length, padding=length // 2) for length in (4, 6, 8)
        )
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(3 * width, n_classes)

    def forward(self, letters: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        embedded = self.embedding(letters).movedim(1, 2)
        found = [torch.relu(layer(embedded)).amax(2) for layer in self.convolutions]
        return self.head(self.dropout(torch.cat(found, 1)))


class BiLSTM(nn.Module):
    """A bidirectional LSTM over given word vectors, its mean state over the words there are."""

    def __init__(self, vectors: Tensor, n_classes: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=True, padding_idx=0)  # type: ignore[no-untyped-call] # torch
        self.lstm = nn.LSTM(vectors.shape[1], width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(2 * width, n_classes)

    def forward(self, words: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        states, _ = self.lstm(self.dropout(self.embedding(words)))
        is_there = (words != 0)[:, :, None]
        mean = (states * is_there).sum(1) / is_there.sum(1).clamp(min=1)
        return self.head(self.dropout(mean))


def image_network(shape: Sequence[int], widths: Sequence[int]) -> nn.Module:
    """Return convolutions of 5 × 5 with a pool after each, and a linear layer, for two classes."""
    layers: list[nn.Module] = []
    before, side = shape[0], shape[1]
    for width in widths:
        layers += [nn.Conv2d(before, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        before, side = width, side // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * side**2, 2))


def build(name: str, data: Path, cache: Path, n_items: int, seed: int = 0) -> Case:
    """Return a case: read its data, train its model or read it from the cache, pick inputs.

    Another seed is another split, another model and other inputs.
    """
    if name in ("mnist", "cifar10"):
        return _image_case(name, data, cache, n_items, seed)
    return _text_case(name, data, cache, n_items, seed)


# --- texts ---


def _text_case(name: str, data: Path, cache: Path, n_items: int, seed: int) -> Case:
    words, labels, n_classes = texts(data, name)
    train, test = _split(len(words), seed)
    network: nn.Module
    if name == "ag_news":
        coded, masks = letters(words, most=40)
        network, title = CharacterCNN(len(LETTERS) + 1, n_classes), "AG's News, character CNN"
    else:
        read = [words[place] for place in train]
        if name == "yahoo":  # too few to learn words from: their neighbours in all texts tell more
            read += [text for other in ("imdb", "ag_news") for text in texts(data, other)[0]]
        number, most = vocabulary(read), 400 if name == "imdb" else 100
        coded = [torch.tensor([number.get(w, 1) for w in own[:most]]) for own in words]
        masks = [torch.arange(len(own)) for own in coded]
        if name == "imdb":
            network, title = WordCNN(len(number) + 2, n_classes), "IMDB, word CNN"
        else:
            vectors = torch.from_numpy(co_occurrence_vectors(read, number))
            network, title = BiLSTM(vectors, n_classes), "Yahoo! Answers, biLSTM"

    def batch(places: Sequence[int], recipe: Recipe | None = None) -> Tensor:
        padded = nn.utils.rnn.pad_sequence([coded[p] for p in places], batch_first=True)
        if recipe is None:
            return padded
        word = nn.utils.rnn.pad_sequence([masks[p] for p in places], batch_first=True)
        # Anything between none and twice as many of the words of each text.
        share = 2 * recipe.words_left_out * torch.rand(len(places), 1)
        is_out = torch.rand(len(places), int(word.max()) + 1) < share
        return torch.where(is_out.gather(1, word), 0, padded)

    model = _trained(network, batch, labels, train, cache, name, seed)
    accuracy = _accuracy(model, batch, labels, test)
    longer = [place for place in test if int(masks[place].max()) >= 7]
    items = []
    for place in longer[:n_items]:
        n_players = int(masks[place].max()) + 1
        own = coded[place][None]
        items.append(Item(own, torch.zeros_like(own), masks[place][None], n_players, (n_players,)))
    return Case(name, title, model, accuracy, items)


# --- images ---


def _image_case(name: str, data: Path, cache: Path, n_items: int, seed: int) -> Case:
    if name == "mnist":
        stored = np.load(data / "mnist5k" / "mnist5k.npz")
        images, labels = stored["images"][:, None], stored["labels"]
        widths: tuple[int, ...] = (8, 16)
        pair, title = (3, 8), "MNIST 3 and 8, CNN"
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
    train, test = _split(len(x), seed)

    def batch(places: Sequence[int], recipe: Recipe | None = None) -> Tensor:
        chosen = x[list(places)]
        if recipe is None or not recipe.flips:
            return chosen
        return torch.where(torch.rand(len(places), 1, 1, 1) < 0.5, chosen.flip(3), chosen)

    model = _trained(image_network(x.shape[1:], widths), batch, y, train, cache, name, seed)
    accuracy = _accuracy(model, batch, y, test)
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


def _split(n: int, seed: int = 0) -> tuple[list[int], list[int]]:
    order = np.random.default_rng(_SEED + seed).permutation(n).tolist()
    n_test = int(n * _TEST_SHARE)
    return order[n_test:], order[:n_test]


def _trained(
    network: nn.Module,
    batch: Callable[..., Tensor],
    labels: Tensor,
    train: Sequence[int],
    cache: Path,
    name: str,
    seed: int,
) -> nn.Module:
    """Return the network trained by AdamW, or as it was kept."""
    code = Path(__file__).read_bytes()
    key = hashlib.sha256(code + f"{torch.__version__} {seed}".encode())
    path = cache / f"neighbours-{name}-{key.hexdigest()[:12]}.pt"
    recipe = _RECIPES[name]

    def learn(network: nn.Module) -> None:
        _start_anew(network, recipe)
        network.train()
        parameters = [one for one in network.parameters() if one.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=recipe.rate, weight_decay=0.01)
        n_steps = recipe.epochs * -(-len(train) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, recipe.rate, n_steps, pct_start=0.2
        )
        for _ in range(recipe.epochs):
            for some in torch.randperm(len(train)).split(_BATCH):  # type: ignore[no-untyped-call] # torch
                places = [train[place] for place in some.tolist()]
                optimizer.zero_grad()
                logits = network(batch(places, recipe))
                nn.functional.cross_entropy(logits, labels[places]).backward()  # type: ignore[no-untyped-call] # torch
                optimizer.step()
                schedule.step()

    return kept_or_trained(lambda: network, path, _SEED + seed, learn)


def _start_anew(network: nn.Module, recipe: Recipe) -> None:
    """Draw all weights that are learned, whatever was drawn before."""
    for layer in network.modules():
        is_learned = all(one.requires_grad for one in layer.parameters(recurse=False))
        reset = getattr(layer, "reset_parameters", None)
        if is_learned and callable(reset):
            reset()
            if isinstance(layer, nn.Embedding):
                layer.weight.data *= recipe.word_spread


def _accuracy(
    model: nn.Module,
    batch: Callable[..., Tensor],
    labels: Tensor,
    test: Sequence[int],
) -> float:
    hits = 0
    with torch.no_grad():
        for start in range(0, len(test), 64):
            places = test[start : start + 64]
            hits += int((model(batch(places)).argmax(1) == labels[places]).sum())
    return hits / len(test)
