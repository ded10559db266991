"""Wrong calls: each names the argument, in an error of the class that a caller would catch."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
from shap.utils._exceptions import InvalidAlgorithmError

import shap_ext
from shapley_adapters.errors import (
    BudgetError,
    DerivativeError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    NonFiniteValueError,
    ShapleyExtError,
)
from tests.helpers.optional import nn, torch
from tests.shap_host.games import Seen, curved, curved_columns, network, rows

N = 9
X, BACKGROUND = rows(2, N), rows(3, N, seed=1)
FRAME = pd.DataFrame(X, columns=list("abcdefghi"))


@dataclass
class Call:
    """A wrong call: what is wrong in it, the error, and words that its message must hold."""

    error: type | tuple[type, ...]
    words: str
    x: object = None
    name: str = "shear"
    build: dict = field(default_factory=dict)
    call: dict = field(default_factory=dict)

    def run(self):
        options = {"model": curved, "masker": BACKGROUND, "seed": 0} | self.build
        explainer = shap.Explainer(algorithm=self.name, **options)
        x = X if self.x is None else self.x
        return explainer(*(x if isinstance(x, tuple) else (x,)), **self.call)


class Detached(nn.Module):
    def forward(self, x):
        return x.detach().prod(dim=1)


def nan_for_some(x):
    return np.where(x[:, 0] == X[0, 0], np.nan, curved(x))


def infinite(x):
    return np.full(len(x), np.inf)


VALUE, TYPE = InvalidArgumentError, InvalidArgumentTypeError
COMPOSITE = shap.maskers.Composite(shap.maskers.Independent(BACKGROUND))
TEXT = {"model": lambda texts: np.array([len(t) for t in texts]), "masker": shap.maskers.Text()}
CASES = [
    # The rows
    Call(TYPE, "X is missing", x=()),
    Call(TYPE, "X must be an array.* NoneType", x=(None,)),
    Call(TYPE, "X must be an array.* str", x="abc"),
    Call(VALUE, "X has 3 columns.* 9", x=FRAME.iloc[0, :3]),
    Call(
        VALUE,
        r"X is sparse.*background rows.*X\.toarray\(\)",
        x=scipy.sparse.csr_matrix(X),
        build={"masker": lambda mask, x: (x * mask)[None]},
    ),
    Call(TYPE, r"X is a sparse tensor.*X\.to_dense", x=torch.as_tensor(X).to_sparse()),
    Call(VALUE, "X holds no rows", x=X[:0]),
    Call(VALUE, "X ", x=[[1.0] * N, [1.0]]),
    Call(VALUE, "X has 8 columns.* 9", x=X[:, :8]),
    Call(VALUE, "another order.*list", x=FRAME[FRAME.columns[::-1]], build={"masker": FRAME}),
    Call(
        VALUE, r"X lacks columns .*'a'", x=FRAME.rename(columns={"a": "z"}), build={"masker": FRAME}
    ),
    Call(VALUE, r"X has columns .* lacks: \['z'\]", x=FRAME.assign(z=1), build={"masker": FRAME}),
    Call(
        TYPE,
        "X holds values that are not numbers",
        x=X.astype(str).astype(object),
        build={"model": network(N)},
    ),
    Call(VALUE, "2 datasets.*masker=", x=(X, X)),
    Call(
        VALUE,
        "rows",
        x=(X, X[:1]),
        build={"masker": lambda mask, a, b: ((a * mask[:N])[None], (b * mask[N:])[None])},
    ),
    # The masker
    Call(TYPE, "masker must be .* str", build={"masker": "mean"}),
    Call((VALUE, TYPE), r"masker .*(shape|dimension|\[None\])", build={"masker": BACKGROUND[0]}),
    Call(TYPE, "masker .* pandas.Series", build={"masker": FRAME.mean()}),
    Call(TYPE, "masker .* returned None", build={"masker": lambda mask, x: None}),
    Call((VALUE, TYPE), "masker", build={"masker": lambda mask, x: x * mask}),
    Call(
        VALUE,
        r"masker Impute .*maskers\.Gaussian",
        build={"masker": shap.maskers.Impute(BACKGROUND)},
    ),
    Call(VALUE, "masker Composite takes 1 .* 2 datasets", x=(X, X), build={"masker": COMPOSITE}),
    Call(
        VALUE, r"X is sparse.*X\.toarray", x=scipy.sparse.csr_matrix(X), build={"masker": COMPOSITE}
    ),
    Call(
        VALUE,
        r"X holds an image of shape \(9,\).*\(2, 2, 1\)",
        build={"masker": shap.maskers.Image(0.0, (2, 2, 1))},
    ),
    Call(
        TYPE,
        r"masker is a sparse tensor.*masker\.to_dense",
        build={"masker": torch.as_tensor(BACKGROUND).to_sparse()},
    ),
    Call(VALUE, "X has 9 columns.* 8", build={"masker": scipy.sparse.csr_matrix((1, 8))}),
    Call(
        TYPE,
        "X is sparse, but masker's background holds values that are not numbers",
        x=scipy.sparse.csr_matrix(X),
        build={"masker": BACKGROUND.astype(str).astype(object)},
    ),
    Call(
        VALUE,
        "masker returned 2 rows .* 3 for another",
        x=(X, X),
        build={
            "masker": lambda m, a, b: (np.stack([a] * 2), np.stack([b] * 3)),
            "model": lambda a, b: a.sum(axis=1),
        },
    ),
    # Texts
    Call(TYPE, "X must be .* list of rows.* str", x="a text", build=TEXT),
    Call(VALUE, "X, row 1: .* cannot read ''", x=["a", ""], build=TEXT),
    Call(VALUE, "X, row 1: .* None", x=["a", None], build=TEXT),
    Call(VALUE, "X, row 0: .* cannot read", x=pd.DataFrame({"a": ["b"]}), build=TEXT),
    Call(
        VALUE,
        "groups cannot be used.* features of its own",
        x=["a b", "a"],
        build=TEXT | {"groups": {"u": [0, 1]}},
    ),
    Call(
        BudgetError,
        "max_evals=10 .* 12 players",
        x=["a b c d e f g h i j k l"],
        build=TEXT | {"cooperators": "random"},
        call={"max_evals": 10},
    ),
    Call(
        ModelOutputError,
        r"model must return outputs of the same shape.*\(\d,\) first and \(\d,\) later",
        x=[np.zeros(2), np.zeros(3)],
        build={"masker": lambda m, x: (x * m)[None], "model": lambda x: x[:, 1:]},
    ),
    Call((VALUE, TYPE), "masker", build={"masker": shap.maskers.Fixed()}),
    Call(VALUE, "masker=None .*masker=", x=FRAME.assign(a="text"), build={"masker": None}),
    # The model
    Call(TYPE, "model must be callable.* NoneType", build={"model": None}),
    Call(ModelOutputError, "model .* one entry for each", build={"model": lambda x: x.sum()}),
    Call(
        ModelOutputError,
        "model must return numbers.*predict_proba",
        build={"model": lambda x: np.full(len(x), "yes")},
    ),
    Call(ModelOutputError, "model must return", build={"model": lambda x: None}),
    Call(NonFiniteValueError, "row 0.* nan .*missing", build={"model": nan_for_some}),
    Call(NonFiniteValueError, "inf ", build={"model": infinite}),
    Call(
        ModelOutputError,
        "model .*tuple",
        x=X.reshape(2, 3, 3),
        build={
            "model": nn.LSTM(3, 2, batch_first=True).double(),
            "masker": lambda m, x: (x * m.reshape(x.shape))[None],
        },
    ),
    # The link
    Call(TypeError, "link", build={"link": 3}),
    Call(VALUE, "link='logits' .*'logit'", build={"link": "logits"}),
    Call(
        NonFiniteValueError,
        r"link turns .* 0\.0, into -inf",
        build={"model": lambda x: (x[:, 0] > 0) * 1.0, "link": np.log},
    ),
    Call(
        NonFiniteValueError,
        r"link turns .* -1\.5, into nan.*probabilities",
        build={"model": lambda x: (x[:, 0] > 1e9) - 1.5, "link": "logit"},
    ),
    Call(TYPE, "link must return numbers.* str", build={"link": lambda x: "a"}),
    Call(TYPE, "link must return numbers.* complex128", build={"link": lambda x: x * 1j}),
    Call(VALUE, r"link must return .* shape .* it returned", build={"link": lambda x: x[:1]}),
    Call(TYPE, "linearize_link", build={"linearize_link": 1}),
    # Names and groups
    Call(VALUE, "feature_names holds 10 .* 9", build={"feature_names": list("abcdefghij")}),
    Call(
        VALUE,
        "output_names holds 2 .* 3",
        build={"model": curved_columns, "output_names": ["a", "b"]},
    ),
    Call(
        TYPE,
        r"feature_names\[1\] is \['b', 'c'\].* one name for each",
        build={"feature_names": ["a", ["b", "c"], *"defghij"]},
    ),
    Call(
        VALUE,
        r"groups\['u'\] names column 'a', but 2 columns.*index",
        x=FRAME.set_axis(list("aacdefghi"), axis=1),
        build={"groups": {"u": ["a", "c"]}},
    ),
    Call(TYPE, "groups must map", build={"groups": [[0, 1]]}),
    Call(TYPE, r"groups\['u'\]", build={"groups": {"u": "ab"}}),
    Call(VALUE, r"groups\['u'\] holds no", build={"groups": {"u": []}}),
    Call(VALUE, r"groups\['u'\] names column 'zz'", build={"groups": {"u": ["zz"]}}),
    Call((VALUE, TYPE), r"groups\['u'\]", build={"groups": {"u": [[0]]}}),
    Call(VALUE, "groups puts .* 'u' and 'v'", build={"groups": {"u": [0, 1], "v": [1, 2]}}),
    Call(VALUE, "groups names a player 'a'", x=FRAME, build={"groups": {"a": ["b", "c"]}}),
    Call(TYPE, "feature_names must", build={"feature_names": "ab"}),
    # The seed and the options of the methods
    Call(TYPE, "seed must be", build={"seed": 1.5}),
    Call(VALUE, "seed must be at least 0", build={"seed": -1}),
    Call(VALUE, "cooperators must be one of .*'hessian'", build={"cooperators": "hessians"}),
    Call(
        DerivativeError,
        "cooperators='hessian' .*not a torch module.*'difference'",
        build={"cooperators": "hessian"},
        call={"max_evals": 100},
    ),
    Call(
        DerivativeError,
        "detach",
        build={"cooperators": "gradient", "model": Detached()},
        call={"max_evals": 100},
    ),
    Call(VALUE, "complement must be one of .*'posterior'", build={"complement": "coin"}),
    Call(VALUE, "sizes must be one of .*'kernel'", name="leastsquares", build={"sizes": "big"}),
    # The call
    Call(TYPE, "max_evals must", call={"max_evals": 100.0}),
    Call(TYPE, "max_evals .*'auto'", call={"max_evals": "all"}),
    Call(VALUE, "max_evals must be at least 1", call={"max_evals": 0}),
    Call(
        BudgetError,
        "max_evals=37 .* 38 .* 9 players; 512",
        build={"cooperators": "random"},
        call={"max_evals": 37},
    ),
    Call(
        BudgetError,
        "21 players.* 20",
        x=rows(1, 21),
        name="enumeration",
        build={"masker": np.zeros((1, 21))},
    ),
    Call(
        VALUE,
        "complement='none'",
        build={"complement": "none"},
        call={"error_bounds": True, "max_evals": 300},
    ),
    Call(VALUE, "batch_size", call={"batch_size": 0}),
    Call(TYPE, "error_bounds", call={"error_bounds": 1}),
    Call(TYPE, "silent", call={"silent": "yes"}),
    Call(VALUE, "main_effects=True", call={"main_effects": True}),
    Call(TYPE, "outputs must be a list", call={"outputs": "a"}),
    Call(VALUE, "outputs=.*beyond", call={"outputs": [0, 1]}),
    Call(TYPE, "outputs", call={"outputs": [0.5]}),
    Call(VALUE, "outputs", build={"model": curved_columns}, call={"outputs": []}),
    # Misspelled
    Call(InvalidAlgorithmError, "algorithm", name="sheer"),
    Call(TypeError, "complment", build={"complment": "none"}),
    Call(TypeError, "paired", build={"paired": True}),
]
if scipy.sparse.coo_array(X[0]).ndim == 1:  # from SciPy 1.13 on there are sparse rows
    CASES += [
        Call(VALUE, r"X has shape \(9,\)", x=scipy.sparse.coo_array(X[0])),
        Call(VALUE, r"masker has shape \(9,\)", build={"masker": scipy.sparse.coo_array(X[0])}),
    ]

BUILT_IN = {ValueError, TypeError, ArithmeticError, RuntimeError}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_wrong_calls_are_named(case):
    with pytest.raises(case.error, match=case.words) as caught:
        case.run()
    assert any(issubclass(caught.type, error) for error in BUILT_IN)


def test_the_table_is_not_wrong_itself():
    assert Call(ValueError, "").run().shape == (2, N)  # what the calls are wrong variants of


@pytest.mark.filterwarnings("ignore:.* is little for")
def test_budget_messages_hold_the_number_that_suffices():
    for name in ("shear", "randomorder", "leastsquares", "enumeration"):
        for error_bounds in (False, True):
            explainer = shap.Explainer(curved, BACKGROUND, algorithm=name, seed=0)
            with pytest.raises(BudgetError) as caught:
                explainer(X, max_evals=3, error_bounds=error_bounds)
            needed = int(str(caught.value).split("at least ")[1].split(" ")[0])
            sv = explainer(X, max_evals=needed, error_bounds=error_bounds)
            assert np.isfinite(sv.values).all()
            if error_bounds:
                assert np.isfinite(sv.error_std).all()
            with pytest.raises(BudgetError):
                explainer(X, max_evals=needed - 1, error_bounds=error_bounds)


@pytest.mark.parametrize(
    "option",
    [
        {"seed": -1},
        {"cooperators": "no"},
        {"complement": "no"},
        {"antithetic": 1},
        {"masker": "no"},
        {"model": None},
        {"linearize_link": 1},
        {"groups": [0]},
        {"groups": {"u": "ab"}},
    ],
    ids=str,
)
def test_what_can_be_refused_at_once_is(option):
    with pytest.raises(ShapleyExtError, match=next(iter(option))):
        shap.Explainer(**({"model": curved, "masker": BACKGROUND} | option), algorithm="shear")


@pytest.mark.parametrize(
    "option",
    [{"cooperators": "random"}, {"cooperators": [1.0]}, {"weights": "even"}],
    ids=str,
)
def test_priors_that_cannot_be_used_are_refused_at_once(option):
    with pytest.raises(ShapleyExtError, match=next(iter(option))):
        shap_ext.OddGPExplainer(curved, BACKGROUND, **option)
    with pytest.raises(ShapleyExtError, match="weights='learned'"):
        shap_ext.OddGPExplainer(curved, BACKGROUND, weights="equal", cooperators="auto")


def test_errors_of_the_model_come_through_unchanged():
    class OwnError(Exception):
        pass

    def failing(x):
        raise OwnError("mine")

    with pytest.raises(OwnError, match="mine"):
        shap.Explainer(failing, BACKGROUND, algorithm="shear")(X)


def test_a_failed_call_leaves_the_explainer_usable():
    explainer = shap_ext.ShearExplainer(curved, BACKGROUND, seed=0)
    wanted = explainer(X, max_evals=100).values
    with pytest.raises(BudgetError):
        explainer(X, max_evals=5)
    np.testing.assert_array_equal(explainer(X, max_evals=100).values, wanted)


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_evals": 100.0},
        {"batch_size": 0},
        {"silent": "yes"},
        {"error_bounds": 1},
        {"outputs": "a"},
        {"outputs": [0.5]},
        {"outputs": []},
        {"max_evals": 37, "error_bounds": True},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_the_model_runs(arguments):
    model = Seen(curved)
    with pytest.raises(ShapleyExtError):
        shap.Explainer(model, BACKGROUND, algorithm="shear")(X, **arguments)
    assert not model.calls
