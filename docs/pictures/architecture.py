"""Draw the picture of the page "Architecture" as SVG, in a light and a dark form.

python docs/pictures/architecture.py
"""

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"

# Columns from the user to the model: title, folder, and what is done there, from top to bottom.
COLUMNS = [
    ("You", "", ["explainer(X)", "attribute(x)"]),
    ("Host", "shap_ext, captum_ext", ["rows, masker → game", "estimate → Explanation"]),
    ("Pipeline", "shapley_adapters/pipeline", ["budget, design", "rounds of evaluations", "solve"]),
    ("Game", "games, in host and core", ["coalitions → masked rows", "batches"]),
    ("Model", "", ["f(rows)"]),
]
ESTIMATOR = ("Estimator", "shapley_adapters/estimators", "which coalitions; values → attributions")

WIDTH, GAP, TOP, HEIGHT = 190, 46, 20, 128
THEMES = {
    "light": {"text": "#24292f", "line": "#8a8f98", "fill": "#fff1e6", "edge": "#e8590c"},
    "dark": {"text": "#e6e9ee", "line": "#8a8f98", "fill": "#3a2417", "edge": "#ff922b"},
}


def text(x: float, y: float, content: str, colour: str, size: int = 14, style: str = "") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="middle"{style}>'
        f"{escape(content)}</text>"
    )


def box(x: float, y: float, height: float, theme: dict[str, str], filled: bool) -> str:
    fill, edge = (theme["fill"], theme["edge"]) if filled else ("none", theme["line"])
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" rx="10" fill="{fill}" '
        f'stroke="{edge}" stroke-width="2"/>'
    )


def arrow(x1: float, y1: float, x2: float, y2: float, theme: dict[str, str]) -> str:
    return (
        f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{theme["line"]}" stroke-width="2" fill="none" '
        'marker-end="url(#head)"/>'
    )


def picture(theme: dict[str, str]) -> str:
    bold = ' font-weight="bold"'
    parts, middle = [], TOP + HEIGHT / 2
    for index, (title, folder, lines) in enumerate(COLUMNS):
        x = 8 + index * (WIDTH + GAP)
        centre = x + WIDTH / 2
        parts.append(box(x, TOP, HEIGHT, theme, title in ("Host", "Pipeline", "Game")))
        parts.append(text(centre, TOP + 24, title, theme["text"], 17, bold))
        if folder:
            parts.append(text(centre, TOP + 43, folder, theme["line"], 12))
        parts += [
            text(centre, TOP + 68 + 20 * place, line, theme["text"], 13)
            for place, line in enumerate(lines)
        ]
        if index:
            parts.append(arrow(x - GAP + 4, middle - 8, x - 6, middle - 8, theme))
            parts.append(arrow(x - 4, middle + 8, x - GAP + 6, middle + 8, theme))
    x = 8 + 2 * (WIDTH + GAP)
    y = TOP + HEIGHT + 44
    title, folder, line = ESTIMATOR
    parts.append(
        f'<rect x="{x - 50}" y="{y}" width="{WIDTH + 100}" height="76" rx="10" '
        f'fill="{theme["fill"]}" stroke="{theme["edge"]}" stroke-width="2"/>'
    )
    centre = x + WIDTH / 2
    parts.append(text(centre, y + 24, title, theme["text"], 17, bold))
    parts.append(text(centre, y + 43, folder, theme["line"], 12))
    parts.append(text(centre, y + 64, line, theme["text"], 13))
    parts.append(arrow(centre - 8, TOP + HEIGHT + 4, centre - 8, y - 6, theme))
    parts.append(arrow(centre + 8, y - 4, centre + 8, TOP + HEIGHT + 6, theme))
    width, height = 16 + len(COLUMNS) * WIDTH + (len(COLUMNS) - 1) * GAP, y + 84
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0 L10 5 L0 10 z" fill="{theme["line"]}"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif">{head}{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Write both forms."""
    for name, theme in THEMES.items():
        path = IMAGES / f"architecture_{name}.svg"
        path.write_text(picture(theme), encoding="utf-8")


if __name__ == "__main__":
    main()
