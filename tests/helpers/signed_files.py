"""Files of trained networks, taken apart and put together again with the right digest."""

import json
import struct
from itertools import chain


def parts_of(data):
    """Return the header of a file, ours within it, and the bytes of the tensors."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    return header, json.loads(header["__metadata__"]["shapley_ext"]), data[8 + size :]


def signed(header, about, tensors):
    """Return the file of these parts, with the right digest; `about` is an object or a text."""
    import safetensors.torch

    from shapley_adapters.amortized.storage import digest

    text = about if isinstance(about, str) else json.dumps(about)

    def whole(**metadata):
        raw = json.dumps({**header, "__metadata__": {"shapley_ext": text, **metadata}}).encode()
        raw += b" " * (-len(raw) % 8)
        return struct.pack("<Q", len(raw)) + raw + tensors

    content = sorted(safetensors.torch.load(whole()).items())
    return whole(digest=digest(text, *chain(*content)))
