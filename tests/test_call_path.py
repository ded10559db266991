"""How many functions an explanation runs through; the script prints which."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[1]

# The most functions, modules and frames above the model. The functions that choose the batch size
# are not counted: which of them run depends on the time that batches take.
BOUNDS = {"shap": (169, 38, 8), "captum": (147, 31, 9)}


@pytest.mark.parametrize("host", BOUNDS)
def test_a_call_runs_through_few_functions(host):
    if host == "captum" and not HAS_TORCH:
        pytest.skip("torch is not installed")
    places = [ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(place) for place in places if place)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    script = ROOT / "benchmarks" / "call_path.py"
    done = subprocess.run(
        [sys.executable, str(script), "--only", host, "--json"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    (call,) = json.loads(done.stdout)
    n_functions, n_modules, depth = BOUNDS[host]
    listed = "\n".join(call["functions"])
    assert n_functions // 2 < call["n_functions"] <= n_functions, listed
    assert call["n_modules"] <= n_modules, listed
    assert 2 < call["depth"] <= depth
