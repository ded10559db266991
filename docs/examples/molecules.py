"""Which atoms make a network see a nitro group, or call a molecule mutagenic?

Trains a small message-passing network on forty molecules that stand below, or on MUTAG if you have
it, and draws the Myerson values of the atoms of molecules that it has not seen.

    python docs/examples/molecules.py [--output FOLDER] [--mutag mutag.npz]
"""

import argparse
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from torch import Tensor, nn

from captum_ext import Myerson, StackedGraphs, draw_graph

mpl.use("Agg")
import matplotlib.pyplot as plt

ELEMENTS = ["C", "N", "O", "F", "Cl", "Br", "I", "S"]
N_DRAWN = 4

# Nitro compounds, and molecules that have the same elements elsewhere.
NITRO = """
CN(=O)=O CCN(=O)=O CCCN(=O)=O CC(C)N(=O)=O C1CCCCC1N(=O)=O c1ccccc1N(=O)=O Cc1ccccc1N(=O)=O
Cc1ccc(N(=O)=O)cc1 Cc1ccc(N(=O)=O)cc1N(=O)=O Nc1ccc(N(=O)=O)cc1 Nc1cccc(N(=O)=O)c1
Oc1ccc(N(=O)=O)cc1 Oc1ccccc1N(=O)=O Clc1ccc(N(=O)=O)cc1 Brc1ccc(N(=O)=O)cc1 O=Cc1ccc(N(=O)=O)cc1
OC(=O)c1ccc(N(=O)=O)cc1 COc1ccc(N(=O)=O)cc1 N#Cc1ccc(N(=O)=O)cc1 NC(=O)c1ccc(N(=O)=O)cc1
"""
OTHERS = """
CCO CC(=O)O CC(=O)N CC#N CCCN NCC(=O)O CC(N)C(=O)O c1ccccc1 c1ccncc1 Cc1ccccc1 Nc1ccccc1
Oc1ccccc1 OC(=O)c1ccccc1 NC(=O)c1ccccc1 Nc1ccc(C(=O)O)cc1 CC(=O)Nc1ccc(O)cc1 COc1ccc(N)cc1
Clc1ccc(N)cc1 N#Cc1ccc(O)cc1 COC(=O)c1ccccc1N
"""


@dataclass
class Molecule:
    """Its name, the elements of its atoms, its bonds (2, E) in both directions, and its class."""

    name: str
    elements: list[str]
    edge_index: Tensor
    label: float

    @property
    def atoms(self) -> Tensor:
        """One number for each element, (atoms, elements)."""
        numbers = torch.tensor([ELEMENTS.index(element) for element in self.elements])
        return nn.functional.one_hot(numbers, len(ELEMENTS)).float()


class MessagePassing(nn.Module):
    """Three rounds of messages along bonds, and a sum over the atoms of each molecule.

    Without biases, so that absent atoms, all zeros, say nothing. Called as the networks of PyTorch
    Geometric are, whose layers may take the place of these.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        sizes = [len(ELEMENTS), width, width, width]
        self.own = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairwise(sizes))
        self.sent = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in pairwise(sizes))
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Return the log-odds of each molecule."""
        source, sink = edge_index
        for own, sent in zip(self.own, self.sent, strict=True):
            x = torch.relu(own(x).index_add(0, sink, sent(x)[source]))
        n_molecules = int(batch.max()) + 1
        sums = torch.zeros(n_molecules, x.shape[1]).index_add(0, batch, x)
        return self.head(sums)[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("quickstart_output"))
    parser.add_argument("--mutag", type=Path, help="graph_id, node_tag, edge_index and labels")
    arguments = parser.parse_args()
    started = time.perf_counter()
    torch.set_num_threads(2)
    torch.manual_seed(0)

    molecules = from_mutag(arguments.mutag) if arguments.mutag else written_down()
    order = np.random.default_rng(3).permutation(len(molecules))
    n_test = len(order) // 4
    test, training = ([molecules[i] for i in part] for part in (order[:n_test], order[n_test:]))
    network = train(training)
    chances = torch.sigmoid(network(*together(test))).tolist()
    hits = [(p > 0.5) == m.label for p, m in zip(chances, test, strict=True)]
    print(
        f"{len(training)} molecules to learn from; {sum(hits)} of {n_test} others are told right."
    )

    found = [pair for pair in zip(chances, test, strict=True) if pair[0] > 0.5]
    found.sort(key=lambda pair: -len(pair[1].elements))
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "molecules.png"
    draw(network, found[:N_DRAWN], path)
    print(f"{path} saved. Took {time.perf_counter() - started:.0f} seconds.")


def explain(network: nn.Module, molecule: Molecule) -> tuple[Tensor, Tensor]:
    """Return the Myerson values of the atoms and their standard errors."""
    by_atom = torch.arange(len(molecule.atoms)).reshape(1, -1, 1)
    myerson = Myerson(
        StackedGraphs(network, molecule.edge_index), graph=molecule.edge_index, seed=0
    )
    values, errors = myerson.attribute(
        molecule.atoms[None], feature_mask=by_atom, n_samples=4000, return_standard_error=True
    )
    return values[0, :, 0], errors[0, :, 0]


def draw(network: nn.Module, found: list[tuple[float, Molecule]], path: Path) -> None:
    """Draw molecules with their attributions, and print what the nitro groups get."""
    figure, panels = plt.subplots(2, N_DRAWN // 2, figsize=(4 * N_DRAWN // 2, 7))
    for panel, (chance, molecule) in zip(panels.flat, found, strict=False):
        values, errors = explain(network, molecule)
        draw_graph(molecule.edge_index, values, labels=molecule.elements, ax=panel)
        panel.set_title(f"{molecule.name}\np = {chance:.2f}")
        group = nitro_groups(molecule)
        print(
            f"  {molecule.name:26} all atoms {values.sum():+6.2f}, nitro groups "
            f"{values[group].sum():+6.2f}; standard errors up to {errors.max():.2f}"
        )
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


def train(molecules: list[Molecule]) -> nn.Module:
    """Fit the network; a tenth of the atoms is hidden, so that it knows absent ones."""
    network = MessagePassing()
    atoms, edge_index, batch = together(molecules)
    labels = torch.tensor([molecule.label for molecule in molecules])
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.005, weight_decay=0.01)
    for _ in range(300):
        is_there = (torch.rand(len(atoms), 1) > 0.1).float()
        optimizer.zero_grad()
        logits = network(atoms * is_there, edge_index, batch)
        nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()
        optimizer.step()
    return network.eval().requires_grad_(False)


def together(molecules: list[Molecule]) -> tuple[Tensor, Tensor, Tensor]:
    """Return atoms, bonds and numbers of molecules as one large graph."""
    sizes = torch.tensor([len(molecule.elements) for molecule in molecules])
    starts = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)[:-1]])
    bonds = [m.edge_index + start for m, start in zip(molecules, starts, strict=True)]
    numbers = torch.arange(len(molecules)).repeat_interleave(sizes)
    return torch.cat([m.atoms for m in molecules]), torch.cat(bonds, 1), numbers


def nitro_groups(molecule: Molecule) -> list[int]:
    """Return the nitrogens with two oxygens that have no other bond, and these oxygens."""
    bonds = molecule.edge_index.T.tolist()
    near = {atom: [b for a, b in bonds if a == atom] for atom in range(len(molecule.elements))}
    found = []
    for atom, element in enumerate(molecule.elements):
        ends = [b for b in near[atom] if molecule.elements[b] == "O" and len(near[b]) == 1]
        if element == "N" and len(ends) == 2:
            found += [atom, *ends]
    return found


def written_down() -> list[Molecule]:
    """Return the molecules that stand above."""
    return [
        Molecule(name, *read_smiles(name), label)
        for names, label in ((NITRO, 1.0), (OTHERS, 0.0))
        for name in names.split()
    ]


def read_smiles(text: str) -> tuple[list[str], Tensor]:
    """Read atoms and bonds; no charges, brackets, or rings beyond nine."""
    elements: list[str] = []
    bonds: list[tuple[int, int]] = []
    branches: list[int] = []
    rings: dict[str, int] = {}
    last = -1
    for symbol in text.replace("Cl", "L").replace("Br", "R"):
        if symbol == "(":
            branches.append(last)
        elif symbol == ")":
            last = branches.pop()
        elif symbol.isdigit():
            if symbol in rings:
                bonds.append((rings.pop(symbol), last))
            else:
                rings[symbol] = last
        elif symbol not in "=#":
            elements.append({"L": "Cl", "R": "Br"}.get(symbol, symbol.upper()))
            if last >= 0:
                bonds.append((last, len(elements) - 1))
            last = len(elements) - 1
    edges = torch.tensor(bonds).T
    return elements, torch.cat([edges, edges.flip(0)], 1)


def from_mutag(path: Path) -> list[Molecule]:
    """Read MUTAG (Debnath et al., 1991) from arrays of all atoms, bonds and molecules."""
    with np.load(path) as stored:
        names = stored["element_names"][stored["node_tag"]].tolist()
        graph_of, bonds = stored["graph_id"], stored["edge_index"].astype(np.int64)
        labels = stored["labels"]
    molecules = []
    for number in np.unique(graph_of):
        atoms = np.flatnonzero(graph_of == number)
        own = torch.from_numpy(bonds[:, graph_of[bonds[0]] == number] - atoms[0])
        elements = [names[atom] for atom in atoms]
        molecules.append(Molecule(f"molecule {number}", elements, own, float(labels[number])))
    return molecules


if __name__ == "__main__":
    main()
