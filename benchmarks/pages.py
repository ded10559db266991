"""What scripts write into the documentation: numbers between marks, and pictures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "docs" / "pictures"
_COLOUR = "#24292f"
"""The colour of text and axes. Dark pages invert its lightness (`docs/_static/pages.css`)."""


def fill(page: str, name: str, text: str) -> None:
    """Write text between the marks of a page, `<!-- NAME -->` and `<!-- end -->`."""
    path = ROOT / page
    before, *_, after = re.split(
        rf"(?<=<!-- {name} -->)(.*?)(?=<!-- end -->)", path.read_text(encoding="utf-8"), flags=re.S
    )
    path.write_text(f"{before}\n\n{text}\n\n{after}", encoding="utf-8")


def save_picture(name: str, draw: Callable[[str], Any]) -> None:
    """Save what a function draws with a colour of text."""
    coloured = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = {
        **dict.fromkeys(coloured, _COLOUR),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 11,
        "svg.hashsalt": name,  # equal results give equal files
    }
    with mpl.rc_context(style):
        figure = draw(_COLOUR)
        figure.savefig(IMAGES / f"{name}.svg", transparent=True, metadata={"Date": None})
        plt.close(figure)


def image(name: str, described: str) -> str:
    """Return what shows a picture of `save_picture` on a page of the documentation."""
    return f"![{described}](images/{name}.svg)"
