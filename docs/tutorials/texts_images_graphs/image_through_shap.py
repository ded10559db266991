"""
Images through shap, by superpixels
===================================

**For whom:** you explain an image classifier with shap, and want to know which parts of a picture
decide, and how sure that is.

The masker ``Superpixels`` makes segments of an image the players, instead of its pixels. Our
explainers return attributions of the images' shape, so that shap's image plot draws them.
"""

# %%
# A small network that reads digits
# ---------------------------------
# scikit-learn ships 1,797 digits of 8 × 8 pixels. We explain the log-odds of a class, whose values
# add up better than probabilities.

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import shap_ext

images, labels = load_digits(return_X_y=True)
train, test, train_labels, test_labels = train_test_split(
    images / 16, labels, test_size=400, random_state=0
)
network = MLPClassifier((100,), alpha=0.1, learning_rate_init=0.01, random_state=0).fit(
    train, train_labels
)
print(f"Accuracy on 400 other digits: {network.score(test, test_labels):.3f}")
CLASSES = [3, 8]


def log_odds(x):
    """Return the log-odds of the classes for images (N, 8, 8, 1)."""
    probabilities = network.predict_proba(x.reshape(len(x), -1))[:, CLASSES].clip(1e-9, 1 - 1e-9)
    return np.log(probabilities / (1 - probabilities))


# %%
# Five lines
# ----------
# The cells of a grid of 4 × 4 are 16 players. Absent ones are black (0), as the background of the
# digits is.

is_chosen = np.isin(test_labels, CLASSES)
digits = test[is_chosen][:30].reshape(-1, 8, 8, 1)
own = np.searchsorted(CLASSES, test_labels[is_chosen][:30])
first = [int(np.flatnonzero(own == k)[0]) for k in (0, 1)]
names = [f"log-odds of {digit}" for digit in CLASSES]

masker = shap_ext.maskers.Superpixels((4, 4), background=0.0)
explainer = shap.Explainer(log_odds, masker, algorithm="oddgp", seed=0, output_names=names)
explanation = explainer(digits, max_evals=100, error_bounds=True)
shap.image_plot(explanation[first], show=False)
plt.show()

# %%
# The values are on the pixels, with standard errors. Those of an image sum to the output less the
# base value.

sums = explanation.values.sum(axis=(1, 2, 3)) + explanation.base_values
print(f"shapes: {explanation.shape} and {explanation.error_std.shape}")
print(f"largest difference to the output: {np.abs(sums - log_odds(digits)).max():.0e}")

# %%
# Our plot of the same name has a panel beside each output, with half the width of the 95 %
# interval of each pixel. Its colour bar has the unit of the attributions. With fewer evaluations,
# intervals are wider:

shap_ext.plots.image(explainer(digits[first], max_evals=36, error_bounds=True))

# %%
# Beside shap's Partition, at equal evaluations
# ---------------------------------------------
# ``shap.maskers.Image`` has pixels as players, and shap's Partition splits the image again and
# again until its evaluations are spent. On an image as small as this one, ``oddgp`` can explain the
# 64 pixels themselves, too: they are the cells of a grid of 8 × 8.

pixels = shap_ext.maskers.Superpixels((8, 8), background=0.0)
partition = shap.Explainer(
    log_odds, shap.maskers.Image(0.0, (8, 8, 1)), algorithm="partition", output_names=names
)
by_pixel = shap.Explainer(log_odds, pixels, algorithm="oddgp", seed=0, output_names=names)
explanations = {
    "Partition": partition(digits, max_evals=100, batch_size=100, silent=True),
    "16 cells": explanation,
    "64 pixels": by_pixel(digits, max_evals=100),
}
for name in ("Partition", "64 pixels"):
    shap.image_plot(explanations[name][first], show=False)
    plt.suptitle(name)
    plt.show()

# %%
# Which explanation knows what the network looks at? Pixels are inserted, those with the largest
# attributions first, and the log-odds of the digit shall rise fast. Then they are deleted, and it
# shall fall fast. The means over 30 digits, and over the course of the curves:

for name, explained in explanations.items():
    areas = []
    for curve in (shap_ext.criteria.insertion_curve, shap_ext.criteria.deletion_curve):
        area = curve(explained, log_odds, pixels).area[np.arange(30), own]
        areas.append(f"{area.mean():5.2f} ± {area.std() / 30**0.5:.2f}")
    print(f"{name:10} insertion {areas[0]}, deletion {areas[1]}")

# %%
# The pixels themselves are best here. A photograph has too many of them: there, superpixels are the
# choice. ``Superpixels(50, method="slic")`` follows the edges of the image, by scikit-image.

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_shap`: all segments and backgrounds of the masker.
# - :doc:`image_superpixels`: images through captum.
# - :doc:`/plots`: plots with error bars.
