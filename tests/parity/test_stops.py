"""Streams and trainings whose processes end go on, to the same results, bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = {
    "stream of shap, .npz": [],
    "stream of shap, .parquet": ["pyarrow"],
    "stream of captum, .csv": ["torch"],
    "training on oddgp, ": ["torch", "safetensors"],
    "training on controlled, ": ["torch", "safetensors"],
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks its processes")
@pytest.mark.parametrize("case", CASES)
def test_a_stop_before_any_step_on_disk(case, tmp_path):
    for package in CASES[case]:
        pytest.importorskip(package)
    places = [ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(place) for place in places if place)
    done = subprocess.run(
        [sys.executable, ROOT / "tests/helpers/stopped_processes.py", tmp_path, *case.split(", ")],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["steps"] > 10
    assert found["same"]
