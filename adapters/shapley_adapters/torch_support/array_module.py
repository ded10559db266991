"""Torch modules as models of arrays. Needs torch, so import it only if there is a torch module.

Attribution methods of captum are recognised by their attributes, so that no host is imported.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ..array_types import FloatArray, IntArray
from ..errors import DerivativeError, InvalidArgumentTypeError, ModelOutputError, warn_user
from ..memory_bounds import MAX_INPUT_BYTES
from .tensor_arrays import array_of_tensor

_INPUT_SHARE = 32
"""The inputs of a batch take at most one part in so many of the free memory, because the layers of
a network need a multiple of its inputs. Batches that do not fit all the same are halved."""


_DROP_OUT = (
    torch.nn.modules.dropout._DropoutNd,  # its rate is `p`
    torch.nn.MultiheadAttention,  # its rate, and that of the next, is `dropout`
    torch.nn.RNNBase,
)

_CHANGE = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.RReLU)

_KEEP_STATISTICS = torch.nn.modules.instancenorm._InstanceNorm  # if they track statistics

_ELSEWHERE = {"DropPath": "drop_prob", "StochasticDepth": "p"}
"""Layers of timm and torchvision that are skipped at random, and the attributes of their rates."""

_KNOWN_TO_NUMPY = (torch.float16, torch.float32, torch.float64)


def max_input_bytes(device: torch.device) -> int:
    """Return the bytes that the inputs of one batch may take on a device."""
    free: int | None = None  # memory of a GPU, with what torch keeps for new tensors
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = int(torch.cuda.mem_get_info(device)[0] + kept)
    elif device.type == "mps":
        free = int(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return MAX_INPUT_BYTES if free is None else max(1, free // _INPUT_SHARE)


def warn_in_training_mode(model: Any) -> None:
    """Warn if a layer of `model` is in training mode and behaves differently in it.

    The model may be a module, a method of a module, or a partial function of either.
    """
    names = changing_layers(model)
    if names:
        warn_user(
            f"The model is in training mode, in which {', '.join(names)} can make its "
            "output random, dependent on the batch, or different in each call. Call model.eval() "
            "first. Without repeats=, error bars leave out such noise."
        )


def changing_layers(model: Any) -> list[str]:
    """Return the kinds of layers that are in training mode and behave differently in it."""
    while isinstance(model, functools.partial):
        model = model.func
    module = getattr(model, "__self__", model)
    if not isinstance(module, torch.nn.Module):
        return []
    return sorted({_name(layer) for layer in module.modules() if _changes_in_training(layer)})


def _name(layer: torch.nn.Module) -> str:
    # Layers of a scripted module store only the name of their original class.
    return str(getattr(layer, "original_name", type(layer).__name__))


def _kind(layer: torch.nn.Module) -> type:
    if not isinstance(layer, torch.jit.ScriptModule):
        return type(layer)
    original = getattr(torch.nn, _name(layer), None)
    return original if isinstance(original, type) else object


def _changes_in_training(layer: torch.nn.Module) -> bool:
    kind, name = _kind(layer), _name(layer)
    if not getattr(layer, "training", False):  # frozen script modules have none
        return False
    if issubclass(kind, _DROP_OUT):
        return float(getattr(layer, "p", getattr(layer, "dropout", 0.0))) > 0
    if issubclass(kind, _KEEP_STATISTICS):
        return bool(getattr(layer, "track_running_stats", False))
    if name in _ELSEWHERE:
        return float(getattr(layer, _ELSEWHERE[name], None) or 0.0) > 0
    return issubclass(kind, _CHANGE) or name == "_SpectralNorm"


def wrapping_advice(output: Any) -> str:
    """Return a message on how to wrap a model that returns `output` instead of a tensor."""
    kind = type(output).__name__
    names: Iterable[Any] = getattr(output, "_fields", ()) if isinstance(output, tuple) else ()
    if isinstance(output, Mapping):
        names = output
    # The items of a mapping may also be attributes, as in transformers.
    picks = [
        f"output.{name}" if name in dir(output) else f"output[{name!r}]"
        for name in names
        if isinstance(name, str)
    ]
    if not picks and isinstance(output, (tuple, list)):
        picks = [f"output[{index}]" for index in range(len(output))]
    if inspect.iscoroutine(output):
        output.close()
        return f"it returned {kind}. Wrap the coroutine function: captum_ext.RemoteModel(model)."
    if not picks:
        return f"it returned {kind}. Wrap it in a module or function that returns a tensor."
    choice = ", ".join(picks[:4]) + (", …" if len(picks) > 4 else "")
    return (
        f"it returned {kind}. Wrap it in a module or function that returns the tensor to explain: "
        f"one of {choice}."
    )


class ArrayModule:
    """A torch module that takes and returns arrays, and computes in its precision on its device."""

    has_derivatives: ClassVar[bool] = True
    """Whether a game may differentiate it, if its inputs are between rows and background."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        parameters = [*module.parameters(), *module.buffers()]
        floating = [tensor for tensor in parameters if tensor.is_floating_point()]
        self.dtype = floating[0].dtype if floating else _precision_without_parameters(module)
        embeddings = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        self.takes_whole_numbers = any(
            issubclass(_kind(layer), embeddings) for layer in module.modules()
        )
        self.device = parameters[0].device if parameters else torch.device("cpu")

    @property
    def is_in_training_mode(self) -> bool:
        """Whether layers behave as in training, about which users are warned."""
        return bool(changing_layers(self.module))

    @property
    def rounding(self) -> float:
        """Relative rounding error of the module's output."""
        if self.dtype is None or not self.dtype.is_floating_point:
            return 0.0
        return torch.finfo(self.dtype).eps

    @property
    def max_input_bytes(self) -> int:
        """The bytes that the inputs of one batch may take on the module's device."""
        return max_input_bytes(self.device)

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return `array` as a tensor for the module.

        It has the precision of the module's parameters. Whole numbers are not converted if the
        module has embeddings.
        """
        # torch warns of arrays that cannot be written to, such as memory maps.
        tensor = torch.as_tensor(np.require(array, requirements=["C", "W"]))
        keep = self.takes_whole_numbers and not tensor.is_floating_point()
        # The type first: not all devices have double precision.
        return (tensor if keep or self.dtype is None else tensor.to(self.dtype)).to(self.device)

    def in_precision(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return `array` in the module's precision, if NumPy has this precision."""
        if self.dtype is not None and self.dtype not in _KNOWN_TO_NUMPY:
            return array
        return self.tensor(array).cpu().numpy()

    def __call__(self, *arrays: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the module's output for the arrays."""
        with torch.no_grad():
            output = self.module(*map(self.tensor, arrays))
        if not isinstance(output, torch.Tensor):
            raise ModelOutputError(f"The model must return a tensor; {wrapping_advice(output)}")
        if output.is_complex():
            raise ModelOutputError("The model must return real numbers; it returned complex ones.")
        # Modules that return forces enable gradients themselves.
        numbers = output.detach().resolve_neg().cpu()  # not all devices have double precision
        return numbers.to(torch.float64).numpy()

    def ones(self, n_points: int, n_players: int) -> torch.Tensor:
        """Return the presence of `n_points` full coalitions."""
        dtype = self.dtype or torch.float64
        return torch.ones(n_points, n_players, dtype=dtype, device=self.device)

    def between(
        self,
        background: npt.NDArray[Any],
        inputs: npt.NDArray[Any],
        players: IntArray,
        presence: torch.Tensor,
        shape: tuple[int, ...],
        weights: FloatArray | None = None,
        reduce: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Return outputs at points between the background and the inputs, averaged over the former.

        Parameters
        ----------
        background : array, (B, D)
            The values of absent columns.
        inputs : array, (P, D)
            The values of present columns.
        players : array, (D,)
            The player of each column.
        presence : tensor, (P, M)
            The degree of presence of each player, from 0 to 1.
        shape : tuple of int
            Shape of one input of the module, with D numbers.
        weights : array, (B,), optional
            Weight of each background row, with sum 1; by default they are equal.
        reduce : callable, optional
            What is made of the outputs, (P, B, K), in place of their averages.
        """
        start, end = self.tensor(background), self.tensor(inputs)[:, None]
        column = torch.as_tensor(players, device=self.device).expand(len(presence), -1)
        degree = presence.gather(1, column)[:, None].to(start)  # without parameters, others
        points = interpolated(start, end, degree)  # (P, B, D)
        outputs = self.module(points.reshape(-1, *shape))
        if not isinstance(outputs, torch.Tensor):
            raise ModelOutputError(f"The model must return a tensor; {wrapping_advice(outputs)}")
        if not outputs.is_floating_point():
            raise DerivativeError(f"The model returns {outputs.dtype} numbers.")
        of_background = outputs.reshape(len(inputs), len(background), -1)  # (P, B, K)
        if reduce is not None:
            return reduce(of_background)
        averages: torch.Tensor = of_background.mean(dim=1)
        if weights is not None:
            averages = (of_background * of_background.new_tensor(weights)[:, None]).sum(dim=1)
        return averages


def interpolated(start: torch.Tensor, end: torch.Tensor, degree: torch.Tensor) -> torch.Tensor:
    """Return the points between start and end, at degrees of the latter from 0 to 1.

    They are exact at both ends, which matters to models that compare or round their inputs. Where
    nothing is between, as beside missing or infinite numbers, they are the nearer end, and have an
    infinite slope.
    """
    is_line = torch.isfinite(end - start)
    if is_line.all():
        return torch.lerp(start, end, degree)
    points = torch.lerp(start.where(is_line, 0), end.where(is_line, 0), degree)
    jump = torch.where(is_line, 1, degree - degree.detach()).sqrt()  # 0 where there is no line
    return torch.where(is_line, points, torch.where(degree > 1 / 2, end, start) + jump)


def _precision_without_parameters(module: torch.nn.Module) -> torch.dtype | None:
    """Return the precision of quantised layers, whose weights are not parameters, or None."""
    kinds = (type(layer).__module__ for layer in module.modules())
    return (
        torch.float32 if any(kind.startswith("torch.ao.nn.quantized") for kind in kinds) else None
    )


def attributions_of_rows(
    method: Any, rows: npt.NDArray[Any], arguments: dict[str, Any]
) -> npt.NDArray[Any]:
    """Return the attributions of `method.attribute` for rows, (R, …).

    Parameters
    ----------
    method : Attribution
        An object with `attribute` and, optionally, a module as `forward_func`.
    rows : array, (R, …)
        The rows. They are converted to the precision and the device of the module.
    arguments : dict
        Further arguments of `attribute`.
    """
    inputs = torch.as_tensor(
        np.array(rows, order="C")
    )  # a copy, because models may write into their input
    module = getattr(method, "forward_func", None)
    if isinstance(module, nn.Module):
        parameter = next(iter(module.parameters()), None)
        if parameter is not None:
            dtype = parameter.dtype if inputs.is_floating_point() else inputs.dtype
            inputs = inputs.to(device=parameter.device, dtype=dtype)
    attributions = method.attribute(inputs, **arguments)
    if isinstance(attributions, tuple):
        attributions = attributions[0]
    if not isinstance(attributions, torch.Tensor):
        raise InvalidArgumentTypeError(
            f"{type(method).__name__}.attribute must return a tensor; it returned "
            f"{type(attributions).__name__}."
        )
    array: npt.NDArray[Any] = array_of_tensor(attributions)
    n_outputs = array.ndim - rows.ndim
    if n_outputs > 0:  # captum puts outputs first, shap last
        array = np.moveaxis(array.reshape(len(array), -1, *rows.shape[1:]), 1, -1)
    return array


def module_version(module: Any) -> tuple[int, bytes] | tuple[()]:
    """Return a digest of a module that differs after its parameters or buffers were changed.

    It is computed from their contents, which takes one or two seconds per gigabyte. Torch's own
    counter of changes misses writes through `.data` or shared memory.
    """
    if not isinstance(module, nn.Module):
        return ()
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(_content(tensor.detach()))
    return id(module), digest.digest()


def _content(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor, including types that NumPy does not have."""
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    content: npt.NDArray[np.uint8] = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return content.tobytes()
