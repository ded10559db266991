"""What averages gain from independent draws: mean |φ| over rows, and NoiseTunnel over samples.

    python benchmarks/independent_rows.py [--seeds 20]

Prints, for each method, the mean over seeds of the relative error Σ_i |estimate_i − exact_i| /
Σ_i |exact_i|, with draws that all rows share and with independent ones.
Exact values are by enumeration.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from captum.attr import NoiseTunnel

import captum_ext

N_FEATURES, N_ROWS, N_SAMPLES, BUDGET = 12, 100, 16, 58
METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "random order": (captum_ext.RandomOrder, {}),
    "semivalue": (captum_ext.Semivalue, {}),
    "least squares": (captum_ext.LeastSquares, {}),
    "sim-semivalue": (captum_ext.SimSemivalue, {}),
    "SHEAR, random": (captum_ext.Shear, {"cooperators": "random"}),
    "oddgp": (captum_ext.OddGP, {}),
    "oddgp, equal weights": (captum_ext.OddGP, {"weights": "equal"}),
}


def network() -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a network with strong interactions, of fixed weights."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(N_FEATURES, 24, generator=generator, dtype=torch.float64)
    last = torch.randn(24, generator=generator, dtype=torch.float64)
    return lambda x: torch.relu(x @ first - 1.0) @ last


def mean_of_rows(attribute: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Return the mean |φ| over rows around one point, as in a bar plot of importances."""
    generator = torch.Generator().manual_seed(1)
    rows = 1.0 + torch.randn(N_ROWS, N_FEATURES, generator=generator, dtype=torch.float64)
    return attribute(rows).abs().mean(dim=0)


def mean_of_samples(attribution: Any, **options: Any) -> torch.Tensor:
    """Return what NoiseTunnel makes of one row with noise."""
    torch.manual_seed(2)
    row = torch.ones(1, N_FEATURES, dtype=torch.float64)
    tunnel = NoiseTunnel(attribution)
    found: torch.Tensor = tunnel.attribute(
        row, nt_type="smoothgrad", nt_samples=N_SAMPLES, stdevs=0.3, **options
    )
    return found[0]


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the relative error."""
    return float((found - exact).abs().sum() / exact.abs().sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    model = network()
    exact = captum_ext.Exact(model)
    of_rows, of_samples = mean_of_rows(exact.attribute), mean_of_samples(exact, n_samples=4096)
    print(f"{'':22}{'mean |φ| of 100 rows':>26}{'NoiseTunnel, 16':>20}")
    print(f"{'':22}{'shared':>17}{'own':>9}{'shared':>11}{'own':>9}")
    for name, (method, options) in METHODS.items():
        errors = np.zeros((2, 2))
        for seed in range(n_seeds):
            for place, independent in enumerate((False, True)):
                made = method(model, seed=seed, independent_rows=independent, **options)
                found = mean_of_rows(lambda x, made=made: made.attribute(x, n_samples=BUDGET))
                errors[0, place] += error(found, of_rows)
                found = mean_of_samples(made, n_samples=BUDGET)
                errors[1, place] += error(found, of_samples)
        (a, b), (c, d) = errors / n_seeds
        print(f"{name:22}{a:17.3f}{b:9.3f}{c:11.3f}{d:9.3f}")


if __name__ == "__main__":
    main()
