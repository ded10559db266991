"""One explainer and one masker shared by threads."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from tests.shap_host.games import curved, rows
from tests.shap_host.test_text import Tokenizer, first_output

N_ROWS, N_THREADS, BUDGET = 24, 8, 60
WORDS = ["this", "is", "not", "good", "the", "film", "was", "so"]


def texts():
    random = np.random.default_rng(0)
    return np.array([" ".join(random.choice(WORDS, random.integers(2, 9))) for _ in range(N_ROWS)])


def of_images(images):
    return curved(images.reshape(len(images), -1) / 50)


BUFFER, REFERENCE = np.empty((2, 6)), rows(2, 6, seed=1)


def reusing(mask, x):
    """Mask in memory that the next call writes into."""
    BUFFER[:] = np.where(mask, x, REFERENCE)
    time.sleep(0)  # another thread may come between
    return BUFFER


class Remembering:
    """A masker that remembers the row between two steps of one call."""

    def __init__(self):
        self.row = None

    def __call__(self, mask, x):
        self.row = x
        time.sleep(0)  # another thread may come between
        return np.where(mask, self.row, 0.0)[None]


def labelled(x, labels):
    return (curved(x) - np.asarray(labels)) ** 2


IMAGES = np.round(rows(N_ROWS, 8).reshape(N_ROWS, 2, 4, 1) * 30 + 120)
TABLE = rows(N_ROWS, 6)


def composite():
    return shap.maskers.Composite(shap.maskers.Independent(REFERENCE), shap.maskers.Fixed())


def blur():
    pytest.importorskip("cv2", reason="needs opencv-python-headless")
    return shap.maskers.Image("blur(2,2)", (2, 4, 1))


def partition():
    return shap.maskers.Partition(REFERENCE, clustering=np.zeros((5, 4)))


CASES = {
    "text": (first_output, lambda: shap.maskers.Text(r"\W+"), lambda: (texts(),)),
    "tokenizer": (first_output, lambda: shap.maskers.Text(Tokenizer()), lambda: (texts(),)),
    "image": (of_images, lambda: shap.maskers.Image(90.0, (2, 4, 1)), lambda: (IMAGES,)),
    "blurred image": (of_images, blur, lambda: (IMAGES,)),
    "partition": (curved, partition, lambda: (TABLE,)),
    "independent": (curved, lambda: shap.maskers.Independent(REFERENCE), lambda: (TABLE,)),
    "function": (curved, lambda: reusing, lambda: (TABLE,)),
    "object": (curved, Remembering, lambda: (TABLE,)),
    "composite": (labelled, composite, lambda: (TABLE, TABLE[:, 0])),
}


def explain_one(explainer, inputs, row):
    """Explain one row; of several inputs return the first one's values."""
    made = explainer(*(one[row : row + 1] for one in inputs), max_evals=BUDGET, silent=True)
    return (made[0] if isinstance(made, list) else made).values[0]


def built(case):
    model, masker, inputs = CASES[case]
    explainer = shap.Explainer(model, masker(), algorithm="leastsquares", seed=0)
    return explainer, inputs()


def assert_identical(found, wanted):
    assert len(found) == len(wanted)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_eight_threads_find_what_one_does(case):
    explainer, inputs = built(case)
    wanted = [explain_one(explainer, inputs, row) for row in range(N_ROWS)]
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(lambda row: explain_one(explainer, inputs, row), range(N_ROWS)))
    assert_identical(found, wanted)
    together = explainer(*inputs, max_evals=BUDGET)
    together = together[0] if isinstance(together, list) else together
    for own, other in zip(together.values, wanted, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-10)
