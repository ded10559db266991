"""Wrong calls: each names the argument, in an error of the class that a caller would catch."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
from shap.utils._exceptions import InvalidAlgorithmError
from sklearn.svm import SVC

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
from tests.shap_host.games import Seen, curved, curved_columns, network, probability, rows

N = 9
X, BACKGROUND = rows(2, N), rows(3, N, seed=1)
FRAME = pd.DataFrame(X, columns=list("abcdefghi"))
OF_CALLS = {"batch_size", "error_bounds", "main_effects", "max_evals", "outputs", "silent"}


def explain(x, model, arguments):
    arguments = {"masker": BACKGROUND, "seed": 0, "algorithm": "shear"} | arguments
    of_call = {name: arguments.pop(name) for name in OF_CALLS & arguments.keys()}
    explainer = shap.Explainer(model, **arguments)
    return explainer(*(x if isinstance(x, tuple) else (x,)), **of_call)


def wrong(error, words, *, x=X, model=curved, **arguments):
    """Return a wrong call, the error, and words that its message must hold."""
    return pytest.param(error, words, x, model, arguments, id=words)


class Complex(nn.Module):
    def forward(self, x):
        return torch.complex(x, x)[:, 0]


def large(kind, x):
    return np.array([int(row[0] > 0) + 2**60 for row in x], dtype=kind)


def nan_for_some(x):
    return np.where(x[:, 0] == X[0, 0], np.nan, curved(x))


def two_and_three(mask, a, b):
    return np.stack([a] * 2), np.stack([b] * 3)


VALUE, TYPE, OUTPUT = InvalidArgumentError, InvalidArgumentTypeError, ModelOutputError
NO_NUMBER, DERIVATIVE = NonFiniteValueError, DerivativeError
AB, TWELVE, CUBE = ["a b", "a"], " ".join("abcdefghijkl"), X.reshape(2, 3, 3)
SPARSE, OBJECTS = scipy.sparse.csr_matrix(X), X.astype(str).astype(object)
TWICE = FRAME.set_axis(list("aacdefghi"), axis=1)
MASKER = lambda mask, x: (x * mask.reshape(x.shape))[None]  # noqa: E731
COMPOSITE = shap.maskers.Composite(shap.maskers.Independent(BACKGROUND))
IMAGE, PAIR = shap.maskers.Image(0.0, (2, 2, 1)), {"u": [0, 1]}
LITTLE = {"cooperators": "random", "max_evals": 10}
ENUMERATED = {"algorithm": "enumeration"}
TEXT = {"model": lambda texts: np.array([len(t) for t in texts]), "masker": shap.maskers.Text()}
CASES = [
    # The rows
    wrong(TYPE, "X is missing", x=()),
    wrong(TYPE, "X must be an array.* NoneType", x=(None,)),
    wrong(VALUE, "X has 3 columns.* 9", x=FRAME.iloc[0, :3]),
    wrong(VALUE, r"X is sparse.*background rows.*X\.toarray\(\)", x=SPARSE, masker=MASKER),
    wrong(TYPE, r"X is a sparse tensor.*X\.to_dense", x=torch.as_tensor(X).to_sparse()),
    wrong(VALUE, "X holds no rows", x=X[:0]),
    wrong(VALUE, "X ", x=[[1.0] * N, [1.0]]),
    wrong(VALUE, "X has 8 columns.* 9", x=X[:, :8]),
    wrong(VALUE, "another order.*list", x=FRAME[FRAME.columns[::-1]], masker=FRAME),
    wrong(VALUE, r"X lacks columns .*'a'", x=FRAME.rename(columns={"a": "z"}), masker=FRAME),
    wrong(VALUE, r"X has columns .* lacks: \['z'\]", x=FRAME.assign(z=1), masker=FRAME),
    wrong(TYPE, "X holds values that are not numbers", x=OBJECTS, model=network(N)),
    wrong(VALUE, "2 datasets.*masker=", x=(X, X)),
    wrong(VALUE, "X is a masked array.*filled", x=np.ma.masked_array(X, X > 0)),
    wrong(VALUE, r"X has shape \(2, 0\): there are no columns", x=X[:, :0]),
    wrong(TYPE, "ndarray in row 0, column 0.*groups=", x=pd.DataFrame({"a": [X[0], X[1]]})),
    wrong(TYPE, "X holds .* and masker's background", x=X.astype(str)),
    wrong(VALUE, "rows", x=(X, X[:1]), masker=lambda m, a, b: ((a * m[:N])[None], b * m[None, N:])),
    # The masker
    wrong(TYPE, "masker must be .* str", masker="mean"),
    wrong(VALUE, "masker is a masked array.*filled", masker=np.ma.masked_array(X, X > 0)),
    wrong(VALUE, r"shape \(3, 0\): there are no columns", masker=BACKGROUND[:, :0]),
    wrong((VALUE, TYPE), r"masker .*(shape|dimension|\[None\])", masker=BACKGROUND[0]),
    wrong(TYPE, "masker .* pandas.Series", masker=FRAME.mean()),
    wrong(TYPE, "masker .* returned None", masker=lambda mask, x: None),
    wrong((VALUE, TYPE), "masker", masker=lambda mask, x: x * mask),
    wrong(VALUE, r"masker Impute .*maskers\.Gaussian", masker=shap.maskers.Impute(BACKGROUND)),
    wrong(VALUE, "masker Composite takes 1 .* 2 datasets", x=(X, X), masker=COMPOSITE),
    wrong(VALUE, r"X is sparse.*X\.toarray", x=SPARSE, masker=COMPOSITE),
    wrong(VALUE, r"X holds an image of shape \(9,\).*\(2, 2, 1\)", masker=IMAGE),
    wrong(VALUE, "X has 9 columns.* 8", masker=scipy.sparse.csr_matrix((1, 8))),
    wrong(TYPE, "X is sparse, but .* holds values that are not numbers", x=SPARSE, masker=OBJECTS),
    wrong(VALUE, "masker returned 2 rows .* 3 for another", x=(X, X), masker=two_and_three),
    # Texts
    wrong(TYPE, r"X must be .* rows.* got str\. Pass a list of texts, \[X\]", x="a", **TEXT),
    wrong(VALUE, "X, row 1: .* cannot read ''", x=["a", ""], **TEXT),
    wrong(VALUE, "X, row 1: .* None", x=["a", None], **TEXT),
    wrong(VALUE, "X, row 0: .* cannot read", x=pd.DataFrame({"a": ["b"]}), **TEXT),
    wrong(VALUE, "groups cannot be used.* features of its own", x=AB, groups=PAIR, **TEXT),
    wrong(BudgetError, "max_evals=10 .* 12 players", x=[TWELVE], **TEXT, **LITTLE),
    wrong(
        OUTPUT,
        r"model must return outputs of the same shape.*\(\d,\) first and \(\d,\) later",
        x=[np.zeros(2), np.zeros(3)],
        masker=MASKER,
        model=lambda x: x[:, 1:],
    ),
    wrong((VALUE, TYPE), "masker", masker=shap.maskers.Fixed()),
    wrong(VALUE, "masker=None .*masker=", x=FRAME.assign(a="text"), masker=None),
    # The model
    wrong(TYPE, "model must be callable.* NoneType", model=None),
    wrong(OUTPUT, "model .* one entry for each", model=lambda x: x.sum()),
    wrong(OUTPUT, "model must return", model=lambda x: None),
    *(
        wrong(OUTPUT, "must return numbers.*predict_proba", model=texts)
        for texts in (
            lambda x: np.full(len(x), "yes"),
            lambda x: np.where(curved(x) > 0, "1", "0").astype(object),
            lambda x: np.where(curved(x) > 0, "1", "0").tolist(),
            lambda x: np.full(len(x), np.datetime64("2020-01-01")),
        )
    ),
    # As many targets as masked rows in a call would otherwise be taken for rows.
    wrong(OUTPUT, r"list of \d+ arrays.*np\.hstack", model=lambda x: [probability(x)] * len(x)),
    wrong(OUTPUT, "tuple of 2 arrays", model=lambda x: (curved(x), curved(x))),
    wrong(OUTPUT, "masked array.*filled", model=lambda x: np.ma.masked_array(x, x > 0)),
    wrong(OUTPUT, r"one number at least.*\(\d+, 0\)", model=lambda x: np.empty((len(x), 0))),
    wrong(OUTPUT, "complex", model=Complex()),
    *(
        wrong(OUTPUT, r"beyond 2\^53, such as 1152921504606846977", model=partial(large, kind))
        for kind in ("int64", "uint64", "object")
    ),
    wrong(TYPE, "model must be .* got the class SVC.*object", model=SVC),
    wrong(NO_NUMBER, "row 0.* nan .*missing", model=nan_for_some),
    wrong(NO_NUMBER, "inf ", model=lambda x: np.full(len(x), np.inf)),
    wrong(OUTPUT, "model .*tuple", x=CUBE, model=nn.LSTM(3, 2).double(), masker=MASKER),
    # The link
    wrong(TypeError, "link", link=3),
    wrong(VALUE, "link='logits' .*'logit'", link="logits"),
    wrong(NO_NUMBER, r"link turns .* 0\.0, into -inf", model=lambda x: 0 * x, link=np.log),
    wrong(NO_NUMBER, r"link turns .* -1\.5, into nan", model=lambda x: 0 * x - 1.5, link="logit"),
    wrong(TYPE, "link must return numbers.* complex128", link=lambda x: x * 1j),
    wrong(VALUE, r"link must return .* shape .* it returned", link=lambda x: x[:1]),
    wrong(TYPE, "linearize_link", linearize_link=1),
    wrong(TYPE, "independent_rows", independent_rows=1),
    # Names and groups
    wrong(VALUE, "feature_names holds 10 .* 9", feature_names=list("abcdefghij")),
    wrong(VALUE, "output_names holds 2 .* 3", model=curved_columns, output_names=["a", "b"]),
    wrong(TYPE, r"names\[1\] is \['b', 'c'\].* one name", feature_names=["a", ["b", "c"]]),
    wrong(VALUE, r"names column 'a', but 2 columns.*index", x=TWICE, groups={"u": ["a"]}),
    wrong(TYPE, "groups must map", groups=[[0, 1]]),
    wrong(TYPE, r"groups\['u'\]", groups={"u": "ab"}),
    wrong(VALUE, r"groups\['u'\] holds no", groups={"u": []}),
    wrong(VALUE, r"groups\['u'\] names column 'zz'", groups={"u": ["zz"]}),
    wrong((VALUE, TYPE), r"groups\['u'\]", groups={"u": [[0]]}),
    wrong(VALUE, "groups puts .* 'u' and 'v'", groups={"u": [0, 1], "v": [1, 2]}),
    wrong(VALUE, "groups names a player 'a'", x=FRAME, groups={"a": ["b", "c"]}),
    wrong(TYPE, "feature_names must", feature_names="ab"),
    # The seed and the options of the methods
    wrong(TYPE, "seed must be", seed=1.5),
    wrong(VALUE, "seed must be at least 0", seed=-1),
    wrong(VALUE, "cooperators must be one of .*'hessian'", cooperators="hessians"),
    wrong(DERIVATIVE, "not a torch module.*'difference'", cooperators="hessian", max_evals=300),
    wrong(VALUE, "complement must be one of .*'posterior'", complement="coin"),
    wrong(VALUE, "sizes must be one of .*'kernel'", algorithm="leastsquares", sizes="big"),
    # The call
    wrong(TYPE, "max_evals must", max_evals=100.0),
    wrong(TYPE, "max_evals .*'auto'", max_evals="all"),
    wrong(VALUE, "max_evals must be at least 1", max_evals=0),
    wrong(BudgetError, "max_evals=37 .* 38 .* 9 players; 512", cooperators="random", max_evals=37),
    wrong(BudgetError, "21 players.* 20", x=rows(1, 21), masker=rows(1, 21, 1), **ENUMERATED),
    wrong(VALUE, "complement='none'", complement="none", error_bounds=True, max_evals=300),
    wrong(VALUE, "batch_size", batch_size=0),
    wrong(TYPE, "error_bounds", error_bounds=1),
    wrong(TYPE, "silent", silent="yes"),
    wrong(VALUE, "main_effects=True", main_effects=True),
    wrong(TYPE, "outputs must be a list", outputs="a"),
    wrong(VALUE, "outputs=.*beyond", outputs=[0, 1]),
    wrong(TYPE, "outputs", outputs=[0.5]),
    wrong(VALUE, "outputs", outputs=[]),
    # Misspelled
    wrong(InvalidAlgorithmError, "algorithm", algorithm="sheer"),
    wrong(TypeError, "complment", complment="none"),
]
if scipy.sparse.coo_array(X[0]).ndim == 1:  # from SciPy 1.13 on there are sparse rows
    CASES += [
        wrong(VALUE, r"X has shape \(9,\)", x=scipy.sparse.coo_array(X[0])),
        wrong(VALUE, r"masker has shape \(9,\)", masker=scipy.sparse.coo_array(X[0])),
    ]


NEED_OUTPUTS = "link must return", "outputs=", "not a torch"
"""Words of the refusals that read outputs of the model first."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("error", "words", "x", "model", "arguments"), CASES)
def test_wrong_calls_are_named_before_the_model_runs(error, words, x, model, arguments):
    seen = Seen(curved)
    with pytest.raises(error, match=words) as caught:
        explain(x, seen if model is curved else model, arguments)
    assert issubclass(caught.type, (ValueError, TypeError, ArithmeticError, RuntimeError))
    assert not seen.calls or words.startswith(NEED_OUTPUTS)


def test_the_table_is_not_wrong_itself():
    assert explain(X, curved, {}).shape == (2, N)  # what the calls are wrong variants of


@pytest.mark.parametrize(
    ("option", "algorithm"),
    [
        *(
            (option, "shear")
            for option in (
                {"seed": -1},
                {"cooperators": "no"},
                {"complement": "no"},
                {"antithetic": 1},
                {"masker": "no"},
                {"model": None},
                {"linearize_link": 1},
                {"groups": [0]},
                {"groups": {"u": "ab"}},
            )
        ),
        ({"cooperators": "random"}, "oddgp"),
        ({"cooperators": [1.0]}, "oddgp"),
        ({"weights": "even"}, "oddgp"),
        ({"weights": "equal", "cooperators": "auto"}, "oddgp"),
    ],
    ids=str,
)
def test_what_can_be_refused_at_once_is(option, algorithm):
    with pytest.raises(ShapleyExtError, match=next(iter(option))):
        shap.Explainer(**({"model": curved, "masker": BACKGROUND} | option), algorithm=algorithm)


def test_a_failed_call_leaves_the_explainer_usable():
    explainer = shap_ext.ShearExplainer(curved, BACKGROUND, seed=0)
    wanted = explainer(X, max_evals=100).values
    with pytest.raises(BudgetError):
        explainer(X, max_evals=5)
    np.testing.assert_array_equal(explainer(X, max_evals=100).values, wanted)
