"""Random calls of the explainers: the answer is right by enumeration, or the error is ours."""

import warnings
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import shap
from hypothesis import event, given, settings
from hypothesis import strategies as st

import shap_ext
from shapley_adapters.errors import ShapleyExtError, ShapleyExtWarning
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.estimator_table import OF_CLASSES
from tests.helpers.optional import HAS_TORCH, torch

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
    columns = [f"c{i}" for i in range(numbers.shape[1])]
    return pd.DataFrame(numbers / 2, columns=columns, index=np.full(len(numbers), 7))


def _mixed_frame(numbers):
    frame = 2 * _frame(numbers)
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
    # Halves, so that beside whole numbers nothing may be truncated.
    "float64": lambda n: n / 2,
    "float32": lambda n: (n / 2).astype("float32"),
    "float16": lambda n: (n / 2).astype("float16"),
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
    "csr": lambda n: scipy.sparse.csr_matrix(n / 2),
    "csc": lambda n: scipy.sparse.csc_matrix(n.astype("float32")),
    "lil of whole numbers": lambda n: scipy.sparse.lil_matrix(n),
    "coo array": lambda n: scipy.sparse.coo_array(n.astype(float)),
    "list": lambda n: n.astype(float).tolist(),
    "list of rows": lambda n: list(n / 2),
    "missing numbers": lambda n: np.where(n == 2, np.nan, n / 2),
    "csr with missing numbers": lambda n: scipy.sparse.csr_matrix(np.where(n == 2, np.nan, n / 2)),
    # The models below read these, too, where all cells are of one kind.
    "complex": lambda n: n + 1j,
    "text": lambda n: n.astype(str),
    "dates": lambda n: n.astype("datetime64[D]"),
    "decimals": lambda n: np.array([[Decimal(int(v)) for v in row] for row in n], dtype=object),
}

if HAS_TORCH:
    GOOD_FORMS |= {
        "tensor": lambda n: torch.tensor(n / 2, requires_grad=True),
        "tensor of whole numbers": torch.tensor,
        "bfloat16": lambda n: torch.tensor(n / 2).bfloat16(),
        "float8": lambda n: torch.tensor(n / 2).to(torch.float8_e4m3fn),
        "negative view": lambda n: torch._neg_view(torch.tensor(-n / 2)),
    }

BAD_FORMS = {
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
    """Return the numbers that a table stands for, as the models read them."""
    if scipy.sparse.issparse(value):
        value = value.toarray()
    if hasattr(value, "detach"):
        value = value.detach().double().resolve_neg().numpy()
    cells = np.asarray(value)
    if cells.dtype.kind == "O":
        return np.array([[_number_of(cell) for cell in row] for row in cells], dtype=complex)
    return cells if cells.dtype.kind == "c" else cells.astype(float)


def _number_of(cell):
    if isinstance(cell, date):
        return (cell - date(1970, 1, 1)).days
    return complex(cell)


def _kind_of(value):
    """Return what the cells of a table are; absent cells must be of the same kind."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # of arrays
    return kind if kind in "UMO" else "number"


def _holds_real_numbers(value):
    return _kind_of(value) == "number" and not np.iscomplexobj(value)


NAMES_OF_COLUMNS = {"frame of several types": "frame", "Series": "frame"}
"""Frames of the same columns."""


def _fit_together(x, background):
    """Tell whether rows and background have the same columns and the same kinds of cells."""
    kinds = {_kind_of(x.value), _kind_of(background.value)}
    frames = {NAMES_OF_COLUMNS.get(one.form, one.form) for one in (x, background)}
    is_sparse_beside_objects = scipy.sparse.issparse(x.value) and "O" in kinds
    if background.form == "function" and scipy.sparse.issparse(x.value):
        return False
    return (len(kinds) == 1 or ("O" in kinds and not is_sparse_beside_objects)) and not {
        "frame",
        "frame of two levels",
    } <= frames


def numbers(random, n_rows, n_columns):
    cells = random.choices(range(-2, 3), k=n_rows * n_columns)
    return np.array(cells).reshape(n_rows, n_columns)


def _passed(form, make, table):
    value = make(table)
    return Passed(form, value, _numbers_of(value))


ROW_FORMS = {
    "Series": lambda n: _frame(n).iloc[0],
    "1-D array": lambda n: n[0].astype(float),
    "1-D list": lambda n: n[0].astype(float).tolist(),
}


def rows(random, n_columns, is_faulty):
    table = numbers(random, random.randint(1, 3), n_columns)
    if is_faulty:
        form = random.choice(sorted(BAD_FORMS))
        return Passed(form, BAD_FORMS[form](table), None)
    form = random.choice([*sorted(GOOD_FORMS), *ROW_FORMS])
    if form in ROW_FORMS:
        scale = 2 if form == "Series" else 1
        return Passed(form, ROW_FORMS[form](table), table[:1] / scale)
    return _passed(form, GOOD_FORMS[form], table)


def masked(background, mask, x):
    """Mask a row as a function of a user does."""
    return np.where(mask, x, background)


def backgrounds(random, n_columns, fault, x):
    table = numbers(random, random.randint(1, 3), n_columns)
    if fault == "background":
        form = random.choice([*sorted(set(BAD_FORMS) - {"nothing"}), "list"])
        return Passed(form, {**GOOD_FORMS, **BAD_FORMS}[form](table), None)
    lists = {"list", "list of rows"}
    form = random.choice([*sorted(set(GOOD_FORMS) - lists), "nothing", "k-means"])
    if form == "nothing":
        return Passed(form, None, np.zeros((1, n_columns)))
    if form == "k-means":
        summary = shap.kmeans(table.astype(float), min(2, len(np.unique(table, axis=0))))
        counts = np.rint(summary.weights * len(table)).astype(int)
        return Passed(form, summary, np.repeat(summary.data, counts, axis=0))
    passed = _passed(form, GOOD_FORMS[form], table)
    if (
        isinstance(passed.value, np.ndarray)
        and passed.value.dtype.kind == "f"
        and random.random() < 0.6
    ):
        masker: Any = shap.maskers.Independent(passed.value)
        # It gets rows as they are, and its errors would be its own.
        is_a_table = x.numbers is not None and np.shape(x.value) == x.numbers.shape
        if is_a_table and _kind_of(x.value) not in "UM" and random.random() < 0.5:
            form, masker = "function", partial(masked, passed.numbers)
        return Passed(form, masker, passed.numbers)
    return passed


# --- models ---


def curved(x):
    """Return outputs with interactions of all orders, (n,), whatever holds the numbers."""
    x = _numbers_of(x)
    x = np.nan_to_num(x.real + 3 * x.imag, nan=-1.5)
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
    if scipy.sparse.issparse(x):
        x.data[:] = 77
    elif isinstance(x, pd.DataFrame):
        x.iloc[:, :] = 77
    elif isinstance(x, np.ndarray) and x.flags.writeable and x.dtype.kind == "f":
        x[...] = 77.0
    return values


MODELS = {
    "vector": lambda: curved,
    "column": lambda: lambda x: curved(x)[:, None],
    "two outputs": lambda: lambda x: np.stack([curved(x), -curved(x)], axis=1),
    "float32": lambda: lambda x: curved(x).astype("float32"),
    "int64": lambda: lambda x: (3 * curved(x)).astype("int64"),
    "bool": lambda: lambda x: curved(x) > 0.5,
    "object": lambda: lambda x: curved(x).astype(object),
    "list": lambda: lambda x: curved(x).tolist(),
    "list of lists": lambda: lambda x: curved(x)[:, None].tolist(),
    "list of arrays": lambda: lambda x: list(np.stack([curved(x)] * 2, axis=1)),
    "tuple": lambda: lambda x: tuple(curved(x)),
    "frame": lambda: lambda x: pd.DataFrame({"out": curved(x)}),
    "series": lambda: lambda x: pd.Series(curved(x), index=range(7, 7 + x.shape[0])[::-1]),
    "nothing masked": lambda: lambda x: np.ma.masked_array(curved(x)),
    "matrix": lambda: lambda x: np.matrix(curved(x)).T,
    "probabilities": lambda: lambda x: 1 / (1 + np.exp(-curved(x) / 4)),
    "reuses its buffer": ReusesItsBuffer,
    "writes into its input": lambda: writes_into_its_input,
}

if HAS_TORCH:
    MODELS |= {
        "tensor": lambda: lambda x: torch.tensor(curved(x), requires_grad=True),
        "list of tensors": lambda: lambda x: [torch.tensor(one) for one in curved(x)],
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

ON_GRAPH = {"lshapley", "cshapley", "myerson"}
ALGORITHMS = [*(row.algorithm for row in OF_CLASSES), *sorted(ON_GRAPH)]


def models(random, is_faulty):
    kinds: dict[str, Any] = BAD_MODELS if is_faulty else MODELS
    form = random.choice(sorted(kinds))
    return form, kinds[form] if is_faulty else kinds[form]()


# --- budgets, batches, groups, options ---

BUDGETS = ["auto", ENOUGH, ENOUGH + 5, 2 * ENOUGH, np.int64(ENOUGH), 10**30]
BAD_BUDGETS = [0, -1, 1, 2.5, True, None, "many", float("nan"), [10]]
BATCHES = ["auto", 1, 2, 5, 7]
BAD_BATCHES = [0, -3, 1.5, "all", None]


def groupings(random, n_columns, is_faulty):
    """Return `groups`, and the columns of each player, in the order of their first columns."""
    if is_faulty:
        wrong = [{"a": [0], "b": [0]}, {"a": [n_columns]}, [[0]], {"a": []}]
        return random.choice(wrong), [[column] for column in range(n_columns)]
    owners = [random.choice(["own", "own", "a", "b"]) for _ in range(n_columns)]
    groups = {
        name: [column for column, owner in enumerate(owners) if owner == name]
        for name in sorted(set(owners) - {"own"})
    }
    own = [[column] for column, owner in enumerate(owners) if owner == "own"]
    return groups or None, sorted([*own, *groups.values()])


FAULTS = ["model", "rows", "background", "groups", "budget", "batch size"]


@dataclass(frozen=True)
class Call:
    algorithm: str
    model: tuple
    rows: Passed
    background: Passed
    groups: tuple
    budget: object
    batch_size: object
    options: dict
    is_linked: bool = False
    fault: str | None = None

    @property
    def may_be_refused(self):
        return self.fault is not None or not (
            _fit_together(self.rows, self.background)
            # Nothing says what stands for absent texts, times and complex numbers.
            and (self.background.value is not None or _holds_real_numbers(self.rows.value))
        )

    @property
    def may_be_answered(self):
        # One row, and any budget that the players need no more than, may do with less.
        return self.fault in (None, "budget")

    def explain(self):
        options = {}
        if self.algorithm in ON_GRAPH:  # on the complete graph all of them are the Shapley value
            n_players = len(self.groups[1])
            options["graph"] = scipy.sparse.csr_matrix(1.0 - np.eye(n_players))
        if self.is_linked:
            options |= {"link": "logit", "linearize_link": False}
        explainer = shap.Explainer(
            self.model[1],
            self.background.value,
            algorithm=self.algorithm,
            groups=self.groups[0],
            seed=0,
            **options,
        )
        return explainer(
            self.rows.value,
            max_evals=self.budget,
            batch_size=self.batch_size,
            silent=True,
            **self.options,
        )

    def expected(self):
        """Return the Shapley values, (R, M, K), by enumeration."""

        def plain(x):
            values = self.model[1](np.array(x))
            values = values.detach() if hasattr(values, "detach") else values
            return np.array(values, dtype=float).reshape(len(x), -1)

        def linked(value):
            return np.log(value / (1 - value)) if self.is_linked else value

        players = self.groups[1]
        found = []
        for row in self.rows.numbers:
            value = masked_model_values(plain, row, self.background.numbers)
            found.append(
                shapley_values(
                    len(players),
                    lambda coalition, value=value: linked(
                        value([column for player in coalition for column in players[player]])
                    ),
                )
            )
        return np.array(found)


OPTIONS = [{}, {}, {"error_bounds": True}, {"tolerance": 1e-12}]


def drawn_call(random):
    """Return a call with one fault at most, so that no fault hides another."""
    n_columns = random.randint(1, 4)
    fault = random.choice([None] * 4 * len(FAULTS) + FAULTS)
    model = models(random, fault == "model")
    algorithm, x = random.choice(ALGORITHMS), rows(random, n_columns, fault == "rows")
    return Call(
        algorithm,
        model,
        x,
        backgrounds(random, n_columns, fault, x),
        groupings(random, n_columns, fault == "groups"),
        random.choice(BAD_BUDGETS if fault == "budget" else BUDGETS),
        random.choice(BAD_BATCHES if fault == "batch size" else BATCHES),
        random.choice(OPTIONS),
        is_linked=model[0] == "probabilities" and random.random() < 0.5,
        fault=fault,
    )


def answer(call):
    """Return the explanation and None, or None and the message of our error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapleyExtWarning)
            return call.explain(), None
    except ShapleyExtError as error:
        return None, str(error)


@settings(max_examples=300, derandomize=True)
@given(st.randoms(use_true_random=True).map(drawn_call))
def test_the_answer_is_right_or_the_error_is_ours(call):
    explanation, error = answer(call)
    for passed in (call.rows, call.background):  # which are left as they were
        if passed.form in GOOD_FORMS and passed.numbers is not None:
            is_masker = isinstance(passed.value, shap.maskers.Masker)
            table = passed.value.data if is_masker else passed.value
            np.testing.assert_array_equal(_numbers_of(table), passed.numbers)
    if explanation is None:
        event(f"refused: {error[:60]}")
        assert call.may_be_refused, f"a call without fault was refused: {error}"
        return
    event("answered")
    assert call.may_be_answered, "a call without meaning was answered"
    expected = call.expected()
    values = np.asarray(explanation.values, dtype=float).reshape(expected.shape)
    tolerance = 1e-5 if "float32" in call.model[0] else 1e-9
    np.testing.assert_allclose(values, expected, atol=tolerance * max(1, np.abs(expected).max()))
    if "error_bounds" in call.options:
        assert not np.any(explanation.error_std), "all coalitions were evaluated"
