"""
Texts through captum: tokens, embeddings, pairs
===============================================

**For whom:** you explain a torch model of texts with captum.

There are two ways. You can explain the token ids as they are: an absent word becomes the padding
token. Or it gets the embedding of padding, so that methods with derivatives can be used. Both give
the same values, and this page shows both. At its end, it explains how similar a network finds two
texts.
"""

# %%
# Opinions on films, and a network with an embedding
# --------------------------------------------------
# 800 short opinions, written for these tutorials (:download:`opinions.csv <opinions.csv>`).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from captum.attr import KernelShap, ShapleyValueSampling
from captum.attr import visualization as viz
from torch import nn

from captum_ext import EmbeddingAttribution, Exact, OddGP, Shear

opinions = pd.read_csv("opinions.csv")
words = ["<pad>", *sorted({word for text in opinions["text"] for word in text.split()})]
ids = {word: number for number, word in enumerate(words)}
length = max(len(text.split()) for text in opinions["text"])
opinions.sample(4, random_state=0)

# %%
# The network reads the words from left to right (a GRU), and returns the log-odds of a good
# opinion.


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(words), 16)
        self.memory = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, tokens):
        states, _ = self.memory(self.embedding(tokens))
        return self.head(states[:, -1])[:, 0]


def encode(text):
    """Return the ids of the words, with padding in front."""
    numbers = [ids[word] for word in text.split()]
    return [0] * (length - len(numbers)) + numbers


torch.manual_seed(0)
tokens = torch.tensor([encode(text) for text in opinions["text"]])
is_good = torch.tensor(opinions["is_good"].to_numpy(), dtype=torch.float32)
is_test = torch.arange(len(tokens)) % 5 == 0
net = Reader()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
for _epoch in range(30):
    for batch in torch.randperm(int((~is_test).sum())).split(96):
        rows, targets = tokens[~is_test][batch], is_good[~is_test][batch]
        hidden = rows * (torch.rand(rows.shape) > 0.1)  # some words are absent, as in explanations
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(hidden), targets).backward()
        optimizer.step()
net.eval().requires_grad_(False)
accuracy = ((net(tokens[is_test]) > 0) == is_good[is_test].bool()).float().mean()
print(f"Accuracy on {int(is_test.sum())} other opinions: {accuracy:.2f}")

# %%
# Tokens as they are
# ------------------
# Three opinions in one call. Padding equals the baseline, so it costs nothing and gets 0.

texts = [
    "the film was not boring",
    "i found the cast charming but the story was never moving",
    "the plot was not good but i did not find the acting dull",
]
rows = torch.tensor([encode(text) for text in texts])
method = OddGP(net, seed=0)
by_token, errors = method.attribute(rows, baselines=0, n_samples=200, return_standard_error=True)
print(method.last_estimate)
for text, output in zip(texts, net(rows), strict=True):
    print(f"{output.item():+6.2f}  {text}")

# %%
# A picture for each text, with 95 % intervals where words were estimated:

figure, panels = plt.subplots(3, 1, figsize=(9, 8))
for panel, text, values, error in zip(panels, texts, by_token, errors, strict=True):
    n_words = len(text.split())
    own, bars = values[-n_words:], 1.96 * error[-n_words:]
    colours = np.where(own > 0, "tab:blue", "tab:red")
    panel.bar(range(n_words), own, yerr=bars, capsize=3, color=colours)
    panel.set_xticks(range(n_words), text.split())
    panel.axhline(0, color="0.5", linewidth=0.8)
panels[0].set_title("for (blue) and against (red) a good opinion")
figure.tight_layout()
plt.show()

# %%
# captum's own picture of texts
# -----------------------------
# `visualize_text` colours the words: green for, red against.

records = [
    viz.VisualizationDataRecord(
        word_attributions=values[-len(text.split()) :] / values.abs().max(),
        pred_prob=torch.sigmoid(output).item(),
        pred_class="good" if output > 0 else "bad",
        true_class="",
        attr_class="good",
        attr_score=values.sum().item(),
        raw_input_ids=text.split(),
        convergence_score=0.0,
    )
    for text, values, output in zip(texts, by_token, net(rows), strict=True)
]
viz.visualize_text(records)

# %%
# Embeddings, for methods with derivatives
# ----------------------------------------
# Whole numbers have no derivatives, and embeddings have. SHEAR uses them to find out which words
# interact; `OddGP(net)` takes them beside values.

shear = EmbeddingAttribution(Shear(net, seed=0), net.embedding)
by_embedding = shear.attribute(rows, baselines=0, n_samples=200)
print("source of the cooperators:", shear.last_estimate.cooperators)

# %%
# The distance of both from the exact values, which need all coalitions of up to 13 words, beside
# that of captum's methods with as many evaluations. Padding is no feature for them, too, if one
# mask number holds it:

exact = Exact(net).attribute(rows, baselines=0)
mask = torch.where(rows == 0, 0, torch.arange(length) + 1)
by_captum = {}
for name, method_of_captum in {
    "KernelShap": KernelShap,
    "ValueSampling": ShapleyValueSampling,
}.items():
    of_texts = []
    for row, of_row in zip(rows, mask, strict=True):
        _, players = of_row.unique(return_inverse=True)
        n_samples = 200 if method_of_captum is KernelShap else 200 // len(players.unique())
        of_texts.append(
            method_of_captum(net).attribute(
                row[None], baselines=0, feature_mask=players[None], n_samples=n_samples
            )[0]
        )
    by_captum[f"captum: {name}"] = torch.stack(of_texts)
found = {"OddGP, tokens": by_token, "Shear, embeddings": by_embedding, **by_captum}
for name, values in found.items():
    error = (values - exact).abs().sum(dim=1)
    print(f"{name:22}", "  ".join(f"{e:5.2f}" for e in error))
print(f"{'sum of |exact|':22}", "  ".join(f"{s:5.2f}" for s in exact.abs().sum(dim=1)))

# %%
# Pairs of texts: why are they similar?
# -------------------------------------
# The last state of the network is an embedding of a text. A forward function may take two texts;
# here it returns the cosine of their embeddings. Both are inputs, and all their words are features.


def similarity(first, second):
    states = [net.memory(net.embedding(tokens))[0][:, -1] for tokens in (first, second)]
    return nn.functional.cosine_similarity(*states)


pair = ["the film was not boring", "i found the plot good"]
first, second = (torch.tensor([[ids[word] for word in text.split()]]) for text in pair)
explainer = OddGP(similarity, seed=0)
of_first, of_second = explainer.attribute((first, second), baselines=(0, 0), n_samples=1024)
print(f"similarity {similarity(first, second).item():.2f}")

# %%
# Words of the one text interact with words of the other: a pair of them says more, or less, than
# both alone. `interactions` has the order of all features: the words of the first text, then those
# of the second.

matrix = explainer.interactions((first, second), baselines=(0, 0), n_samples=1024)[0]
between = matrix[: first.shape[1], first.shape[1] :]
figure, axes = plt.subplots(figsize=(6, 4.5))
limit = float(between.abs().max())
picture = axes.imshow(between, cmap="PiYG", vmin=-limit, vmax=limit)
for axis, text, values in zip("yx", pair, (of_first, of_second), strict=True):
    words_of_text = [f"{word}\n{v:+.2f}" for word, v in zip(text.split(), values[0], strict=True)]
    axes.set(**{f"{axis}ticks": range(len(words_of_text)), f"{axis}ticklabels": words_of_text})
axes.set_title("words, what they add to the similarity, and their interactions", fontsize=9)
figure.colorbar(picture, label="interaction")
figure.tight_layout()
plt.show()

# %%
# Two texts of padding are equal, so that the attributions are the distance to a similarity of 1.
# "not" makes the first text unlike padding, and "good" in the second takes a part of that back.

# %%
# What to read next
# -----------------
# - :doc:`/coming_from_captum`: tokens, embeddings, layers and language models.
# - :doc:`words_as_neighbours`: long texts, at a cost that grows with the number of words.
# - :doc:`text_through_shap`: the same texts through shap.
