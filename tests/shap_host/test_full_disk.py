"""Memories and streams on a disk that is full at some moment, and freed again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import full_disk

ROOT = Path(__file__).parents[2]
ALONE = ["unshare", "--mount", "--map-root-user"]


def can_mount():
    command = [*ALONE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="no file system of its own can be mounted here")
def test_the_same_numbers_and_little_is_paid_for_twice(tmp_path):
    pytest.importorskip("pyarrow")
    command = [*ALONE, sys.executable, "-m", "tests.helpers.full_disk", str(tmp_path)]
    process = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    outcomes = json.loads(process.stdout)
    n_of_chunk = full_disk.CHUNK * (full_disk.BUDGET + 3) + 3
    for case, found in outcomes.items():
        assert found["is_same"], case
        if case.startswith("memory"):
            # Those that could not be written are held until there is room.
            assert found["n_twice"] == found["n_asked_at_last"] == 0, case
            assert found["error"] == "", case
            assert all("disk is full" in text for text in found["warnings"]), case
            assert found["warnings"], case
        else:
            # A repeated stream also explains a few rows again, to recognise the model.
            assert found["n_twice"] - found["n_asked_at_last"] <= n_of_chunk, case
            assert found["error"] == "" or "No space left on device" in found["error"]
    stopped = [found["n_open"] for found in outcomes.values() if "No space" in found["error"]]
    assert len(stopped) > len(full_disk.BYTES_LEFT)
    assert max(stopped) > full_disk.CHUNK  # they stay readable
