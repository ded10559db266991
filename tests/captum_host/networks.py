"""Networks and the oracle's view of a forward function, for the tests of the captum side."""

import functools

import torch
from torch import nn

from tests.helpers.brute_force import shapley_values
from tests.shap_host import games

network = functools.partial(games.network, activation=nn.Tanh, scale=1.0)


def examples(n_examples, *shape, dtype=torch.float64, seed=1):
    """Return normal numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_examples, *shape, generator=generator, dtype=torch.float64).to(dtype)


class Recorder:
    """A forward function that notes what it is called with."""

    def __init__(self, forward_func):
        self.forward_func = forward_func
        self.calls = []

    def __call__(self, *arguments):
        self.calls.append(arguments)
        return self.forward_func(*arguments)

    @property
    def sizes(self):
        """How many rows each call held."""
        return [len(call[0]) for call in self.calls]


def game_of(function, example, baseline=None, mask=None):
    """Return the game of one example, its players given by a mask of its numbers, or these."""
    baseline = torch.zeros_like(example) if baseline is None else baseline
    mask = torch.arange(example.numel()).reshape(example.shape) if mask is None else mask

    def value(members):
        present = torch.isin(mask, torch.tensor(sorted(members), dtype=mask.dtype))
        masked = torch.where(present.expand_as(example), example, baseline)
        with torch.no_grad():
            return function(masked[None])[0].double().numpy()

    return value


def oracle(forward_func, inputs, baselines, masks=None, additional=()):
    """Return the Shapley values of each number of the inputs by the definition.

    One example and one coalition at a time, through the forward function with a batch of one.

    Parameters
    ----------
    inputs, baselines : tuples of tensors
        Of the same shapes.
    masks : tuple of tensors, optional
        Shaped like the inputs; the numbers of one id are one player.
    additional : tuple
        Further arguments; those in it that are tensors belong to examples.

    Returns
    -------
    tuple of tensors
        (B, *output shape, *shape of an example), in float64.
    """
    if masks is None:
        sizes = [tensor[0].numel() for tensor in inputs]
        ids = torch.arange(sum(sizes)).split(sizes)
        masks = tuple(
            part.reshape(tensor.shape[1:]).expand(tensor.shape)
            for part, tensor in zip(ids, inputs, strict=True)
        )
    results = []
    for example in range(len(inputs[0])):
        own = [mask[example] for mask in masks]
        players = sorted({int(i) for mask in own for i in mask.flatten()})

        def value(coalition, example=example, own=own, players=players):
            masked = []
            for mask, present, absent in zip(own, inputs, baselines, strict=True):
                one = absent[example].clone()
                for player in coalition:
                    here = mask == players[player]
                    one[here] = present[example][here]
                masked.append(one[None])
            mine = [a[example : example + 1] if torch.is_tensor(a) else a for a in additional]
            with torch.no_grad():
                return forward_func(*masked, *mine)[0].double().numpy()

        phi = torch.as_tensor(shapley_values(len(players), value))  # (M, *output shape)
        spread = []
        for mask, tensor in zip(own, inputs, strict=True):
            place = torch.tensor([players.index(int(i)) for i in mask.flatten()], dtype=torch.long)
            shaped = phi[place].movedim(0, -1)
            spread.append(shaped.reshape((*shaped.shape[:-1], *tensor.shape[1:])))
        results.append(spread)
    return tuple(torch.stack(parts) for parts in zip(*results, strict=True))
