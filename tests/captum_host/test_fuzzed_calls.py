"""Random calls of the attribution methods: right by enumeration, or the error is ours."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import captum_ext
from shapley_adapters.errors import ShapleyExtError, ShapleyExtWarning
from tests.helpers.brute_force import shapley_values

ENOUGH = 2**5
"""Evaluations that pay for all coalitions of the players drawn here."""

METHODS = [
    "OddGP",
    "Shear",
    "LeastSquares",
    "RandomOrder",
    "Exact",
    "Semivalue",
    "SimSemivalue",
    "LShapley",
    "CShapley",
    "Myerson",
]
ON_GRAPH = {"LShapley", "CShapley", "Myerson"}


@dataclass(frozen=True)
class Passed:
    """What a user passes, and what it stands for; None where it stands for nothing."""

    form: str
    value: Any
    meaning: Any


def _with_gradient(tensor):
    return tensor.double().requires_grad_()


def _inference(tensor):
    with torch.inference_mode():
        return tensor.double().clone()


def _strided(tensor):
    return tensor.double().repeat_interleave(2, dim=1)[:, ::2]


def _negative_bit(tensor):
    return torch.complex(torch.zeros_like(tensor.double()), -tensor.double()).conj().imag


GOOD_FORMS = {
    "float64": lambda t: t.double(),
    "float32": lambda t: t.float(),
    "float16": lambda t: t.half(),
    "bfloat16": lambda t: t.bfloat16(),
    "int64": lambda t: t,
    "int32": lambda t: t.int(),
    "uint8": lambda t: t.abs().to(torch.uint8),
    "bool": lambda t: t.bool(),
    "with gradient": _with_gradient,
    "inference": _inference,
    "strided": _strided,
    "expanded": lambda t: t[:1].double().expand(*t.shape),
    "negative bit": _negative_bit,
}
BAD_FORMS = {
    "array": lambda t: t.numpy(),
    "list": lambda t: t.tolist(),
    "nothing": lambda t: None,
    "sparse": lambda t: t.double().to_sparse(),
    "complex": lambda t: t.double() + 1j,
    "float8": lambda t: t.float().to(torch.float8_e4m3fn),
    "no examples": lambda t: t[:0].double(),
    "no features": lambda t: t[:, :0].double(),
    "no dimension": lambda t: torch.tensor(1.0),
    "empty tuple": lambda t: (),
}


@st.composite
def inputs(draw, n_rows, n_columns):
    cells = st.lists(st.integers(-2, 2), min_size=n_columns, max_size=n_columns)
    tensor = torch.tensor(draw(st.lists(cells, min_size=n_rows, max_size=n_rows)))
    if draw(st.integers(0, 6)):
        form = draw(st.sampled_from(sorted(GOOD_FORMS)))
        value = GOOD_FORMS[form](tensor)
        meaning = value.detach().double().numpy().copy()
        return Passed(form, (value,) if draw(st.booleans()) else value, meaning)
    form = draw(st.sampled_from(sorted(BAD_FORMS)))
    return Passed(form, BAD_FORMS[form](tensor), None)


@st.composite
def baselines(draw, n_rows, n_columns):
    kind = draw(
        st.sampled_from(
            ["none", "number", "integer", "row", "rows", "wide", "text", "array", "too many"]
        )
    )
    rows = np.round(np.linspace(-1, 1, n_rows * n_columns)).reshape(n_rows, n_columns)
    good = {
        "none": (None, np.zeros((n_rows, n_columns))),
        "number": (1.0, np.ones((n_rows, n_columns))),
        "integer": (1, np.ones((n_rows, n_columns))),
        "row": (torch.tensor(rows[:1]), np.repeat(rows[:1], n_rows, axis=0)),
        "rows": (torch.tensor(rows), rows),
    }
    bad = {
        "wide": torch.zeros(1, n_columns + 1),
        "text": "zeros",
        "array": {"a": 1},
        "too many": (0.0, 0.0, 0.0),
    }
    return Passed(kind, *good[kind]) if kind in good else Passed(kind, bad[kind], None)


@st.composite
def masks(draw, n_columns):
    """Return a feature mask and the columns of each player."""
    kind = draw(st.sampled_from(["none"] * 4 + ["own", "joint", "gaps", "float", "wide", "list"]))
    own = [[column] for column in range(n_columns)]
    numbers = torch.arange(n_columns)[None]
    joint = own if n_columns < 2 else [[0, n_columns - 1], *own[1:-1]]
    together = numbers.clone()
    together[0, -1] = 0
    good = {
        "none": (None, own),
        "own": (numbers, own),
        "joint": (together, joint),
        "gaps": (numbers * 7 + 3, own),
    }
    bad = {
        "float": numbers + 0.5,
        "wide": torch.zeros(1, n_columns + 1, dtype=torch.long),
        "list": [0] * n_columns,
    }
    return Passed(kind, *good[kind]) if kind in good else Passed(kind, bad[kind], None)


# --- forward functions: interactions of all orders, in float64 ---


def curved(x):
    x = x.double()
    return torch.sin(x @ torch.arange(1.0, x.shape[1] + 1).double()) + x[:, 0] * x[:, -1]


def three_classes(x):
    return torch.stack([curved(x), -curved(x), curved(x) ** 2], dim=1)


class ReusesItsBuffer:
    def __init__(self):
        self.buffer = torch.zeros(4096, 3, dtype=torch.float64)

    def __call__(self, x):
        self.buffer[: len(x)] = three_classes(x).detach()
        return self.buffer[: len(x)]


def writes_into_its_input(x):
    values = three_classes(x.clone())
    if x.is_floating_point():
        x.fill_(77.0)
    return values


def takes_its_own_derivative(x):
    with torch.enable_grad():
        free = x.detach().double().requires_grad_()
        (slope,) = torch.autograd.grad(curved(free).sum(), free, create_graph=True)
        return three_classes(free) + slope[:, :1]


FORWARDS = {
    "classes": lambda: three_classes,
    "float32": lambda: lambda x: three_classes(x).float(),
    "reuses its buffer": ReusesItsBuffer,
    "writes into its input": lambda: writes_into_its_input,
    "takes its own derivative": lambda: takes_its_own_derivative,
}
BAD_FORWARDS = {
    "one too many": lambda x: torch.zeros(len(x) + 1, 3),
    "no outputs": lambda x: torch.zeros(len(x), 0),
    "array": lambda x: np.zeros((len(x), 3)),
    "nothing": lambda x: None,
    "complex": lambda x: three_classes(x) * 1j,
    "NaN": lambda x: three_classes(x) * float("nan"),
    "infinite": lambda x: three_classes(x) / 0.0,
    "sparse": lambda x: three_classes(x).to_sparse(),
}


@st.composite
def forwards(draw):
    is_good = draw(st.integers(0, 6)) > 0
    form = draw(st.sampled_from(sorted(FORWARDS if is_good else BAD_FORWARDS)))
    return Passed(form, FORWARDS[form]() if is_good else BAD_FORWARDS[form], is_good or None)


@st.composite
def targets(draw, n_rows):
    kind = draw(
        st.sampled_from(
            ["int"] * 3 + ["numpy", "tensor", "list", "tuple", "beyond", "float", "short", "text"]
        )
    )
    each = [row % 3 for row in range(n_rows)]
    good = {
        "int": (1, [1] * n_rows),
        "numpy": (np.int64(2), [2] * n_rows),
        "tensor": (torch.tensor(each), each),
        "list": (each, each),
        "tuple": ((1,), [1] * n_rows),
    }
    bad = {"beyond": 3, "float": 0.5, "short": [0] * (n_rows + 1), "text": "cat"}
    return Passed(kind, *good[kind]) if kind in good else Passed(kind, bad[kind], None)


BUDGETS = st.one_of(
    st.none(),
    st.integers(ENOUGH, 2 * ENOUGH),
    st.just(np.int64(ENOUGH)),
    st.sampled_from([0, -1, 1, 2.5, True, "many", float("nan"), [10], 10**30]),
)
BATCHES = st.one_of(st.none(), st.integers(1, 7), st.sampled_from([0, -3, 1.5, "all"]))


@dataclass(frozen=True)
class Call:
    method: str
    forward: Passed
    inputs: Passed
    baselines: Passed
    mask: Passed
    target: Passed
    budget: object
    batch: object

    @property
    def is_meaningful(self):
        parts = (self.forward, self.inputs, self.baselines, self.mask, self.target)
        return all(part.meaning is not None for part in parts)

    def attribute(self):
        options = {}
        if self.method in ON_GRAPH:  # on the complete graph all of them are the Shapley value
            n_players = len(self.mask.meaning or [0])
            options["graph"] = [(i, j) for i in range(n_players) for j in range(i)]
        method = getattr(captum_ext, self.method)(self.forward.value, seed=0, **options)
        return method.attribute(
            self.inputs.value,
            baselines=self.baselines.value,
            target=self.target.value,
            feature_mask=self.mask.value,
            n_samples=self.budget,
            perturbations_per_eval=self.batch,
        )

    def expected(self):
        """Return the attributions of the inputs' numbers, (B, M), by enumeration."""
        result = np.zeros_like(self.inputs.meaning)
        for row, (given_row, absent) in enumerate(
            zip(self.inputs.meaning, self.baselines.meaning, strict=True)
        ):

            def value(coalition, given_row=given_row, absent=absent, row=row):
                masked = absent.copy()
                for player in coalition:
                    columns = self.mask.meaning[player]
                    masked[columns] = given_row[columns]
                outputs = self.forward.value(torch.tensor(masked[None]))
                return float(outputs.detach()[0, self.target.meaning[row]])

            values = shapley_values(len(self.mask.meaning), value)
            for player, columns in enumerate(self.mask.meaning):
                result[row, columns] = values[player]
        return result


@st.composite
def calls(draw):
    n_rows, n_columns = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return Call(
        draw(st.sampled_from(METHODS)),
        draw(forwards()),
        draw(inputs(n_rows, n_columns)),
        draw(baselines(n_rows, n_columns)),
        draw(masks(n_columns)),
        draw(targets(n_rows)),
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
            found = call.attribute()
    except ShapleyExtError as error:
        event("refused" if not call.is_meaningful else f"refused: {str(error)[:60]}")
        return
    assert call.is_meaningful, "a call without meaning was answered"
    event("answered")
    tensor = found[0] if isinstance(found, tuple) else found
    assert isinstance(found, tuple) == isinstance(call.inputs.value, tuple)
    given_tensor = call.inputs.value[0] if isinstance(found, tuple) else call.inputs.value
    expected = call.expected()
    is_whole = not given_tensor.is_floating_point()
    coarse = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-5}
    tolerance = 1e-5 if is_whole else coarse.get(tensor.dtype, 1e-9)
    if call.forward.form == "float32":
        tolerance = max(tolerance, 1e-5)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(tensor.double().numpy(), expected, atol=tolerance * scale)
