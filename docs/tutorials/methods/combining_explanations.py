"""
Explainers disagree: judge them and combine them
================================================

**For whom:** you have several explanations of the same prediction. They disagree, and you must
show one of them.

First, criteria measure what is good or bad about each explanation. Then aggregates make one
explanation of several: a mean, a median, a ranking by majority (the Kemeny–Young rule), one of
lower complexity, or one from the neighbours of the row (AVA). Both follow Bhatt, Weller and Moura
(IJCAI 2020).
"""

# %%
# A network and five explainers
# -----------------------------
# A network tells malignant from benign tumours by ten measurements.

import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
from captum.attr import DeepLift, FeatureAblation, IntegratedGradients, NoiseTunnel, Saliency
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn

from captum_ext import AVA, Centroid, Exact, LowComplexity, criteria
from shapley_adapters.criteria import Neighbourhood

warnings.filterwarnings("ignore", module="captum")  # DeepLIFT says that it uses hooks

data = load_breast_cancer()
names = [str(name).removeprefix("mean ") for name in data.feature_names[:10]]
X = torch.tensor(StandardScaler().fit_transform(data.data[:, :10]), dtype=torch.float32)
y = torch.tensor(data.target)
train, test = X[30:], X[:30]

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(150):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(train), y[30:]).backward()
    optimizer.step()
net.eval()
accuracy = (net(test).argmax(dim=1) == y[:30]).float().mean()
print(f"Accuracy on 30 other tumours: {accuracy:.2f}")

# %%
# Five ways to explain the output for "benign": Shapley values, two methods of gradients along a
# path, smoothed gradients times the input, and the loss of output when a feature is removed.


def smooth_grad(inputs, target):
    torch.manual_seed(0)
    saliency = NoiseTunnel(Saliency(net))
    return inputs * saliency.attribute(inputs, nt_samples=20, stdevs=0.3, target=target, abs=False)


explainers = {
    "Shapley values": Exact(net),
    "Integrated Gradients": IntegratedGradients(net),
    "DeepLIFT": DeepLift(net),
    "SmoothGrad × input": smooth_grad,
    "ablation": FeatureAblation(net),
}


def attribute(explainer, inputs):
    """Attribute by a method of captum, by one of ours, or by a function."""
    call = getattr(explainer, "attribute", explainer)
    return call(inputs, target=1).detach()


explained = {name: attribute(explainer, test) for name, explainer in explainers.items()}

# %%
# Where they disagree
# -------------------
# We look for the tumour on which the five differ most, after each explanation is scaled to the
# same size.

stacked = torch.stack(list(explained.values()))
shares = stacked / stacked.abs().sum(dim=2, keepdim=True)
disputed = int(shares.std(dim=0).sum(dim=1).argmax())
table = pd.DataFrame({name: values[disputed] for name, values in explained.items()}, index=names)

axes = table.plot.barh(figsize=(8, 6), width=0.8)
axes.axvline(0, color="0.5")
axes.set_xlabel("attribution to the output for benign")
axes.set_title("five explanations of one tumour")
plt.show()

# %%
# Judge them
# ----------
# - *Complexity* is the entropy of the shares: low if few features have most of the attribution.
# - *Sensitivity* is the mean distance to the explanations of similar tumours for which the
#   network predicts the same class. It needs no more than a function that explains.
# - *Faithfulness* is the correlation between sums of attributions and what the output loses when
#   these features are removed.

near = Neighbourhood(radius=0.2, n_draws=8)


def judge(explainer):
    attributions = attribute(explainer, test)
    sensitivity = criteria.sensitivity(
        lambda x: attribute(explainer, x), test, near, forward_func=net, relative=True
    )
    return {
        "complexity": float(criteria.complexity(attributions).mean()),
        "sensitivity": float(sensitivity.average.mean()),
        "faithfulness": float(criteria.faithfulness(attributions, net, test, target=1).mean()),
    }


pd.DataFrame({name: judge(explainer) for name, explainer in explainers.items()}).T.round(3)

# %%
# Combine them
# ------------
# An aggregate is built from explainers, and is called as they are.

members = list(explainers.values())
aggregates = {
    "mean": Centroid(members, scale="l1"),
    "median": Centroid(members, distance="l1", scale="l1"),
    "lower complexity": LowComplexity(members, scale="l1"),
    "AVA, 10 neighbours": AVA(Exact(net), train, n_neighbors=10),
}
table = pd.DataFrame(
    {name: attribute(method, test)[disputed] for name, method in aggregates.items()}, index=names
)
axes = table.plot.barh(figsize=(8, 6), width=0.8)
axes.axvline(0, color="0.5")
axes.set_xlabel("attribution to the output for benign")
axes.set_title("four aggregates for the same tumour")
plt.show()

# %%
# `scale="l1"` brings the members to the same size first, because smoothed gradients have units of
# their own. The median leaves out a member that differs from all others. Lowering the complexity
# makes small attributions smaller. AVA explains the neighbours of the tumour, and not the tumour
# itself.

judged = pd.DataFrame(
    {name: judge(explainer) for name, explainer in (explainers | aggregates).items()}
).T
judged.round(3)

# %%
# A picture of the trade-off. Down and to the left is better.

figure, axes = plt.subplots(figsize=(8, 4.5))
for name, row in judged.iterrows():
    marker = "o" if name in explainers else "^"
    axes.plot(row["complexity"], row["sensitivity"], marker, markersize=8, label=name)
axes.set(xlabel="complexity", ylabel="mean sensitivity", title="explainers (o) and aggregates (△)")
axes.legend(bbox_to_anchor=(1, 1))
plt.show()

# %%
# AVA is the least sensitive, and the least faithful: it says less about this very tumour.
#
# A ranking by majority
# ---------------------
# Units do not matter if only the order counts. The Kemeny–Young rule finds the order with the
# smallest number of contradictions: pairs of features which a member orders the other way round.

consensus = Centroid(members, distance="kendall", order="magnitude")
ranks = attribute(consensus, test[disputed : disputed + 1])[0]
ranking = consensus.last_aggregate.rankings[0]
print(f"{ranking.distance:.0f} contradictions; no order has fewer: {ranking.is_optimal}")

order = ranking.order[::-1]
figure, axes = plt.subplots(figsize=(8, 4.5))
for name, values in explained.items():
    positions = values[disputed].abs().argsort().argsort() + 1
    axes.plot(positions[order.tolist()], range(10), "o--", alpha=0.6, label=name)
axes.plot(ranks[order.tolist()], range(10), "ks-", linewidth=2, label="Kemeny–Young")
axes.set_yticks(range(10), [names[i] for i in order])
axes.set(xlabel="rank (10: largest)", title="each explainer ranks the features, and the consensus")
axes.legend(bbox_to_anchor=(1, 1))
plt.show()

# %%
# What to read next
# -----------------
# - :doc:`/aggregating_and_judging`: all criteria and aggregates, with measurements.
# - :doc:`/references`: the paper.
# - :doc:`shear_step_by_step`: how one of the estimators works.
