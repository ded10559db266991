"""Futures: forward functions that return them, and calls that run in the background."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.futures import Future

from shapley_adapters.errors import FutureError

CALLS_IN_FLIGHT = 8
"""How many calls of the forward function `attribute_future` starts before it waits for the first.

Enough to hide the delay of a remote model. The masked inputs of all calls are in memory.
"""


def waited(output: object) -> Any:
    """Return the result of an output that is a Future; return other outputs unchanged.

    Raises
    ------
    FutureError
        If the Future ended with an error.
    """
    if not isinstance(output, Future):
        return output
    try:
        return output.wait()
    except Exception as error:
        raise FutureError(
            "The Future that forward_func returned ended with an error: "
            f"{type(error).__name__}: {error}"
        ) from error


def in_background(function: Callable[[], Any], inputs: Sequence[Tensor]) -> Future[Any]:
    """Call `function` in a thread and return a Future of its result at once.

    Context variables and autocast are those of the caller, so that the forward function computes
    the same as in the caller's thread.

    Parameters
    ----------
    function : callable
        The function to call.
    inputs : sequence of tensors
        The result is on their devices.
    """
    devices = {tensor.device for tensor in inputs if tensor.device.type != "cpu"}
    future: Future[Any] = Future(devices=sorted(devices, key=str))
    context = contextvars.copy_context()
    kind = inputs[0].device.type
    autocast = torch.autocast(
        kind, dtype=torch.get_autocast_dtype(kind), enabled=torch.is_autocast_enabled(kind)
    )

    def run() -> None:
        try:
            with autocast:
                result = function()
        except Exception as error:
            future.set_exception(error)
        except BaseException as error:  # such as SystemExit, which a Future does not take
            future.set_exception(FutureError(f"The call was ended by {type(error).__name__}."))
        else:
            future.set_result(result)

    # A daemon, so that a Future that never completes does not keep the program alive.
    threading.Thread(target=context.run, args=(run,), daemon=True).start()
    return future
