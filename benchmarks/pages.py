"""What scripts write into the documentation: numbers between marks, pictures for both themes."""

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
_THEMES = {"light": "#24292f", "dark": "#d6dae0"}
"""The colour of text and axes."""


def fill(page: str, name: str, text: str) -> None:
    """Write text between the marks of a page, `<!-- NAME -->` and `<!-- end -->`."""
    path = ROOT / page
    before, *_, after = re.split(
        rf"(?<=<!-- {name} -->)(.*?)(?=<!-- end -->)", path.read_text(encoding="utf-8"), flags=re.S
    )
    path.write_text(f"{before}\n\n{text}\n\n{after}", encoding="utf-8")


def draw_themes(name: str, draw: Callable[[str], Any]) -> None:
    """Save what a function draws with a colour of text, for light and for dark pages."""
    for theme, colour in _THEMES.items():
        coloured = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        style: dict[Any, Any] = {
            **dict.fromkeys(coloured, colour),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 11,
            "svg.hashsalt": name,  # equal results give equal files
        }
        with mpl.rc_context(style):
            figure = draw(colour)
            path = IMAGES / f"{name}_{theme}.svg"
            figure.savefig(path, transparent=True, metadata={"Date": None})
            plt.close(figure)


def image(name: str, described: str) -> str:
    """Return what shows a picture of `draw_themes` on a page of the documentation."""
    return "\n\n".join(
        f"```{{image}} images/{name}_{theme}.svg\n:class: only-{theme}\n:alt: {described}\n```"
        for theme in _THEMES
    )
