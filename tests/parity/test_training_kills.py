"""Trainings whose processes are killed or interrupted go on, to the same weights, bit for bit.

`SHAPLEY_EXT_KILLS=300 python -m pytest tests/parity/test_training_kills.py` stops more often, and
`SHAPLEY_EXT_KILL_SEED` chooses other moments.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("SHAPLEY_EXT_KILLS", "12"))
SEED = int(os.environ.get("SHAPLEY_EXT_KILL_SEED", "0"))
CASES = ("shap-oddgp", "shap-simsemivalue", "captum-controlled")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks its processes"),
]


def test_trainings_go_on_after_kills_and_interrupts(tmp_path):
    wanted = -(-KILLS // len(CASES))
    places = [ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(str(place) for place in places if place)
    script = ROOT / "tests/helpers/killed_trainings.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path, str(wanted), str(SEED), *CASES],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for case, found in json.loads(done.stdout).items():
        print(case, found)
        assert found["killed"] + found["interrupted"] >= wanted
        assert found["finished"] > 0
        assert found["resumed"] > 0
        assert found["same"]
