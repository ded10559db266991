"""What scripts write into the documentation: tables between marks, and pictures.

A page has `<!--MARK-->`, what was measured, and `<!--end-->`. A command names its marks where it
reports, and the options that the pages name: `--docs` is refused with any other numbers.
"""

import argparse
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "docs" / "pictures"
_COLOUR = "#24292f"
"""The colour of text and axes. Dark pages invert its lightness (`docs/_static/pages.css`)."""

_FREE = ("docs", "parts", "kept", "data", "cache")
"""Options that choose tables and name folders: no number of a table depends on them."""


def read_options(doc: str | None, *documented: str, **defaults: Any) -> argparse.Namespace:
    """Return the options of the command line, `--quick` and `--docs` among them.

    Parameters
    ----------
    doc : str
        The docstring of the command.
    documented : str
        Options with which pages were measured; by default none.
    defaults : object
        The values of options by default. A list takes several values, `parts` none but its own.
    """
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    for name, default in {**defaults, "quick": False, "docs": False}.items():
        one = default[0] if isinstance(default, list) else default
        how: dict[str, Any] = {"default": default, "type": str if one is None else type(one)}
        if isinstance(default, list):
            how |= {"nargs": "+", "choices": default if name == "parts" else None}
        how = {"action": "store_true"} if isinstance(default, bool) else how
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    options, lines = parser.parse_args(), documented or ("",)
    of_pages = [_measured(parser.parse_args(shlex.split(line))) for line in lines]
    if options.docs and not getattr(options, "kept", False) and _measured(options) not in of_pages:
        wanted = " or ".join(line or "none" for line in lines)
        parser.error(f"--docs needs the options of the page: {wanted}")
    return options


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    measured = {name: value for name, value in vars(options).items() if name not in _FREE}
    # It matters that there is one, not where it is.
    return {**measured, "shapiq_python": bool(measured.get("shapiq_python"))}


def report(options: argparse.Namespace, mark: str, text: str) -> None:
    """Print a text, and with `--docs` write it between its marks of all pages that have them."""
    print(f"\n{text}", flush=True)
    if options.docs:
        fill(mark, text)


def fill(mark: str, text: str) -> None:
    """Write a text between its marks."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    marked = [page for page in pages if f"<!--{mark}-->" in page.read_text("utf-8")]
    if not marked:
        raise LookupError(f"no page has the mark {mark}")
    for page in marked:
        before, rest = page.read_text("utf-8").split(f"<!--{mark}-->")
        after = rest.partition("<!--end-->")[2]
        whole = f"{before}<!--{mark}-->\n\n{text}\n\n<!--end-->{after}"
        page.write_text(whole, encoding="utf-8")


def table(head: Iterable[object], lines: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    names, *rows = ([f" {cell}".rstrip() for cell in line] for line in (head, *lines))
    texts = [f"|{' |'.join(row)} |" for row in (names, *rows)]
    return "\n".join([texts[0], "|" + "---|" * len(names), *texts[1:]])


def short(value: float, digits: int | None = None) -> str:
    """Return a number without the zero before its point; by default two digits, "" for NaN."""
    if math.isnan(value):
        return ""
    if digits is None:
        digits = min(3, max(0, 1 - math.floor(math.log10(abs(value))))) if value else 0
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:,.{digits}f}")


def bold_least(errors: pd.DataFrame, digits: int | None = None) -> pd.DataFrame:
    """Return numbers as texts, the least of each column in bold."""
    texts = errors.map(lambda one: short(one, digits))
    return texts.mask(errors == errors.min(), "**" + texts + "**")


def budgets(numbers: Iterable[float]) -> list[str]:
    """Return the heads of columns of evaluations a player."""
    first, *others = (f"{number:g}" for number in numbers)
    return [f"N = {first}", *others]


def draw_errors(
    tables: Mapping[str, pd.DataFrame],
    styles: Mapping[str, tuple[str, str]],
    *,
    strongest: str,
    xlabel: str,
    n_columns: int,
    lowest: float,
) -> Figure:
    """Draw errors by budget and method, a panel for each table."""
    n_rows = -(-len(tables) // n_columns)
    size = (max(5.0, 3.2 * n_columns), 2.4 * n_rows + 1.6)
    figure, panels = plt.subplots(
        n_rows, n_columns, figsize=size, sharey=True, layout="constrained", squeeze=False
    )
    for panel, (title, errors) in zip(panels.flat, tables.items(), strict=True):
        for name, (colour, line) in styles.items():
            known, width = errors.get(name, pd.Series()).dropna(), 3 if name == strongest else 1.8
            if len(known):
                panel.plot(known.index, known, line, color=colour, label=name, linewidth=width)
        panel.set(xscale="log", yscale="log", ylim=(lowest, 2))
        panel.set_xticks(errors.index, [f"{each:,g}" for each in errors.index], fontsize=9)
        ticks = [one for one in (0.001, 0.01, 0.1, 1) if one > lowest]
        panel.set_yticks(ticks, [f"{100 * one:g} %" for one in ticks])
        panel.minorticks_off()
        panel.set_title(title, fontsize=11)
        panel.grid(alpha=0.15)
    figure.supxlabel(xlabel, fontsize=11)
    figure.supylabel("error, relative to the attributions", fontsize=11)
    lines = {text: line for one in panels.flat
             for line, text in zip(*one.get_legend_handles_labels(), strict=True)}  # fmt: skip
    figure.legend(lines.values(), lines, ncol=2, frameon=False, loc="outside upper center")
    return figure


def save_picture(name: str, draw: Callable[[], Figure]) -> None:
    """Save what a function draws, in the colour of text."""
    coloured = ("text.", "axes.label", "axes.edge", "xtick.", "ytick.", "grid.")
    style: dict[Any, Any] = {
        **{f"{one}color": _COLOUR for one in coloured},
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 11,
        "svg.hashsalt": name,  # equal results give equal files
    }
    with mpl.rc_context(style):
        figure = draw()
        figure.savefig(IMAGES / f"{name}.svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
