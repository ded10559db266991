"""What depends on the address of the repository: the links of the package, and those of its README.

The address stands in one place, `[tool.hatch.metadata.hooks.custom]` of pyproject.toml. While it is
empty, the package has no links, and those of the README stay relative.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r'((?:src|srcset)=")(?!https?:)')
LINK = re.compile(r"(\]\()(?!https?:|#)")


class AddressHook(MetadataHookInterface):
    """Fill in the fields `urls` and `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add both fields to `metadata`, which has the version."""
        address = self.config["repository"].rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, address, f"v{metadata['version']}"),
        }
        metadata["urls"] = links_of(address)


def links_of(address: str) -> dict[str, str]:
    """Return the links that an index page shows, none without an address."""
    if not address:
        return {}
    return {
        "Repository": address,
        "Documentation": f"{address}/blob/main/docs/index.md",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def with_absolute_links(text: str, address: str, tag: str) -> str:
    """Return `text` with links and pictures that lead to the repository at `tag`."""
    if not address:
        return text
    text = PICTURE.sub(rf"\1{address}/raw/{tag}/", text)
    return LINK.sub(rf"\1{address}/blob/{tag}/", text)
