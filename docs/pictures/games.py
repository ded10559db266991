"""Draw the pictures of "Games of your own" from the blocks of the page.

python docs/pictures/games.py
"""

import sys
import types
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS))
from run_pages import read_blocks  # noqa: E402

PICTURES = {
    "passages": "has_answer",
    "deletion": "Lasso(",
    "rows": "max_display",
    "agent": "agent",
    "neurons": "neurons",
}
names = vars(types.ModuleType("page"))
for block in read_blocks(DOCS / "games_of_your_own.md"):
    exec(block.code, names)
    if plt.get_fignums():
        (name,) = [name for name, word in PICTURES.items() if word in block.code]
        plt.gcf().set_size_inches(4.5 if name == "passages" else 6.4, plt.gcf().get_figheight())
        plt.savefig(DOCS / "images" / f"games_{name}.png", dpi=100, bbox_inches="tight")
        plt.close("all")
