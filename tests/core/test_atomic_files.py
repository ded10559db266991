"""Files that appear whole or not at all."""

import errno
from pathlib import Path

import pytest

from shapley_adapters.atomic_files import replaced


def test_a_file_appears_whole(tmp_path):
    with replaced(tmp_path / "a") as part:
        part.write_bytes(b"new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_leaves_a_trained_network_as_it_was(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from shapley_adapters.amortized.storage import read_file, write_file
    from shapley_adapters.amortized.unlike_rows import ReferenceRows

    write_file(tmp_path / "a", "rows", ReferenceRows(torch.zeros(1000)))
    written = Path.write_bytes

    def full(path, data):
        written(path, data[:200])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / "a", "rows", ReferenceRows(torch.ones(1000)))
    assert (read_file(tmp_path / "a", "rows", ReferenceRows).rows == 0).all()
    assert len(list(tmp_path.iterdir())) == 1
