"""Random calls of the attribution methods: right by enumeration, or the error is ours."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

import captum_ext
from captum_ext import BaselineDistribution, PerExample, Shared
from shapley_adapters.errors import ShapleyExtError, ShapleyExtWarning
from tests.helpers.brute_force import shapley_values
from tests.helpers.estimator_table import OF_CLASSES

ENOUGH = 2**5
"""Evaluations that pay for all coalitions of the players drawn here."""

ON_GRAPH = {"LShapley", "CShapley", "Myerson"}
OF_NO_GRAPH = [row.attribution.__name__ for row in OF_CLASSES]
METHODS = [*OF_NO_GRAPH, *sorted(ON_GRAPH)]


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
    "float8": lambda t: t.float().to(torch.float8_e4m3fn),
    "another float8": lambda t: t.float().to(torch.float8_e5m2),
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
    "no examples": lambda t: t[:0].double(),
    "no features": lambda t: t[:, :0].double(),
    "no dimension": lambda t: torch.tensor(1.0),
    "empty tuple": lambda t: (),
}


# --- layouts: how the numbers of an example, (B, M), are arranged in tensors ---


def _split(tensor):
    return tensor[..., 0], tensor[..., 1:]


def _deep(tensor):
    return tensor.reshape(*tensor.shape[:-1], 2, -1)


LAYOUTS = {"flat": lambda t: t, "pair": _split, "deep": _deep}
"""Named by what they are: one tensor (B, M), two, (B,) and (B, M - 1), or one (B, 2, M / 2)."""


def flattened(tensors):
    """Undo a layout: (B, M)."""
    parts = tensors if isinstance(tensors, tuple) else (tensors,)
    return torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)


def arranged(layout, passed):
    """Lay out a tensor with a column for each number; leave what is no such tensor as it is."""
    value = passed.value
    if np.ndim(value) == 0 and value is not None:
        return (value, value) if layout == "pair" else value
    is_tensor = isinstance(value, torch.Tensor) and passed.meaning is not None
    return LAYOUTS[layout](value) if is_tensor else value


def inputs(random, n_rows, n_columns, is_bad):
    cells = random.choices(range(-2, 3), k=n_rows * n_columns)
    tensor = torch.tensor(cells).reshape(n_rows, n_columns)
    if not is_bad:
        form = random.choice(sorted(GOOD_FORMS))
        value = GOOD_FORMS[form](tensor)
        meaning = value.detach().resolve_neg().double().numpy().copy()
        return Passed(form, value, meaning)
    form = random.choice(sorted(BAD_FORMS))
    return Passed(form, BAD_FORMS[form](tensor), None)


def one_of(random, good, bad, is_bad):
    """Draw one of the good forms, values with meanings, or of the bad ones, values alone."""
    if is_bad:
        return random.choice([Passed(form, value, None) for form, value in bad.items()])
    return random.choice([Passed(form, *both) for form, both in good.items()])


def baselines(random, n_rows, n_columns, is_bad):
    """Draw baselines that stand for the same rows in each of some draws, (draws, B, M)."""
    rows = np.round(np.linspace(-1, 1, n_rows * n_columns)).reshape(1, n_rows, n_columns)
    drawn = np.array([-1.0, 0.0, 0.0, 2.0, 1.0])[:, None, None] * np.ones((n_rows, n_columns))
    good = {
        "none": (None, 0 * rows),
        "number": (1.0, 0 * rows + 1),
        "integer": (1, 0 * rows + 1),
        "number of numpy": (np.float64(1), 0 * rows + 1),
        "number as tensor": (torch.tensor(1), 0 * rows + 1),
        "row": (torch.tensor(rows[0, :1]), 0 * rows + rows[:, :1]),
        "rows": (torch.tensor(rows[0]), rows),
        "float32 rows": (torch.tensor(rows[0]).float(), rows),
        "five draws": (torch.tensor(drawn[:, 0]), drawn),
        "marked": (BaselineDistribution(torch.tensor(rows[0])), rows[0][:, None] + 0 * rows),
    }
    bad = {
        "wide": torch.zeros(1, n_columns + 1),
        "text": "zeros",
        "dict": {"a": 1},
        "too many": (0.0, 0.0, 0.0),
    }
    return one_of(random, good, bad, is_bad)


def masks(random, n_rows, n_columns, is_bad):
    """Draw a feature mask and the players' ids that it stands for, (B, M)."""
    ids = np.arange(n_columns) + np.zeros((n_rows, 1), dtype=int)
    joint = np.where(ids == n_columns - 1, 0, ids)
    turned = (ids + np.arange(n_rows)[:, None]) % n_columns // 2
    good = {
        "none": (None, ids),
        "own": (torch.tensor(ids[:1]), ids),
        "joint": (torch.tensor(joint[:1]), joint),
        "without the batch": (torch.tensor(joint[0]), joint),
        "one number": (torch.tensor(3), 0 * ids + 3),
        "not contiguous": (torch.tensor(joint[:1].repeat(2, axis=1))[:, ::2], joint),
        "gaps": (torch.tensor(ids[:1] * 7 - 9), ids * 7 - 9),
        "large": (torch.tensor(joint[:1] + 2**40), joint + 2**40),
        "int32": (torch.tensor(joint[:1]).int(), joint),
        "each example": (torch.tensor(turned), turned),
        "other ids": (torch.tensor(turned + 3 * ids[:, :1]), turned + 3 * ids[:, :1]),
    }
    bad = {
        "float": torch.tensor(ids[:1] + 0.5),
        "wide": torch.zeros(1, n_columns + 1, dtype=torch.long),
        "list": [0] * n_columns,
    }
    return one_of(random, good, bad, is_bad)


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


def of_the_batch(x):
    return three_classes(x).sum()


def reused_of_the_batch():
    memory = torch.zeros((), dtype=torch.float64)
    return lambda x: memory.copy_(of_the_batch(x).detach())


FORWARDS = {
    "classes": lambda: three_classes,
    "negative view": lambda: lambda x: torch._neg_view(-three_classes(x)),
    "the batch": lambda: of_the_batch,
    "the batch, as a number": lambda: lambda x: float(of_the_batch(x)),
    "the batch, reused": reused_of_the_batch,
    "float32": lambda: lambda x: three_classes(x).float(),
    "reuses its buffer": ReusesItsBuffer,
    "writes into its input": lambda: writes_into_its_input,
    "takes its own derivative": lambda: takes_its_own_derivative,
}
OF_THE_BATCH = {form for form in FORWARDS if form.startswith("the batch")}
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


def forwards(random, is_bad):
    good = {form: (make(), True) for form, make in FORWARDS.items()}
    return one_of(random, good, BAD_FORWARDS, is_bad)


def targets(random, n_rows, is_bad, is_of_batch):
    each = [row % 3 for row in range(n_rows)]
    good = {
        "none": (None, [slice(None)] * n_rows),
        "int": (1, [1] * n_rows),
        "last": (-1, [2] * n_rows),
        "numpy": (np.int64(2), [2] * n_rows),
        "array of one": (np.array([1]), [1] * n_rows),
        "array": (np.array(each, dtype=np.uint8), each),
        "tensor": (torch.tensor(each), each),
        "tensor of one": (torch.tensor([2]), [2] * n_rows),
        "0-d tensor": (torch.tensor(2), [2] * n_rows),
        "list": (each, each),
        "list of numpy": ([np.int64(target) for target in each], each),
        "list of tuples": ([(np.uint8(target),) for target in each], each),
        "tuple": ((1,), [1] * n_rows),
    }
    bad = {
        "beyond": 3, "float": np.float64(0.5), "bools": np.array([True] * n_rows),
        "short": [0] * (n_rows + 1), "text": "cat",
    }  # fmt: skip
    return one_of(random, {"none": good["none"]} if is_of_batch else good, bad, is_bad)


NUMBERS: dict[str, tuple[list[Any], list[Any]]] = {
    "budget": (
        [None, None, ENOUGH, 2 * ENOUGH, np.int64(ENOUGH), 10**30],
        [0, -1, 2.5, True, "many", float("nan"), [10]],
    ),
    "batch": ([None, None, 1, 2, 3, 7], [0, -3, 1.5, "all"]),
    "tolerance": ([None, None, None, 1e-12], [-1.0, "much", float("nan")]),
}
"""Good and bad values."""

FURTHER: dict[str, tuple[Any, Any]] = {
    "none": (lambda n: None, np.ones),
    "own": (lambda n: torch.arange(n) / 2, lambda n: np.arange(n) / 2),
    "marked": (lambda n: PerExample(torch.arange(n)), np.arange),
    "marked within a dict": (lambda n: {"a": PerExample(torch.arange(n))}, np.arange),
    "shared": (lambda n: Shared(torch.arange(n)), lambda n: np.full(n, np.arange(n).sum())),
}
"""Further arguments of the forward function for n examples, and the weight of each example."""

BAD_FURTHER = {
    "marked too long": lambda n: PerExample(torch.arange(n + 1)),
    "marked within a list": lambda n: [PerExample(torch.arange(n + 1))],
}
PARTS = ["forward", "inputs", "baselines", "mask", "target", "further", *NUMBERS]


@dataclass(frozen=True)
class Call:
    method: str
    n_rows: int
    forward: Passed
    inputs: Passed
    baselines: Passed
    mask: Passed
    target: Passed
    further: Passed
    layout: str
    is_tuple: bool
    by_function: bool
    budget: object
    batch: object
    tolerance: object
    with_errors: bool
    with_input_shape: bool

    @property
    def is_of_batch(self):
        return self.forward.form in OF_THE_BATCH

    @property
    def has_meaning(self):
        parts = ["forward", "inputs", "baselines", "mask", "target", "further"]
        if any(getattr(self, part).meaning is None for part in parts):
            return False
        if any(getattr(self, name) in bad for name, (_, bad) in NUMBERS.items()):
            return False
        is_alike = self.n_rows == 1 or self.mask.form not in ("each example", "other ids")
        return not self.is_of_batch or (
            self.target.value is None and self.batch in (None, 1) and is_alike
        )

    @property
    def has_baselines_of_another_type(self):
        is_small = self.inputs.form in ("bool", "uint8")
        return is_small and np.ndim(self.baselines.value) > 0

    @property
    def may_be_a_tensor_of_the_batch(self):
        """`perturbations_per_eval=1` says that any shape of the outputs is meant."""
        is_so = self.forward.form == "one too many" and self.batch == 1
        return is_so and self.target.value is None

    def _forward(self, *arguments):
        """Call the function that was drawn; outputs are multiplied by the examples' weights."""
        n_tensors = 2 if self.layout == "pair" else 1
        tensors, further = arguments[:n_tensors], arguments[n_tensors:]
        assert all(type(one) is torch.Tensor for one in tensors)
        assert all(one.dtype == self.inputs.value.dtype for one in tensors)
        output = self.forward.value(flattened(tensors))
        if not further or self.forward.meaning is None:
            return output
        weights = further[0]["a"] if isinstance(further[0], dict) else further[0]
        weights = weights.sum() if self.further.form == "shared" else weights.reshape(-1, 1)
        return output * (weights.double().mean() if self.is_of_batch else weights.to(output))

    def attribute(self):
        options = {}
        if self.method in ON_GRAPH:  # on the complete graph all of them are the Shapley value
            ids = [0] if self.mask.meaning is None else self.mask.meaning[0]
            options["graph"] = np.array(np.triu_indices(len(set(ids)), 1))
        method = getattr(captum_ext, self.method)(self._forward, seed=0, **options)
        given = arranged(self.layout, self.inputs)
        absent = arranged(self.layout, self.baselines)
        return method.attribute(
            (given,) if self.is_tuple and isinstance(given, torch.Tensor) else given,
            baselines=(lambda _: absent) if self.by_function else absent,
            target=self.target.value,
            additional_forward_args=self.further.value,
            feature_mask=arranged(self.layout, self.mask),
            n_samples=self.budget,
            perturbations_per_eval=self.batch,
            tolerance=self.tolerance,
            return_standard_error=self.with_errors,
            return_input_shape=self.with_input_shape,
        )

    def expected(self):
        """Return the attributions by enumeration: of the numbers, and of the groups in order."""
        ids, weights = self.mask.meaning, self.further.meaning
        everyone = list(range(self.n_rows))
        parts = [everyone] if self.is_of_batch else [[row] for row in everyone]
        of_numbers, of_groups = [], []
        for rows in parts:
            players = sorted(set(ids[rows[0]]))

            def value(coalition, rows=rows, players=players):
                present = np.isin(ids[rows], [players[player] for player in coalition])
                outputs = []
                for absent in self.baselines.meaning[:, rows]:
                    masked = np.where(present, self.inputs.meaning[rows], absent)
                    output = self.forward.value(torch.tensor(masked))
                    output = torch.as_tensor(output, dtype=torch.float64).detach().clone()
                    outputs.append(output.reshape(-1, 1 if self.is_of_batch else 3)[0].numpy())
                target = slice(None) if self.is_of_batch else self.target.meaning[rows[0]]
                mean = np.mean(outputs, axis=0)[target]
                return np.atleast_1d(mean) * float(np.mean(weights[rows]))

            values = shapley_values(len(players), value).T
            of_numbers.append(values[:, [players.index(one) for one in ids[rows[0]]]])
            of_groups.append(np.zeros((len(values), ids.max() - ids.min() + 1)))
            of_groups[-1][:, np.array(players) - ids.min()] = values
        return np.stack(of_numbers), np.stack(of_groups)


def drawn_call(random):
    n_rows, n_columns = random.randint(1, 3), random.randint(1, 4)
    fault = random.choice([None] * 4 * len(PARTS) + PARTS)
    forward = forwards(random, fault == "forward")
    is_of_batch = forward.form in OF_THE_BATCH and fault is None
    absent = baselines(random, n_rows, n_columns, fault == "baselines")
    mask = masks(random, n_rows, n_columns, fault == "mask")
    is_shared = mask.meaning is None or (mask.meaning == mask.meaning[0]).all()
    layouts = ["flat"]
    if fault is None and n_columns > 1:
        layouts += ["pair"] + ["deep"] * (n_columns % 2 == 0)
    good = {form: (value(n_rows), weight(n_rows)) for form, (value, weight) in FURTHER.items()}
    bad = {form: value(n_rows) for form, value in BAD_FURTHER.items()}
    return Call(
        method=random.choice(METHODS if is_shared else OF_NO_GRAPH),
        n_rows=n_rows,
        forward=forward,
        inputs=inputs(random, n_rows, n_columns, fault == "inputs"),
        baselines=absent,
        mask=mask,
        target=targets(random, n_rows, fault == "target", is_of_batch),
        further=one_of(random, good, bad, fault == "further"),
        layout=random.choice(layouts),
        is_tuple=random.random() < 0.5,
        by_function=absent.value is not None and random.random() < 0.5,
        with_errors=random.random() < 0.5,
        with_input_shape=random.random() < 0.5,
        **{name: random.choice(NUMBERS[name][fault == name]) for name in NUMBERS},
    )


def precision(call, dtype):
    """Return the rounding error that the types of the inputs and outputs allow."""
    coarse = {
        torch.float8_e4m3fn: 7e-2,
        torch.float8_e5m2: 2e-1,
        torch.float16: 1e-2,
        torch.bfloat16: 5e-2,
    }
    is_double = call.inputs.value.dtype == torch.float64 and call.forward.form != "float32"
    return coarse.get(dtype, 1e-9 if is_double else 1e-5)


def check_shape(call, found, expected):
    """Return one of the results as an array like `expected`, (rows, outputs, numbers)."""
    is_tuple = call.with_input_shape and (call.is_tuple or call.layout == "pair")
    assert isinstance(found, tuple) == is_tuple
    outputs = () if call.target.value is not None or call.is_of_batch else (3,)
    parts = found if isinstance(found, tuple) else (found,)
    assert not any(part.requires_grad for part in parts)
    if call.with_input_shape:
        wanted = arranged(call.layout, call.inputs)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        shapes = [(len(expected), *outputs, *tensor.shape[1:]) for tensor in wanted]
        assert [tuple(part.shape) for part in parts] == shapes
    flat = [part.detach().double().numpy().reshape(*expected.shape[:2], -1) for part in parts]
    return np.concatenate(flat, axis=2)


def check_result(call, found):
    attributions, errors = found if call.with_errors else (found, None)
    of_numbers, of_groups = call.expected()
    expected = of_numbers if call.with_input_shape else of_groups
    first = attributions[0] if isinstance(attributions, tuple) else attributions
    if not call.is_of_batch:  # the widest of float32 and the types of inputs and output
        is_single = call.forward.form == "float32" and call.inputs.value.dtype != torch.float64
        assert first.dtype == (torch.float32 if is_single else torch.float64)
    scale = precision(call, first.dtype) * max(1.0, np.abs(expected).max())
    values = check_shape(call, attributions, expected)
    np.testing.assert_allclose(values, expected, atol=scale)
    if errors is not None:  # all coalitions have been evaluated
        np.testing.assert_allclose(check_shape(call, errors, expected), 0.0, atol=scale)


@settings(max_examples=300, derandomize=True)
@given(st.randoms(use_true_random=True).map(drawn_call))
def test_the_answer_is_right_or_the_error_is_ours(call):
    passed = [getattr(call, part).value for part in ("inputs", "baselines", "mask", "target")]
    tensors = [value for value in passed if isinstance(value, torch.Tensor)]
    copies = [tensor.detach().clone() for tensor in tensors]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapleyExtWarning)
            found = call.attribute()
    except ShapleyExtError:
        event("refused")
        if not call.has_baselines_of_another_type:
            assert not call.has_meaning, "a call with a meaning was refused"
        return
    if call.may_be_a_tensor_of_the_batch:
        return
    assert call.has_meaning, "a call without meaning was answered"
    event("answered")
    assert all(map(torch.equal, tensors, copies)), "tensors of the user were changed"
    check_result(call, found)
