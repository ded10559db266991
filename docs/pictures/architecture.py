"""Draw the picture of the page "Architecture" as SVG.

python docs/pictures/architecture.py
"""

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"

# From the user to the model: title, folder, and what is done there.
STEPS = [
    ("You", "", ["explainer(X)", "attribute(x)"]),
    ("Host", "shap_ext, captum_ext", ["rows, masker → game", "estimate → Explanation"]),
    ("Pipeline", "shapley_adapters/pipeline", ["budget, design", "evaluate, solve"]),
    ("Game", "games, in host and core", ["coalitions → masked rows", "batches"]),
    ("Model", "", ["f(rows)"]),
]
ESTIMATOR = ("Estimator", "…/estimators", ["coalitions", "values → attributions"])
OURS = ("Host", "Pipeline", "Game", "Estimator")

WIDTH, HEIGHT, GAP, BESIDE = 220, 92, 36, 274
TEXT, LINE, FILL, EDGE = "#24292f", "#6e7781", "#fff1e6", "#e8590c"


def text(x: float, y: float, content: str, colour: str = TEXT, size: int = 15, style="") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="middle"{style}>'
        f"{escape(content)}</text>"
    )


def box(x: float, y: float, width: float, title: str, folder: str, lines: list[str]) -> list[str]:
    fill, edge = (FILL, EDGE) if title in OURS else ("none", LINE)
    centre, first = x + width / 2, y + (64 if folder else 48)
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="10" fill="{fill}" '
        f'stroke="{edge}" stroke-width="2"/>',
        text(centre, y + 23, title, size=17, style=' font-weight="bold"'),
        *(text(centre, first + 18 * i, line) for i, line in enumerate(lines)),
    ]
    return [*parts, text(centre, y + 42, folder, LINE, 14)] if folder else parts


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{LINE}" stroke-width="2" fill="none" '
        'marker-end="url(#head)"/>'
    )


def picture() -> str:
    parts = []
    for i, step in enumerate(STEPS):
        y = 4 + i * (HEIGHT + GAP)
        parts += box(4, y, WIDTH, *step)
        if i:
            parts.append(arrow(WIDTH / 2 - 8, y - GAP + 4, WIDTH / 2 - 8, y - 4))
            parts.append(arrow(WIDTH / 2 + 8, y - 4, WIDTH / 2 + 8, y - GAP + 4))
        if step[0] == "Pipeline":
            middle = y + HEIGHT / 2
            parts += box(BESIDE, y, WIDTH - 40, *ESTIMATOR)
            parts.append(arrow(WIDTH + 8, middle - 8, BESIDE - 4, middle - 8))
            parts.append(arrow(BESIDE - 4, middle + 8, WIDTH + 8, middle + 8))
    width, height = BESIDE + WIDTH - 36, len(STEPS) * (HEIGHT + GAP) - GAP + 8
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0 L10 5 L0 10 z" fill="{LINE}"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif">{head}{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    (IMAGES / "architecture.svg").write_text(picture(), encoding="utf-8")
