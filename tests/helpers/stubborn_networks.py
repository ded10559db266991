"""Networks that make derivatives hard, and what must happen when they are asked for."""

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

N_FEATURES = 12
"""Too many for enumeration by 200 evaluations, few enough for differences."""


def examples(n_examples, dtype=torch.float64, seed=1):
    """Return normal numbers, but whole ones in the first column."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(n_examples, N_FEATURES, generator=generator, dtype=torch.float64)
    made[:, 0] = 1 + torch.arange(n_examples) % 5
    return made.to(dtype)


def token_ids(n_examples):
    """Return whole numbers from 1 to 29; 0 is the baseline."""
    return torch.arange(n_examples * N_FEATURES).reshape(n_examples, N_FEATURES) % 29 + 1


def fixed(module, scale=1.0, seed=0):
    """Set the parameters of a module to normal numbers of its own, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            values = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(scale * values / max(parameter.shape[-1], 1) ** 0.5)
    return module.double().eval()


class Around(nn.Module):
    """A module made of a function of a module and the input."""

    def __init__(self, function, inner=None):
        super().__init__()
        self.function = function
        self.inner = nn.Linear(N_FEATURES, 5) if inner is None else inner

    def forward(self, x):
        return self.function(self.inner, x)


def around(function, inner=None):
    """Return a builder of such a module."""
    return lambda: fixed(Around(function, inner() if inner else None))


def layers(*activations):
    """Return a builder of a network of two layers with what stands between them."""
    return lambda: fixed(
        nn.Sequential(
            nn.Linear(N_FEATURES, 16), *(make() for make in activations), nn.Linear(16, 1)
        ),
        scale=1.5,
    )


class Recurrent(nn.Module):
    """The last state of a recurrent layer over the features."""

    def __init__(self, kind):
        super().__init__()
        self.recurrent = kind(1, 4, batch_first=True)

    def forward(self, x):
        return self.recurrent(x[:, :, None])[0][:, -1, :2]


class Tokens(nn.Module):
    """A smooth function of summed embeddings."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, ids):
        found = self.embedding(ids)
        return torch.tanh(found if found.dim() == 2 else found.sum(dim=1)).sum(dim=1)


class Attention(nn.Module):
    """Self-attention between three tokens of four numbers."""

    def __init__(self, need_weights):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x):
        tokens = x.reshape(-1, 3, 4)
        made, _ = self.attention(tokens, tokens, tokens, need_weights=self.need_weights)
        return made.sum(dim=(1, 2))


class Once(torch.autograd.Function):
    """The hyperbolic tangent, whose derivative cannot be taken twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.tanh())
        return x.tanh()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (tanh,) = ctx.saved_tensors
        return grad * (1 - tanh**2)


class Twice(torch.autograd.Function):
    """The same, as it should be."""

    @staticmethod
    def forward(ctx, x):
        tanh = x.tanh()
        ctx.save_for_backward(tanh)
        return tanh

    @staticmethod
    def backward(ctx, grad):
        (tanh,) = ctx.saved_tensors
        return grad * (1 - tanh**2)


def _overwriting(inner, x):
    made = inner(x).exp()
    total = made.sum(dim=1)
    made[:, 0] = 0  # what the exponential's derivative needs
    return total


def _changing_its_input(inner, x):
    x.mul_(2)
    return inner(x).tanh().sum(dim=1)


def _inside_no_grad(inner, x):
    with torch.no_grad():
        return inner(x).tanh().sum(dim=1)


def _partly_inside_no_grad(inner, x):
    with torch.no_grad():
        gate = inner(-x).exp()
    return (gate * x[:, :5].tanh()).sum(dim=1)


def _category(_, x):
    codes = x[:, 0].long()  # as rows of an embedding are looked up
    return torch.cos(2.0 * codes) * x[:, 1] + torch.tanh(x[:, 2:].sum(dim=1))


def _only_with_plain_numbers(inner, x):
    if x.requires_grad:
        raise TypeError("no gradients, please")
    return inner(x).tanh().sum(dim=1)


def _quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = layers(nn.Tanh)().float()
        net = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)
    # It rounds by the largest number of a batch, whose rows would influence each other.
    return Around(lambda inner, x: torch.cat([inner(row) for row in x.split(1)]), net).eval()


def _made_in_inference_mode():
    with torch.inference_mode():
        return layers(nn.Tanh)()


def _lazy():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.Linear(4, 1)).eval()


def scripted(net):
    """Return the network as TorchScript, which still works."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # and is going away
        return torch.jit.script(net)


def _frozen_script():
    """Return a script without parameters, which are constants, and without `training`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.freeze(scripted(layers(nn.Tanh)()))


@dataclass(frozen=True)
class Case:
    """A network and what each way of finding cooperators comes to.

    Attributes
    ----------
    build : callable
        Returns the network, in eval mode.
    auto : str
        What `"auto"` takes.
    hessian, gradient : str
        Words of the DerivativeError; with a `~` in front, of a warning; "" where it just works.
    whole : bool
        Whether the input is whole numbers.
    """

    build: Callable[[], nn.Module]
    auto: str
    hessian: str = ""
    gradient: str = ""
    dtype: Any = torch.float64
    whole: bool = False

    @property
    def is_smooth(self):
        """Whether the second derivatives are right, to double precision."""
        return not self.hessian and self.dtype == torch.float64

    @property
    def has_slopes(self):
        """Whether the first derivatives are."""
        return not self.gradient and self.dtype == torch.float64

    def inputs(self, n_examples):
        """Return examples that the network takes."""
        return token_ids(n_examples) if self.whole else examples(n_examples, self.dtype)


_STRAIGHT = "~second derivatives vanish.*'gradient'"
_ONCE = "cannot be differentiated again.*'gradient'"
_FUSED = "differentiable only once.*sdpa_kernel.*'gradient'"
_NOWHERE = "does not depend differentiably.*'difference'"
_WHOLE = "whole numbers|int64 numbers"
_HIDDEN = "~do not explain how the output changes.*'difference'"


def _nowhere(build, reason=_NOWHERE, **facts):
    return Case(build, "difference", reason, reason, **facts)


def _twice(build, **facts):
    return Case(build, "hessian", **facts)


CASES = {
    # Straight pieces
    "ReLU": Case(layers(nn.ReLU), "gradient", _STRAIGHT),
    "in place": Case(
        layers(lambda: nn.ReLU(inplace=True), lambda: nn.Dropout(0.5, inplace=True)),
        "gradient",
        _STRAIGHT,
    ),
    # Smooth
    "tanh": _twice(layers(nn.Tanh)),
    "LSTM": _twice(lambda: fixed(Recurrent(nn.LSTM))),
    "norms": _twice(layers(lambda: nn.BatchNorm1d(16), nn.Tanh, lambda: nn.LayerNorm(16))),
    "attention with weights": _twice(lambda: fixed(Attention(True))),
    "scripted": _twice(lambda: scripted(layers(nn.Tanh)())),
    "frozen script": _twice(_frozen_script),
    "frozen": _twice(lambda: layers(nn.Tanh)().requires_grad_(False)),
    "lazy": _twice(_lazy, dtype=torch.float32),
    "float16": _twice(lambda: layers(nn.Tanh)().half(), dtype=torch.float16),
    "bfloat16": _twice(lambda: layers(nn.Tanh)().bfloat16(), dtype=torch.bfloat16),
    "changes its input": _twice(around(_changing_its_input)),
    "checkpoint": _twice(
        around(lambda inner, x: checkpoint(inner, x, use_reentrant=False).tanh().sum(dim=1))
    ),
    "custom function": _twice(around(lambda inner, x: Twice.apply(inner(x)).sum(dim=1))),
    # Differentiable once
    "attention": Case(lambda: fixed(Attention(False)), "gradient", _FUSED),
    "cdist": Case(
        around(lambda _, x: torch.cdist(x, torch.ones(1, N_FEATURES, dtype=x.dtype))),
        "gradient",
        "not implemented.*'gradient'",
    ),
    "once_differentiable": Case(
        around(lambda inner, x: Once.apply(inner(x)).prod(dim=1)), "gradient", _ONCE
    ),
    "linear": Case(lambda: fixed(nn.Linear(N_FEATURES, 2)), "gradient", _ONCE),
    # Second derivatives of a part
    "once_differentiable, in part": Case(
        around(lambda inner, x: Once.apply(inner(x)).sum(dim=1) + x[:, 0] * x[:, 1]),
        "gradient",
        _HIDDEN,
    ),
    # Derivatives of a part
    "detach, in part": Case(
        around(lambda inner, x: (inner(x.detach()) * x[:, :5].tanh()).sum(dim=1)),
        "difference",
        _HIDDEN,
        _HIDDEN,
    ),
    "no_grad, in part": Case(around(_partly_inside_no_grad), "difference", _HIDDEN, _HIDDEN),
    "looks up a category": Case(around(_category), "difference", _HIDDEN, _HIDDEN),
    # No derivatives
    "embedding": _nowhere(lambda: fixed(Tokens(nn.Embedding(30, 3))), _WHOLE, whole=True),
    "detach": _nowhere(around(lambda inner, x: inner(x.detach()).tanh())),
    "no_grad": _nowhere(around(_inside_no_grad)),
    "inference_mode": _nowhere(around(torch.inference_mode()(lambda inner, x: inner(x).tanh()))),
    "step": _nowhere(around(lambda inner, x: (inner(x) > 0).double())),
    "argmax": _nowhere(around(lambda inner, x: inner(x).argmax(dim=1)), _NOWHERE + "|int64"),
    "numpy": _nowhere(
        around(lambda inner, x: torch.as_tensor(np.tanh(x.numpy()).prod(axis=1))), "numpy"
    ),
    "plain numbers only": _nowhere(around(_only_with_plain_numbers), "TypeError: no gradients"),
    "overwrites": _nowhere(around(_overwriting), "inplace operation"),
    "made in inference mode": _nowhere(_made_in_inference_mode, "inference_mode.*'difference'"),
    "quantised": _nowhere(_quantised, dtype=torch.float32),
    "round": Case(
        around(lambda inner, x: torch.round(2 * inner(x))),
        "difference",
        _ONCE,
        "~first derivatives vanish.*'difference'",
    ),
}

Picked = namedtuple("Picked", ["logits", "states"])


class ModelOutput(OrderedDict):
    """Items that are attributes, too, as in transformers."""

    @property
    def logits(self):
        return self["logits"]


NOT_TENSORS = {
    "tuple": (lambda y: (y, y), r"returned tuple.*output\[0\], output\[1\]"),
    "list": (lambda y: [y], r"returned list.*output\[0\]"),
    "dict": (lambda y: {"logits": y, "loss": 1}, r"returned dict.*output\['logits'\], output\["),
    "named tuple": (lambda y: Picked(y, y), r"returned Picked.*output\.logits, output\.states"),
    "ModelOutput": (lambda y: ModelOutput(logits=y), r"returned ModelOutput.*output\.logits"),
    "nothing": (lambda y: None, "returned NoneType.*returns a tensor"),
}
"""What networks return besides tensors, and words of the error."""
