"""
Time series: which years decide a forecast?
===========================================

**For whom:** your model forecasts from a window of past values, and you want to know which of
them it uses.

Neighbouring values of a series say almost the same, so that single values are hard to read. This
page explains single years, groups of years, and years as neighbours on a line.
"""

# %%
# Sunspots since 1700
# -------------------
# The mean number of sunspots of each year (:download:`sunspots.csv <sunspots.csv>`; National
# Geophysical Data Center, public domain). They come and go in cycles of about eleven years.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch import nn

from captum_ext import CShapley, OddGP

sunspots = pd.read_csv("sunspots.csv", index_col="year")["sunspots"]
series = torch.tensor(sunspots.to_numpy() / 100, dtype=torch.float32)

WINDOW = 24
windows = series.unfold(0, WINDOW, 1)[:-1]
following = series[WINDOW:]
n_train = 220
print(f"{n_train} windows to learn from, {len(windows) - n_train} to test")

# %%
# A network that forecasts the next year
# --------------------------------------

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(WINDOW, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.05)
for _ in range(300):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(windows[:n_train]), following[:n_train]).backward()
    optimizer.step()
net.eval().requires_grad_(False)
test, truth = windows[n_train:], following[n_train:]
error = (net(test) - truth).abs().mean() * 100
naive = (test[:, -1] - truth).abs().mean() * 100
print(f"mean error {error:.0f} sunspots; {naive:.0f} if next year is expected to be as this year")

# %%
# Single years
# ------------
# The baseline is the mean of all years: an absent year is an average one. We explain the forecast
# of the maximum of 1989.

first_year = int(sunspots.index[0])
last = 1989 - first_year - WINDOW  # the window that ends with 1988
years = np.arange(1989 - WINDOW, 1989)
window = windows[last : last + 1]
method = OddGP(net, seed=0)
by_year, errors = method.attribute(
    window, baselines=series.mean().item(), n_samples=400, return_standard_error=True
)
print(method.last_estimate)
print(f"forecast {net(window).item() * 100:.0f}, truth {sunspots[1989]:.0f} sunspots")

figure, (above, below) = plt.subplots(2, 1, figsize=(9, 5.5), sharex=True)
above.plot(years, window[0] * 100, "o-", color="0.3")
above.plot(1989, sunspots[1989], "o", color="tab:green", label="truth")
above.plot(1989, net(window).item() * 100, "x", color="tab:red", markersize=9, label="forecast")
above.set(ylabel="sunspots", title="the window, and the year that is forecast")
above.legend(loc="upper left")
colours = np.where(by_year[0] > 0, "tab:red", "tab:blue")
below.bar(years, by_year[0] * 100, yerr=1.96 * 100 * errors[0], capsize=2, color=colours)
below.axhline(0, color="0.5", linewidth=0.8)
below.set_ylabel("attribution in sunspots")
figure.tight_layout()
plt.show()

# %%
# The last year matters most. The two years before it had few sunspots, and raise the forecast all
# the same: they say that the number is rising.
#
# Groups of years
# ---------------
# `feature_mask` makes three years one feature. There are eight features, so that the values are
# exact.

groups = torch.arange(WINDOW)[None] // 3
by_group = method.attribute(
    window, baselines=series.mean().item(), feature_mask=groups, n_samples=256
)
figure, axes = plt.subplots(figsize=(9, 3))
middles, heights = years[1::3], by_group[0, ::3] * 100
axes.bar(middles, heights, width=2.8, color=np.where(heights > 0, "tab:red", "tab:blue"))
axes.set_xticks(middles, [f"{year - 1}\n–{year + 1}" for year in middles])
axes.axhline(0, color="0.5", linewidth=0.8)
axes.set(ylabel="sunspots", title="attributions of three years together")
figure.tight_layout()
plt.show()

# %%
# Years as neighbours
# -------------------
# For long windows, C-Shapley evaluates runs of neighbouring years only. `graph="line"` says that
# the columns are in the order of time. The same window, with its number of evaluations:

on_line = CShapley(net, graph="line", order=3, seed=0)
by_run = on_line.attribute(window, baselines=series.mean().item())
print(on_line.last_estimate)
print(f"correlation with the values above: {np.corrcoef(by_run[0], by_year[0])[0, 1]:.3f}")

# %%
# All forecasts at once
# ---------------------
# Each column is a forecast of the test years, each row a year of its window. Red years raise the
# forecast.

attributions = method.attribute(test, baselines=series.mean().item(), n_samples=200) * 100
figure, axes = plt.subplots(figsize=(9, 4.5))
limit = float(attributions.abs().max())
first_test = first_year + WINDOW + n_train
picture = axes.imshow(
    attributions.T.flip(0),
    aspect="auto",
    cmap="coolwarm",
    vmin=-limit,
    vmax=limit,
    extent=(first_test, first_test + len(test), WINDOW + 0.5, 0.5),
)
axes.set(xlabel="year of the forecast", ylabel="years before", title="what each forecast uses")
figure.colorbar(picture, label="attribution in sunspots")
figure.tight_layout()
plt.show()

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_captum`: masks and baselines.
# - :doc:`/neighbouring_features`: lines, grids and graphs.
# - :doc:`words_as_neighbours`: L- and C-Shapley, drawn.
