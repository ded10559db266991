"""
Images and superpixels through captum
=====================================

**For whom:** you explain an image classifier with captum, and single pixels are too many and too
noisy to explain.

Pixels are grouped into superpixels, by the argument `feature_mask` that you know from captum.
Each superpixel is then one feature: it is in the picture, or it is replaced by the baseline.
"""

# %%
# A small network that reads digits
# ---------------------------------
# scikit-learn ships 1,797 digits of 8 × 8 pixels. The network learns them in a few seconds.

import matplotlib.pyplot as plt
import numpy as np
import torch
from captum.attr import KernelShap, ShapleyValueSampling
from captum.attr import visualization as viz
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from captum_ext import Exact, OddGP, ValueFunction

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
train, test = train_test_split(np.arange(len(images)), test_size=400, random_state=0)

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
for _epoch in range(12):
    for batch in torch.randperm(len(train)).split(64):
        rows = train[batch]
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimizer.step()
net.eval().requires_grad_(False)
accuracy = (net(images[test]).argmax(dim=1) == labels[test]).float().mean()
print(f"Accuracy on 400 other digits: {accuracy:.3f}")

# %%
# Squares as superpixels
# ----------------------
# Pixels with the same number in `feature_mask` are one feature. Sixteen squares of 2 × 2 pixels:

row, column = np.indices((8, 8)) // 2
squares = torch.tensor(4 * row + column)[None, None]
print(squares[0, 0])

# %%
# Why is this an eight and not a three? A value function answers questions like this one: the
# margin is the output for eight minus the output for three. The baseline is black.

eight = images[test][labels[test] == 8][:1]
margin = ValueFunction("margin", classes=(8, 3))
method = OddGP(net, seed=0, value_function=margin)
by_square, errors = method.attribute(
    eight, baselines=0, feature_mask=squares, n_samples=256, return_standard_error=True
)
print(method.last_estimate)

# %%
# captum draws the attributions:

on_paper = np.repeat(1 - eight[0].permute(1, 2, 0).numpy(), 3, axis=2)
viz.visualize_image_attr_multiple(
    by_square[0].permute(1, 2, 0).numpy(),
    on_paper,
    ["original_image", "heat_map"],
    ["all", "all"],
    titles=["the digit", "for 8 (green), for 3 (red)"],
    show_colorbar=True,
    fig_size=(7, 3.5),
)

# %%
# The left sides of the two rings say eight: a three is open there. With 16 features we can
# compute all 65,536 coalitions and see how far 256 of them were off:

exact = Exact(net, value_function=margin).attribute(eight, baselines=0, feature_mask=squares)
is_inside = (by_square - exact).abs() <= 1.96 * errors
print(f"largest attribution {exact.abs().max():.2f}")
print(f"largest error {(by_square - exact).abs().max():.3f}")
print(f"exact values within 1.96 standard errors: {is_inside.float().mean():.0%}")

# %%
# captum's own estimators get the same number of evaluations for comparison. They explain an output
# of the network, so the margin becomes a function.


def eight_minus_three(x):
    out = net(x)
    return out[:, 8] - out[:, 3]


arguments = {"baselines": 0, "feature_mask": squares, "perturbations_per_eval": 16}
found = {
    "captum: KernelShap": KernelShap(eight_minus_three).attribute(
        eight, n_samples=256, **arguments
    ),
    "captum: ShapleyValueSampling": ShapleyValueSampling(eight_minus_three).attribute(
        eight, n_samples=256 // 16, **arguments
    ),
    "captum_ext: OddGP": by_square,
}
figure, panels = plt.subplots(2, 3, figsize=(8, 5), layout="constrained")
scales = (exact.abs().max(), max((values - exact).abs().max() for values in found.values()))
for (name, values), column in zip(found.items(), panels.T, strict=True):
    for panel, numbers, scale in zip(column, (values, values - exact), scales, strict=True):
        picture = panel.imshow(numbers[0, 0], cmap="PiYG", vmin=-scale, vmax=scale)
        panel.set_axis_off()
        if panel in panels[:, -1]:
            figure.colorbar(picture, ax=panel)
    error = (values - exact)[0, 0, ::2, ::2].abs().sum()
    column[0].set_title(name, fontsize=9)
    column[1].set_title(f"error; sum {error:.2f}", fontsize=9)
plt.show()

# %%
# Superpixels that follow the strokes
# -----------------------------------
# Squares cut strokes. Superpixels of similar brightness and position follow them. The mask may
# differ from image to image, so one call explains several digits, each with its own mask.


def superpixels(image, n_groups=14):
    """Group the pixels of an image by position and brightness."""
    y, x = np.indices(image.shape)
    points = np.column_stack([y.ravel(), x.ravel(), 5 * image.ravel()])
    groups = KMeans(n_groups, n_init=3, random_state=0).fit_predict(points)
    return groups.reshape(image.shape)


def draw_borders(panel, mask):
    """Draw lines between pixels of different groups."""
    y, x = np.nonzero(mask[:, 1:] != mask[:, :-1])
    panel.vlines(x + 0.5, y - 0.5, y + 0.5, colors="tab:orange")
    y, x = np.nonzero(mask[1:] != mask[:-1])
    panel.hlines(y + 0.5, x - 0.5, x + 0.5, colors="tab:orange")


several = images[test][:5]
predicted = net(several).argmax(dim=1)
masks = torch.tensor(np.stack([superpixels(image[0].numpy()) for image in several]))[:, None]
attributions = OddGP(net, seed=0).attribute(
    several, baselines=0, feature_mask=masks, target=predicted, n_samples=200
)

figure, panels = plt.subplots(2, 5, figsize=(10, 4.2))
limit = float(attributions.abs().max())
for index, (above, below) in enumerate(panels.T):
    above.imshow(several[index, 0], cmap="gray_r")
    draw_borders(above, masks[index, 0].numpy())
    above.set_title(f"read as {int(predicted[index])}")
    below.imshow(attributions[index, 0], cmap="RdBu", vmin=-limit, vmax=limit)
    for panel in (above, below):
        panel.set_axis_off()
figure.suptitle("above: digits and superpixels; below: for (blue) and against (red) the class")
plt.show()

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_captum`: masks, baselines, and what `n_samples` counts.
# - :doc:`/neighbouring_features`: superpixels that touch are neighbours.
