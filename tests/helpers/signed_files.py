"""Files of trained networks, taken apart and put together again with the right checksum."""

import hashlib
import json
import struct


def parts_of(data):
    """Return the header of a file, ours within it, and the bytes of the tensors."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    return header, json.loads(header["__metadata__"]["shapley_ext"]), data[8 + size :]


def signed(header, about, tensors):
    """Return the file of these parts, with the right checksum; `about` is an object or a text."""
    text = about if isinstance(about, str) else json.dumps(about)
    whole = {**header, "__metadata__": {"shapley_ext": text, "sha256": "0" * 64}}
    raw = json.dumps(whole, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    data = struct.pack("<Q", len(raw)) + raw + tensors
    made = hashlib.sha256(data).hexdigest()
    return data.replace(b'"sha256":"' + b"0" * 64, f'"sha256":"{made}'.encode(), 1)
