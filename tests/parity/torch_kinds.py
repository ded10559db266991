"""Kinds of input that users hand over with torch modules, to either host."""

from typing import Any

import numpy as np
import shap
import torch
from captum.attr import visualization
from torch import nn

from tests.captum_host.networks import examples, network
from tests.parity.cases import Case, Kind, show_with
from tests.parity.shap_kinds import case, waterfall

N_ROWS = 3
FLOAT32: dict[str, Any] = {
    "atol": 2e-5,
    "reason": "a network in float32, whose batches differ in size",
}


class Tokens(nn.Module):
    """Embeds token ids and reads them with an LSTM."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 4)
        self.lstm = nn.LSTM(4, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, tokens):
        return self.read(self.embedding(tokens))

    def read(self, embedded):
        _, (hidden, _) = self.lstm(embedded)
        return self.head(torch.tanh(3 * hidden[-1]))


def seeded(make):
    """Build a module with weights of a fixed seed, leaving the global generator as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().double().eval()


def convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, 2)
    )


def forward_games(forward, inputs, baselines, masks):
    """Return the games of examples; `masks` say which player each number belongs to."""

    def game(example):
        def value(coalition):
            filled = []
            for tensor, baseline, mask in zip(inputs, baselines, masks, strict=True):
                one = baseline[0 if len(baseline) == 1 else example].clone()
                own = mask[0 if len(mask) == 1 else example]
                for player in coalition:
                    one[own == player] = tensor[example][own == player]
                filled.append(one[None])
            with torch.no_grad():
                return forward(*filled)[0].double().numpy()

        return value

    return [game(example) for example in range(len(inputs[0]))]


def attribution_case(forward, inputs, baselines, *, masks, n_players, plot, given=None, **more):
    """Return the case of an attribution method built and called as users do."""
    tensors = inputs if isinstance(inputs, tuple) else (inputs,)
    absent = baselines if isinstance(baselines, tuple) else (baselines,)

    def run(row, budget, seed):
        method = row.attribution(forward, seed=seed, **row.options)
        made = method.attribute(
            inputs, baselines=baselines, feature_mask=given, n_samples=budget, **more
        )
        return made, per_player(made if isinstance(made, tuple) else (made,), masks, n_players)

    games = forward_games(forward, tensors, absent, masks)
    return Case(run, games, n_players, show_with(plot))


def per_player(made, masks, n_players):
    """Read off what each player got, (R, M, K); all its numbers must have got the same."""
    n_rows = len(made[0])
    found = None
    for tensor, mask in zip(made, masks, strict=True):
        n_outputs = tensor.numel() // (n_rows * mask[0].numel())
        flat = tensor.double().reshape(n_rows, n_outputs, -1).numpy()
        if found is None:
            found = np.full((n_rows, n_players, n_outputs), np.nan)
        for row in range(n_rows):
            own = mask[0 if len(mask) == 1 else row].flatten().numpy()
            for player in np.unique(own):
                numbers = flat[row][:, own == player]
                assert (numbers == numbers[:, :1]).all()
                found[row, player] = numbers[:, 0]
    assert found is not None
    return np.nan_to_num(found)  # a player that a row does not have


def as_image(made):
    """Show the first example as an image, one row of pixels if it is a table."""
    first = made[0] if isinstance(made, tuple) else made
    numbers = first.detach().double().reshape(-1, first.shape[-1])[:1].numpy()
    visualization.visualize_image_attr(numbers.reshape(1, -1, 1), sign="all", use_pyplot=True)


def image(made):
    picture = made[0, 0] if made.dim() == 5 else made[0]
    visualization.visualize_image_attr(
        picture.permute(1, 2, 0).numpy(), sign="all", show_colorbar=True, use_pyplot=True
    )


def consecutive(*tensors):
    """Return masks in which each number of an example is a player."""
    sizes = [tensor[0].numel() for tensor in tensors]
    ids = torch.arange(sum(sizes)).split(sizes)
    return [i.reshape(1, *t.shape[1:]) for i, t in zip(ids, tensors, strict=True)]


# --- through shap ---


def module_through_shap(activation):
    net = network(7, 2, activation=activation)
    x, background = examples(N_ROWS, 7), examples(2, 7, seed=4)

    def game(row):
        def value(coalition):
            masked = background.clone()
            for player in coalition:
                masked[:, player] = x[row, player]
            return net(masked).detach().numpy().mean(axis=0)

        return value

    games = [game(row) for row in range(N_ROWS)]
    return case(net, background.numpy(), x, games=games, n_players=7, plot=waterfall)


def image_through_shap():
    net = seeded(convolutions)
    x, background = examples(N_ROWS, 1, 3, 3), torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    games = forward_games(net, (x,), (background,), consecutive(x))

    def plot(explanation):
        pictures = [explanation.values[:, 0, :, :, k] for k in range(2)]
        shap.image_plot(pictures, x[:, 0].numpy(), show=False)

    return case(net, background.numpy(), x.numpy(), games=games, n_players=9, plot=plot)


# --- through captum ---


def table_of(activation):
    net = network(7, 1, activation=activation)
    x, baseline = examples(N_ROWS, 7), examples(1, 7, seed=4)
    masks = consecutive(x)
    return attribution_case(
        lambda x: net(x)[:, 0], x, baseline, masks=masks, n_players=7, plot=as_image
    )


def single_precision():
    net = network(7, 2, dtype=torch.float32)
    x = examples(N_ROWS, 7, dtype=torch.float32)
    zeros = torch.zeros(1, 7)
    return attribution_case(net, x, zeros, masks=consecutive(x), n_players=7, plot=as_image)


def half_precision():
    net = network(7, 2, dtype=torch.bfloat16)
    x = examples(N_ROWS, 7, dtype=torch.bfloat16)
    zeros = torch.zeros(1, 7, dtype=torch.bfloat16)
    return attribution_case(net, x, zeros, masks=consecutive(x), n_players=7, plot=as_image)


def averaged_baselines():
    net = network(6, 2)
    x, rows = examples(N_ROWS, 6), examples(5, 6, seed=4)

    def game(row):
        def value(coalition):
            masked = rows.clone()
            for player in coalition:
                masked[:, player] = x[row, player]
            return net(masked).detach().numpy().mean(axis=0)

        return value

    masks = consecutive(x)

    def run(row, budget, seed):
        method = row.attribution(net, seed=seed, **row.options)
        made = method.attribute(x, baselines=rows, n_samples=budget)
        return made, per_player((made,), masks, 6)

    return Case(run, [game(row) for row in range(N_ROWS)], 6, show_with(as_image))


def two_tensors():
    net = network(7, 2)

    def forward(table, picture):
        return net(torch.cat([table, picture.flatten(1)], dim=1))

    inputs = examples(N_ROWS, 3), examples(N_ROWS, 2, 2, seed=2)
    baselines = torch.zeros(1, 3).double(), torch.ones(1, 2, 2).double()
    return attribution_case(
        forward, inputs, baselines, masks=consecutive(*inputs), n_players=7, plot=as_image
    )


def groups_across_tensors():
    net = network(9, 1)

    def forward(first, second):
        return net(torch.cat([first, second], dim=1))[:, 0]

    inputs = examples(N_ROWS, 4), examples(N_ROWS, 5, seed=2)
    baselines = torch.zeros(1, 4).double(), torch.zeros(1, 5).double()
    masks = [torch.tensor([[0, 1, 1, 2]]), torch.tensor([[2, 3, 4, 4, 5]])]
    given = tuple(masks)
    return attribution_case(
        forward, inputs, baselines, masks=masks, n_players=6, plot=as_image, given=given
    )


def masks_of_their_own():
    net = network(8, 1)
    x, baseline = examples(N_ROWS, 8), examples(N_ROWS, 8, seed=3)
    mask = torch.tensor([[0, 0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0, 0], [0, 1, 2, 3] * 2])
    return attribution_case(
        lambda x: net(x)[:, 0],
        x,
        baseline,
        masks=[mask],
        n_players=7,
        plot=as_image,
        given=mask,
    )


def superpixels():
    net = seeded(convolutions)
    x, baseline = examples(N_ROWS, 1, 3, 3), torch.zeros(1, 1, 3, 3).double()
    mask = torch.tensor([[0, 0, 1], [2, 3, 1], [4, 5, 6]])[None, None]
    return attribution_case(net, x, baseline, masks=[mask], n_players=7, plot=image, given=mask)


def tokens():
    net = seeded(Tokens)
    ids = torch.tensor([[3, 7, 1, 19, 4, 8, 2], [5, 5, 6, 0, 12, 13, 9], [1, 2, 3, 4, 5, 6, 7]])
    pad = torch.zeros(1, 7, dtype=torch.long)

    def plot(made):
        draw_text(made[0, 0], [str(i) for i in ids[0].tolist()])
        as_image(made)

    return attribution_case(net, ids, pad, masks=consecutive(ids), n_players=7, plot=plot)


def embedded_tokens():
    net = seeded(Tokens)
    ids = torch.tensor([[3, 7, 1, 19, 4, 8], [5, 5, 6, 0, 12, 13], [1, 2, 3, 4, 5, 6]])
    with torch.no_grad():
        inputs, pad = net.embedding(ids), net.embedding(torch.zeros(1, 6, dtype=torch.long))
    given = torch.arange(6)[None, :, None]
    return attribution_case(
        net.read,
        inputs,
        pad,
        masks=[given.expand(1, 6, 4)],
        n_players=6,
        plot=as_image,
        given=given,
    )


def draw_text(attributions, words):
    """Show words as captum's users do."""
    record = visualization.VisualizationDataRecord(
        attributions / attributions.abs().max(),
        0.9,
        1,
        1,
        "one",
        float(attributions.sum()),
        words,
        0.0,
    )
    shown = visualization.visualize_text([record])
    assert all(word in shown.data for word in words)


KINDS = [
    Kind("shap", "tensor", "torch, smooth", lambda: module_through_shap(nn.Tanh)),
    Kind("shap", "tensor", "torch, ReLU", lambda: module_through_shap(nn.ReLU)),
    Kind("shap", "images", "torch, convolutions", image_through_shap),
    Kind("captum", "tensor", "smooth", lambda: table_of(nn.Tanh)),
    Kind("captum", "tensor", "ReLU", lambda: table_of(nn.ReLU)),
    Kind("captum", "float32", "smooth, two outputs", single_precision, **FLOAT32),
    Kind(
        "captum",
        "bfloat16",
        "smooth, two outputs",
        half_precision,
        atol=0.05,
        reason="eight bits of precision in the network and in the result",
    ),
    Kind("captum", "distribution of baselines", "smooth, two outputs", averaged_baselines),
    Kind("captum", "two tensors", "smooth, two outputs", two_tensors),
    Kind("captum", "groups across tensors", "smooth", groups_across_tensors),
    Kind("captum", "masks of their own", "smooth", masks_of_their_own),
    Kind("captum", "superpixels", "convolutions, two outputs", superpixels),
    Kind("captum", "token ids", "LSTM, two outputs", tokens),
    Kind("captum", "embedded tokens", "LSTM, two outputs", embedded_tokens),
]
