"""Draw the decision picture of "Choosing an estimator" as SVG.

python docs/pictures/decision.py
"""

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"

# A question, the answer where it is "yes", and what this answer gives.
STEPS = [
    (["Trees, or a linear model?"], "best", "exact, as by shap"),
    (["A million rows?"], "simshap, fastshap", "train once, one pass per row"),
    (["Will you average over", "many rows?"], "randomorder", "by global_importance"),
]
LAST = ("best", "the smallest error for its cost")

WIDTH, STEP, TOP = 600, 96, 16
BOX_WIDTH, BOX_HEIGHT, ANSWER_X = 260, 64, 332
ANSWER_WIDTH = WIDTH - ANSWER_X - 8
TEXT, LINE, ANSWER, EDGE = "#24292f", "#8a8f98", "#fff1e6", "#e8590c"


def text(x: float, y: float, content: str, *, size=17, anchor="middle", style="") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{TEXT}" text-anchor="{anchor}"'
        f"{style}>{escape(content)}</text>"
    )


def answer(y: float, name: str, gives: str) -> list[str]:
    centre = ANSWER_X + ANSWER_WIDTH / 2
    return [
        f'<rect x="{ANSWER_X}" y="{y}" width="{ANSWER_WIDTH}" height="{BOX_HEIGHT}" rx="10" '
        f'fill="{ANSWER}" stroke="{EDGE}" stroke-width="2"/>',
        text(centre, y + 28, name, style=' font-weight="bold"'),
        text(centre, y + 50, gives, size=15),
    ]


def arrow(path: str) -> str:
    return (
        f'<path d="{path}" stroke="{LINE}" stroke-width="2" fill="none" marker-end="url(#head)"/>'
    )


def question(y: float, lines: list[str]) -> list[str]:
    first = y + BOX_HEIGHT / 2 + 6 - 11 * (len(lines) - 1)
    middle = y + BOX_HEIGHT / 2
    return [
        f'<rect x="8" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="10" fill="none" '
        f'stroke="{LINE}" stroke-width="2"/>',
        *(text(8 + BOX_WIDTH / 2, first + 22 * i, line) for i, line in enumerate(lines)),
        arrow(f"M{8 + BOX_WIDTH} {middle} H{ANSWER_X - 8}"),
        text((8 + BOX_WIDTH + ANSWER_X - 8) / 2, middle - 8, "yes", size=15),
        arrow(f"M{8 + BOX_WIDTH / 2} {y + BOX_HEIGHT} v{STEP - BOX_HEIGHT - 7}"),
        text(18 + BOX_WIDTH / 2, y + BOX_HEIGHT + 20, "no", size=15, anchor="start"),
    ]


def picture() -> str:
    height = TOP + STEP * len(STEPS) + BOX_HEIGHT + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/>'
        "</marker></defs>",
    ]
    for i, (lines, name, gives) in enumerate(STEPS):
        parts += question(TOP + STEP * i, lines)
        parts += answer(TOP + STEP * i, name, gives)
    y = TOP + STEP * len(STEPS)
    last = answer(y, *LAST)
    shift = (ANSWER_X - 8) + (ANSWER_WIDTH - BOX_WIDTH) / 2
    parts += [f'<g transform="translate({-shift} 0)">', *last, "</g>", "</svg>"]
    return "\n".join(parts) + "\n"


def main() -> None:
    (IMAGES / "decision.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
