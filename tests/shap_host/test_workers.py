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


TABLE, IMAGES = rows(N_ROWS, 6), rows(N_ROWS, 8).reshape(N_ROWS, 2, 4, 1)


def blur():
    pytest.importorskip("cv2", reason="needs opencv-python-headless")
    return shap.maskers.Image("blur(2,2)", (2, 4, 1))


CASES = {
    "tokenizer": (first_output, lambda: shap.maskers.Text(Tokenizer()), texts),
    "blurred image": (of_images, blur, lambda: IMAGES),
    "function": (curved, lambda: reusing, lambda: TABLE),
    "object": (curved, Remembering, lambda: TABLE),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_eight_threads_find_what_one_does(case):
    model, masker, inputs = CASES[case]
    explainer, x = shap.Explainer(model, masker(), algorithm="leastsquares", seed=0), inputs()

    def explain_one(row):
        return explainer(x[row : row + 1], max_evals=BUDGET, silent=True).values[0]

    wanted = list(map(explain_one, range(N_ROWS)))
    with ThreadPoolExecutor(N_THREADS) as pool:
        for own, other in zip(pool.map(explain_one, range(N_ROWS)), wanted, strict=True):
            np.testing.assert_array_equal(own, other)
