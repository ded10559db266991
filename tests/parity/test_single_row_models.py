"""Models that take one row a call run as they are, with one warning; their own errors stay."""

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext  # noqa: F401 (its algorithms)
from shapley_adapters.errors import ShapleyExtWarning
from tests.helpers.optional import captum_ext, torch

pytestmark = pytest.mark.filterwarnings("error")

N_FEATURES = 6
ROWS = np.random.default_rng(0).normal(size=(3, N_FEATURES)) + 2
BACKGROUND = np.random.default_rng(1).normal(size=(4, N_FEATURES))
MATRIX = np.random.default_rng(2).normal(size=(N_FEATURES, 2))
ONE_ROW = pytest.warns(ShapleyExtWarning, match=r"one row at a time.*calls")


def plain(x):
    return np.tanh(np.asarray(x) @ MATRIX)


def refusing(error, calls=None):
    """Return a model that raises an error for several rows, after it wrote into them."""

    def model(x):
        if calls is not None:
            calls.append(len(x))
        output = plain(x)
        if len(x) != 1:
            if isinstance(x, np.ndarray):
                x[:] = np.nan
            raise error
        return output

    return model


def from_shap(model, algorithm="best", background=BACKGROUND, rows=ROWS, **options):
    explainer = shap.Explainer(model, background, algorithm=algorithm, seed=0, **options)
    return explainer(rows, max_evals=80, silent=True).values


def from_captum(model, method="Best", **options):
    made = getattr(captum_ext, method)(lambda x: torch.as_tensor(model(x.numpy())), seed=0)
    baselines = captum_ext.BaselineDistribution(torch.as_tensor(BACKGROUND))
    made = made.attribute(torch.as_tensor(ROWS), baselines, n_samples=80, **options)
    return made.movedim(1, 2).numpy()


EACH_HOST = pytest.mark.parametrize("explain", [from_shap, from_captum])
EACH_ERROR = pytest.mark.parametrize(
    "error",
    [AssertionError(), RuntimeError("shapes"), ValueError("sizes"), IndexError(), TypeError("one")],
    ids=lambda error: type(error).__name__,
)


@EACH_HOST
@EACH_ERROR
def test_values_are_those_of_the_model_that_takes_batches(explain, error):
    calls: list[int] = []
    with ONE_ROW as caught:
        found = explain(refusing(error, calls))
    assert len(caught) == 1
    np.testing.assert_allclose(found, explain(plain), rtol=0, atol=1e-10)
    assert sum(size > 1 for size in calls) == 1  # which found it


def fail_always(sizes):
    raise RuntimeError(f"of {sizes[-1]} rows")


def fail_in_the_fourth_call(sizes):
    if len(sizes) == 4:
        raise RuntimeError("after batches")


def lose_the_connection(sizes):
    if sizes[-1] > 1:
        raise ConnectionError("lost")


def fail_for_the_second_row(sizes):
    assert sizes[-1] == 1
    if len(sizes) == 3:
        raise ValueError("this row")


@EACH_HOST
@pytest.mark.parametrize(
    ("fail", "error", "words", "n_calls"),
    [
        (fail_always, RuntimeError, r"of \d+ rows", (1, 2)),
        (fail_in_the_fourth_call, RuntimeError, "after batches", (4,)),
        (lose_the_connection, ConnectionError, "lost", (1,)),
        (fail_for_the_second_row, ValueError, "this row", (3,)),
    ],
)
@pytest.mark.every_combination
def test_errors_of_the_model_are_its_own_without_a_warning(explain, fail, error, words, n_calls):
    sizes: list[int] = []

    def model(x):
        sizes.append(len(x))
        fail(sizes)
        return plain(x)

    with pytest.raises(error, match=f"^{words}$") as caught:
        explain(model)
    assert len(sizes) in n_calls
    if fail is fail_always:
        assert str(caught.value) == f"of {sizes[0]} rows"
        assert sizes[1:] in ([], [1])


@pytest.mark.parametrize("kind", ["frame", "link", "masker"])
def test_other_inputs_of_shap(kind):
    frame = pd.DataFrame(BACKGROUND, columns=list("abcdef"))
    options = {
        "frame": {"background": frame, "rows": frame.iloc[:2]},
        "link": {"link": shap.links.identity, "linearize_link": False},
        "masker": {"background": lambda mask, x: np.where(mask, x, BACKGROUND)},
    }[kind]
    with ONE_ROW:
        found = from_shap(refusing(AssertionError()), "oddgp", **options)
    np.testing.assert_allclose(found, from_shap(plain, "oddgp", **options), rtol=0, atol=1e-10)


# The models of captum's users


def test_derivatives_of_a_single_row():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)
    )
    net.double()

    def single(x):
        assert len(x) == 1
        return net(x)

    def explain(model):
        method = captum_ext.Shear(model, seed=0, cooperators="hessian")
        return method.attribute(torch.as_tensor(ROWS), n_samples=40), method.last_estimate

    with ONE_ROW:
        found, estimate = explain(single)
    wanted, of_batches = explain(net)
    torch.testing.assert_close(found, wanted)
    np.testing.assert_array_equal(estimate.cooperators, of_batches.cooperators)
