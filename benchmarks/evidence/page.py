"""The pages of verdicts and of numbers, made from the saved results alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .items import DIFFERENCE, FACTOR, IMPOSSIBLE, Comparison, Item
from .results import Result, load, path

_HEAD = f"""# Evidence: published tables and ours

**The most important finding:** SHEAR's published lead over antithetic permutation sampling comes
from an off-by-one error in the authors' baseline: of the N orders, two have no reverse. With this
error we find the same lead. With every order reversed, antithetic sampling has about two thirds of
SHEAR's error. See item `shear-2a`, and the [errata](errata.md).

This page is written by `python -m evidence page` (from the folder `benchmarks`) from the saved
results of `python -m evidence run all`. The numbers, picture, settings and machine of each item
are in `benchmarks/evidence.md`. Each verdict follows from the numbers by one rule:

- **reproduced**: every published number agrees with ours, ratios within a factor of {FACTOR},
  scores within {DIFFERENCE};
- **reproduced in direction**: more than half of our numbers are on the same side as the paper's
  (for example, both ratios are below 1) by more than two standard errors, and none is on the other
  side by more than that;
- **not reproduced**: all other items that were computed;
- **cannot be reproduced**: the data, the model or the people of the experiment are not available.

"""

_HEAD_OF_NUMBERS = """# The numbers of each item

The verdicts are in [Evidence](../docs/evidence.md). A dash stands where the paper shows a picture
without numbers.
"""

_SIDES = {"same": "in direction", "other": "no", "none": "no difference beyond noise"}


def write_pages(items: Sequence[Item], folder: Path, root: Path) -> None:
    """Write both pages to the folders of the repository."""
    verdicts, numbers = page_texts(items, folder)
    (root / "docs" / "evidence.md").write_text(verdicts, encoding="utf-8")
    (root / "benchmarks" / "evidence.md").write_text(numbers, encoding="utf-8")


def page_texts(items: Sequence[Item], folder: Path) -> tuple[str, str]:
    """Return both pages as Markdown. Items without a result are named as not run."""
    results = {
        item.name: load(item.name, folder) for item in items if path(item.name, folder).is_file()
    }
    sections = [_section(item, results.get(item.name)) for item in items]
    return f"{_HEAD}\n{_summary(items, results)}", "\n".join([_HEAD_OF_NUMBERS, *sections])


def _summary(items: Sequence[Item], results: dict[str, Result]) -> str:
    lines = ["| item | title | source | verdict |", "|---|---|---|---|"]
    for item in items:
        lines.append(
            f"| `{item.name}` | {item.title} | {item.source} | {_verdict(item, results)} |"
        )
    return "\n".join(lines) + "\n"


def _verdict(item: Item, results: dict[str, Result]) -> str:
    if item.run is None:
        return IMPOSSIBLE
    return results[item.name].verdict if item.name in results else "not run yet"


def _section(item: Item, result: Result | None) -> str:
    lines = [f"## `{item.name}`: {item.title}", "", f"{item.source}."]
    if item.run is None:
        lines += ["", f"**{IMPOSSIBLE}**: {item.reason}"]
    elif result is None:
        lines += ["", f"Not run yet: `python -m evidence run {item.name}`."]
    else:
        lines += _of_result(item, result)
    return "\n".join(lines) + "\n"


def _of_result(item: Item, result: Result) -> list[str]:
    settings = "; ".join(f"{name}: {text}" for name, text in result.settings.items())
    lines = [
        "",
        f"`python -m evidence run {item.name}` — **{result.verdict}**",
        "",
        settings + ".",
        "",
    ]
    lines += ["| | published | ours | agrees |", "|---|---|---|---|"]
    lines += [_line(comparison) for comparison in result.comparisons]
    if result.table:
        lines += ["", *_table(result)]
    lines += ["", *result.notes] if result.notes else []
    if result.has_picture:
        lines += ["", f"![{item.title}](evidence_results/{item.name}.png)"]
    origin = result.origin
    lines += [
        "",
        f"*{origin['run']} run, {origin['seconds']} seconds, {origin['date']}, commit "
        f"{origin['commit']}, {origin['machine']}, {origin['versions']}.*",
    ]
    return lines


def _line(comparison: Comparison) -> str:
    theirs = "–" if comparison.theirs is None else f"{comparison.theirs:.3g}"
    how = "yes" if comparison.agrees else _SIDES[comparison.side]
    ours = f"{comparison.ours:.3g}" + (f" ± {comparison.error:.2g}" if comparison.error else "")
    return f"| {comparison.quantity} | {theirs} | {ours} | {how} |"


def _table(result: Result) -> list[str]:
    head = result.table[""]
    lines = ["| | " + " | ".join(head) + " |", "|" + "---|" * (len(head) + 1)]
    rows = {name: cells for name, cells in result.table.items() if name}
    return lines + [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
