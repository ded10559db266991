"""Random calls of the explainers: the answer is right by enumeration, or the error is ours."""

import warnings
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
import scipy.sparse
import shap
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import shap_ext
from shapley_adapters.errors import ShapleyExtError, ShapleyExtWarning
from tests.helpers.brute_force import masked_model_values, shapley_values

assert shap_ext  # registers the algorithms

ENOUGH = 2**5
"""Evaluations that pay for all coalitions of the players drawn here."""


@dataclass(frozen=True)
class Passed:
    """What a user passes, and the numbers that it stands for; None where it stands for none."""

    form: str
    value: object
    numbers: np.ndarray | None


# --- tables in all the forms in which they may come ---


def _as_dtype(dtype):
    return lambda numbers: np.abs(numbers).astype(dtype)


def _frame(numbers):
    return pd.DataFrame(numbers, columns=[f"c{i}" for i in range(numbers.shape[1])])


def _mixed_frame(numbers):
    frame = _frame(numbers)
    return frame.astype(dict(zip(frame, ["float32", "int64", "float64", "int8"], strict=False)))


def _two_levels(numbers):
    frame = _frame(numbers)
    frame.columns = pd.MultiIndex.from_tuples([("u", name) for name in frame.columns])
    return frame


def _strided(numbers):
    wide = np.repeat(numbers, 2, axis=1).astype(float)
    return wide[::-1, ::2][::-1]


def _read_only(numbers):
    values = numbers.astype(float)
    values.flags.writeable = False
    return values


def _masked(numbers):
    return np.ma.masked_array(numbers.astype(float), mask=np.zeros(numbers.shape, dtype=bool))


GOOD_FORMS = {
    "float64": lambda n: n.astype(float),
    "float32": lambda n: n.astype("float32"),
    "float16": lambda n: n.astype("float16"),
    "int64": lambda n: n.astype("int64"),
    "int8": lambda n: n.astype("int8"),
    "uint8": _as_dtype("uint8"),
    "bool": _as_dtype("bool"),
    "big endian": lambda n: n.astype(">f8"),
    "Fortran": lambda n: np.asfortranarray(n.astype(float)),
    "strided": _strided,
    "read only": _read_only,
    "object": lambda n: n.astype(float).astype(object),
    "nothing masked": _masked,
    "matrix": lambda n: np.matrix(n.astype(float)),
    "frame": _frame,
    "frame of several types": _mixed_frame,
    "frame of two levels": _two_levels,
    "csr": lambda n: scipy.sparse.csr_matrix(n.astype(float)),
    "coo array": lambda n: scipy.sparse.coo_array(n.astype(float)),
    "list": lambda n: n.astype(float).tolist(),
}

BAD_FORMS = {
    "complex": lambda n: n + 1j,
    "text": lambda n: n.astype(str),
    "dates": lambda n: n.astype("datetime64[D]"),
    "decimals": lambda n: np.array([[Decimal(int(v)) for v in row] for row in n], dtype=object),
    "arrays in cells": lambda n: pd.DataFrame({"a": [np.zeros(2)] * len(n)}),
    "ragged": lambda n: [[1.0], [1.0, 2.0]],
    "some masked": lambda n: np.ma.masked_array(n.astype(float), mask=np.ones(n.shape, dtype=bool)),
    "no rows": lambda n: n[:0].astype(float),
    "no columns": lambda n: n[:, :0].astype(float),
    "one column too many": lambda n: np.concatenate([n, n[:, :1]], axis=1).astype(float),
    "nothing": lambda n: None,
    "a number": lambda n: 3,
    "a text": lambda n: "abc",
    "a set": lambda n: {1, 2},
}


def _numbers_of(value):
    if scipy.sparse.issparse(value):
        return value.toarray().astype(float)
    return np.asarray(value, dtype=float)


@st.composite
def tables(draw, n_columns, max_rows):
    n_rows = draw(st.integers(1, max_rows))
    cells = st.integers(-2, 2)
    numbers = np.array(
        draw(
            st.lists(
                st.lists(cells, min_size=n_columns, max_size=n_columns),
                min_size=n_rows,
                max_size=n_rows,
            )
        )
    ).reshape(n_rows, n_columns)
    if draw(st.integers(0, 5)):
        form = draw(st.sampled_from(sorted(GOOD_FORMS)))
        value = GOOD_FORMS[form](numbers)
        return Passed(form, value, _numbers_of(value))
    form = draw(st.sampled_from(sorted(BAD_FORMS)))
    return Passed(form, BAD_FORMS[form](numbers), None)


# --- models ---


def curved(x):
    """Return outputs with interactions of all orders, (n,), whatever holds the numbers."""
    if scipy.sparse.issparse(x):
        x = x.toarray()
    x = np.asarray(x, dtype=float)
    return np.sin(x @ np.arange(1.0, x.shape[1] + 1)) + x[:, 0] * x[:, -1]


class ReusesItsBuffer:
    """Return each batch in the same array."""

    def __init__(self):
        self.buffer = np.zeros((4096, 2))

    def __call__(self, x):
        out = self.buffer[: x.shape[0]]
        out[:, 0] = curved(x)
        out[:, 1] = 2 * curved(x)
        return out


def writes_into_its_input(x):
    values = curved(x)
    if isinstance(x, np.ndarray) and x.flags.writeable and x.dtype.kind == "f":
        x[...] = 77.0
    return values


MODELS = {
    "vector": lambda: curved,
    "column": lambda: lambda x: curved(x)[:, None],
    "two outputs": lambda: lambda x: np.stack([curved(x), -curved(x)], axis=1),
    "float32": lambda: lambda x: curved(x).astype("float32"),
    "list": lambda: lambda x: curved(x).tolist(),
    "frame": lambda: lambda x: pd.DataFrame({"out": curved(x)}),
    "series": lambda: lambda x: pd.Series(curved(x), index=range(7, 7 + x.shape[0])),
    "matrix": lambda: lambda x: np.matrix(curved(x)).T,
    "reuses its buffer": ReusesItsBuffer,
    "writes into its input": lambda: writes_into_its_input,
}

BAD_MODELS = {
    "one number": lambda x: 1.0,
    "one too many": lambda x: np.zeros(x.shape[0] + 1),
    "no outputs": lambda x: np.zeros((x.shape[0], 0)),
    "text": lambda x: np.full(x.shape[0], "yes"),
    "complex": lambda x: curved(x) * 1j,
    "nothing": lambda x: None,
    "NaN": lambda x: np.full(x.shape[0], np.nan),
    "infinite": lambda x: np.full(x.shape[0], -np.inf),
    "masked": lambda x: np.ma.masked_array(curved(x), mask=np.ones(x.shape[0], dtype=bool)),
    "ragged": lambda x: [[1.0] * (i + 1) for i in range(x.shape[0] + 1)],
}

ALGORITHMS = [
    "oddgp",
    "shear",
    "leastsquares",
    "randomorder",
    "enumeration",
    "semivalue",
    "simsemivalue",
    "lshapley",
    "cshapley",
    "myerson",
]
ON_GRAPH = {"lshapley", "cshapley", "myerson"}


@st.composite
def models(draw):
    if draw(st.integers(0, 6)):
        form = draw(st.sampled_from(sorted(MODELS)))
        return form, MODELS[form](), True
    form = draw(st.sampled_from(sorted(BAD_MODELS)))
    return form, BAD_MODELS[form], False


# --- budgets, batches, groups ---

BUDGETS = st.one_of(
    st.just("auto"),
    st.integers(ENOUGH, 2 * ENOUGH),
    st.just(np.int64(ENOUGH)),
    st.sampled_from([0, -1, 1, 2.5, True, None, "many", float("nan"), [10], 10**30]),
)
BATCHES = st.one_of(st.just("auto"), st.integers(1, 7), st.sampled_from([0, -3, 1.5, "all", None]))


@st.composite
def groupings(draw, n_columns):
    """Return `groups` and the columns of each player; the latter None where they make no sense."""
    own = [[column] for column in range(n_columns)]
    kind = draw(st.sampled_from(["none"] * 6 + ["two", "overlap", "unknown", "list", "empty"]))
    if kind == "none":
        return None, own
    if kind == "two":
        return {"both": [0, n_columns - 1]}, None if n_columns < 2 else [
            [0, n_columns - 1],
            *own[1:-1],
        ]
    wrong = {
        "overlap": {"a": [0], "b": [0]},
        "unknown": {"a": [n_columns]},
        "list": [[0]],
        "empty": {"a": []},
    }
    return wrong[kind], None


@dataclass(frozen=True)
class Call:
    algorithm: str
    model: tuple
    x: Passed
    background: Passed
    groups: tuple
    budget: object
    batch_size: object

    @property
    def is_meaningful(self):
        return (
            self.model[2]
            and self.x.numbers is not None
            and self.background.numbers is not None
            and self.groups[1] is not None
        )

    def explain(self):
        options = {}
        if self.algorithm in ON_GRAPH:  # on the complete graph all of them are the Shapley value
            n_players = len(self.groups[1] or [0])
            options["graph"] = scipy.sparse.csr_matrix(1.0 - np.eye(n_players))
        explainer = shap.Explainer(
            self.model[1],
            self.background.value,
            algorithm=self.algorithm,
            groups=self.groups[0],
            seed=0,
            **options,
        )
        return explainer(
            self.x.value, max_evals=self.budget, batch_size=self.batch_size, silent=True
        )

    def expected(self):
        """Return the Shapley values, (R, M, K), by enumeration."""

        def plain(x):
            values = np.asarray(self.model[1](np.array(x)), dtype=float)
            return np.array(values).reshape(len(x), -1)

        players = self.groups[1]
        found = []
        for row in self.x.numbers:
            value = masked_model_values(plain, row, self.background.numbers)
            found.append(
                shapley_values(
                    len(players),
                    lambda coalition, value=value: value(
                        [column for player in coalition for column in players[player]]
                    ),
                )
            )
        return np.array(found)


@st.composite
def calls(draw):
    n_columns = draw(st.integers(1, 4))
    return Call(
        draw(st.sampled_from(ALGORITHMS)),
        draw(models()),
        draw(tables(n_columns, 3)),
        draw(tables(n_columns, 2)),
        draw(groupings(n_columns)),
        draw(BUDGETS),
        draw(BATCHES),
    )


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(calls())
def test_the_answer_is_right_or_the_error_is_ours(call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapleyExtWarning)
            explanation = call.explain()
    except ShapleyExtError as error:
        event("refused" if not call.is_meaningful else f"refused: {str(error)[:60]}")
        return
    assert call.is_meaningful, "a call without meaning was answered"
    event("answered")
    expected = call.expected()
    values = np.asarray(explanation.values, dtype=float).reshape(expected.shape)
    tolerance = 1e-5 if "float32" in call.model[0] else 1e-9
    np.testing.assert_allclose(values, expected, atol=tolerance * max(1, np.abs(expected).max()))
