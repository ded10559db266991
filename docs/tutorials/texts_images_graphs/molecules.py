"""
A graph network on molecules
============================

**For whom:** you explain a graph network with captum, and want to know which atoms decide.

A coalition is a part of the molecule. The Myerson value lets atoms act together only if bonds
join them, so that only connected parts of the molecule are looked at.
"""

# %%
# Forty molecules
# ---------------
# Half of them have a nitro group: one nitrogen with two oxygens. The molecules are written as
# SMILES, one letter per atom. We keep the elements and the bonds.

from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from torch import nn

from captum_ext import Exact, Myerson, StackedGraphs, draw_graph

NITRO = """
CN(=O)=O CCN(=O)=O CCCN(=O)=O CC(C)N(=O)=O C1CCCCC1N(=O)=O c1ccccc1N(=O)=O Cc1ccccc1N(=O)=O
Cc1ccc(N(=O)=O)cc1 Cc1ccc(N(=O)=O)cc1N(=O)=O Nc1ccc(N(=O)=O)cc1 Nc1cccc(N(=O)=O)c1
Oc1ccc(N(=O)=O)cc1 Oc1ccccc1N(=O)=O Clc1ccc(N(=O)=O)cc1 Brc1ccc(N(=O)=O)cc1 O=Cc1ccc(N(=O)=O)cc1
OC(=O)c1ccc(N(=O)=O)cc1 COc1ccc(N(=O)=O)cc1 N#Cc1ccc(N(=O)=O)cc1 NC(=O)c1ccc(N(=O)=O)cc1
""".split()
OTHERS = """
CCO CC(=O)O CC(=O)N CC#N CCCN NCC(=O)O CC(N)C(=O)O c1ccccc1 c1ccncc1 Cc1ccccc1 Nc1ccccc1
Oc1ccccc1 OC(=O)c1ccccc1 NC(=O)c1ccccc1 Nc1ccc(C(=O)O)cc1 CC(=O)Nc1ccc(O)cc1 COc1ccc(N)cc1
Clc1ccc(N)cc1 N#Cc1ccc(O)cc1 COC(=O)c1ccccc1N
""".split()
ELEMENTS = ["C", "N", "O", "Cl", "Br"]


def read_smiles(text):
    """Return the elements of the atoms, and the bonds as an edge index."""
    elements, bonds, branches, rings, last = [], [], [], {}, None
    for symbol in text.replace("Cl", "L").replace("Br", "R"):
        if symbol == "(":
            branches.append(last)
        elif symbol == ")":
            last = branches.pop()
        elif symbol.isdigit() and symbol in rings:
            bonds.append((rings.pop(symbol), last))
        elif symbol.isdigit():
            rings[symbol] = last
        elif symbol not in "=#":
            elements.append({"L": "Cl", "R": "Br"}.get(symbol, symbol.upper()))
            if last is not None:
                bonds.append((last, len(elements) - 1))
            last = len(elements) - 1
    edges = torch.tensor(bonds).T
    return elements, torch.cat([edges, edges.flip(0)], dim=1)


def atoms_of(elements):
    """Return one column for each element."""
    return torch.eye(len(ELEMENTS))[[ELEMENTS.index(element) for element in elements]]


elements, bonds = read_smiles("COc1ccc(N(=O)=O)cc1")
print(elements)
print(atoms_of(elements).shape, bonds.shape)

# %%
# A network that sends messages along bonds
# -----------------------------------------
# It is called as the networks of PyTorch Geometric are: `network(x, edge_index, batch)`. It has
# no biases, so that an absent atom, a row of zeros, says nothing.


class MessagePassing(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        sizes = [len(ELEMENTS), width, width, width]
        self.own = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairwise(sizes))
        self.sent = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairwise(sizes))
        self.head = nn.Linear(width, 1)

    def forward(self, x, edge_index, batch):
        source, sink = edge_index
        for own, sent in zip(self.own, self.sent, strict=True):
            x = torch.relu(own(x).index_add(0, sink, sent(x)[source]))
        n_molecules = int(batch.max()) + 1
        return self.head(torch.zeros(n_molecules, x.shape[1]).index_add(0, batch, x))[:, 0]


def together(molecules):
    """Return many molecules as one large graph."""
    atoms, edges, numbers, start = [], [], [], 0
    for number, (elements, bonds) in enumerate(molecules):
        atoms.append(atoms_of(elements))
        edges.append(bonds + start)
        numbers += [number] * len(elements)
        start += len(elements)
    return torch.cat(atoms), torch.cat(edges, dim=1), torch.tensor(numbers)


torch.manual_seed(0)
names = NITRO + OTHERS
labels = torch.tensor([1.0] * len(NITRO) + [0.0] * len(OTHERS))
is_test = torch.arange(len(names)) % 4 == 3
training = together([read_smiles(name) for name, t in zip(names, is_test, strict=True) if not t])
testing = together([read_smiles(name) for name, t in zip(names, is_test, strict=True) if t])

network = MessagePassing()
optimizer = torch.optim.AdamW(network.parameters(), lr=0.005, weight_decay=0.01)
for _ in range(300):
    x, edge_index, batch = training
    is_present = (torch.rand(len(x), 1) > 0.1).float()  # the network knows absent atoms
    optimizer.zero_grad()
    logits = network(x * is_present, edge_index, batch)
    nn.functional.binary_cross_entropy_with_logits(logits, labels[~is_test]).backward()
    optimizer.step()
network.eval().requires_grad_(False)
is_right = (network(*testing) > 0) == labels[is_test].bool()
print(
    f"{int(is_right.sum())} of {len(is_right)} molecules that it has not seen are classified right"
)

# %%
# Explain the atoms
# -----------------
# `StackedGraphs` makes the network a function of the atoms of one molecule, and evaluates many
# coalitions of them at once. `feature_mask` makes each atom one feature.


def explain(elements, bonds):
    """Return the Myerson values of the atoms."""
    myerson = Myerson(StackedGraphs(network, bonds), graph=bonds, seed=0)
    values = myerson.attribute(
        atoms_of(elements)[None],
        feature_mask=torch.arange(len(elements)).reshape(1, -1, 1),
        n_samples=2000,
    )
    print(myerson.last_estimate)
    return values[0, :, 0]


unseen = [name for name, t in zip(names, is_test, strict=True) if t]
drawn = [name for name in unseen if "N(=O)=O" in name][-4:]
figure, panels = plt.subplots(2, 2, figsize=(8, 7))
for panel, name in zip(panels.flat, drawn, strict=True):
    elements, bonds = read_smiles(name)
    draw_graph(bonds, explain(elements, bonds), labels=elements, ax=panel)
    panel.set_title(name)
plt.show()

# %%
# The nitro groups stand out. The values are exact: few of the coalitions are connected, and all
# of them were evaluated.
#
# Bonds matter
# ------------
# The Shapley value looks at all parts of a molecule, also at atoms that no bond joins. The
# Myerson value pays an atom for joining others. We compare both on one molecule.

elements, bonds = read_smiles(drawn[0])
by_atom = torch.arange(len(elements)).reshape(1, -1, 1)
shapley = Exact(StackedGraphs(network, bonds)).attribute(
    atoms_of(elements)[None], feature_mask=by_atom
)[0, :, 0]
myerson = explain(elements, bonds)

figure, panels = plt.subplots(1, 2, figsize=(9, 3.8))
for panel, title, values in zip(
    panels, ["Shapley value", "Myerson value"], [shapley, myerson], strict=True
):
    draw_graph(bonds, values, labels=elements, ax=panel)
    panel.set_title(f"{title}, sum {values.sum():.2f}")
plt.show()

# %%
# What to read next
# -----------------
# - :doc:`/neighbouring_features`: networks of PyTorch Geometric, any graph, and what it costs.
# - :doc:`words_as_neighbours`: the words of a sentence as a graph.
# - :doc:`image_superpixels`: images, whose superpixels are neighbours if they touch.
