"""
Words as neighbours: L-Shapley and C-Shapley on a sentence
==========================================================

**For whom:** your features have neighbours, such as words in a sentence, and there are too many
of them for ordinary Shapley values.

L-Shapley and C-Shapley (Chen et al., ICLR 2019) assume that words far apart hardly interact. So
they look only at the words around a word, and their cost grows with the length of the text and
not with the number of its coalitions. This page draws what they look at.
"""

# %%
# A network that reads words in pairs
# -----------------------------------
# The sentences are short opinions on films, written for this page (:download:`opinions.csv
# <opinions.csv>`). "Not good" is bad, and "not bad" is good, so that neighbours matter. The
# network sees windows of three words, so we take the opinions in which a negation stands close to
# its word.

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import torch
from torch import nn

from captum_ext import CShapley, Exact, LShapley, PlayerGraph, draw_graph

opinions = pd.read_csv("opinions.csv")
opinions = opinions[~opinions["text"].str.contains("but|find")]
words = sorted({word for text in opinions["text"] for word in text.split()})
ids = {word: number for number, word in enumerate(words, start=1)}  # 0 stands for no word
length = max(len(text.split()) for text in opinions["text"])


def encode(text):
    numbers = [ids[word] for word in text.split()]
    return numbers + [0] * (length - len(numbers))


class Reader(nn.Module):
    """Embeds words, looks at windows of three, and adds up what it sees."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(words) + 1, 16, padding_idx=0)
        self.window = nn.Conv1d(16, 32, 3, padding=1)
        self.head = nn.Linear(32, 1)

    def forward(self, tokens):
        seen = torch.relu(self.window(self.embedding(tokens).transpose(1, 2)))
        return self.head(seen.sum(dim=2))[:, 0]


torch.manual_seed(0)
tokens = torch.tensor([encode(text) for text in opinions["text"]])
is_good = torch.tensor(opinions["is_good"].to_numpy(), dtype=torch.float32)
is_test = torch.arange(len(tokens)) % 5 == 0
net = Reader()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)
for _ in range(60):
    optimizer.zero_grad()
    hidden = tokens[~is_test] * (torch.rand(tokens[~is_test].shape) > 0.15)  # knows absent words
    nn.functional.binary_cross_entropy_with_logits(net(hidden), is_good[~is_test]).backward()
    optimizer.step()
net.eval().requires_grad_(False)
accuracy = ((net(tokens[is_test]) > 0) == is_good[is_test].bool()).float().mean()
print(f"Accuracy on {int(is_test.sum())} other sentences: {accuracy:.2f}")

# %%
# A sentence to explain
# ---------------------
# An absent word becomes "no word", the number 0.

sentence = "hardly a weak story and the plot was never dull and the music was not good".split()
row = torch.tensor([[ids[word] for word in sentence]])
n_words = len(sentence)
print(f"log-odds of a good opinion: {net(row).item():.2f}")

# %%
# Shapley values of 16 words need 65,536 coalitions. We compute them once, to compare.

exact = Exact(net).attribute(row, baselines=0)[0]

# %%
# The graph
# ---------
# In captum, whole numbers are tokens, and tokens are a line: each word is joined to the next. So
# no graph must be passed. We draw the line with the Shapley values.

line = PlayerGraph.line(n_words)
in_lines = {  # of six words, there and back
    i: (i % 6 if i // 6 % 2 == 0 else 5 - i % 6, -(i // 6)) for i in range(n_words)
}

figure, axes = plt.subplots(figsize=(7, 3))
draw_graph(line, exact, labels=sentence, positions=in_lines, ax=axes)
axes.set_title("Shapley values of the words, on the line")
axes.margins(0.15)
plt.show()

# %%
# What L-Shapley looks at
# -----------------------
# L-Shapley of order k is the Shapley value of a word among the words within k steps; all other
# words are absent. Here are the words that it looks at for "dull": those with the number 1.

target = sentence.index("dull")
figure, panels = plt.subplots(2, 1, figsize=(7, 6))
for order, panel in enumerate(panels, start=1):
    is_near = [float(abs(i - target) <= order) for i in range(n_words)]
    draw_graph(line, is_near, labels=sentence, positions=in_lines, ax=panel)
    panel.set_title(f"order {order}: {2 * order + 1} words, {2 ** (2 * order + 1)} coalitions")
    panel.margins(0.15)
figure.tight_layout()
plt.show()

# %%
# C-Shapley looks at fewer coalitions: only those in which the word and the others form an
# unbroken run. The cost of both grows with the number of words, and not with the number of
# coalitions.

rows_of_table = []
for name, method in (("L-Shapley", LShapley), ("C-Shapley", CShapley)):
    for order in (1, 2, 3):
        explainer = method(net, order=order)
        values = explainer.attribute(row, baselines=0)[0]
        rows_of_table.append(
            {
                "method": name,
                "order": order,
                "evaluations": int(explainer.last_estimate.evaluations[0]),
                "correlation with Shapley values": np.corrcoef(values, exact)[0, 1].round(3),
            }
        )
pd.DataFrame(rows_of_table).set_index(["method", "order"])

# %%
# The attributions of order 2 beside the Shapley values:

by_l = LShapley(net, order=2).attribute(row, baselines=0)[0]
by_c = CShapley(net, order=2).attribute(row, baselines=0)[0]
figure, axes = plt.subplots(figsize=(7, 4))
places = np.arange(n_words)
axes.bar(places - 0.27, exact, 0.27, label="Shapley values")
axes.bar(places, by_l, 0.27, label="L-Shapley, order 2")
axes.bar(places + 0.27, by_c, 0.27, label="C-Shapley, order 2")
axes.set_xticks(places, sentence, rotation=60)
axes.axhline(0, color="0.5")
axes.set(ylabel="attribution", title="what each word says for a good opinion")
axes.legend()
plt.show()

# %%
# These are not estimates of the Shapley values. They are other values, which are close where far
# words hardly interact. They also do not sum to the output, unless the order covers the sentence.
#
# A graph of your own
# -------------------
# Words have other neighbours in grammar: "hardly" belongs to "weak", "never" to "dull", and "not"
# to "good", whatever stands between them. Any graph of networkx is taken. The nodes are the
# positions of the words.

edges = [(0, 2), (1, 3), (2, 3), (3, 4), (4, 7), (5, 6), (6, 7), (7, 9), (8, 9)]
edges += [(4, 10), (10, 13), (11, 12), (12, 13), (13, 15), (14, 15)]
grammar = nx.Graph(edges)
on_grammar = CShapley(net, order=2, graph=grammar)
values = on_grammar.attribute(row, baselines=0)[0]

figure, axes = plt.subplots(figsize=(7, 6))
draw_graph(grammar, values, labels=sentence, ax=axes)
axes.set_title("C-Shapley of order 2 on a graph of the grammar")
plt.show()

# %%
# What to read next
# -----------------
# - :doc:`/neighbouring_features`: images, any graph, the weights, and what it costs.
# - :doc:`text_through_captum`: words through estimators that need no neighbours.
# - :doc:`molecules`: the atoms of molecules as neighbours.
