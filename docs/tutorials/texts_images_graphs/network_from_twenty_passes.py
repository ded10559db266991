"""
Shapley values of a network from twenty passes
==============================================

**For whom:** you explain networks of torch, and a forward pass is what costs you.

Sampling looks at one coalition of features in each forward pass. A backward pass says something
about every feature at once. ``OddGP(net)`` reads both, and counts a forward and backward pass as
three evaluations. This page explains a table, an image and a text at the cost of
one or two forward passes for each feature, beside four methods of captum at equal cost. In two of
the three networks gradients help much; the third shows when to leave them out.
"""

# %%
# Three networks
# --------------
# One of 30 measurements of cells, a convolutional one of handwritten digits, and a transformer that
# reads opinions on films. All are trained here, in some seconds.

import matplotlib.pyplot as plt
import pandas as pd
import torch
from captum.attr import (
    GradientShap,
    IntegratedGradients,
    KernelShap,
    LayerIntegratedGradients,
    ShapleyValueSampling,
)
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler
from torch import nn

from captum_ext import EmbeddingAttribution, OddGP

torch.manual_seed(0)


def trained(net, inputs, classes, epochs):
    """Return the network, fitted to all rows but every fifth."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    is_test = torch.arange(len(inputs)) % 5 == 0
    for _epoch in range(epochs):
        for batch in torch.randperm(int((~is_test).sum())).split(64):
            loss = nn.functional.cross_entropy(
                net(inputs[~is_test][batch]), classes[~is_test][batch]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    net.eval().requires_grad_(False)
    share = (net(inputs[is_test]).argmax(dim=1) == classes[is_test]).float().mean()
    print(f"right on other rows: {share:.2f}")
    return net


cancer = load_breast_cancer()
cells = torch.tensor(StandardScaler().fit_transform(cancer.data), dtype=torch.float32)
of_cells = trained(
    nn.Sequential(nn.Linear(30, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 2)),
    cells,
    torch.tensor(cancer.target),
    epochs=30,
)

digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
of_digits = trained(
    nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    ),
    images,
    torch.tensor(digits.target),
    epochs=10,
)  # fmt: skip

opinions = pd.read_csv("opinions.csv")
words = ["<pad>", *sorted({word for text in opinions["text"] for word in text.split()})]
number_of = {word: number for number, word in enumerate(words)}
length = max(len(text.split()) for text in opinions["text"])
tokens = torch.zeros(len(opinions), length, dtype=torch.long)
for place, text in enumerate(opinions["text"]):
    ids = [number_of[word] for word in text.split()]
    tokens[place, : len(ids)] = torch.tensor(ids)


class Reader(nn.Module):
    """A transformer of two layers."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(len(words), 32)
        self.places = nn.Parameter(torch.randn(length, 32) / 3)
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 2)

    def forward(self, ids):
        return self.head(self.layers(self.words(ids) + self.places).mean(dim=1))


of_texts = trained(Reader(), tokens, torch.tensor(opinions["is_good"].to_numpy()), epochs=30)

# %%
# What is explained
# -----------------
# The score of one class: of a benign tumour, of the right digit, of a good opinion. Absent
# measurements have their mean, absent pixels are black, and absent words are padding. Ids of words
# have no gradients; :class:`captum_ext.EmbeddingAttribution` explains them through the embedding.
#
# The truth comes from very many evaluations.

longest = int((tokens != 0).sum(dim=1).argmax())
CASES = {
    "measurements": (of_cells, cells[19:20], 1),
    "pixels": (of_digits, images[8:9], int(digits.target[8])),
    "words": (of_texts, tokens[longest : longest + 1], 1),
}


def ours(name, n_samples, seed=0, gradients="auto"):
    """Return attributions, and how far 95 % intervals reach to each side."""
    net, inputs, target = CASES[name]
    method = OddGP(net, gradients=gradients, seed=seed)
    if name == "words":
        method = EmbeddingAttribution(method, net.words)
    found = method.attribute(inputs, 0, target=target, n_samples=n_samples)
    low, high = method.last_estimate.interval()
    return found, torch.tensor((high - low) / 2).reshape(found.shape)


def by_captum(name, cost):
    """Return attributions at the cost of so many forward passes; gradients cost three."""
    net, inputs, target = CASES[name]
    options = {"baselines": torch.zeros_like(inputs), "target": target}
    n_orders = max(1, cost // int((inputs != 0).sum()))
    found = {
        "KernelShap": KernelShap(net).attribute(inputs, n_samples=cost, **options),
        "ShapleyValueSampling": ShapleyValueSampling(net).attribute(
            inputs, n_samples=n_orders, **options
        ),
    }
    if name == "words":  # captum's GradientShap takes no ids
        integrated = LayerIntegratedGradients(net, net.words)
        of_numbers = integrated.attribute(inputs, n_steps=cost // 3, **options)
        return found | {"IntegratedGradients": of_numbers.sum(dim=-1)}
    found["IntegratedGradients"] = IntegratedGradients(net).attribute(
        inputs, n_steps=cost // 3, **options
    )
    found["GradientShap"] = GradientShap(net).attribute(inputs, n_samples=cost // 3, **options)
    return found


truths, lines = {}, {}
for name, (_, inputs, _) in CASES.items():
    n_features = int((inputs != 0).sum())
    truths[name], _ = ours(name, min(1000 * n_features, 2**n_features), seed=1, gradients=False)
    for per_feature in (1, 2):
        cost = per_feature * n_features
        found = by_captum(name, cost)
        found["OddGP, values alone"], _ = ours(name, cost, gradients=False)
        found["OddGP"], _ = ours(name, cost)
        scale = truths[name].abs().sum()
        lines[f"{n_features} {name}", cost] = {
            method: float((values - truths[name]).abs().sum() / scale)
            for method, values in found.items()
        }

# %%
# Errors, as shares of all attributions, by the features and the cost in forward passes:

pd.DataFrame(lines).round(2)

# %%
# Pictures
# --------
# Ours at two forward passes for each feature, with 95 % intervals, beside integrated gradients at
# the same cost. The black lines are the truth.

figure, panels = plt.subplots(3, 1, figsize=(9, 8))
for panel, (name, (_, inputs, _)) in zip(panels, CASES.items(), strict=True):
    cost = 2 * int((inputs != 0).sum())
    values, reach = ours(name, cost)
    others = by_captum(name, cost)["IntegratedGradients"]
    strongest = truths[name].flatten().abs().argsort(descending=True)[:13]
    truth, values, reach, others = (
        part.flatten()[strongest] for part in (truths[name], values, reach, others)
    )
    place = torch.arange(len(strongest))
    panel.bar(place - 0.2, values, 0.4, yerr=reach, capsize=2, label="OddGP")
    panel.bar(place + 0.2, others, 0.4, label="IntegratedGradients", color="0.75")
    panel.hlines(truth, place - 0.45, place + 0.45, color="black", linewidth=1)
    if name == "words":
        labels = [words[inputs[0, one]] for one in strongest]
    elif name == "pixels":
        labels = [f"{one // 8}, {one % 8}" for one in strongest.tolist()]
    else:
        labels = [cancer.feature_names[one].replace(" ", "\n") for one in strongest]
    panel.set_xticks(place, labels, fontsize=7)
    panel.axhline(0, color="0.5", linewidth=0.8)
    panel.set_title(f"the largest {len(strongest)} of {cost // 2} {name}", fontsize=9)
panels[0].legend(fontsize=8)
figure.tight_layout()
plt.show()

# %%
# What integrated gradients miss
# ------------------------------
# They average slopes on one line, on which all features come at the same time. Shapley values are
# averages over coalitions, of which most have some features and not others. More steps do not help.
# ``OddGP`` reads slopes at coalitions and between, learns how far slopes of this network can be
# trusted, and lets values say the rest.
#
# When not to use gradients
# -------------------------
# In the transformer, slopes at whole words say little about the step from padding to a word. The
# table shows it: integrated gradients are farther off than an answer of 0, and gradients gain
# little on values. Where passes cost less than our own work, ``gradients=False`` saves a tenth to a
# half of the time. Interactions, graphs and several outputs are explained by values alone.

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_captum`: what can be combined with gradients.
# - :doc:`text_through_captum`: tokens, embeddings and pairs of texts.
# - :doc:`/choosing_an_estimator`: when evaluations cost little.
