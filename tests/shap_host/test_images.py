"""shap's Image masker: values, blur and inpainting, several images in one call, plots."""

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import shapley_values
from tests.shap_host.games import ROUNDING, Seen, curved, curved_columns, rows

SHAPE = (2, 4, 1)
IMAGES = np.round(rows(3, 8).reshape(3, *SHAPE) * 40 + 120)  # inpainting takes whole numbers


def needing_cv2(mask_value):
    if isinstance(mask_value, str):
        pytest.importorskip("cv2", reason="needs opencv-python-headless")


def model(images):
    return curved_columns(images.reshape(len(images), -1) / 100)


def by_oracle(mask_value, image, function=model):
    """Return the Shapley values of an image's numbers, by a masker that sees nothing else."""
    masker = shap.maskers.Image(mask_value, SHAPE)

    def value(coalition):
        mask = np.zeros(image.size, dtype=bool)
        mask[list(coalition)] = True
        masker.last_xid = None
        return function(masker(mask, image)[0])[0]

    return shapley_values(image.size, value).reshape(*image.shape, -1)


MASK_VALUES = {
    "number": 90.0,
    "array": np.arange(8.0).reshape(SHAPE),
    "blur": "blur(2,2)",
    "telea": "inpaint_telea",
    "ns": "inpaint_ns",
}


@pytest.mark.parametrize("name", ["enumeration", "shear"])
@pytest.mark.parametrize("mask_value", MASK_VALUES.values(), ids=MASK_VALUES)
def test_images_are_exact(name, mask_value):
    needing_cv2(mask_value)
    masker = shap.maskers.Image(mask_value, SHAPE)
    sv = shap.Explainer(model, masker, algorithm=name, seed=0)(IMAGES)
    assert sv.values.shape == (3, *SHAPE, 3)
    assert sv.base_values.shape == (3, 3)
    for place, image in enumerate(IMAGES):
        np.testing.assert_allclose(sv.values[place], by_oracle(mask_value, image), **ROUNDING)
    np.testing.assert_array_equal(sv.data, IMAGES)


def test_blurred_images_are_not_mixed_up():
    """The masker keeps the latest blurred image by `id`, which another image may get."""
    needing_cv2("blur(3,3)")
    images = rows(40, 9).reshape(40, 3, 3, 1)

    def mean_of_rows(images):
        return curved(images.mean(axis=(2, 3)))

    masker = shap.maskers.Image("blur(3,3)", (3, 3, 1))
    masker(np.zeros(9, dtype=bool), images[7])  # remembers it
    explainer = shap.Explainer(mean_of_rows, masker, algorithm="leastsquares", seed=0)
    together = explainer(images, max_evals=60)
    for place in range(0, 40, 3):
        fresh = shap.maskers.Image("blur(3,3)", (3, 3, 1))
        one = shap.Explainer(mean_of_rows, fresh, algorithm="leastsquares", seed=0)
        alone = one(images[[place]], max_evals=60)
        np.testing.assert_allclose(together.values[place], alone.values[0], **ROUNDING)
        np.testing.assert_allclose(together.base_values[place], alone.base_values[0], **ROUNDING)


@pytest.mark.parametrize("mask_value", [120.0, "blur(3,3)", "inpaint_telea"])
def test_numbers_that_masking_leaves_as_they_are_cost_nothing(mask_value):
    needing_cv2(mask_value)
    image = np.full((1, 3, 3, 1), 120.0)
    image[0, 0, 0], image[0, 2, 2] = 200, 40  # which leaves the mean, 120, as it is
    seen = Seen(lambda images: images.reshape(len(images), -1) @ np.arange(9.0) ** 2)
    masker = shap.maskers.Image(mask_value, (3, 3, 1))
    explainer = shap.Explainer(seen, masker, algorithm="enumeration")
    sv = explainer(image)
    spent = int(explainer.last_estimate.evaluations[0])
    # A blurred corner is seen as far as its neighbours, and the two cancel out in the middle.
    # Inpainting looks at what else is absent, so that every number counts.
    assert spent == {120.0: 4, "blur(3,3)": 64, "inpaint_telea": 512}[mask_value]
    full = image.reshape(1, -1) @ np.arange(9.0) ** 2
    np.testing.assert_allclose(sv.values.sum() + sv.base_values, full, rtol=0, atol=1e-8)


def test_images_that_inpainting_rounds_are_announced():
    needing_cv2("inpaint_telea")
    masker = shap.maskers.Image("inpaint_telea", SHAPE)
    explainer = shap.Explainer(model, masker, algorithm="enumeration")
    for image in (IMAGES, np.where(IMAGES > 120, 255.0, 0.0)):  # whole numbers, without a word
        explainer(image)
    for image in (IMAGES / 255, IMAGES - 200, IMAGES + 0.5):
        with pytest.warns(ShapleyExtWarning, match="whole numbers from 0 to 255"):
            explainer(image[:1])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_images_reach_the_model_in_their_own_type(dtype):
    seen = Seen(lambda images: images.reshape(len(images), -1).sum(axis=1).astype(float))
    masker = shap.maskers.Image(7, SHAPE)
    explainer = shap.Explainer(seen, masker, algorithm="enumeration")
    explainer(IMAGES.astype(dtype))
    assert {call.dtype for call in seen.calls} == {np.dtype(dtype)}
    assert {call.shape[1:] for call in seen.calls} == {SHAPE}


def test_flat_images_stay_flat_and_tensors_are_read():
    torch = pytest.importorskip("torch")
    masker = shap.maskers.Image(90.0, SHAPE)
    explainer = shap_ext.EnumerationExplainer(model, masker)
    wanted = explainer(IMAGES).values
    flat = explainer(IMAGES.reshape(3, -1))
    assert flat.values.shape == (3, 8, 3)
    np.testing.assert_allclose(flat.values.reshape(wanted.shape), wanted, **ROUNDING)
    np.testing.assert_array_equal(explainer(torch.as_tensor(IMAGES)).values, wanted)


def test_memory_bounds_how_many_images_share_a_call():
    seen = Seen(lambda images: images.mean(axis=(1, 2, 3)))
    masker = shap.maskers.Image(0.0, (128, 128, 3))
    explainer = shap.Explainer(seen, masker, algorithm="randomorder", seed=0)
    groups = {"upper": list(range(24576)), "lower": list(range(24576, 49152))}
    image = np.random.default_rng(0).random((12, 128, 128, 3))
    grouped = shap.Explainer(seen, masker, algorithm="enumeration", groups=groups)
    grouped(image)
    assert max(call.nbytes for call in seen.calls) <= 2**26
    assert max(len(call) for call in seen.calls) > 12
    assert explainer.masker is masker


def test_images_of_different_sizes_by_a_function():
    """Rows of different shapes are explained in one call; each shape has calls of its own."""

    def dark(mask, image):
        return np.where(mask.reshape(image.shape), image, 0.5)[None]

    images = [rows(1, 4)[0].reshape(2, 2), rows(1, 6, seed=1)[0].reshape(3, 2)]
    seen = Seen(lambda images: curved(images.reshape(len(images), -1)))
    sv = shap.Explainer(seen, dark, algorithm="enumeration")(images)
    for place, image in enumerate(images):

        def value(coalition, image=image):
            masked = np.full(image.size, 0.5)
            masked[list(coalition)] = image.ravel()[list(coalition)]
            return curved(masked[None])[0]

        wanted = shapley_values(image.size, value).reshape(image.shape)
        np.testing.assert_allclose(sv.values[place], wanted, **ROUNDING)
        np.testing.assert_array_equal(sv.data[place], image)
    assert {call.shape[1:] for call in seen.calls} == {(2, 2), (3, 2)}


LABELS = np.repeat(np.repeat([[0, 1, 7], [2, 2, 5]], 2, axis=0), 2, axis=1)
NAMES = (0, 1, 7, 2, 5)  # in the order of their first pixels


def by_zeros(mask, x):
    return (np.where(mask.reshape(x.shape), x, 0.0)[None],)


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3)])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_superpixels_by_labels_are_drawn_as_images(shape, n_outputs):
    images = np.random.default_rng(0).normal(size=(2, *shape))

    def model(x):
        parts = [x[:, label == LABELS].reshape(len(x), -1) for label in NAMES]
        sums = np.stack([part.sum(axis=1) for part in parts], axis=1)
        outputs = [sums[:, 0] * sums[:, 1] + sums[:, 2], np.tanh(sums).sum(axis=1)]
        return np.stack(outputs[:n_outputs], axis=1)

    explainer = shap.Explainer(model, by_zeros, algorithm="best", groups=LABELS, seed=0)
    whole = explainer(images)
    names = [f"Group {label}" for label in NAMES]
    assert whole.feature_names is None
    assert explainer(images, interactions=True).feature_names == names
    by_names = {
        name: np.flatnonzero(np.repeat(LABELS, images[0].size // 24) == int(name[6:]))
        for name in names
    }
    of_groups = shap.Explainer(model, by_zeros, algorithm="best", groups=by_names, seed=0)(images)
    outputs = of_groups.values.shape[2:]
    assert whole.values.shape == images.shape + outputs
    for index, label in enumerate(NAMES):
        of_label = whole.values[:, label == LABELS]
        np.testing.assert_allclose(
            of_label.reshape(2, -1, *outputs).sum(axis=1), of_groups.values[:, index], atol=1e-12
        )
    shap.image_plot(whole, show=False)


def test_labels_that_do_not_fit_are_refused():
    images = np.ones((1, 4, 6, 3))
    options = {"algorithm": "oddgp", "seed": 0}
    explainer = shap.Explainer(
        lambda x: x.sum(axis=(1, 2, 3)), by_zeros, groups=LABELS[:, :5], **options
    )
    with pytest.raises(InvalidArgumentError, match=r"labels of the shape \(4, 5\).*72 entries"):
        explainer(images)
    with pytest.raises(InvalidArgumentTypeError, match="array of whole numbers"):
        shap.Explainer(lambda x: x, by_zeros, groups=LABELS / 2, **options)


def test_best_explains_large_images_by_their_quadrants():
    """32 x 32 pixels take at most the 500 evaluations of shap's own default."""
    shape = (32, 32, 3)
    seen = Seen(lambda images: images[:, 4:8, 8:12].mean(axis=(1, 2, 3)) ** 2)
    images = np.random.default_rng(0).random((2, *shape))
    masker = shap.maskers.Image(0.0, shape)
    explainer = shap.Explainer(seen, masker, algorithm="best", seed=0)
    assert (explainer.budget_of(images).evaluations == 500).all()
    sv = explainer(images, error_bounds=True)
    assert sum(map(len, seen.calls)) <= 1.05 * 2 * 500
    assert explainer.last_estimate.choice == (
        "hierarchy: squares of squares, because the image has 1024 pixels, more than 64; at most "
        "500 evaluations, as in shap"
    )
    assert sv.call.choice == explainer.last_estimate.choice
    sums = sv.values.sum(axis=(1, 2, 3)) + sv.base_values
    np.testing.assert_allclose(sums, seen(images), **ROUNDING)
    inside = sv.values[:, 4:8, 8:12].sum(axis=(1, 2, 3))
    np.testing.assert_allclose(inside, seen(images), rtol=0.01)
    same = shap.Explainer(seen, masker, algorithm="hierarchy", seed=0)
    np.testing.assert_array_equal(same(images, max_evals=500).values, sv.values)
    more = explainer(images, max_evals=900)
    assert (explainer.last_estimate.evaluations > 500).all()
    assert more.values.shape == images.shape
    with pytest.warns(ShapleyExtWarning, match="did not reach the tolerance"):
        explainer(images[:1], tolerance="0.1%")  # which asks for as many as it takes
    assert (explainer.last_estimate.evaluations > 500).any()


@pytest.mark.parametrize(
    ("shape", "options", "call"),
    [
        ((8, 8, 1), {}, {"max_evals": 1100}),
        ((9, 8, 1), {"groups": {"upper": list(range(36)), "lower": list(range(36, 72))}}, {}),
        ((9, 8, 1), {}, {"interactions": True, "max_evals": 1200}),
        ((9, 8, 1), {}, {"max_seconds": 1.5}),
    ],
)
@pytest.mark.filterwarnings("ignore:max_evals=.* is little for")  # on a slow machine
def test_best_explains_other_images_by_pixels_or_groups(shape, options, call):
    images = np.random.default_rng(0).random((1, *shape))
    masker = shap.maskers.Image(0.0, shape)
    explainer = shap.Explainer(
        lambda x: x[:, 0, 0, 0] * x[:, 1, 1, 0], masker, algorithm="best", seed=0, **options
    )
    explainer(images, **call)
    assert "hierarchy" not in explainer.last_estimate.choice
