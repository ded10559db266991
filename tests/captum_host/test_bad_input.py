"""Wrong calls: what is raised, and which argument the message names."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from captum_ext import (
    AVA,
    BaselineDistribution,
    Centroid,
    Convex,
    Exact,
    LeastSquares,
    OddGP,
    RandomOrder,
    Shear,
    ValueFunction,
    combine,
    criteria,
)
from shapley_adapters.aggregation import Centroid as CoreCentroid
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    ShapleyExtError,
)
from tests.captum_host.networks import Recorder, examples, network

pytestmark = pytest.mark.filterwarnings("error")

NET = network(4, 3)
X = examples(2, 4)
IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])


OPTIONS = {
    "antithetic", "complement", "cooperators", "paired", "seed", "sizes", "value_function",
}  # fmt: skip


def wrong(raises, names, *, method=Exact, forward_func=NET, inputs=X, **arguments):
    """Return a wrong call, the class it raises, and what the message must name."""
    return pytest.param(raises, names, method, forward_func, inputs, arguments, id=names)


VALUE, TYPE, OUTPUT = InvalidArgumentError, InvalidArgumentTypeError, ModelOutputError
FLOAT_IDS = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
OF_TWELVE = {"method": Shear, "forward_func": network(12, 3), "inputs": examples(2, 12)}
COOPERATION, EXPECTED = np.ones((12, 12)), "expected_log_probability"
SQUARES = lambda x: x.reshape(-1, 2, 2)  # noqa: E731

CASES = [
    # The forward function
    wrong(TYPE, "forward_func", forward_func=None),
    wrong(TYPE, "forward_func .* the class int.*object", forward_func=int),
    wrong(OUTPUT, "forward_func", forward_func=lambda x: (x, x)),
    wrong(OUTPUT, "forward_func", forward_func=lambda x: {"logits": x}),
    wrong(OUTPUT, "forward_func", forward_func=lambda x: x[1:]),
    wrong(OUTPUT, "forward_func.*returned a complex one", forward_func=lambda x: x * 1j),
    wrong(OUTPUT, "returned a meta one", forward_func=lambda x: x.to("meta")),
    wrong(OUTPUT, r"shape \(0,\)", forward_func=lambda x: x[:, :0]),
    wrong(OUTPUT, "forward_func.*returned a sparse one", forward_func=lambda x: x.to_sparse()),
    wrong(OUTPUT, "forward_func", forward_func=lambda x: torch.futures.Future()),
    wrong(OUTPUT, "forward_func", forward_func=lambda x: SimpleNamespace(logits=x)),
    # Inputs
    wrong(TYPE, r"inputs.*list.*tuple\(inputs\)", inputs=[X]),
    wrong(TYPE, r"inputs.*torch\.as_tensor", inputs=X.numpy()),
    wrong(TYPE, "inputs.*None", inputs=None),
    wrong(TYPE, r"inputs\[1\]", inputs=(X, X.numpy())),
    wrong(VALUE, r"inputs\[0\]", inputs=torch.tensor(1.0)),
    wrong(VALUE, "inputs", inputs=X[:0]),
    wrong(VALUE, "inputs", inputs=()),
    wrong(VALUE, "inputs", inputs=torch.zeros(2, 0)),
    wrong(VALUE, "inputs", inputs=(X, X[:1])),
    wrong(TYPE, r"inputs\[1\].*sparse_coo", inputs=(X, X.to_sparse())),
    wrong(TYPE, r"inputs\[0\].*meta", inputs=X.to("meta")),
    # Baselines
    wrong(VALUE, r"baselines\[0\].*\[None\]", baselines=torch.zeros(4)),
    wrong(VALUE, r"baselines\[0\]", baselines=torch.zeros(0, 4)),
    wrong(TYPE, r"baselines.*list.*tuple\(baselines\)", inputs=(X, X), baselines=[X, X]),
    wrong(TYPE, r"baselines.*dict.*tuple", baselines={"x": X}),
    wrong(TYPE, r"baselines\[0\].*torch\.as_tensor", baselines=np.zeros((2, 4))),
    wrong(VALUE, r"baselines\[0\]", inputs=IDS, baselines=0.5),
    wrong(VALUE, r"baselines\[0\]", inputs=IDS, baselines=float("nan")),
    wrong(VALUE, r"baselines\[0\]", inputs=IDS.byte(), baselines=300),
    wrong(VALUE, r"baselines\[0\]", inputs=IDS.bool(), baselines=2),
    wrong(VALUE, r"baselines\[0\]", inputs=X.half(), baselines=1e6),
    wrong(VALUE, r"baselines\[0\].*\(rows, 4\)", baselines=torch.zeros(9, 3)),
    wrong(VALUE, r"baselines\[0\]", inputs=IDS, baselines=torch.full((3, 4), 0.5)),
    wrong(VALUE, "baselines.*2 inputs", inputs=(X, X), baselines=BaselineDistribution(X)),
    wrong(TYPE, r"baselines\[0\].*sparse", baselines=X.to_sparse()),
    wrong(TYPE, "baselines", baselines=lambda: None),
    wrong(TYPE, r"baselines\[0\].*ndarray", baselines=lambda x: np.zeros((3, 4))),
    wrong(VALUE, "baselines.*got 2", baselines=lambda x: (x, x)),
    wrong(TYPE, r"baselines\[1\]", inputs=(X, X), baselines=(0, lambda: 0)),
    wrong(VALUE, "baselines.*3 and 5", inputs=(X, X), baselines=(examples(3, 4), examples(5, 4))),
    # Targets
    wrong(TYPE, "target", target="cat"),
    wrong(TYPE, "target", target=True),
    wrong(TYPE, "target", target=torch.tensor([0.0, 1.0])),
    wrong(VALUE, "target", target=torch.tensor([0, 1, 2])),
    wrong(VALUE, "target", target=torch.tensor([[0], [1]])),
    wrong(VALUE, "target", target=["a", "b"]),
    wrong(VALUE, "target", target=torch.tensor([0, 3])),
    wrong(VALUE, "target", target=(0, 1)),
    wrong(VALUE, "target", target=0, forward_func=lambda x: x.sum(1)),
    wrong(VALUE, "target", target=-4),
    wrong(VALUE, "target", target=[]),
    wrong(OUTPUT, r"one entry for each of the \d+ rows.*a Tensor \(\)", target=torch.mean),
    wrong(OUTPUT, r"one entry for each of the \d+ rows.*float", target=lambda outputs: 0.5),
    # Feature masks
    wrong(VALUE, r"feature_mask\[0\].*0\.5", feature_mask=FLOAT_IDS - 0.5),
    wrong(TYPE, r"tuple\(feature_mask\)", inputs=(X, X), feature_mask=[IDS, IDS]),
    wrong(TYPE, r"feature_mask\[0\]", feature_mask=np.zeros((1, 4), dtype=int)),
    wrong(VALUE, r"feature_mask\[0\]", feature_mask=IDS[:, :3]),
    wrong(VALUE, "feature_mask", inputs=(X, X), feature_mask=IDS),
    wrong(VALUE, "feature_mask", feature_mask=(IDS, IDS)),
    wrong(TYPE, r"feature_mask\[0\]", feature_mask=IDS.to(torch.complex64)),
    wrong(VALUE, r"feature_mask\[1\]", inputs=(X, X), feature_mask=(IDS, IDS[:, :2])),
    # Budgets, batches and flags
    wrong(VALUE, "n_samples", n_samples=0),
    wrong(TYPE, "n_samples", n_samples=True),
    wrong(VALUE, "perturbations_per_eval", perturbations_per_eval=0),
    wrong(TYPE, "return_standard_error", return_standard_error=1),
    wrong(TYPE, "show_progress", show_progress="yes"),
    wrong(BudgetError, "n_samples=15.*16", n_samples=15),
    wrong(BudgetError, "n_samples=49.*50", **OF_TWELVE, n_samples=49),
    wrong(BudgetError, "20", inputs=examples(2, 21)),
    wrong(VALUE, "tolerance", tolerance=-0.1),
    wrong(BudgetError, "n_samples=127.*128", **OF_TWELVE, cooperators="difference", n_samples=127),
    # One value for the whole batch
    wrong(VALUE, "perturbations_per_eval", forward_func=torch.sum, perturbations_per_eval=2),
    wrong(VALUE, "target", forward_func=torch.sum, target=0),
    wrong(VALUE, "feature_mask", forward_func=lambda x: float(x.sum()), feature_mask=IDS),
    # Options of the methods
    wrong(VALUE, "seed", seed=-1),
    wrong(TYPE, "seed", method=Shear, seed=torch.Generator()),
    wrong(TYPE, "antithetic", method=RandomOrder, antithetic=1),
    wrong(VALUE, "sizes.*kernel.*leverage", method=LeastSquares, sizes="uniform"),
    wrong(VALUE, "cooperators.*hessian", method=Shear, cooperators="Hessian"),
    wrong(VALUE, "cooperators", method=Shear, cooperators=np.ones((2, 3))),
    wrong(VALUE, "cooperators", method=Shear, cooperators=-COOPERATION),
    wrong(VALUE, "cooperators.*auto", method=OddGP, cooperators="random"),
    wrong(VALUE, "complement.*posterior", method=Shear, complement="beta"),
    wrong(VALUE, "cooperators.*12", **OF_TWELVE, cooperators=np.ones((4, 4)), n_samples=100),
    wrong(VALUE, "complement", **OF_TWELVE, complement="none", return_standard_error=True),
    # Value functions
    wrong(VALUE, "class 7, but the model has 3", value_function="margin", target=7),
    wrong(VALUE, "target must be one class", value_function="margin", target=[(1,), (0,)]),
    wrong(VALUE, "both name a class", value_function=ValueFunction("margin", classes=1), target=1),
    wrong(VALUE, r"outputs of shape \(B, classes\)", forward_func=SQUARES, value_function="margin"),
    wrong(VALUE, "value_function", value_function="logit"),
    wrong(VALUE, f"target.*{EXPECTED}", value_function=EXPECTED, target=1),
    wrong(VALUE, "value_function.*forward_func", forward_func=torch.sum, value_function="margin"),
]


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[0.0]], TYPE),
        (torch.tensor(0.0), VALUE),
    ],
)
def test_distributions_of_something_else(rows, kind):
    with pytest.raises(kind, match="rows"):
        BaselineDistribution(rows)


BUILT_IN = {
    InvalidArgumentError: ValueError,
    InvalidArgumentTypeError: TypeError,
    BudgetError: ValueError,
    ModelOutputError: ValueError,
}


@pytest.mark.parametrize(
    ("raises", "names", "method", "forward_func", "inputs", "arguments"), CASES
)
def test_wrong_calls(raises, names, method, forward_func, inputs, arguments):
    seen = Recorder(NET)
    options = {name: arguments[name] for name in OPTIONS & arguments.keys()}
    others = {name: arguments[name] for name in arguments.keys() - OPTIONS}
    with pytest.raises(raises, match=names) as caught:
        method(seen if forward_func is NET else forward_func, **options).attribute(inputs, **others)
    if "target" not in arguments:  # of which only the output tells whether it fits
        assert not seen.calls, "the model was called before the argument was read"
    assert type(caught.value) is raises
    assert isinstance(caught.value, ShapleyExtError)
    assert isinstance(caught.value, BUILT_IN[raises])


def test_a_failed_call_leaves_the_method_usable():
    method = Exact(NET, seed=0)
    wanted = method.attribute(X, target=0)
    before = method.last_estimate
    with pytest.raises(InvalidArgumentError):
        method.attribute(X, target=7)
    assert method.last_estimate is before
    assert torch.equal(method.attribute(X, target=0), wanted)


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


# --- masked arrays of NumPy, whose masked entries have no value ---


VALUES = np.ma.masked_array(X.numpy(), X.numpy() > 0)
SCORES = np.ma.masked_array(np.ones((4, 4)), np.eye(4, dtype=bool))

refused = pytest.raises(
    InvalidArgumentError, match=r"is a masked array with \d+ masked entries.*filled"
)


def forward(x):
    return x.prod(dim=1)


@pytest.mark.parametrize(
    "run",
    [
        lambda: criteria.complexity(VALUES),
        lambda: criteria.absolute_error(X, VALUES),
        lambda: criteria.faithfulness(VALUES, forward, X),
        lambda: combine([X, VALUES], CoreCentroid()),
        lambda: Centroid([lambda x: x, lambda _: VALUES]).attribute(X),
        lambda: AVA(lambda _: VALUES, X, n_neighbors=2).attribute(X),
        lambda: Convex([lambda x: x] * 2, weights=np.ma.masked_array([1.0, 2.0], [True, False])),
        lambda: Shear(forward, cooperators=SCORES).attribute(X),
        lambda: OddGP(forward, cooperators=SCORES).attribute(X),
        lambda: criteria.sensitivity(
            Exact(forward).attribute, X, Neighbourhood(9.0, points=VALUES, keep="all")
        ),
    ],
)
def test_masked_entries_are_refused(run):
    with refused:
        run()


def test_masked_arrays_without_masked_entries_are_arrays():
    full = np.ma.masked_array(X.numpy())
    assert torch.equal(criteria.complexity(full), criteria.complexity(X))


@pytest.mark.parametrize(
    "target",
    [np.ma.masked_array([0, 1], [True, False]), [np.ma.masked, 1], np.ma.masked],
    ids=["array", "list", "constant"],
)
def test_masked_targets_are_refused(target):
    with pytest.raises(ShapleyExtError, match="target"):
        Exact(lambda x: x[:, :2]).attribute(X, target=target)
