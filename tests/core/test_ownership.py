"""Who holds a file: named in messages, and forgotten when the process is killed."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from shapley_adapters.errors import CheckpointError
from shapley_adapters.ownership import Owner, only_owner

HOLDS = """
import sys, time
from pathlib import Path
from shapley_adapters.ownership import only_owner
with only_owner(Path(sys.argv[1]), "out"):
    print("held", flush=True)
    time.sleep(60)
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")


def started(code, path):
    """A process that holds the file."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_the_owner_is_named_until_it_is_killed(tmp_path):
    path = tmp_path / "values.npy"
    process = started(HOLDS, path)
    try:
        named = rf"process {process.pid} of \S+ on {socket.gethostname()}, since 20\d\d-\d\d-\d\d"
        with pytest.raises(CheckpointError, match=named), only_owner(path, "out"):
            pass
    finally:
        kill(process)
    with only_owner(path, "out"):  # at once, and by its own name
        with pytest.raises(CheckpointError, match=r"\(this one\)"), only_owner(path, "out"):
            pass
        assert path.with_name("values.npy.owner").exists()
    assert list(tmp_path.iterdir()) == []


def test_processes_that_have_ended_are_known():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    current = Owner.current()
    assert current.may_live
    assert current.is_current
    assert not Owner(ended.pid, current.host, "ann", "").may_live
    assert Owner(ended.pid, "another machine", "ann", "").may_live
