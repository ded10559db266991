"""
Time series: sensors and forecasts
==================================

**For whom:** your model reads the signals of sensors, or forecasts from past values, and you want
to know which times it uses.

Neighbouring values of a series say almost the same, so that single values are hard to read. This
page explains windows of two sensors, single years, and years as neighbours on a line.
"""

# %%
# Two sensors of a machine
# ------------------------
# The signals are simulated: vibration, and temperature. A fault is a short burst of vibration
# after which the machine gets warmer. A burst alone, or warming alone, is none.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from captum.attr import KernelShap, ShapleyValueSampling
from torch import nn

from captum_ext import CShapley, Exact, OddGP, windows

N_TIMES = 120
rng = np.random.default_rng(0)


def simulated(has_burst, gets_warmer):
    """Return a signal, (2, times): vibration and temperature."""
    times, begin = np.arange(N_TIMES), rng.integers(20, 70)
    signal = rng.normal(scale=[[0.3], [0.2]], size=(2, N_TIMES))
    in_burst = (times >= begin) & (times < begin + 15)
    signal[0] += has_burst * in_burst * 2 * np.sin(1.5 * times)
    signal[1] += gets_warmer * 1.5 / (1 + np.exp((begin + 20 - times) / 3))
    return signal


events = rng.integers(2, size=(600, 2))
signals = torch.tensor(np.stack([simulated(*event) for event in events]), dtype=torch.float32)
is_fault = torch.tensor(events.all(axis=1), dtype=torch.float32)


class Detector(nn.Module):
    """Looks for patterns of nine times, and for how strong each is somewhere; log-odds."""

    def __init__(self):
        super().__init__()
        self.patterns = nn.Conv1d(2, 12, 9, padding=4)
        self.head = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))

    def forward(self, x):
        return self.head(torch.relu(self.patterns(x)).amax(dim=2))


torch.manual_seed(0)
detector = Detector()
optimizer = torch.optim.AdamW(detector.parameters(), lr=0.01)
for _ in range(15):
    for batch in torch.randperm(450).split(50):
        optimizer.zero_grad()
        out = detector(signals[batch])
        nn.functional.binary_cross_entropy_with_logits(out, is_fault[batch]).backward()
        optimizer.step()
detector.eval().requires_grad_(False)
is_right = (detector(signals[450:]) > 0) == is_fault[450:].bool()
print(f"right for {is_right.float().mean():.0%} of 150 other signals")

# %%
# Windows of sensors as players
# -----------------------------
# `windows` makes a feature mask: fifteen times of one sensor are a player. The baseline is the mean
# of the signals without burst and warming. We explain the log-odds of a fault, with 200
# evaluations, by captum's methods and by ours, which has 95 % intervals. The points are the exact
# values, from all 65,536 coalitions. All panels have the same scales, so that bars of both sensors
# can be compared.

labels = torch.as_tensor(windows(signals.shape[1:], 15, channels_last=False))[None]
quiet = signals[(torch.as_tensor(events) == 0).all(dim=1)].mean(dim=(0, 2))
arguments = {"baselines": quiet[None, :, None].expand(1, 2, N_TIMES), "feature_mask": labels}
fault = signals[450:][is_fault[450:].bool()][:1]

torch.manual_seed(0)
np.random.seed(0)
ours = OddGP(detector, seed=0)
by_oddgp, error = ours.attribute(fault, **arguments, n_samples=200, return_standard_error=True)
found = {
    "captum: KernelShap": KernelShap(detector).attribute(fault, **arguments, n_samples=200),
    "captum: ShapleyValueSampling": ShapleyValueSampling(detector).attribute(
        fault, **arguments, n_samples=200 // 16
    ),
    "captum_ext: OddGP": by_oddgp,
}
exact = Exact(detector).attribute(fault, **arguments)

figure, axes = plt.subplots(3, 2, figsize=(7, 8), sharex=True, sharey=True, layout="constrained")
middles = np.arange(7, N_TIMES, 15)
for panels, (name, values) in zip(axes, found.items(), strict=True):
    for channel, panel in enumerate(panels):
        heights = values[0, channel, ::15]  # a bar for each window
        halves = 1.96 * error[0, channel, ::15] if values is by_oddgp else None
        colours = np.where(heights > 0, "tab:red", "tab:blue")
        panel.bar(middles, heights, 15, yerr=halves, capsize=2, color=colours, alpha=0.5)
        panel.plot(middles, exact[0, channel, ::15], "k.")
        line = panel.twinx()
        line.plot(fault[0, channel], color="0.25", linewidth=1.2)
        line.set_ylim(-2.7, 2.7)
        line.set_ylabel(["vibration", "temperature"][channel])
    distance = (values - exact)[0, :, ::15].abs().mean()
    panels[0].set_title(f"{name}: mean distance to the exact values {distance:.2f}", loc="left")
figure.supylabel("attribution to the log-odds")
plt.show()

# %%
# The burst and the warming after it decide. Some bars of captum's have the wrong sign, and nothing
# in its picture says so.

# %%
# Sunspots since 1700
# -------------------
# The mean number of sunspots of each year (:download:`sunspots.csv <sunspots.csv>`; National
# Geophysical Data Center, public domain). They come and go in cycles of about eleven years.

sunspots = pd.read_csv("sunspots.csv", index_col="year")["sunspots"]
series = torch.tensor(sunspots.to_numpy() / 100, dtype=torch.float32)

WINDOW = 24
past = series.unfold(0, WINDOW, 1)[:-1]
following = series[WINDOW:]
n_train = 220
print(f"{n_train} windows to learn from, {len(past) - n_train} to test")

# %%
# A network that forecasts the next year
# --------------------------------------

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(WINDOW, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.05)
for _ in range(300):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(past[:n_train]), following[:n_train]).backward()
    optimizer.step()
net.eval().requires_grad_(False)
test, truth = past[n_train:], following[n_train:]
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
window = past[last : last + 1]
method = OddGP(net, seed=0)
by_year, errors = method.attribute(
    window, baselines=series.mean().item(), n_samples=400, return_standard_error=True
)
print(method.last_estimate)
print(f"forecast {net(window).item() * 100:.0f}, truth {sunspots[1989]:.0f} sunspots")

figure, (above, below) = plt.subplots(2, 1, figsize=(7, 5.5), sharex=True)
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
# Three years are one feature. There are eight features, so that the values are exact.

groups = torch.as_tensor(windows((WINDOW,), 3))[None]
by_group = method.attribute(
    window, baselines=series.mean().item(), feature_mask=groups, n_samples=256
)
figure, axes = plt.subplots(figsize=(7, 3))
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
figure, axes = plt.subplots(figsize=(7, 4.5))
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
