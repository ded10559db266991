"""Images by segments: values, backgrounds, painting, plots, bad input."""

import numpy as np
import pytest
import scipy.ndimage
import shap

import shap_ext
from shap_ext.maskers import Superpixels
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    MissingPackageError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import shapley_values
from tests.shap_host.games import ROUNDING, Seen

IMAGES = np.random.default_rng(0).random((2, 6, 8, 3))
OTHERS = np.random.default_rng(1).random((4, 6, 8, 3))
LABELS = np.array([[7, 7, 0, 0], [7, 3, 3, 0], [5, 5, 3, 0]]).repeat(2, 0).repeat(2, 1)
WEIGHTS = np.random.default_rng(2).normal(size=(6, 8, 3))


def model(images):
    weighted = images * WEIGHTS
    left, right = weighted[:, :, :4].sum(axis=(1, 2, 3)), weighted[:, :, 4:].sum(axis=(1, 2, 3))
    return np.stack([left * right, np.tanh(left), np.sort(images.mean((2, 3)))[:, 2]], axis=1)


def blurred(image):
    return scipy.ndimage.gaussian_filter(image, (1, 1, 0))  # a sixth of 6 pixels


BACKGROUNDS = {
    "number": (0.5, lambda image: np.full_like(image, 0.5)[None]),
    "colour": ((0.1, 0.5, 0.9), lambda image: np.broadcast_to([0.1, 0.5, 0.9], (1, 6, 8, 3))),
    "blur": ("blur", lambda image: blurred(image)[None]),
    "images": (OTHERS, lambda image: OTHERS),
    "function": (np.flipud, lambda image: image[::-1][None]),
}


def exact_values(image, labels, background, function=model):
    """Return the Shapley values of segments, painted on the pixels in equal shares."""
    names = np.unique(labels)

    def value(coalition):
        is_present = np.isin(labels, names[list(coalition)])[..., None]
        return function(np.where(is_present, image, background)).mean(axis=0)

    values = shapley_values(len(names), value)
    shares = [
        of_label / (3 * (labels == name).sum())
        for of_label, name in zip(values, names, strict=True)
    ]
    painted = np.zeros((*labels.shape, 3, values.shape[-1]))
    for name, share in zip(names, shares, strict=True):
        painted[labels == name] = share
    return painted


@pytest.mark.parametrize("name", ["enumeration", "oddgp"])
@pytest.mark.parametrize(("background", "images_of"), BACKGROUNDS.values(), ids=BACKGROUNDS)
def test_segments_are_exact(name, background, images_of):
    explainer = shap.Explainer(model, Superpixels(LABELS, background), algorithm=name, seed=0)
    found = explainer(IMAGES, error_bounds=True)
    assert found.values.shape == found.error_std.shape == (2, 6, 8, 3, 3)
    for image, values in zip(IMAGES, found.values, strict=True):
        wanted = exact_values(image, LABELS, images_of(image))
        np.testing.assert_allclose(values, wanted, atol=1e-10)
    np.testing.assert_array_equal(found.data, IMAGES)


def test_inpainting_fills_absent_segments_in_from_present_ones():
    inpaint = pytest.importorskip("skimage.restoration").inpaint_biharmonic
    explainer = shap.Explainer(model, Superpixels(LABELS, "inpaint"), algorithm="enumeration")
    found = explainer(IMAGES[:1])

    def value(coalition):
        is_absent = ~np.isin(LABELS, np.array([0, 3, 5, 7])[list(coalition)])
        filled = np.broadcast_to(IMAGES[0].mean(axis=(0, 1)), IMAGES[0].shape)
        if not is_absent.all():
            filled = inpaint(IMAGES[0], is_absent, channel_axis=-1)
        return model(np.where(is_absent[..., None], filled, IMAGES[0])[None])[0]

    wanted = shapley_values(4, value)
    for place, label in enumerate((0, 3, 5, 7)):
        of_label = found.values[0][label == LABELS].sum(axis=(0, 1))
        np.testing.assert_allclose(of_label, wanted[place], atol=1e-10)


def test_attributions_sum_to_the_output_with_any_budget_and_segments():
    """Grids, numbers and functions; and each image has segments of its own."""

    def by_brightness(image):
        return np.digitize(
            image.mean(axis=2), np.quantile(image.mean(axis=2), np.arange(1, 16) / 16)
        )

    for segments in ((4, 4), 12, by_brightness):
        masker = Superpixels(segments, OTHERS)
        explainer = shap.Explainer(model, masker, algorithm="oddgp", seed=0)
        found = explainer(IMAGES, max_evals=60)
        sums = found.values.sum(axis=(1, 2, 3)) + found.base_values
        np.testing.assert_allclose(sums, model(IMAGES), **ROUNDING)
        np.testing.assert_allclose(found.base_values, np.tile(model(OTHERS).mean(0), (2, 1)))
        for image, values in zip(IMAGES, found.values, strict=True):
            labels = masker.row(image).places
            for label in np.unique(labels):
                assert (np.ptp(values[labels == label].reshape(-1, 3), axis=0) < 1e-15).all()


def test_slic_follows_the_image():
    pytest.importorskip("skimage")
    image = np.zeros((20, 20, 3))
    image[:, 12:] = 1.0
    labels = Superpixels(8, method="slic").row(image).places
    assert 2 < len(np.unique(labels)) < 16
    assert not set(labels[:, :12].ravel()) & set(labels[:, 12:].ravel())
    grey = Superpixels(8, method="slic").row(image[..., 0]).places
    assert not set(grey[:, :12].ravel()) & set(grey[:, 12:].ravel())


def test_shap_s_own_explainers_take_it():
    masker = Superpixels(LABELS, OTHERS)
    by_shap = shap.Explainer(model, masker, algorithm="permutation", seed=0)(IMAGES)
    assert by_shap.feature_names[0] == ["Segment 0", "Segment 3", "Segment 5", "Segment 7"]
    painted = masker.paint(by_shap)
    ours = shap.Explainer(model, masker, algorithm="enumeration")(IMAGES)
    # The first output has interactions of pairs alone: orders and their reverse are exact.
    np.testing.assert_allclose(painted.values[..., 0], ours.values[..., 0], atol=1e-10)
    np.testing.assert_allclose(
        painted.values.sum(axis=(1, 2, 3)) + painted.base_values, model(IMAGES), **ROUNDING
    )
    with pytest.raises(InvalidArgumentError, match="those of shap_ext return images themselves"):
        masker.paint(ours)


def test_integers_stay_integers_and_equal_segments_cost_nothing():
    image = np.full((1, 6, 8, 3), 120, dtype=np.uint8)
    image[0, :2, :2], image[0, 4:, 6:] = 90, 250
    seen = Seen(lambda images: images.astype(float).mean(axis=(1, 2, 3)) ** 2)
    explainer = shap.Explainer(seen, Superpixels((3, 4), 120), algorithm="enumeration")
    found = explainer(image)
    assert explainer.last_estimate.evaluations.tolist() == [4]
    assert {call.dtype for call in seen.calls} == {np.dtype(np.uint8)}
    assert np.count_nonzero(found.values) == 2 * 12
    shap.Explainer(seen, Superpixels((3, 4), "blur"), algorithm="enumeration")(image)
    assert {call.dtype for call in seen.calls} == {np.dtype(np.uint8)}


def test_each_coalition_is_evaluated_on_some_of_many_backgrounds():
    """And the rows of the model tell something about all of them, as with a table."""
    light = np.linspace(0, 2, 30)[:, None, None, None]
    many = light * np.random.default_rng(4).random((30, 6, 8, 3))
    masker, arguments = Superpixels((3, 4), many), {"max_model_rows": 400, "error_bounds": True}
    exact = shap.Explainer(model, masker, algorithm="leastsquares", seed=0)(IMAGES, max_evals=1000)
    explainer = shap.Explainer(model, masker, algorithm="oddgp", seed=0)
    found = explainer(IMAGES, **arguments)
    assert explainer.last_estimate.model_rows.max() <= 400
    z = (found.values - exact.values) / found.error_std
    assert np.sqrt(np.square(z[:, ::2, ::2, 0]).mean()) < 2  # 72 values of 12 segments
    groups = masker.row(IMAGES[0]).places
    of_table = shap.Explainer(model, many, algorithm="oddgp", seed=0, groups=groups)(
        IMAGES, **arguments
    )
    np.testing.assert_allclose(found.error_std.mean(), of_table.error_std.mean(), rtol=0.2)


def test_streams_hold_images(tmp_path):
    explainer = shap.Explainer(model, Superpixels(LABELS, OTHERS), algorithm="oddgp", seed=0)
    stream = explainer.explain_stream([IMAGES, IMAGES[:1]], tmp_path / "values.npz")
    values = explainer(IMAGES).values
    np.testing.assert_allclose(stream.values, values[[0, 1, 0]])


def test_segments_that_touch_are_neighbours():
    masker = Superpixels((1, 4), 0.0)
    on_line = shap.Explainer(model, masker, algorithm="lshapley", order=1)(IMAGES)
    columns = shap.Explainer(
        model,
        lambda mask, x: np.where(mask.reshape(x.shape), x, 0.0)[None],
        algorithm="lshapley",
        order=1,
        graph=[(0, 1), (1, 2), (2, 3)],
        groups=np.tile([0, 0, 1, 1, 2, 2, 3, 3], (6, 1)),
    )(IMAGES)
    np.testing.assert_allclose(on_line.values, columns.values, **ROUNDING)


def test_criteria_rank_segments():
    masker = Superpixels(LABELS, 0.5)
    found = shap.Explainer(model, masker, algorithm="enumeration")(IMAGES)
    curve = shap_ext.criteria.insertion_curve(found, model, masker)
    row = masker.row(IMAGES[0])
    sums = [found.values[0, ..., 1][row.places == k].sum() for k in range(4)]
    order = np.argsort(sums)[::-1]
    masks = np.array([np.isin(np.arange(4), order[:n]) for n in range(5)])
    outputs = [model(row(mask)[0])[0, 1] for mask in masks]
    np.testing.assert_allclose(curve.values[0, 1], outputs, **ROUNDING)


# --- bad input, before the model is called ---


def must_not_be_called(*_):
    raise AssertionError("The model must not be evaluated.")


WHOLE = (10 * IMAGES).astype(np.uint8)


@pytest.mark.parametrize(
    ("arguments", "images", "message"),
    [
        ({"segments": LABELS[:4]}, IMAGES, r"labels of the shape \(4, 8\).*row 0, has 6 x 8 pix"),
        ({"segments": np.where(LABELS == 7, np.nan, LABELS)}, IMAGES, "holds NaN in 12 places"),
        ({"segments": LABELS / 2}, IMAGES, "segments must hold whole numbers"),
        ({"segments": LABELS[:0]}, IMAGES, "labels of pixels.*are needed"),
        ({"segments": (7, 2)}, IMAGES, "empty, which has only 6 x 8 pixels"),
        ({"segments": (2, 0)}, IMAGES, "segments must be at least 1"),
        ({"segments": 49}, IMAGES, "more than the 48 pixels"),
        ({"segments": 0}, IMAGES, "segments must be at least 1"),
        ({"segments": "slic"}, IMAGES, "segments must be a number of segments.*got str"),
        ({"segments": lambda image: image}, IMAGES, "row 0, must hold whole numbers"),
        ({"method": "quickshift"}, IMAGES, "method must be one of 'grid', 'slic'"),
        ({"background": "grey"}, IMAGES, "background='grey' must be 'blur'"),
        ({"background": (0.1, 0.2)}, IMAGES, r"shape \(2,\), but X, row 0, \(6, 8, 3\)"),
        ({"background": OTHERS[:, :5]}, IMAGES, r"background has the shape \(4, 5, 8, 3\)"),
        ({"background": [np.nan]}, IMAGES, "background holds NaN"),
        ({"background": [None]}, IMAGES, "background must hold numbers"),
        ({}, [IMAGES[0], IMAGES[1, :4]], "row 1, has 4 x 8 pixels"),
        ({}, IMAGES.reshape(2, -1), r"row 0, has the shape \(144,\)"),
        ({}, np.moveaxis(IMAGES, -1, 1), "channels first"),
        ({}, np.full((1, 6, 8), "a"), "an image of numbers"),
        ({"background": 0.5}, WHOLE, "numbers that uint8 of X, row 0, cannot hold, such as 0.5"),
    ],
)
def test_what_fits_no_image_is_refused(arguments, images, message):
    arguments = {"segments": LABELS, **arguments}
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=f"(?s){message}"):
        shap.Explainer(must_not_be_called, Superpixels(**arguments), algorithm="oddgp")(images)


def test_groups_and_names_of_columns_do_not_go_with_segments():
    for option in ({"groups": LABELS}, {"feature_names": ["a"]}):
        explainer = shap.Explainer(
            must_not_be_called, Superpixels(LABELS), algorithm="oddgp", **option
        )
        with pytest.raises(InvalidArgumentError, match="cannot be used.*segments"):
            explainer(IMAGES)


def test_scikit_image_is_named_where_it_is_missing(monkeypatch):
    for module in ("segmentation", "restoration"):
        monkeypatch.setitem(__import__("sys").modules, f"skimage.{module}", None)
    with pytest.raises(MissingPackageError, match="slic.*text-and-images"):
        Superpixels(10, method="slic")
    with pytest.raises(MissingPackageError, match="inpaint.*text-and-images"):
        Superpixels(10, "inpaint")


def test_pixels_are_told_how_to_get_superpixels():
    remedy = r"Superpixels\(50\) takes 800 evaluations"
    explainer = shap.Explainer(
        must_not_be_called, np.zeros((1, 224, 224, 3)), algorithm="oddgp", seed=0
    )
    with pytest.raises(BudgetError, match=rf"(?s)150528 numbers.*{remedy}"):
        explainer(np.ones((1, 224, 224, 3)))
    small = shap.Explainer(
        lambda x: x.sum(axis=(1, 2)), np.zeros((1, 32, 32)), algorithm="oddgp", seed=0
    )
    with pytest.warns(ShapleyExtWarning, match=remedy):
        small(np.ones((1, 32, 32)), max_evals=100)


# Our image plot: shap's, with panels of errors


@pytest.mark.parametrize(("shape", "n_outputs"), [((6, 8), 1), ((6, 8, 1), 3), ((6, 8, 3), 3)])
def test_plots_take_them_without_a_further_call(shape, n_outputs):
    images = np.random.default_rng(3).random((2, *shape))

    def outputs(x):
        x = x.reshape(len(x), 6, 8, -1)
        return np.tanh(5 * x * x[:, ::-1])[..., 0].reshape(len(x), -1)[:, 10 : 10 + n_outputs]

    names = ["cat", "dog", "owl"][:n_outputs] if n_outputs > 1 else None
    explainer = shap.Explainer(
        outputs, Superpixels((3, 4)), algorithm="randomorder", seed=0, output_names=names
    )
    found = explainer(images, max_evals=60, error_bounds=True)
    shap.image_plot(found, show=False)
    figure = shap_ext.plots.image(found, show=False)
    panels = figure.axes[:-2]
    n_columns = 2 * n_outputs + 1
    assert len(panels) == 2 * n_columns
    assert names is None or [p.get_title() for p in panels[1:n_columns:2]] == names
    assert {p.get_title() for p in panels[2:n_columns:2]} == {"± (95 % interval)"}
    sums = [found.values, found.upper_bounds - found.values]
    if len(shape) == 3:
        sums = [array.sum(axis=3) for array in sums]
    for k in range(n_outputs):
        for row in range(2):
            pair = panels[row * n_columns + 1 + 2 * k :][:2]
            for panel, numbers in zip(pair, sums, strict=True):
                wanted = numbers[row].reshape(6, 8, n_outputs)[..., k]
                np.testing.assert_allclose(panel.images[1].get_array(), wanted, atol=1e-12)
            limit = np.abs(sums[0]).max()
            assert 0.9 * limit < pair[0].images[1].get_clim()[1] <= limit
            assert pair[1].images[1].get_clim() == pytest.approx(
                (0, sums[1].max() or pair[0].images[1].get_clim()[1])
            )
    errors_bar, values_bar = (axes.get_xlabel() for axes in figure.axes[-2:])
    assert values_bar == "SHAP value"
    assert errors_bar == "half width of the 95 % interval"
    one = shap_ext.plots.image(found[1], show=False)
    assert len(one.axes) == n_columns + 2
    np.testing.assert_array_equal(
        one.axes[2].images[1].get_array(), panels[n_columns + 2].images[1].get_array()
    )


@pytest.mark.parametrize(("factor", "width"), [(0, 0), (0, 0.2), (-1, 0.2), (1, 0)])
def test_zeros_and_one_sign_are_drawn(factor, width):
    values = factor * np.random.default_rng(0).random((1, 6, 8))
    found = shap.Explanation(
        values,
        base_values=np.zeros(1),
        data=np.ones((1, 6, 8)),
        lower_bounds=values - width,
        upper_bounds=values + width,
        error_std=np.full(values.shape, width / 2),
    )
    figure = shap_ext.plots.image(found, show=False)
    figure.canvas.draw()
    picture, errors = (axes.images[1] for axes in figure.axes[1:3])
    limit = np.abs(values).max() or width or 1.0
    low, high = picture.get_clim()
    assert low == -high
    assert 0.9 * limit < high <= limit
    assert errors.get_clim() == pytest.approx((0, width or high))
    given = shap_ext.plots.image(found, vmax=3, show=False)
    assert given.axes[1].images[1].get_clim() == (-3, 3)
