"""Texts, digits and contexts of a language model as games, with converged Shapley values."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from data_files import data_file, parts
from games import BoolArray, FloatArray, IntArray, LargeGame, Values, converged, in_blocks
from neighbour_models import texts
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPClassifier

TEXT_SETS = {50: "ag_news", 100: "yahoo", 200: "imdb", 500: "imdb"}
"""The set whose texts are cut to so many words."""

DIGITS_FILE, SIDE = "mnist5k/mnist5k.npz", 28
_N_ORDERS = 20_000
_GREY = 0.5
_SHARPNESS, _COPIED = 40.0, 0.6
"""Of attention, and the share of copied words: with the largest likelihood of 100 headlines, given
their articles among 50 sentences, of some."""


def log_odds(logits: FloatArray, label: int) -> FloatArray:
    """Return the log-odds of a class, (C,), from the logits of all, (C, K)."""
    others = np.delete(logits, label, axis=1)
    return np.asarray(logits[:, label] - logsumexp(others, axis=1))


def _logits(network: MLPClassifier, hidden: FloatArray) -> FloatArray:
    """Return the logits, (C, K), of a network with one layer, from what reaches that layer."""
    active = np.maximum(hidden + network.intercepts_[0], 0)
    found = np.asarray(active @ network.coefs_[1] + network.intercepts_[1])
    # With two classes, scikit-learn's networks have one logit.
    return np.hstack([np.zeros_like(found), found]) if found.shape[1] == 1 else found


class TextModel:
    """Words and pairs of words, weighted by tf-idf, and a network of 64 units; words are deleted.

    Parameters
    ----------
    data : Path
        The folder of the data sets.
    name : str
        The set: its first four fifths are learned, the others are explained.
    """

    def __init__(self, data: Path, name: str) -> None:
        read, labels, _ = texts(data, name)
        words = [[word for word in text if word[0].isalnum()] for text in read]
        order = np.random.default_rng(0).permutation(len(words))
        train, self.test = np.split(order, [len(words) * 4 // 5])
        self.words = words
        self.vectorizer = TfidfVectorizer(
            analyzer=word_pairs, min_df=2, max_features=10_000, dtype=np.float64
        )
        x = self.vectorizer.fit_transform([words[place] for place in train])
        self.network = MLPClassifier((64,), max_iter=15, random_state=0)
        self.network.fit(x, labels.numpy()[train])

    def explained_text(self, n_words: int, place: int) -> list[str]:
        """Return the first words of a test text that has as many."""
        long_enough = [t for t in self.test if len(self.words[t]) >= n_words]
        return self.words[long_enough[place % len(long_enough)]][:n_words]

    def values(self, words: list[str]) -> Values:
        """Return the log-odds of the class that the whole text gets, as a game of its words."""
        number = self.vectorizer.vocabulary_
        singles = np.array([number.get(word, -1) for word in words])
        pairs = np.array([[number.get(f"{a} {b}", -1) for b in words] for a in words])
        idf = self.vectorizer.idf_

        def logits(coalitions: BoolArray) -> FloatArray:
            coalition, place = np.nonzero(coalitions)
            follows = coalition[1:] == coalition[:-1]
            features = np.append(singles[place], pairs[place[:-1], place[1:]][follows])
            rows = np.append(coalition, coalition[1:][follows])
            known = features >= 0
            x = csr_matrix(
                (idf[features[known]], (rows[known], features[known])),
                shape=(len(coalitions), len(idf)),
            )
            x.sum_duplicates()
            lengths = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)))
            return _logits(self.network, x @ self.network.coefs_[0] / np.maximum(lengths, 1e-12))

        label = int(logits(np.ones((1, len(words)), dtype=bool))[0].argmax())
        return in_blocks(lambda coalitions: log_odds(logits(coalitions), label), len(words))


def word_pairs(words: list[str]) -> list[str]:
    """Return words, and pairs of words that follow each other."""
    return words + [f"{a} {b}" for a, b in pairwise(words)]


class DigitModel:
    """A network of 128 units on digits; the players are 196 squares, grey where absent."""

    def __init__(self, data: Path) -> None:
        with np.load(data_file(data, DIGITS_FILE)) as file:
            self.images = file["images"].reshape(-1, SIDE**2) / 255
            labels = file["labels"]
        split = parts(len(labels))
        self.test = split["test"]
        self.network = MLPClassifier((128,), max_iter=30, random_state=0)
        self.network.fit(self.images[split["training"]], labels[split["training"]])

    def values(self, place: int) -> Values:
        """Return the log-odds of the class of a test image, as a game of its squares."""
        image = self.images[self.test[place]]
        band = np.arange(SIDE) // 2
        square = (band[:, None] * (SIDE // 2) + band).ravel()
        # The first layer is linear: what each square adds to it is computed once.
        moved = (image - _GREY)[:, None] * self.network.coefs_[0]  # (784, 128)
        added = np.zeros((square.max() + 1, moved.shape[1]))
        np.add.at(added, square, moved)
        empty = np.full(SIDE**2, _GREY) @ self.network.coefs_[0]
        label = int(self.network.predict(image[None])[0])
        return in_blocks(
            lambda present: log_odds(_logits(self.network, empty + present @ added), label), 200
        )


class ContextModel:
    """A model that writes a headline from sentences, by attention and copying.

    A transparent stand-in for a language model. The next word is copied from the sentences by their
    attention, or comes from the frequencies of words in all texts. Attention to a sentence is the
    exponential of its similarity to the words so far; one fixed token always has some.
    """

    def __init__(self, data: Path) -> None:
        read, _, _ = texts(data, "ag_news")
        words = [[word for word in text if word[0].isalnum()] for text in read]
        # The first sentence is the headline, for `texts` puts a full stop behind it.
        ends = [text.index(".") for text in read]
        heads = [
            [w for w in text[:end] if w[0].isalnum()] for text, end in zip(read, ends, strict=True)
        ]
        self.articles = [
            (head, own[len(head) :])
            for head, own in zip(heads, words, strict=True)
            if len(head) >= 4 and len(own) - len(head) >= 8
        ]
        self.vectorizer = TfidfVectorizer(analyzer=lambda text: text, dtype=np.float64)
        self.sentences = self.vectorizer.fit_transform([body for _, body in self.articles])
        counts = np.asarray((self.sentences > 0).sum(axis=0)).ravel()
        self.frequency = counts / counts.sum()

    def game(self, n_sentences: int, place: int) -> LargeGame:
        """Return the log-probability of a headline, as a game of the sentences of its context."""
        rng = np.random.default_rng(place)
        chosen = rng.permutation(len(self.articles))[:n_sentences]
        known = self.vectorizer.vocabulary_
        answer = [word for word in self.articles[chosen[0]][0] if word in known]
        rng.shuffle(chosen)
        context = self.sentences[chosen]
        number = np.array([known[word] for word in answer], dtype=np.intp)
        before = self.vectorizer.transform([answer[:n] for n in range(len(answer))])
        attention = np.exp(_SHARPNESS * (context @ before.T).toarray())
        holds = (context[:, number] > 0).toarray()
        copies = attention * holds / np.asarray((context > 0).sum(axis=1)).reshape(-1, 1)
        frequency = self.frequency[number]

        def log_probability(attended: Any, copied: Any) -> Any:
            """Return the log-probability of the headline from sums over the sentences, (…, T)."""
            mixed = _COPIED * copied / (1 + attended) + (1 - _COPIED) * frequency
            return np.log(mixed).sum(axis=-1)

        def values(coalitions: BoolArray) -> FloatArray:
            present = coalitions.astype(float)
            return np.asarray(log_probability(present @ attention, present @ copies))

        def gains(orders: IntArray) -> FloatArray:
            """Return what each sentence adds where it joins, (orders, M), by cumulative sums."""
            none = np.zeros((len(orders), 1, len(frequency)))
            attended = np.concatenate([none, attention[orders].cumsum(axis=1)], axis=1)
            copied = np.concatenate([none, copies[orders].cumsum(axis=1)], axis=1)
            added = np.diff(log_probability(attended, copied), axis=1)
            found = np.empty(orders.shape)
            np.put_along_axis(found, orders, added, axis=1)
            return found

        return LargeGame(in_blocks(values, n_sentences), *mean_gains(gains, n_sentences))


def mean_gains(
    gains: Callable[[IntArray], FloatArray], n_players: int
) -> tuple[FloatArray, FloatArray]:
    """Return Shapley values and their standard errors by random orders and their reverses."""
    rng = np.random.default_rng(2026)
    size = max(1, 50_000 // n_players)
    means = []
    for _ in range(-(-_N_ORDERS // (2 * size))):
        orders = rng.random((size, n_players)).argsort(axis=1)
        means.append((gains(orders) + gains(orders[:, ::-1])) / 2)
    of_pairs = np.concatenate(means)
    return of_pairs.mean(axis=0), of_pairs.std(axis=0) / np.sqrt(len(of_pairs))


_text_model, _digit_model, _context_model = map(cache, (TextModel, DigitModel, ContextModel))


def text_game(data: Path, n_players: int, seed: int) -> LargeGame:
    """Return a text of so many words."""
    model = _text_model(data, TEXT_SETS[n_players])
    return converged(model.values(model.explained_text(n_players, seed)), n_players)


def digit_game(data: Path, n_players: int, seed: int) -> LargeGame:
    """Return an image of 196 squares."""
    return converged(_digit_model(data).values(seed), n_players)


def context_game(data: Path, n_players: int, seed: int) -> LargeGame:
    """Return a context of so many sentences."""
    return _context_model(data).game(n_players, seed)
