"""The tables of SimSHAP: boosted trees, the surrogate that is explained, and its Shapley values."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import shap
from data_files import parts
from explained_models import Margin
from games import FloatArray
from network_training import InputArray, LabelArray
from tables import companies, news

import shap_ext

from .items import Setting

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

    def l1(self, values: FloatArray) -> FloatArray:
        """Return Σ|φ̂ − φ| of each row, (R,)."""
        distances: FloatArray = np.abs(values.reshape(self.exact.shape) - self.exact).sum(axis=1)
        return distances


def explained(
    name: str, setting: Setting, *, n_training: int, n_rows: int, epochs: int, n_evaluations: int
) -> Explained:
    """Train the trees and their surrogate, and compute the surrogate's Shapley values."""
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
    exact, source = _values(surrogate, rows, n_evaluations)
    seconds = (time.process_time() - started) / n_rows
    of_validation = surrogate.validation
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


def _values(
    surrogate: shap_ext.Surrogate, rows: InputArray, n_evaluations: int
) -> tuple[FloatArray, str]:
    """Return the Shapley values of the surrogate, and how they were computed."""
    n_players = rows.shape[1]
    is_exact = n_players <= _MOST_EXACT
    algorithm = "enumeration" if is_exact else "leastsquares"
    explainer = shap.Explainer(surrogate, surrogate.reference, algorithm=algorithm, seed=1)
    budget = 2**n_players if is_exact else n_evaluations
    found = explainer(rows, max_evals=budget, silent=True).values.reshape(rows.shape)
    if is_exact:
        return found, "all coalitions"
    errors = explainer.last_estimate.standard_errors[:, :, 0]
    off = np.sqrt(2 / np.pi) * errors.sum(axis=1).mean()
    return found, f"least squares of {budget:,} evaluations, known to a Σ of {off:.2g}"
