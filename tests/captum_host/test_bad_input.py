"""Wrong calls: what is raised, and which argument the message names."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from captum_ext import (
    BaselineDistribution,
    Exact,
    LeastSquares,
    OddGP,
    RandomOrder,
    Shear,
)
from shapley_adapters.errors import (
    BudgetError,
    DerivativeError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    NonFiniteValueError,
    ShapleyExtError,
    ShapleyExtWarning,
)
from tests.captum_host.networks import examples, network

pytestmark = pytest.mark.filterwarnings("error")

NET = network(4, 3)
WIDE = network(12, 3)
X = examples(2, 4)
IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])


@dataclass(frozen=True)
class Case:
    """A wrong call, the class it raises, and what the message must name."""

    id: str
    raises: type[Exception]
    names: str
    method: type = Exact
    forward_func: Any = NET
    options: dict[str, Any] = field(default_factory=dict)
    inputs: Any = X
    arguments: dict[str, Any] = field(default_factory=dict)

    def call(self):
        method = self.method(self.forward_func, **self.options)
        return method.attribute(self.inputs, **self.arguments)


def made(case_id, raises, names, **rest):
    return Case(case_id, raises, names, **rest)


def option(case_id, raises, names, method, **options):
    return Case(case_id, raises, names, method=method, options=options)


def with_inputs(case_id, raises, names, inputs, **rest):
    return Case(case_id, raises, names, inputs=inputs, **rest)


def argument(case_id, raises, names, *, inputs=X, method=Exact, forward_func=NET, **arguments):
    return Case(
        case_id,
        raises,
        names,
        inputs=inputs,
        method=method,
        forward_func=forward_func,
        arguments=arguments,
    )


def of_twelve(case_id, raises, names, options, **arguments):
    """Return a call of SHEAR with a network of twelve features."""
    return Case(
        case_id,
        raises,
        names,
        method=Shear,
        forward_func=WIDE,
        options=options,
        inputs=WIDE_X,
        arguments=arguments,
    )


VALUE, TYPE = InvalidArgumentError, InvalidArgumentTypeError
FLOAT_IDS = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
WIDE_X = examples(2, 12)
COOPERATION = np.ones((12, 12))

CASES = [
    # The forward function
    made("forward_func is None", TYPE, "forward_func", forward_func=None),
    made("forward_func is a string", TYPE, "forward_func", forward_func="net"),
    made("tuple output", ModelOutputError, "forward_func", forward_func=lambda x: (x, x)),
    made("dict output", ModelOutputError, "forward_func", forward_func=lambda x: {"logits": x}),
    made("no output", ModelOutputError, "forward_func", forward_func=lambda x: None),
    made("NumPy output", ModelOutputError, "forward_func", forward_func=lambda x: x.numpy()),
    made(
        "output without a row each", ModelOutputError, "forward_func", forward_func=lambda x: x[1:]
    ),
    made(
        "reduced over examples", ModelOutputError, "forward_func", forward_func=lambda x: x.sum(0)
    ),
    # Inputs
    with_inputs("a list", TYPE, r"inputs.*list.*tuple\(inputs\)", [X]),
    with_inputs("a NumPy array", TYPE, r"inputs.*torch\.as_tensor", X.numpy()),
    with_inputs("nothing", TYPE, "inputs.*None", None),
    with_inputs("nothing in a tuple", TYPE, r"inputs\[1\] is None.*forward_func=lambda", (X, None)),
    with_inputs("an array in a tuple", TYPE, r"inputs\[1\]", (X, X.numpy())),
    with_inputs("no dimension", VALUE, r"inputs\[0\]", torch.tensor(1.0)),
    with_inputs("no examples", VALUE, "inputs", X[:0]),
    with_inputs("no tensors", VALUE, "inputs", ()),
    with_inputs("no numbers", VALUE, "inputs", torch.zeros(2, 0)),
    with_inputs("unequal lengths", VALUE, "inputs", (X, X[:1])),
    with_inputs("complex", TYPE, r"inputs\[0\]", X.to(torch.complex128)),
    # Baselines
    argument("baselines of another width", VALUE, r"baselines\[0\]", baselines=torch.zeros(2, 3)),
    argument("baselines without a batch", VALUE, r"baselines\[0\]", baselines=torch.zeros(4)),
    argument("a row as baseline", VALUE, r"baselines\[0\].*\[None\]", baselines=torch.zeros(4)),
    argument("no rows of baselines", VALUE, r"baselines\[0\]", baselines=torch.zeros(0, 4)),
    argument("too many baselines", VALUE, "baselines", baselines=(0, 0)),
    argument("too few baselines", VALUE, "baselines", inputs=(X, X), baselines=torch.zeros(2, 4)),
    argument("a string as baseline", TYPE, r"baselines\[0\]", baselines="mean"),
    argument("a list as baseline", TYPE, "baselines.*list.*torch.tensor", baselines=[0, 0, 0, 0]),
    argument(
        "a list of baselines",
        TYPE,
        r"baselines.*list.*tuple\(baselines\)",
        inputs=(X, X),
        baselines=[X, X],
    ),
    argument("a dict as baselines", TYPE, r"baselines.*dict.*tuple", baselines={"x": X}),
    argument(
        "a NumPy baseline",
        TYPE,
        r"baselines\[0\].*torch\.as_tensor",
        baselines=np.zeros((2, 4)),
    ),
    argument("a fraction for token ids", VALUE, r"baselines\[0\]", inputs=IDS, baselines=0.5),
    argument(
        "a tensor of fractions for token ids",
        VALUE,
        r"baselines\[0\]",
        inputs=IDS,
        baselines=torch.full((1, 4), 0.5),
    ),
    argument("NaN for token ids", VALUE, r"baselines\[0\]", inputs=IDS, baselines=float("nan")),
    argument("too large for uint8", VALUE, r"baselines\[0\]", inputs=IDS.byte(), baselines=300),
    argument("two for a bool", VALUE, r"baselines\[0\]", inputs=IDS.bool(), baselines=2),
    argument("a complex baseline", TYPE, r"baselines\[0\]", baselines=1j),
    argument(
        "a complex tensor as baseline",
        TYPE,
        r"baselines\[0\]",
        baselines=torch.zeros(1, 4, dtype=torch.complex128),
    ),
    argument(
        "too large for float16",
        VALUE,
        r"baselines\[0\]",
        inputs=X.half(),
        baselines=1e6,
        forward_func=lambda x: torch.tanh(x.double()),
    ),
    # Targets
    argument("a float target", TYPE, "target", target=1.0),
    argument("a string target", TYPE, "target", target="cat"),
    argument("a bool target", TYPE, "target", target=True),
    argument("a tensor of floats", TYPE, "target", target=torch.tensor([0.0, 1.0])),
    argument("targets for three of two", VALUE, "target", target=torch.tensor([0, 1, 2])),
    argument("targets in a column", VALUE, "target", target=torch.tensor([[0], [1]])),
    argument("a list of strings", VALUE, "target", target=["a", "b"]),
    argument("a target beyond the outputs", VALUE, "target", target=3),
    argument("one of them beyond the outputs", VALUE, "target", target=torch.tensor([0, 3])),
    argument("too deep a target", VALUE, "target", target=(0, 1)),
    argument(
        "a target of no dimension", VALUE, "target", target=0, forward_func=lambda x: x.sum(1)
    ),
    # Feature masks
    argument(
        "a mask of fractions", VALUE, r"feature_mask\[0\].*0\.5", feature_mask=FLOAT_IDS - 0.5
    ),
    argument("a list as mask", TYPE, r"feature_mask\[0\]", feature_mask=[[0, 0, 1, 1]]),
    argument(
        "a list of masks", TYPE, r"tuple\(feature_mask\)", inputs=(X, X), feature_mask=[IDS, IDS]
    ),
    argument("a NumPy mask", TYPE, r"feature_mask\[0\]", feature_mask=np.zeros((1, 4), dtype=int)),
    argument("a mask of another width", VALUE, r"feature_mask\[0\]", feature_mask=IDS[:, :3]),
    argument("a mask of more dimensions", VALUE, r"feature_mask\[0\]", feature_mask=IDS[None]),
    argument("a mask for one of two", VALUE, "feature_mask", inputs=(X, X), feature_mask=IDS),
    argument(
        "a mask for one of two, tuple", VALUE, "feature_mask", inputs=(X, X), feature_mask=(IDS,)
    ),
    # Budgets, batches and flags
    argument("no samples", VALUE, "n_samples", n_samples=0),
    argument("a fraction of samples", TYPE, "n_samples", n_samples=25.0),
    argument("a word for samples", TYPE, "n_samples", n_samples="auto"),
    argument("a flag for samples", TYPE, "n_samples", n_samples=True),
    argument("no perturbations", VALUE, "perturbations_per_eval", perturbations_per_eval=0),
    argument("a number as flag", TYPE, "return_standard_error", return_standard_error=1),
    argument("a word as flag", TYPE, "show_progress", show_progress="yes"),
    argument("exact below 2^M", BudgetError, "n_samples=15.*16", n_samples=15),
    of_twelve("SHEAR below 4 M + 2", BudgetError, "n_samples=49.*50", {}, n_samples=49),
    argument("too many features for exact", BudgetError, "20", inputs=examples(2, 21)),
    # One value for the whole batch
    argument(
        "several perturbations of a whole batch",
        VALUE,
        "perturbations_per_eval",
        forward_func=lambda x: x.sum(),
        perturbations_per_eval=2,
    ),
    argument("a target of a number", VALUE, "target", forward_func=lambda x: x.sum(), target=0),
    argument(
        "a mask for each example of a whole batch",
        VALUE,
        "feature_mask",
        forward_func=lambda x: float(x.sum()),
        feature_mask=IDS,
    ),
    # Options of the methods
    option("a negative seed", VALUE, "seed", Exact, seed=-1),
    option("a generator as seed", TYPE, "seed", Shear, seed=torch.Generator()),
    option("antithetic is a number", TYPE, "antithetic", RandomOrder, antithetic=1),
    option("paired is a word", TYPE, "paired", LeastSquares, paired="yes"),
    option("unknown sizes", VALUE, "sizes.*kernel.*leverage", LeastSquares, sizes="uniform"),
    option("unknown cooperators", VALUE, "cooperators.*hessian", Shear, cooperators="Hessian"),
    option("cooperators not square", VALUE, "cooperators", Shear, cooperators=np.ones((2, 3))),
    option("negative cooperators", VALUE, "cooperators", Shear, cooperators=-COOPERATION),
    option("cooperators by chance", VALUE, "cooperators.*auto", OddGP, cooperators="random"),
    option("an unknown prior", VALUE, "cooperators.*hessian", OddGP, cooperators="shap"),
    option("unknown complement", VALUE, "complement.*posterior", Shear, complement="beta"),
    of_twelve(
        "cooperators of other features",
        VALUE,
        "cooperators.*12",
        {"cooperators": np.ones((4, 4))},
        n_samples=100,
    ),
    of_twelve(
        "errors where nothing is drawn",
        VALUE,
        "complement",
        {"complement": "none"},
        n_samples=200,
        return_standard_error=True,
    ),
    Case(
        "derivatives of token ids",
        DerivativeError,
        "cooperators.*inputs",
        method=Shear,
        forward_func=lambda x: x.double().prod(dim=1),
        options={"cooperators": "hessian"},
        inputs=IDS.repeat(1, 3),
        arguments={"n_samples": 100},
    ),
]

# What only some inputs, baselines and tools make possible
MORE_CASES = [
    made(
        "a future as output",
        ModelOutputError,
        "forward_func",
        forward_func=lambda x: torch.futures.Future(),
    ),
    made(
        "an object with logits",
        ModelOutputError,
        "forward_func",
        forward_func=lambda x: SimpleNamespace(logits=x),
    ),
    argument(
        "distributions that do not belong together",
        VALUE,
        "baselines.*3 and 5",
        inputs=(X, X),
        baselines=(torch.zeros(3, 4), torch.zeros(5, 4)),
    ),
    of_twelve(
        "differences cost more",
        BudgetError,
        "n_samples=127.*128",
        {"cooperators": "difference"},
        n_samples=127,
    ),
    # The forward function
    made("complex output", ModelOutputError, "forward_func", forward_func=lambda x: x * 1j),
    made("sparse output", ModelOutputError, "forward_func", forward_func=lambda x: x.to_sparse()),
    # Inputs
    with_inputs("a text", TYPE, r"inputs\[0\]", "the cat"),
    with_inputs("a dict", TYPE, r"inputs.*dict.*tuple\(inputs\.values\(\)\)", {"input_ids": IDS}),
    with_inputs("a tuple in a tuple", TYPE, r"inputs\[0\]", ((X,),)),
    with_inputs("sparse", TYPE, r"inputs\[0\].*sparse_coo", X.to_sparse()),
    with_inputs("the second is sparse", TYPE, r"inputs\[1\].*sparse_coo", (X, X.to_sparse())),
    with_inputs("without numbers", TYPE, r"inputs\[0\].*meta", X.to("meta")),
    # Baselines
    argument(
        "a distribution of another width",
        VALUE,
        r"baselines\[0\].*\(rows, 4\)",
        baselines=torch.zeros(9, 3),
    ),
    argument(
        "a distribution with a fraction for token ids",
        VALUE,
        r"baselines\[0\]",
        inputs=IDS,
        baselines=torch.tensor([[0.0] * 4, [0.5] * 4, [1.0] * 4]),
    ),
    argument(
        "one marked distribution for two inputs",
        VALUE,
        "baselines.*2 inputs",
        inputs=(X, X),
        baselines=BaselineDistribution(torch.zeros(3, 4)),
    ),
    argument("a list for two inputs", TYPE, "baselines.*tuple", inputs=(X, X), baselines=[0, 0]),
    argument("a sparse baseline", TYPE, r"baselines\[0\].*sparse", baselines=X.to_sparse()),
    argument("a function that returns nothing", TYPE, "baselines", baselines=lambda: None),
    argument("a function that returns one", TYPE, "baselines", baselines=lambda: lambda: 0),
    argument(
        "a function that returns an array",
        TYPE,
        r"baselines\[0\].*ndarray",
        baselines=lambda x: np.zeros((3, 4)),
    ),
    argument(
        "a function that returns too many", VALUE, "baselines.*got 2", baselines=lambda x: (x, x)
    ),
    argument(
        "a function in a tuple", TYPE, r"baselines\[1\]", inputs=(X, X), baselines=(0, lambda: 0)
    ),
    # Targets
    argument("a dict as target", TYPE, "target", target={0: 1}),
    argument("a tuple of words", VALUE, "target", target=("cat",)),
    argument("a target before the outputs", VALUE, "target", target=-4),
    argument("an empty list of targets", VALUE, "target", target=[]),
    # Feature masks
    argument("two masks for one", VALUE, "feature_mask", feature_mask=(IDS, IDS)),
    argument("a number as mask", TYPE, r"feature_mask\[0\]", feature_mask=3),
    argument("a sparse mask", TYPE, r"feature_mask\[0\].*sparse", feature_mask=IDS.to_sparse()),
    argument("a complex mask", TYPE, r"feature_mask\[0\]", feature_mask=IDS.to(torch.complex64)),
    argument(
        "the second mask is of another width",
        VALUE,
        r"feature_mask\[1\]",
        inputs=(X, X),
        feature_mask=(IDS, IDS[:, :2]),
    ),
    # Budgets, batches, tolerances and flags
    argument("a negative tolerance", VALUE, "tolerance", tolerance=-0.1),
    # Value functions
    option("an unknown value function", VALUE, "value_function", Exact, value_function="logit"),
    Case(
        "a class for the expectation over all",
        VALUE,
        "target.*expected_log_probability",
        options={"value_function": "expected_log_probability"},
        arguments={"target": 1},
    ),
    Case(
        "a tuple as class",
        VALUE,
        "target.*log_probability",
        options={"value_function": "log_probability"},
        arguments={"target": (0, 1)},
    ),
    Case(
        "a value function of one value for the batch",
        VALUE,
        "value_function.*forward_func",
        forward_func=lambda x: x.sum(),
        options={"value_function": "log_probability"},
    ),
]
CASES += MORE_CASES


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[0.0]], TYPE),
        (np.zeros((2, 4)), TYPE),
        (None, TYPE),
        (torch.tensor(0.0), VALUE),
        (torch.zeros(0, 4), VALUE),
    ],
    ids=["list", "array", "None", "no dimension", "no rows"],
)
def test_distributions_of_something_else(rows, kind):
    with pytest.raises(kind, match="rows"):
        BaselineDistribution(rows)


BUILT_IN = {
    InvalidArgumentError: ValueError,
    InvalidArgumentTypeError: TypeError,
    BudgetError: ValueError,
    ModelOutputError: ValueError,
    DerivativeError: RuntimeError,
}


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_wrong_calls(case):
    calls = []

    def counted(x):
        calls.append(len(x))
        return NET(x)

    if case.forward_func is NET:
        case = replace(case, forward_func=counted)
    with pytest.raises(case.raises, match=case.names) as caught:
        case.call()
    if case.names != "target":  # only the output tells whether it fits
        assert not calls, "the model was called before the argument was read"
    assert type(caught.value) is case.raises
    assert isinstance(caught.value, ShapleyExtError)
    assert isinstance(caught.value, BUILT_IN[case.raises])


@pytest.mark.parametrize("method", [Exact, Shear])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_outputs_that_are_not_finite(method, bad):
    # Only where the third feature is present in the second example.
    def forward(x):
        return torch.where(x[:, 2] == X[1, 2], bad, x.sum(dim=1))

    with pytest.raises(NonFiniteValueError, match=f"row 1, output 0, is {bad}") as caught:
        method(forward, seed=0).attribute(X)
    assert type(caught.value) is NonFiniteValueError
    assert isinstance(caught.value, ArithmeticError)


def test_errors_of_the_model_itself_are_not_dressed_up():
    class OddError(Exception):
        pass

    def forward(_x):
        raise OddError("mine")

    with pytest.raises(OddError, match="mine"):
        Exact(forward).attribute(X)


def test_a_failed_call_leaves_the_method_usable():
    method = Exact(NET, seed=0)
    wanted = method.attribute(X, target=0)
    before = method.last_estimate
    with pytest.raises(InvalidArgumentError):
        method.attribute(X, target=7)
    assert method.last_estimate is before
    assert torch.equal(method.attribute(X, target=0), wanted)


def test_one_class_catches_them_all_and_the_warnings():
    for error in (*BUILT_IN, NonFiniteValueError):
        assert issubclass(error, ShapleyExtError)
    assert issubclass(ShapleyExtWarning, UserWarning)


@pytest.mark.parametrize("kind", [int, torch.nn.Identity])
def test_classes_are_no_forward_functions(kind):
    with pytest.raises(TypeError, match=f"forward_func .* the class {kind.__name__}.*object"):
        Exact(kind)


@pytest.mark.parametrize("batch", [False, True])
def test_whole_numbers_that_double_precision_rounds_are_refused(batch):
    """2^60 and 2^60 + 1 are one number in double precision."""
    for start in (2**60, -(2**60)):

        def forward(x, start=start):
            outputs = (x[:, 0] > 0).long() + start
            return int(outputs[0]) if batch else outputs

        with pytest.raises(ModelOutputError, match=rf"beyond 2\^53, such as {start}"):
            Exact(forward).attribute(torch.ones(1, 3), n_samples=8)
    found = Exact(lambda x: (x[:, 0] > 0).long() + 2**40).attribute(torch.ones(1, 3), n_samples=8)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0, 0.0]]), rtol=0, atol=1e-3)
