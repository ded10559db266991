"""Streams whose processes are killed go on, to the same results, bit for bit.

`SHAPLEY_EXT_KILLS=1000 python -m pytest tests/parity/test_stream_kills.py` kills more often, and
`SHAPLEY_EXT_KILL_SEED` chooses other moments.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.optional import HAS_TORCH

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("SHAPLEY_EXT_KILLS", "12"))
SEED = int(os.environ.get("SHAPLEY_EXT_KILL_SEED", "0"))
CASES = [("shap", ".npz"), ("shap", ".parquet"), ("captum", ".csv")]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks its processes"),
]
each_case = pytest.mark.parametrize(("host", "ending"), CASES)


def script(folder, host, ending, *kind):
    if host == "captum" and not HAS_TORCH:
        pytest.skip("torch is not installed")
    if ending == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("pyarrow is not installed")
    places = [ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(place) for place in places if place)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/helpers/killed_streams.py"), folder, host, ending]
        + [str(part) for part in kind],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@each_case
def test_kills_at_random_moments(host, ending, tmp_path):
    wanted = -(-KILLS // len(CASES))
    found = script(tmp_path, host, ending, "kills", wanted, SEED)
    assert found["kills"] >= wanted
    assert found["finished"] > 0
    assert found["same"]


@each_case
def test_a_stop_before_any_step_on_disk(host, ending, tmp_path):
    found = script(tmp_path, host, ending, "steps")
    assert found["steps"] > 10
    assert found["same"]


@each_case
def test_of_two_processes_for_one_result_one_is_refused(host, ending, tmp_path):
    found = script(tmp_path, host, ending, "pairs", 5)
    assert found["same"]
    assert found["finished"] >= 5
    assert found["refused"] > 0
