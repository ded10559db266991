"""torch's global generators, from which models draw, with a seed and restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int | None, device: torch.device | None = None) -> Iterator[None]:
    """Let the block draw from a seed on the CPU and on a device; restore their generators after.

    `torch.manual_seed` would seed the generators of all devices, which the block does not use.

    Parameters
    ----------
    seed : int, optional
        Any non-negative seed; those that torch does not accept are mapped to 63 bits. None leaves
        the generators as they are.
    device : torch.device, optional
        Where the block draws, besides the CPU.
    """
    if seed is None:
        yield
        return
    if seed >= 2**63:
        seed = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]) >> 1
    generators = _generators(device)
    states = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def _generators(device: torch.device | None) -> list[torch.Generator]:
    """Return the generators of the CPU and of a device."""
    on_cpu = torch.default_generator
    if device is None or device.type in ("cpu", "meta"):
        return [on_cpu]
    if device.type == "mps":
        return [on_cpu, torch.mps._get_default_mps_generator()]
    module = getattr(torch, device.type)  # such as torch.cuda
    module.init()  # which makes the generators
    index = module.current_device() if device.index is None else device.index
    return [on_cpu, module.default_generators[index]]
