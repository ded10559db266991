"""The memory of GPUs that a batch may use. Needs torch, so import it only if there are tensors."""

from __future__ import annotations

import torch

from ..memory_bounds import MAX_INPUT_BYTES

_INPUT_SHARE = 32
"""The inputs of a batch take at most one part in so many of the free memory, because the layers of
a network need a multiple of its inputs. Batches that do not fit all the same are halved."""


def max_input_bytes(device: torch.device) -> int:
    """Return the bytes that the inputs of one batch may take on a device."""
    free = _free_bytes(device)
    return MAX_INPUT_BYTES if free is None else max(1, free // _INPUT_SHARE)


def _free_bytes(device: torch.device) -> int | None:
    """Return the free memory of a GPU, with what torch keeps for new tensors; else None."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + kept)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return None
