"""
SHEAR step by step, with its cooperators drawn
==============================================

**For whom:** you want to see what SHEAR does with its evaluations, and when this helps.

SHEAR (Wang et al., ICML 2022) asks of each feature which other features it interacts with. The
strongest of them are its *cooperators*. SHEAR evaluates all subsets of the cooperators, and draws
the other features at random. This page takes one row and does each step in the open.
"""

# %%
# A network and a row
# -------------------
# A small smooth network tells malignant from benign tumours by ten measurements. The baseline is
# the mean tumour, which is zero after scaling.

from itertools import product
from math import factorial

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn

from captum_ext import Exact, OddGP, RandomOrder, Shear, draw_graph

data = load_breast_cancer()
names = [str(name).removeprefix("mean ") for name in data.feature_names[:10]]
X = torch.tensor(StandardScaler().fit_transform(data.data[:, :10]))
y = torch.tensor(data.target, dtype=torch.float64)

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(10, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 1), nn.Flatten(0)
).double()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-3)
for _ in range(200):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(net(X), y).backward()
    optimizer.step()
net.eval().requires_grad_(False)

row = X[2]
print(f"log-odds of benign: {net(row[None]).item():.2f} for this tumour,")
print(f"{net(0 * row[None]).item():.2f} for the mean tumour")

# %%
# Step 1: which features interact?
# --------------------------------
# Two features interact if together they change the output by something else than the sum of what
# each does alone. For a network, second derivatives say how strongly. SHEAR scores a pair by
# :math:`2\,|x_i - \bar x_i|\;|\partial^2 f / \partial x_i \partial x_j|\;|x_j - \bar x_j|`. It
# computes these scores itself. We compute them here to look at them.

hessian = torch.autograd.functional.hessian(lambda x: net(x[None])[0], row)
scores = (2 * row.abs()[:, None] * hessian.abs() * row.abs()).numpy()
np.fill_diagonal(scores, 0)

figure, axes = plt.subplots(figsize=(6.4, 5.2))
picture = axes.imshow(scores, cmap="Blues")
axes.set_xticks(range(10), names, rotation=60, ha="right")
axes.set_yticks(range(10), names)
axes.set_title("how strongly do two features interact?")
figure.colorbar(picture, label="score")
figure.tight_layout()
plt.show()

# %%
# Step 2: the strongest cooperators
# ---------------------------------
# With :math:`N` evaluations per feature, SHEAR takes :math:`\log_2(N / 2)` cooperators: two for 8
# evaluations, and three for 16. Here are the two strongest of each feature, as a graph. The
# colour is the exact Shapley value of the feature, which we compute from all 1,024 coalitions.

exact = Exact(net).attribute(row[None])[0]
cooperators = np.argsort(-scores, axis=1)[:, :2]
edges = [(i, int(j)) for i in range(10) for j in cooperators[i]]

angles = 2 * np.pi * np.arange(10) / 10
circle = dict(enumerate(zip(1.6 * np.cos(angles), np.sin(angles), strict=True)))
figure, axes = plt.subplots(figsize=(8, 5))
draw_graph(edges, exact, labels=names, positions=circle, ax=axes)
axes.set_title("each feature is joined to its two strongest cooperators")
axes.margins(x=0.15)
plt.show()

# %%
# Step 3: one stratum for each subset of the cooperators
# ------------------------------------------------------
# We take the feature with the largest Shapley value. Its two cooperators have four subsets. For
# each subset we draw the seven other features at random, many times, and note by how much our
# feature changes the output. SHEAR needs few of these draws. We make 200 to see how they spread.
#
# The chance of the other features is drawn, too: if :math:`b` of the :math:`K` cooperators are
# there, it has the distribution :math:`\mathrm{Beta}(b + 1, K - b + 1)`. This is what happens in
# a random order of all features, and it makes the estimate unbiased.

rng = np.random.default_rng(0)
feature = int(exact.abs().argmax())
first, second = cooperators[feature]
others = [j for j in range(10) if j not in (feature, first, second)]


def contributions(subset, n_draws):
    """Return what the feature adds to random coalitions that hold this subset."""
    present = np.zeros((n_draws, 10), dtype=bool)
    present[:, [first, second]] = subset
    chance = rng.beta(sum(subset) + 1, 2 - sum(subset) + 1, size=(n_draws, 1))
    present[:, others] = rng.random((n_draws, len(others))) < chance
    without = net(torch.tensor(present) * row)
    present[:, feature] = True
    return (net(torch.tensor(present) * row) - without).numpy()


subsets = list(product([False, True], repeat=2))
strata = {subset: contributions(subset, 200) for subset in subsets}
estimate = 0.0
for subset, values in strata.items():
    b = sum(subset)
    weight = factorial(b) * factorial(2 - b) / factorial(3)
    estimate += weight * values.mean()
    pair = zip((names[first], names[second]), subset, strict=True)
    present = " and ".join(name for name, is_present in pair if is_present)
    print(f"weight {weight:.3f}, mean {values.mean():+.3f}: with {present or 'neither'}")
print(f"weighted sum {estimate:+.3f}, exact value of {names[feature]} {exact[feature]:+.3f}")

# %%
# The picture shows why this helps. The contributions spread less inside a stratum than they do
# all together, because the features that matter most for this feature are fixed there.

labels = ["neither", names[second], names[first], "both"]
everything = np.concatenate(list(strata.values()))
figure, axes = plt.subplots(figsize=(7.5, 4))
for position, values in enumerate(strata.values()):
    axes.plot(values, position + rng.uniform(-0.25, 0.25, len(values)), ".", alpha=0.5)
    axes.text(1.01, position, f"± {values.std():.2f}", transform=axes.get_yaxis_transform())
axes.axvline(float(exact[feature]), color="k", label="Shapley value")
axes.set_yticks(range(4), [f"with {label}" for label in labels])
axes.set_xlabel(f"what {names[feature]} adds")
axes.set_title(f"all contributions together: ± {everything.std():.2f}")
axes.legend()
figure.tight_layout()
plt.show()

# %%
# Step 4: all features share one budget
# -------------------------------------
# `Shear` does these steps for all features at once. A coalition that several features need is
# evaluated once. What this saves goes into more draws.

shear = Shear(net, seed=0)
values, errors = shear.attribute(row[None], n_samples=160, return_standard_error=True)
print(shear.last_estimate)
print("source of the cooperators:", shear.last_estimate.cooperators[0])

figure, axes = plt.subplots(figsize=(7.5, 4))
axes.errorbar(values[0], range(10), xerr=1.96 * errors[0], fmt="o", capsize=3, label="SHEAR")
axes.plot(exact, range(10), "kx", label="exact")
axes.set_yticks(range(10), names)
axes.axvline(0, color="0.8", zorder=0)
axes.set_xlabel("attribution to the log-odds of benign")
axes.legend()
figure.tight_layout()
plt.show()

# %%
# Do good cooperators matter?
# ---------------------------
# The same estimator with cooperators at random, our scores as an array, and two other estimators.
# The error is the sum of the absolute errors over the features, averaged over 40 tumours.

rows = X[:40]
exact_rows = Exact(net).attribute(rows)
methods = {
    "random order": RandomOrder(net, seed=0),
    "SHEAR, cooperators at random": Shear(net, seed=0, cooperators="random"),
    "SHEAR, second derivatives": Shear(net, seed=0, cooperators="hessian"),
    "odd Gaussian process": OddGP(net, seed=0),
}
budgets = [8, 16, 32, 64]
figure, axes = plt.subplots(figsize=(7.5, 4))
for name, method in methods.items():
    error = [
        float((method.attribute(rows, n_samples=10 * n) - exact_rows).abs().sum(dim=1).mean())
        for n in budgets
    ]
    print(f"{name:30}", "  ".join(f"{e:.3f}" for e in error))
    axes.plot(budgets, error, "o-", label=name)
axes.set(xscale="log", yscale="log", xlabel="evaluations per feature", ylabel="error")
axes.set_xticks(budgets, budgets)
axes.minorticks_off()
axes.legend()
figure.tight_layout()
plt.show()

# %%
# Good cooperators lower the error of SHEAR. Each of its evaluations serves few features, so that
# random orders, whose evaluations serve all features, may be as good. `OddGP` learns the
# interactions from the values and has by far the smallest error here. SHEAR is unbiased, which
# `OddGP` is with `unbiased=True` only.
#
# What to read next
# -----------------
# - :doc:`/mathematics`: the formulas, and why the draws are unbiased.
# - :doc:`/choosing_an_estimator`: when SHEAR is a good choice, and when `oddgp` is a better one.
# - :doc:`/coming_from_captum`: baselines, targets and masks.
