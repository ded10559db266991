"""Figures 2 and 5 and Tables 4 to 8 of SimSHAP, on three tables.

Boosted trees, the surrogate that is explained, and its Shapley values.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import shap
from data_files import parts
from games import FloatArray
from models import Margin, companies, news
from network_training import InputArray, LabelArray

import shap_ext
from shap_ext.explainers.amortized_explainer import AmortizedExplainer

from .items import Claim, Comparison, Item, Outcome, Setting
from .pictures import draw_lines

_MOST_EXACT = 12

FILES = {
    "census": "adult/adult.csv.gz",
    "news": "online_news/online_news.csv.gz",
    "bankruptcy": "taiwan_bankruptcy/taiwan_bankruptcy.csv.gz",
}
TITLES = {
    "census": "Census Income",
    "news": "online news",
    "bankruptcy": "Taiwanese bankruptcy",
}


@dataclass(frozen=True)
class Explained:
    """A surrogate of boosted trees, rows to train on, and rows to explain with their values.

    Attributes
    ----------
    surrogate : shap_ext.Surrogate
        Rows with NaN for absent numbers to the margin of the trees.
    training, rows : arrays, (n, M) and (R, M)
        Rows of the training and of the test part.
    exact : array, (R, M)
        Shapley values of the surrogate.
    settings : dict of str to str
        What the page says of all this.
    seconds_of_values : float
        Time of the processor for a row of `exact`.
    """

    surrogate: shap_ext.Surrogate
    training: InputArray
    rows: InputArray
    exact: FloatArray
    settings: dict[str, str]
    seconds_of_values: float

    @property
    def n_players(self) -> int:
        """M."""
        return self.rows.shape[1]

    def explainer(self, algorithm: str, *, seed: int = 0, **options: Any) -> Any:
        """Return an explainer of ours of the surrogate."""
        return shap.Explainer(
            self.surrogate, self.surrogate.reference, algorithm=algorithm, seed=seed, **options
        )

    def l1(self, values: FloatArray) -> float:
        """Return Σ|φ̂ − φ|, in the mean over rows."""
        return float(np.abs(values.reshape(self.exact.shape) - self.exact).sum(axis=1).mean())

    def network(self, kind: type[AmortizedExplainer], **options: Any) -> AmortizedExplainer:
        """Return a network that is trained on the rows."""
        reference = self.surrogate.reference
        explainer = kind(
            self.surrogate, reference, training_data=self.training, student="mlp", **options
        )
        return explainer.fit(silent=True)


@cache
def explained(name: str, setting: Setting, n_training: int, n_rows: int) -> Explained:
    """Train the trees and their surrogate, and compute the surrogate's Shapley values."""
    epochs, n_evaluations = 12, 10_000
    if setting.is_quick:
        n_training, n_rows, epochs, n_evaluations = 200, 4, 3, 2000
    seed = setting.seed
    inputs, labels = _read(name, setting.data, seed)
    places = parts(len(inputs), seed)
    trees = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=seed)
    trees.fit(inputs[places["training"]], labels[places["training"]])
    test = places["test"]
    accuracy = float((trees.predict(inputs[test]) == labels[test]).mean())
    training = inputs[places["training"][:n_training]]
    surrogate = shap_ext.Surrogate(
        Margin(trees.booster_),
        network_options={"widths": (128,) * 3},
        coalitions=8,
        epochs=epochs,
        seed=seed,
    )
    surrogate.fit(training, silent=True)
    rows = inputs[test[:n_rows]]
    started = time.process_time()
    n_players = rows.shape[1]
    is_exact = n_players <= _MOST_EXACT
    algorithm = "enumeration" if is_exact else "leastsquares"
    explainer = shap.Explainer(surrogate, surrogate.reference, algorithm=algorithm, seed=1)
    budget = 2**n_players if is_exact else n_evaluations
    exact, source = explainer(rows, max_evals=budget, silent=True).values, "all coalitions"
    seconds = (time.process_time() - started) / n_rows
    of_validation = surrogate.validation
    if not is_exact:
        errors = explainer.last_estimate.standard_errors[:, :, 0]
        off = np.sqrt(2 / np.pi) * errors.sum(axis=1).mean()
        source = f"least squares of {budget:,} evaluations, known to a Σ of {off:.2g}"
    exact = exact.reshape(rows.shape)
    settings = {
        "data": TITLES[name],
        "model": f"LightGBM, accuracy {accuracy:.3f}",
        "value function": "surrogate of the margin, explains "
        f"{1 - of_validation.full_error / of_validation.constant_error:.0%} of the variance",
        "training rows": str(len(training)),
        "explained rows": str(n_rows),
        "values": source,
        "mean Σ|φ|": f"{np.abs(exact).sum(axis=1).mean():.3g}",
    }
    return Explained(surrogate, training, rows, exact, settings, seconds)


def _read(name: str, data: Path, seed: int) -> tuple[InputArray, LabelArray]:
    """Return numbers that networks can learn from, and labels."""
    if name != "census":
        table = companies(data) if name == "bankruptcy" else news(data)
        table = replace(table, seed=seed)
        return table.scores, table.labels
    frame = pd.read_csv(data / FILES[name]).drop(columns=["fnlwgt", "education"])
    labels: LabelArray = (frame.pop("income") == ">50K").to_numpy(np.int64)
    codes = frame.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else pd.factorize(c)[0])
    numbers = codes.to_numpy(np.float64)
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    inputs: InputArray = np.clip(scaled, -3, 3).astype(np.float32)
    return inputs, labels


_PER_PLAYER = (4, 8, 16, 32)
_ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "KernelSHAP": ("leastsquares", {"paired": False}),
    "KernelSHAP, paired": ("leastsquares", {"paired": True}),
    "permutations": ("randomorder", {"antithetic": False}),
    "permutations, antithetic": ("randomorder", {"antithetic": True}),
}
_PAIRED = {"KernelSHAP": "KernelSHAP, paired", "permutations": "permutations, antithetic"}
_SIM, _FAST, _MEAN = "SimSHAP", "FastSHAP", "the mean of the rows"

_INFERENCE = {"census": (0.002, 0.004), "news": (0.001, 0.004), "bankruptcy": (0.001, 0.005)}
_TRAINING = {"census": (7.466, 11.098), "news": (7.603, 16.223), "bankruptcy": (1.206, 2.005)}
_KERNEL = {"census": 43.560, "news": 67.002, "bankruptcy": 101.053}
"""Table 4: of SimSHAP and FastSHAP, in seconds and minutes, and of KernelSHAP-S."""


@dataclass(frozen=True)
class _Run:
    """Errors and times of the processor.

    Attributes
    ----------
    errors : dict of (str, int, int) to float
        (estimator, evaluations a player, seed) to l1 distances; networks have 0 evaluations.
    training, inference : dict of str to float
        Seconds of training, and microseconds a row with the correction, of the networks.
    """

    explained: Explained
    settings: Mapping[str, str]
    errors: Mapping[tuple[str, int, int], float]
    training: Mapping[str, float]
    inference: Mapping[str, float]


@cache
def _run(name: str, setting: Setting) -> _Run:
    of_table = explained(name, setting, 800, 20)
    errors: dict[tuple[str, int, int], float] = {}
    for estimator, (algorithm, options) in _ESTIMATORS.items():
        for n, seed in product(_PER_PLAYER, range(1 + (estimator in _PAIRED))):
            explainer = of_table.explainer(algorithm, seed=seed, **options)
            found = explainer(of_table.rows, max_evals=n * of_table.n_players + 2, silent=True)
            errors[estimator, n, seed] = of_table.l1(found.values)
    same_for_all = np.broadcast_to(of_table.exact.mean(axis=0), of_table.exact.shape)
    errors[_MEAN, 0, 0] = of_table.l1(same_for_all)
    training, inference = {}, {}
    n_samples, epochs = (8, 3) if setting.is_quick else (16, 20)
    networks: dict[str, tuple[type[AmortizedExplainer], dict[str, Any]]] = {
        _SIM: (shap_ext.SimShapExplainer, {"labels": "simsemivalue", "efficient": False}),
        _FAST: (shap_ext.FastShapExplainer, {}),
    }
    for network, (kind, options) in networks.items():
        started = time.process_time()
        explainer = of_table.network(
            kind, evaluations=n_samples, epochs=epochs, learning_rate=3e-3,
            student_options={"widths": (128,) * 3}, seed=setting.seed, **options,
        )  # fmt: skip
        training[network] = time.process_time() - started
        errors[network, 0, 0] = of_table.l1(explainer(of_table.rows, silent=True).values)
        many, times = np.tile(of_table.rows, (10, 1)), []
        for _ in range(5):
            started = time.process_time()
            explainer(many, silent=True)
            times.append(time.process_time() - started)
        inference[network] = float(np.median(times)) / len(many) * 1e6
    counts = {"samples a row and epoch": str(n_samples), "epochs": str(epochs)}
    return _Run(of_table, {**of_table.settings, **counts}, errors, training, inference)


def _figure_2(name: str, setting: Setting) -> Outcome:
    """Compare pairs with single draws, and SimSHAP with FastSHAP."""
    run = _run(name, setting)
    comparisons = []
    for (claim, (single, paired)), n in product(enumerate(_PAIRED.items()), _PER_PLAYER):
        alone, again = run.errors[single, n, 0], run.errors[single, n, 1]
        quantity = f"l1 of {single} over that of {paired}, N = {n}"
        ours = alone / run.errors[paired, n, 0]
        comparisons.append(
            Comparison(quantity, None, ours, alone / again, leads="above", claim=claim)
        )
    ours, control = (run.errors[one, 0, 0] / run.errors[_FAST, 0, 0] for one in (_SIM, _MEAN))
    quantity = "l1 of SimSHAP over that of FastSHAP"
    comparisons.append(Comparison(quantity, 1.0, ours, control, None, claim=2))
    note = (
        "Mean l1 distance to the values of the surrogate. N: evaluations for each feature; the "
        "networks explain in one pass. Theirs were trained for 1,000 epochs on all rows."
    )
    lines = {
        one: (_PER_PLAYER, [run.errors[one, n, 0] for n in _PER_PLAYER]) for one in _ESTIMATORS
    } | {one: (_PER_PLAYER, [run.errors[one, 0, 0]] * 4) for one in (_SIM, _FAST)}
    names = "evaluations for each feature", "mean l1 distance"
    draw = partial(draw_lines, {TITLES[name]: lines}, *names, scales=("log", "log"))
    return Outcome(comparisons, run.settings, (note,), draw)


def _table_4(setting: Setting) -> Outcome:
    """Compare the times of the processor, as ratios: theirs are of a graphics card."""
    comparisons = []
    for name, title in TITLES.items():
        run = _run(name, setting)
        pace, kernel = run.inference, run.explained.seconds_of_values * 1e6
        for claim, (kind, (sim, fast), times) in enumerate(
            (("inference", _INFERENCE[name], pace), ("training", _TRAINING[name], run.training))
        ):
            quantity = f"{title}: {kind} of SimSHAP over that of FastSHAP"
            ours = times[_SIM] / times[_FAST]
            comparisons.append(Comparison(quantity, sim / fast, ours, 1.0, claim=claim))
        quantity = f"{title}: KernelSHAP-S to convergence over SimSHAP"
        theirs, ours = _KERNEL[name] / _INFERENCE[name][0], kernel / pace[_SIM]
        comparisons.append(Comparison(quantity, theirs, ours, kernel / pace[_FAST]))
    notes = (
        "Times of the processor, one thread; both networks were trained for equally many epochs. "
        "FastSHAP's inference includes the correction of the sums. The values of Census come from "
        "all coalitions, the others from least squares.",
    )
    return Outcome(comparisons, {"data": "three tables, as for Figure 2"}, notes)


_PAIRS = "single draws again, with another seed, in the place of pairs"
_CLAIMS_2 = (
    Claim("pair sampling proves to be more effective in two KernelSHAP estimations",
          "Section 4.1.2", _PAIRS),
    Claim("antithetical sampling is also effective than Monte Carlo permutation method",
          "Section 4.1.2", _PAIRS),
    Claim("SimSHAP achieves comparable accuracy to FastSHAP across different datasets",
          "Section 4.1.2", "the mean values of the rows for each row, in SimSHAP's place"),
)  # fmt: skip


def _item(name: str) -> Item:
    run: Callable[[Setting], Outcome] = partial(_figure_2, name)
    title = f"Errors against evaluations on {TITLES[name]}"
    return Item(
        f"simshap-2-{name}", title, "SimSHAP, Figure 2", _CLAIMS_2, (FILES[name],), 1.5, run
    )


_RIVAL = "FastSHAP in SimSHAP's place"

_ITEMS_2 = (
    *(_item(name) for name in FILES),
    Item(
        "simshap-4", "Times of training and of inference", "SimSHAP, Table 4",
        (Claim("SimSHAP outperforms all the baseline methods in terms of inference speed",
               "Section 4.2.4", _RIVAL),
         Claim("SimSHAP requires less training time (but more epochs) than FastSHAP in order to "
               "reach FastSHAP’s accuracy", "Section 4.2.4", _RIVAL)),
        tuple(FILES.values()), 4, _table_4,
    ),
)  # fmt: skip


_WIDTH = 256
_DEFAULT: dict[str, Any] = {
    "learning_rate": 7e-4, "epochs": 20, "rows_per_step": 32, "evaluations": 32,
    "student_options": {"widths": (_WIDTH,) * 3},
}  # fmt: skip
_PUBLISHED_DEFAULT = 0.886

_CHANGES: tuple[tuple[str, float, str, Any], ...] = (
    ("Table 5: l1 with learning rate 0.1", 1.587, "learning_rate", 1e-1),
    ("Table 5: l1 with learning rate 0.01", 2.051, "learning_rate", 1e-2),
    ("Table 5: l1 with learning rate 0.001", 0.926, "learning_rate", 1e-3),
    ("Table 5: l1 with learning rate 1e-05", 2.084, "learning_rate", 1e-5),
    ("Table 6: l1 with 2 epochs (theirs 100)", 1.550, "epochs", 2),
    ("Table 6: l1 with 10 epochs (theirs 500)", 1.009, "epochs", 10),
    ("Table 7: l1 with batches of 4 (theirs 128)", 1.176, "rows_per_step", 4),
    ("Table 7: l1 with batches of 16 (theirs 512)", 0.933, "rows_per_step", 16),
    ("Table 8: l1 with wider network", 0.933, "student_options", {"widths": (2 * _WIDTH,) * 3}),
    ("Table 8: l1 with deeper network", 0.865, "student_options", {"widths": (_WIDTH,) * 5}),
)
"""What is changed, the published l1 distance, and the option; batches are a 32nd of theirs."""

_SAMPLES = (8, 16, 32)


def _table(setting: Setting) -> Explained:
    return explained("bankruptcy", setting, 400, 10)


def _distance(setting: Setting, *, is_again: bool = False, **changed: Any) -> float:
    """Train SimSHAP with some settings changed; return the mean l1 distance.

    `is_again` trains the same once more, with other draws.
    """
    of_table, options = _table(setting), _DEFAULT | changed
    if setting.is_quick:
        options["epochs"] = max(options["epochs"] // 10, 1)
    explainer = of_table.network(
        shap_ext.SimShapExplainer, labels="simsemivalue", efficient=False,
        seed=setting.seed + 100 * is_again, **options,
    )  # fmt: skip
    return of_table.l1(explainer(of_table.rows, silent=True).values)


def _tables(setting: Setting) -> Outcome:
    """Compare the error of each setting, over that of the default."""
    default = _distance(setting)
    control = _distance(setting, is_again=True) / default
    comparisons = []
    for name, theirs, option, value in _CHANGES[: 1 if setting.is_quick else None]:
        distance = _distance(setting, **{option: value})
        quantity = f"{name} over that of the default"
        published = theirs / _PUBLISHED_DEFAULT
        comparisons.append(Comparison(quantity, published, distance / default, control))
    note = (
        "Default: learning rate 7e-4, 20 epochs (theirs 1,000), batches of 32 rows (theirs 1,024), "
        f"three layers of {_WIDTH} (theirs 512), 32 samples in pairs. "
        "Our learning rate is the largest of a one-cycle schedule. Batches are those of the paper "
        "over its default. Left out for their time, or as they are single rows or 30 steps here: "
        "batches of 32 and of the whole set, learning rate 1e-6, and 1,500 epochs."
    )
    return Outcome(comparisons, _table(setting).settings, (note,))


def _figure_5(setting: Setting) -> Outcome:
    """Compare pairs with single draws, and more samples with fewer."""
    samples = _SAMPLES[:2] if setting.is_quick else _SAMPLES

    found = {
        (n, paired): _distance(setting, evaluations=n, paired=paired)
        for n, paired in product(samples, (True, False))
    }
    controls = {
        n: found[n, False] / _distance(setting, evaluations=n, paired=False, is_again=True)
        for n in samples
    }
    pairs = [
        (f"l1 without pairs over that with pairs, {n} samples", (n, False), (n, True))
        for n in samples
    ] + [
        (f"l1 with {before} samples over that with {after}", (before, True), (after, True))
        for before, after in pairwise(samples)
    ]
    comparisons = [
        Comparison(quantity, None, found[one] / found[two], controls[two[0]], leads="above")
        for quantity, one, two in pairs
    ]
    note = "Samples: coalitions for each row and epoch; 20 epochs (theirs 1,000). Panel (c) only."
    lines = {
        name: (samples, [found[n, paired] for n in samples])
        for paired, name in ((True, "in pairs"), (False, "single"))
    }
    names = "samples for each row and epoch", "mean l1 distance"
    draw = partial(draw_lines, {"": lines}, *names, scales=("log", "linear"))
    return Outcome(comparisons, _table(setting).settings, (note,), draw)


_AGAIN = "the same training again, with other draws"

_ITEMS_5 = (
    Item(
        "simshap-5", "Errors against samples, with and without pairs",
        "SimSHAP, Figure 5c",
        (Claim("SimSHAP accuracy as a function of number of training samples with/out pair "
               "sampling", "caption of Figure 5", _AGAIN),),
        (FILES["bankruptcy"],), 1.5, _figure_5,
    ),
    Item(
        "simshap-5-to-8", "Learning rate, epochs, batch and network",
        "SimSHAP, Tables 5 to 8",
        (Claim("Influence of learning rate […] of optimization epoch […] of batch size […] of net "
               "structure", "captions of Tables 5 to 8", _AGAIN),),
        (FILES["bankruptcy"],), 2, _tables,
    ),
)  # fmt: skip

ITEMS = (*_ITEMS_2, *_ITEMS_5)
