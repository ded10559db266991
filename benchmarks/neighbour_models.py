"""Models and inputs of the experiments on features with neighbours (Chen et al., ICLR 2019, 5).

Smaller than the paper's, because the data at hand are: word and character CNNs, a bidirectional
LSTM, and CNNs for images of two classes. Texts are numbers of words or characters; vectors of words
follow from their neighbours.
"""

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


def co_occurrence_vectors(
    read: Sequence[Text], number: Mapping[str, int]
) -> npt.NDArray[np.float32]:
    """Return a vector for each word, (V, D), by the words that stand around it.

    Singular vectors of the positive pointwise mutual information, smoothed as by Levy, Goldberg
    and Dagan (2015). Needs no labels. Padding and unknown words get zeros.
    """
    size = max(number.values()) + 1
    coded = [np.array([number[w] for w in t if w in number]) for t in read]
    pairs_within = [(t[:-gap], t[gap:]) for gap in range(1, _WINDOW + 1) for t in coded]
    places = tuple(map(np.concatenate, zip(*pairs_within, strict=True)))
    ones = np.ones(len(places[0]))
    one_way = scipy.sparse.coo_matrix((ones, places), shape=(size, size)).tocsr()
    counts = one_way + one_way.T
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


Contender = Callable[[nn.Module, Item, int, int], FloatArray]
"""Takes model, input, budget and seed; returns attributions, (M,)."""


def ours(kind: type[Any], **options: Any) -> Contender:
    """Return a contender by one of our attributions of captum."""

    def explain(model: nn.Module, item: Item, budget: int, seed: int) -> FloatArray:
        attribution = kind(model, seed=seed, value_function="log_probability", **options)
        attribution.attribute(
            item.inputs, baselines=item.baseline, feature_mask=item.mask, n_samples=budget
        )
        return attribution.last_estimate.values[0, :, 0]

    return explain


def log_probabilities(
    model: nn.Module, item: Item, present: npt.NDArray[np.bool_], target: int
) -> FloatArray:
    """Return the log-probability of a class for each coalition, (P,)."""
    of_cells = item.mask[0].flatten()
    found = []
    for some in np.array_split(present, -(-len(present) // 256)):
        where = torch.from_numpy(some)[:, of_cells].reshape(-1, *item.mask.shape[1:])
        with torch.no_grad():
            logits = model(torch.where(where, item.inputs, item.baseline))
        found.append(torch.log_softmax(logits.double(), dim=1)[:, target])
    return torch.cat(found).numpy()


def log_odds(
    model: nn.Module, item: Item, present: npt.NDArray[np.bool_], target: int
) -> FloatArray:
    """Return the log-odds of a class for each coalition, (P,)."""
    logs = log_probabilities(model, item, present, target)
    return logs - np.log(np.maximum(-np.expm1(logs), 1e-15))


# --- networks ---


class TextCNN(nn.Module):
    """Convolutions, the largest of each filter, and one or two linear layers.

    Of words: three of them in each convolution, and a hidden layer. Of characters: four, six and
    eight. One layer where Zhang et al. (2015) have six, for a hundredth of their texts.
    """

    def __init__(
        self, n_tokens: int, n_classes: int, size: int, width: int, lengths: Sequence[int]
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, size, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, width, length, padding=length // 2) for length in lengths
        )
        hidden = [nn.Dropout(0.5), nn.Linear(width, width), nn.ReLU()] if len(lengths) == 1 else []
        self.head = nn.Sequential(
            *hidden, nn.Dropout(0.5), nn.Linear(width * len(lengths), n_classes)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits, (B, classes)."""
        embedded = self.embedding(tokens.long()).movedim(1, 2)
        found = [torch.relu(layer(embedded)).amax(2) for layer in self.convolutions]
        return self.head(torch.cat(found, 1))


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


Batch = Callable[[Sequence[int], bool], Tensor]
"""Places, and whether to learn from them, to inputs."""


def build(name: str, data: Path, cache: Path, n_items: int, seed: int = 0) -> Case:
    """Return a case: read its data, train its model or read it from the cache, pick inputs.

    Another seed is another split, another model and other inputs.
    """
    read = _images if name in ("mnist", "cifar10") else _texts
    title, network, batch, labels, items = read(name, data, n_items, seed)
    train, test = _split(len(labels), seed)
    model = _trained(network, batch, labels, train, cache, name, seed)
    with torch.no_grad():
        parts = [test[start : start + 64] for start in range(0, len(test), 64)]
        told = torch.cat([model(batch(part, False)).argmax(1) for part in parts])
    return Case(name, title, model, float((told == labels[test]).double().mean()), items)


def _texts(
    name: str, data: Path, n_items: int, seed: int
) -> tuple[str, nn.Module, Batch, Tensor, list[Item]]:
    """Return title, network, batches, labels and items of texts."""
    words, labels, n_classes = texts(data, name)
    train, test = _split(len(words), seed)
    network: nn.Module
    if name == "ag_news":
        code = {letter: n + 1 for n, letter in enumerate(LETTERS)}
        spelled = [
            [
                (code.get(letter, len(LETTERS)), n)
                for n, w in enumerate(t[:40])
                for letter in f"{w} "
            ]
            for t in words
        ]
        coded, masks = ([torch.tensor([pair[i] for pair in t]) for t in spelled] for i in (0, 1))
        network = TextCNN(len(LETTERS) + 1, n_classes, 16, 160, (4, 6, 8))
        title = "AG's News, character CNN"
    else:
        read = [words[place] for place in train]
        if name == "yahoo":  # too few to learn words from: their neighbours in all texts tell more
            read += [text for other in ("imdb", "ag_news") for text in texts(data, other)[0]]
        number, most = vocabulary(read), 400 if name == "imdb" else 100
        coded = [torch.tensor([number.get(w, 1) for w in own[:most]]) for own in words]
        masks = [torch.arange(len(own)) for own in coded]
        if name == "imdb":
            network, title = TextCNN(len(number) + 2, n_classes, 50, 250, (3,)), "IMDB, word CNN"
        else:
            vectors = torch.from_numpy(co_occurrence_vectors(read, number))
            network, title = BiLSTM(vectors, n_classes), "Yahoo! Answers, biLSTM"

    def batch(places: Sequence[int], is_learned: bool) -> Tensor:
        padded, word = (
            nn.utils.rnn.pad_sequence([of[place] for place in places], batch_first=True)
            for of in (coded, masks)
        )
        if not is_learned:
            return padded
        # Anything between none and twice as many of the words of each text.
        share = 2 * _RECIPES[name].words_left_out * torch.rand(len(places), 1)
        is_out = torch.rand(len(places), int(word.max()) + 1) < share
        return torch.where(is_out.gather(1, word), 0, padded)

    items = []
    for place in [place for place in test if int(masks[place].max()) >= 7][:n_items]:
        n_players, own = int(masks[place].max()) + 1, coded[place][None]
        items.append(Item(own, torch.zeros_like(own), masks[place][None], n_players, (n_players,)))
    return title, network, batch, labels, items


def _images(
    name: str, data: Path, n_items: int, seed: int
) -> tuple[str, nn.Module, Batch, Tensor, list[Item]]:
    """Return title, network, batches, labels and items of images of two classes."""
    if name == "mnist":
        stored = np.load(data / "mnist5k" / "mnist5k.npz")
        images, labels = stored["images"][:, None], stored["labels"]
        pair, widths, title = (3, 8), [8, 16], "MNIST 3 and 8, CNN"
    else:
        parts = [np.load(data / "cifar10" / f"cifar10_{part}.npz") for part in ("train", "test")]
        images = np.moveaxis(np.concatenate([part["images"] for part in parts]), 3, 1)
        labels = np.concatenate([part["labels"] for part in parts])
        names = parts[0]["class_names"].tolist()
        pair, widths = (names.index("deer"), names.index("horse")), [32, 48, 64]
        title = "CIFAR-10 deer and horse, CNN"
    chosen = np.isin(labels, pair)
    x = torch.tensor(images[chosen] / 255.0, dtype=torch.float32)
    y = torch.tensor((labels[chosen] == pair[1]).astype(np.int64))
    train, test = _split(len(x), seed)

    def batch(places: Sequence[int], is_learned: bool) -> Tensor:
        chosen = x[list(places)]
        if not (is_learned and _RECIPES[name].flips):
            return chosen
        return torch.where(torch.rand(len(places), 1, 1, 1) < 0.5, chosen.flip(3), chosen)

    height, width = x.shape[2:]
    mask = torch.arange(height * width).reshape(1, 1, height, width)
    # The paper's reference: the average strength of the pixels.
    average = x[train].mean(dim=(0, 2, 3)).reshape(1, -1, 1, 1).expand(1, *x.shape[1:])
    items = [
        Item(x[place][None], average, mask, height * width, (height, width))
        for place in test[:n_items]
    ]
    return title, image_network(x.shape[1:], widths), batch, y, items


# --- training ---


def _split(n: int, seed: int = 0) -> tuple[list[int], list[int]]:
    order = np.random.default_rng(_SEED + seed).permutation(n).tolist()
    n_test = int(n * _TEST_SHARE)
    return order[n_test:], order[:n_test]


def _trained(
    network: nn.Module,
    batch: Batch,
    labels: Tensor,
    train: list[int],
    cache: Path,
    name: str,
    seed: int,
) -> nn.Module:
    """Return the network trained by AdamW, or as it was kept."""
    key = hashlib.sha256(Path(__file__).read_bytes() + f"{torch.__version__} {seed}".encode())
    path = cache / f"neighbours-{name}-{key.hexdigest()[:12]}.pt"
    recipe = _RECIPES[name]

    def learn(network: nn.Module) -> None:
        for layer in network.modules():  # draw all that is learned, whatever was drawn before
            reset = getattr(layer, "reset_parameters", None)
            if all(one.requires_grad for one in layer.parameters(recurse=False)) and callable(
                reset
            ):
                reset()
                if isinstance(layer, nn.Embedding):
                    layer.weight.data *= recipe.word_spread
        network.train()
        parameters = [one for one in network.parameters() if one.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=recipe.rate, weight_decay=0.01)
        n_steps = recipe.epochs * -(-len(train) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, recipe.rate, n_steps, pct_start=0.2
        )
        for _ in range(recipe.epochs):
            for some in torch.split(torch.randperm(len(train)), _BATCH):
                places = [train[place] for place in some.tolist()]
                optimizer.zero_grad()
                logits = network(batch(places, True))
                torch.autograd.backward(nn.functional.cross_entropy(logits, labels[places]))
                optimizer.step()
                schedule.step()

    return kept_or_trained(lambda: network, path, _SEED + seed, learn)
