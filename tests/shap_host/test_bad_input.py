"""Wrong calls: each names the argument, in an error of the class that a caller would catch."""

from dataclasses import dataclass, field
from decimal import Decimal

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
CASES = {
    # The rows
    "X missing": Call(TYPE, "X is missing", x=()),
    "X is None": Call(TYPE, "X must be an array.* NoneType", x=(None,)),
    "X is of another package": Call(TYPE, r"got decimal\.Decimal\.", x=Decimal(1)),
    "X is a dict": Call(TYPE, "X must be an array.* dict", x={"a": [1]}),
    "X is a text": Call(TYPE, "X must be an array.* str", x="abc"),
    "X is a number": Call(TYPE, "X must be an array", x=3.0),
    "X is an array of no dimension": Call(VALUE, "X has shape", x=np.array(3.0)),
    "X is a row of other columns": Call(VALUE, "X has 3 columns.* 9", x=FRAME.iloc[0, :3]),
    "X is sparse, the masker a function": Call(
        VALUE,
        r"X is sparse.*background rows.*X\.toarray\(\)",
        x=scipy.sparse.csr_matrix(X),
        build={"masker": lambda mask, x: (x * mask)[None]},
    ),
    "X is a sparse row": Call(VALUE, r"X has shape \(9,\)", x=scipy.sparse.coo_array(X[0])),
    "X is sparse without rows": Call(VALUE, "X holds no rows", x=scipy.sparse.csr_matrix((0, N))),
    "X is sparse with too few columns": Call(
        VALUE, "X has 8 columns.* 9", x=scipy.sparse.csr_matrix(X[:, :8])
    ),
    "X is a sparse tensor": Call(
        TYPE, r"X is a sparse tensor.*X\.to_dense", x=torch.as_tensor(X).to_sparse()
    ),
    "X is one row of other length": Call(VALUE, "X has 8 columns.* 9", x=X[0, :8]),
    "X is a number as a tensor": Call(VALUE, "X has shape", x=torch.tensor(1.0)),
    "X has no rows": Call(VALUE, "X holds no rows", x=X[:0]),
    "X frame has no rows": Call(VALUE, "X holds no rows", x=FRAME.iloc[:0]),
    "X is ragged": Call(VALUE, "X ", x=[[1.0] * N, [1.0]]),
    "X has too few columns": Call(VALUE, "X has 8 columns.* 9", x=X[:, :8]),
    "X has columns in another order": Call(
        VALUE, "another order.*list", x=FRAME[FRAME.columns[::-1]], build={"masker": FRAME}
    ),
    "X has other columns": Call(
        VALUE,
        r"X lacks columns .*'a'",
        x=FRAME.rename(columns={"a": "z"}),
        build={"masker": FRAME},
    ),
    "X lacks a column": Call(
        VALUE, r"X lacks columns .*'a'", x=FRAME.drop(columns="a"), build={"masker": FRAME}
    ),
    "X has a further column": Call(
        VALUE, r"X has columns .* lacks: \['z'\]", x=FRAME.assign(z=1), build={"masker": FRAME}
    ),
    "X holds texts for a network": Call(
        TYPE,
        "X holds values that are not numbers",
        x=X.astype(str).astype(object),
        build={"model": network(N)},
    ),
    "two inputs for a table": Call(VALUE, "2 datasets.*masker=", x=(X, X)),
    "inputs of different lengths": Call(
        VALUE,
        "rows",
        x=(X, X[:1]),
        build={"masker": lambda mask, a, b: ((a * mask[:N])[None], (b * mask[N:])[None])},
    ),
    # The masker
    "masker is a text": Call(TYPE, "masker must be .* str", build={"masker": "mean"}),
    "masker is a list": Call(TYPE, "masker must be .* list", build={"masker": [[0.0] * N]}),
    "masker is one row": Call(
        (VALUE, TYPE), r"masker .*(shape|dimension|\[None\])", build={"masker": BACKGROUND[0]}
    ),
    "masker is a Series": Call(TYPE, "masker .* pandas.Series", build={"masker": FRAME.mean()}),
    "masker is one sparse row": Call(
        VALUE, r"masker has shape \(9,\)", build={"masker": scipy.sparse.coo_array(X[0])}
    ),
    "masker has no rows": Call(VALUE, "masker holds no", build={"masker": BACKGROUND[:0]}),
    "masker returns nothing": Call(
        TYPE, "masker .* returned None", build={"masker": lambda mask, x: None}
    ),
    "masker returns a row": Call(
        (VALUE, TYPE), "masker", build={"masker": lambda mask, x: x * mask}
    ),
    "masker is Impute": Call(
        VALUE,
        r"masker Impute .*maskers\.Gaussian",
        build={"masker": shap.maskers.Impute(BACKGROUND)},
    ),
    "masker is Composite of one, inputs two": Call(
        VALUE, "masker Composite takes 1 .* 2 datasets", x=(X, X), build={"masker": COMPOSITE}
    ),
    "masker is Composite, X sparse": Call(
        VALUE,
        r"X is sparse.*X\.toarray",
        x=scipy.sparse.csr_matrix(X),
        build={"masker": COMPOSITE},
    ),
    "masker is Composite for other columns": Call(
        VALUE, "X has 8 columns.* 9", x=X[:, :8], build={"masker": COMPOSITE}
    ),
    "masker is Image for another shape": Call(
        VALUE,
        r"X holds an image of shape \(9,\).*\(2, 2, 1\)",
        build={"masker": shap.maskers.Image(0.0, (2, 2, 1))},
    ),
    "masker is a sparse tensor": Call(
        TYPE,
        r"masker is a sparse tensor.*masker\.to_dense",
        build={"masker": torch.as_tensor(BACKGROUND).to_sparse()},
    ),
    "masker is a sparse matrix without rows": Call(
        VALUE, "masker holds no", build={"masker": scipy.sparse.csr_matrix((0, N))}
    ),
    "masker is sparse with other columns": Call(
        VALUE, "X has 9 columns.* 8", build={"masker": scipy.sparse.csr_matrix((1, 8))}
    ),
    "masker holds texts, X is sparse": Call(
        TYPE,
        "X is sparse, but masker's background holds values that are not numbers",
        x=scipy.sparse.csr_matrix(X),
        build={"masker": BACKGROUND.astype(str).astype(object)},
    ),
    "masker returns different numbers of rows": Call(
        VALUE,
        "masker returned 2 rows .* 3 for another",
        x=(X, X),
        build={
            "masker": lambda m, a, b: (np.stack([a] * 2), np.stack([b] * 3)),
            "model": lambda a, b: a.sum(axis=1),
        },
    ),
    # Texts
    "X is one text": Call(TYPE, "X must be .* list of rows.* str", x="a text", build=TEXT),
    "X holds an empty text": Call(VALUE, "X, row 1: .* cannot read ''", x=["a", ""], build=TEXT),
    "X holds a missing text": Call(VALUE, "X, row 1: .* None", x=["a", None], build=TEXT),
    "X holds numbers for texts": Call(VALUE, "X, row 0: .* cannot read 3", x=[3, 4], build=TEXT),
    "X holds bytes": Call(TYPE, "X must be .* bytes", x=b"a text", build=TEXT),
    "X is a frame of texts": Call(
        VALUE, "X, row 0: .* cannot read", x=pd.DataFrame({"a": ["b"]}), build=TEXT
    ),
    "X is a dataset without texts": Call(TYPE, "X must be .* dict", x={"words": []}, build=TEXT),
    "groups of texts of different lengths": Call(
        VALUE,
        "groups cannot be used.* features of its own",
        x=["a b", "a"],
        build=TEXT | {"groups": {"u": [0, 1]}},
    ),
    "feature_names of texts of different lengths": Call(
        VALUE,
        "feature_names cannot be used.* features of its own",
        x=["a b", "a"],
        build=TEXT | {"feature_names": ["u", "v"]},
    ),
    "max_evals too small for a long text": Call(
        BudgetError,
        "max_evals=10 .* 12 players",
        x=["a b c d e f g h i j k l"],
        build=TEXT | {"cooperators": "random"},
        call={"max_evals": 10},
    ),
    "model returns other outputs for other rows": Call(
        ModelOutputError,
        r"model must return outputs of the same shape.*\(\d,\) first and \(\d,\) later",
        x=[np.zeros(2), np.zeros(3)],
        build={"masker": lambda m, x: (x * m)[None], "model": lambda x: x[:, 1:]},
    ),
    "masker has no players": Call((VALUE, TYPE), "masker", build={"masker": shap.maskers.Fixed()}),
    "no masker for frames of texts": Call(
        VALUE, "masker=None .*masker=", x=FRAME.assign(a="text"), build={"masker": None}
    ),
    # The model
    "model is None": Call(TYPE, "model must be callable.* NoneType", build={"model": None}),
    "model is a number": Call(TYPE, "model must be callable.* int", build={"model": 3}),
    "model adds up over the rows": Call(
        ModelOutputError, "model .* one entry for each", build={"model": lambda x: x.sum()}
    ),
    "model returns too few": Call(
        ModelOutputError, "model .* one entry for each", build={"model": lambda x: curved(x)[1:]}
    ),
    "model returns labels": Call(
        ModelOutputError,
        "model must return numbers.*predict_proba",
        build={"model": lambda x: np.full(len(x), "yes")},
    ),
    "model returns nothing": Call(
        ModelOutputError, "model must return", build={"model": lambda x: None}
    ),
    "model returns NaN": Call(
        NonFiniteValueError, "row 0.* nan .*missing", build={"model": nan_for_some}
    ),
    "model returns infinity": Call(NonFiniteValueError, "inf ", build={"model": infinite}),
    "model returns complex numbers": Call(
        ModelOutputError, "model must return", build={"model": lambda x: curved(x) * 1j}
    ),
    "module returns a tuple": Call(
        ModelOutputError,
        "model .*tuple",
        x=X.reshape(2, 3, 3),
        build={
            "model": nn.LSTM(3, 2, batch_first=True).double(),
            "masker": lambda m, x: (x * m.reshape(x.shape))[None],
        },
    ),
    # The link
    "link is not callable": Call(TypeError, "link", build={"link": 3}),
    "link is unknown": Call(VALUE, "link='logits' .*'logit'", build={"link": "logits"}),
    "link is infinite": Call(
        NonFiniteValueError,
        r"link turns .* 0\.0, into -inf",
        build={"model": lambda x: (x[:, 0] > 0) * 1.0, "link": np.log},
    ),
    "link is logit, outputs are no probabilities": Call(
        NonFiniteValueError,
        r"link turns .* -1\.5, into nan.*probabilities",
        build={"model": lambda x: (x[:, 0] > 1e9) - 1.5, "link": "logit"},
    ),
    "link returns a text": Call(
        TYPE, "link must return numbers.* str", build={"link": lambda x: "a"}
    ),
    "link returns texts": Call(
        TYPE, "link must return numbers.* array of <U", build={"link": lambda x: x.astype(str)}
    ),
    "link returns nothing": Call(
        TYPE, "link must return numbers.* NoneType", build={"link": lambda x: None}
    ),
    "link returns complex numbers": Call(
        TYPE, "link must return numbers.* complex128", build={"link": lambda x: x * 1j}
    ),
    "link returns too few": Call(
        VALUE, r"link must return .* shape .* it returned", build={"link": lambda x: x[:1]}
    ),
    "link of a masker returns a text": Call(
        TYPE,
        "link must return numbers.* str",
        build={"link": lambda x: "a", "masker": shap.maskers.Partition(BACKGROUND)},
    ),
    "linearize_link is a number": Call(TYPE, "linearize_link", build={"linearize_link": 1}),
    # Names and groups
    "too many feature names": Call(
        VALUE, "feature_names holds 10 .* 9", build={"feature_names": list("abcdefghij")}
    ),
    "feature names are a number": Call(
        TypeError, "feature_names|iterable", build={"feature_names": 3}
    ),
    "too few output names": Call(
        VALUE,
        "output_names holds 2 .* 3",
        build={"model": curved_columns, "output_names": ["a", "b"]},
    ),
    "a feature name is a list": Call(
        TYPE,
        r"feature_names\[1\] is \['b', 'c'\].* one name for each",
        build={"feature_names": ["a", ["b", "c"], *"defghij"]},
    ),
    "a group names one of two columns": Call(
        VALUE,
        r"groups\['u'\] names column 'a', but 2 columns.*index",
        x=FRAME.set_axis(list("aacdefghi"), axis=1),
        build={"groups": {"u": ["a", "c"]}},
    ),
    "groups is a list": Call(TYPE, "groups must map", build={"groups": [[0, 1]]}),
    "a group is a text": Call(TYPE, r"groups\['u'\]", build={"groups": {"u": "ab"}}),
    "a group is empty": Call(VALUE, r"groups\['u'\] holds no", build={"groups": {"u": []}}),
    "a group names no column": Call(
        VALUE, r"groups\['u'\] names column 'zz'", build={"groups": {"u": ["zz"]}}
    ),
    "a group is out of range": Call(
        VALUE, r"groups\['u'\] names column 9", build={"groups": {"u": [0, 9]}}
    ),
    "a group counts from the end": Call(
        VALUE, r"groups\['u'\] names column -1", build={"groups": {"u": [0, -1]}}
    ),
    "a group holds lists": Call((VALUE, TYPE), r"groups\['u'\]", build={"groups": {"u": [[0]]}}),
    "two groups share a column": Call(
        VALUE, "groups puts .* 'u' and 'v'", build={"groups": {"u": [0, 1], "v": [1, 2]}}
    ),
    "a group holds a column twice": Call(VALUE, "groups puts", build={"groups": {"u": [0, 0]}}),
    "a group is named as a column": Call(
        VALUE, "groups names a player 'a'", x=FRAME, build={"groups": {"a": ["b", "c"]}}
    ),
    "feature_names is a text": Call(TYPE, "feature_names must", build={"feature_names": "ab"}),
    "output_names is a number": Call(TYPE, "output_names must", build={"output_names": 3}),
    # The seed and the options of the methods
    "seed is a fraction": Call(TYPE, "seed must be", build={"seed": 1.5}),
    "seed is a generator": Call(TYPE, "seed must", build={"seed": np.random.default_rng(0)}),
    "seed is negative": Call(VALUE, "seed must be at least 0", build={"seed": -1}),
    "seed is a flag": Call(TYPE, "seed must be", build={"seed": True}),
    "cooperators is unknown": Call(
        VALUE, "cooperators must be one of .*'hessian'", build={"cooperators": "hessians"}
    ),
    "cooperators is an object": Call(VALUE, "cooperators must be", build={"cooperators": object()}),
    "cooperators has a wrong shape": Call(
        VALUE,
        r"cooperators has shape .*\(9, 9\)",
        build={"cooperators": np.ones((3, 3))},
        call={"max_evals": 100},
    ),
    "cooperators is not square": Call(
        VALUE, "cooperators must have shape", build={"cooperators": np.ones((3, 4))}
    ),
    "cooperators is negative": Call(
        VALUE,
        "cooperators must be finite and not negative",
        build={"cooperators": -np.ones((9, 9))},
    ),
    "cooperators by derivatives of a function": Call(
        DerivativeError,
        "cooperators='hessian' .*not a torch module.*'difference'",
        build={"cooperators": "hessian"},
        call={"max_evals": 100},
    ),
    "cooperators by derivatives that are cut": Call(
        DerivativeError,
        "detach",
        build={"cooperators": "gradient", "model": Detached()},
        call={"max_evals": 100},
    ),
    "complement is unknown": Call(
        VALUE, "complement must be one of .*'posterior'", build={"complement": "coin"}
    ),
    "complement is None": Call(TYPE, "complement must be one of", build={"complement": None}),
    "antithetic is a text": Call(TYPE, "antithetic must", build={"antithetic": "yes"}),
    "efficient is a number": Call(TYPE, "efficient must", build={"efficient": 1}),
    "sizes is unknown": Call(
        VALUE, "sizes must be one of .*'kernel'", name="leastsquares", build={"sizes": "big"}
    ),
    "paired is a number": Call(TYPE, "paired", name="leastsquares", build={"paired": 0}),
    # The call
    "max_evals is a fraction": Call(TYPE, "max_evals must", call={"max_evals": 100.0}),
    "max_evals is None": Call(TYPE, "max_evals", call={"max_evals": None}),
    "max_evals is a word": Call(TYPE, "max_evals .*'auto'", call={"max_evals": "all"}),
    "max_evals is zero": Call(VALUE, "max_evals must be at least 1", call={"max_evals": 0}),
    "max_evals too small for SHEAR": Call(
        BudgetError,
        "max_evals=37 .* 38 .* 9 players; 512",
        build={"cooperators": "random"},
        call={"max_evals": 37},
    ),
    "max_evals too small for random order": Call(
        BudgetError, "max_evals=3 .* 4", name="randomorder", call={"max_evals": 3}
    ),
    "max_evals too small for least squares": Call(
        BudgetError, "max_evals=3 .* 4", name="leastsquares", call={"max_evals": 3}
    ),
    "max_evals too small for enumeration": Call(
        BudgetError, "max_evals=511 .* 512", name="enumeration", call={"max_evals": 511}
    ),
    "max_evals too small for errors": Call(
        BudgetError,
        "max_evals=5 .* 6 .*standard errors",
        name="randomorder",
        call={"max_evals": 5, "error_bounds": True},
    ),
    "too many players for enumeration": Call(
        BudgetError,
        "21 players.* 20",
        x=rows(1, 21),
        name="enumeration",
        build={"masker": np.zeros((1, 21))},
    ),
    "errors where nothing is random": Call(
        VALUE,
        "complement='none'",
        build={"complement": "none"},
        call={"error_bounds": True, "max_evals": 300},
    ),
    "batch_size is zero": Call(VALUE, "batch_size", call={"batch_size": 0}),
    "batch_size is a fraction": Call(TYPE, "batch_size", call={"batch_size": 2.5}),
    "error_bounds is a number": Call(TYPE, "error_bounds", call={"error_bounds": 1}),
    "silent is a text": Call(TYPE, "silent", call={"silent": "yes"}),
    "main_effects": Call(VALUE, "main_effects=True", call={"main_effects": True}),
    "outputs is a number": Call(TYPE, "outputs must be a list", call={"outputs": 0}),
    "outputs is a text": Call(TYPE, "outputs must be a list", call={"outputs": "a"}),
    "outputs out of range": Call(VALUE, "outputs=.*beyond", call={"outputs": [0, 1]}),
    "outputs counts from the end": Call(VALUE, "outputs", call={"outputs": [-1]}),
    "outputs holds fractions": Call(TYPE, "outputs", call={"outputs": [0.5]}),
    "outputs is empty": Call(
        VALUE, "outputs", build={"model": curved_columns}, call={"outputs": []}
    ),
    # Misspelled
    "unknown algorithm": Call(InvalidAlgorithmError, "algorithm", name="sheer"),
    "misspelled option": Call(TypeError, "complment", build={"complment": "none"}),
    "option of another method": Call(TypeError, "paired", build={"paired": True}),
    "misspelled argument of the call": Call(TypeError, "max_eval", call={"max_eval": 100}),
}
BUILT_IN = {ValueError, TypeError, ArithmeticError, RuntimeError}


if scipy.sparse.coo_array(X[0]).ndim == 2:  # SciPy before 1.13 knows no sparse rows
    del CASES["X is a sparse row"], CASES["masker is one sparse row"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_wrong_calls_are_named(case):
    with pytest.raises(case.error, match=case.words) as caught:
        case.run()
    assert any(issubclass(caught.type, error) for error in BUILT_IN)


def test_the_table_is_not_wrong_itself():
    assert len(CASES) > 90
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
