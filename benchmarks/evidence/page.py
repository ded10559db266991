"""The pages of verdicts and of numbers, made from the saved results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .items import Item
from .results import Result, load
from .rule import OTHER, Evidence, Spread, Tested, gather, verdict, words

_HEAD = f"""# Evidence: published tables and ours

**The most important finding:** SHEAR's published lead over antithetic permutation sampling comes
from an off-by-one error in the authors' baseline: of the N orders, two have no reverse. With this
error SHEAR leads (item `shear-2a`); with every order reversed, antithetic sampling has about two
thirds of SHEAR's error (item `shear-antithetic`). See the [errata](errata.md).

In `benchmarks`, `python -m evidence run all` computes what is missing of five networks, and
`python -m evidence page` writes this page. `benchmarks/evidence.md` has the quoted sentences,
numbers, controls, sources, pictures and machines. Items carry the number of their table or figure.

{words()}

"""

_HEAD_OF_NUMBERS = """# The numbers of each item

The verdicts are in [Evidence](../docs/evidence.md). A dash stands where the paper shows a picture
without numbers. Settings, further tables, notes and pictures are of the first network.
"""


def write_pages(items: Sequence[Item], folder: Path, root: Path) -> None:
    """Write both pages to the folders of the repository."""
    verdicts, numbers = page_texts(items, folder)
    (root / "docs" / "evidence.md").write_text(verdicts, encoding="utf-8")
    (root / "benchmarks" / "evidence.md").write_text(numbers, encoding="utf-8")


def page_texts(items: Sequence[Item], folder: Path) -> tuple[str, str]:
    """Return both pages as Markdown."""
    results = {item.name: load(item.name, folder) for item in items}
    sections = [_section(item, results[item.name]) for item in items]
    return f"{_HEAD}\n{_summary(items, results)}", "\n".join([_HEAD_OF_NUMBERS, *sections])


def evidence(item: Item, results: Sequence[Result]) -> Evidence:
    """Return all that is known of an item."""
    tested = gather([result.comparisons for result in results])
    return Evidence(item.run is not None, len(results), tested)


def _summary(items: Sequence[Item], results: Mapping[str, Sequence[Result]]) -> str:
    """Return the table of verdicts."""
    lines = ["| item | title | networks | verdict |", "|---|---|---|---|"]
    for item in items:
        known = evidence(item, results[item.name])
        lines.append(f"| `{item.name}` | {item.title} | {known.n_networks} | {verdict(known)} |")
    return "\n".join(lines) + "\n"


def _section(item: Item, results: Sequence[Result]) -> str:
    known = evidence(item, results)
    lines = [f"## `{item.name}`: {item.title}", "", f"{item.source}. **{verdict(known)}**"]
    if item.run is None:
        lines[-1] += f": {item.reason}"
        return "\n".join(lines) + "\n"
    lines[-1] += f". Networks: {known.n_networks}. `python -m evidence run {item.name}`."
    for place, claim in enumerate(item.claims):
        tested = [one for one in known.tested if one.ours.of.claim == place]
        lines += ["", f"“{claim.quote}” ({claim.place}). Control: {claim.control}.", ""]
        lines += ["| | published | ours | answer | control |", "|---|---|---|---|---|"]
        lines += [_line(one) for one in sorted(tested, key=lambda one: one.answer != OTHER)]
    if results:
        lines += _of_first(item, results)
    return "\n".join(lines) + "\n"


def _of_first(item: Item, results: Sequence[Result]) -> list[str]:
    first = results[0]
    lines = ["", "; ".join(f"{name}: {text}" for name, text in first.settings.items()) + "."]
    if first.table:
        lines += ["", *_table(first.table)]
    lines += ["", *first.notes] if first.notes else []
    if first.has_picture:
        lines += ["", f"![{item.title}](evidence_results/{item.name}/{first.seed}.png)"]
    seconds = ", ".join(result.origin["seconds"] for result in results)
    commits = ", ".join(dict.fromkeys(result.origin["commit"] for result in results))
    lines += [
        "",
        f"*Processor seconds: {seconds}; {first.origin['date']}, commit {commits}, "
        f"{first.origin['machine']}, {first.origin['versions']}.*",
    ]
    return lines


def _line(one: Tested) -> str:
    theirs = "–" if one.ours.of.theirs is None else f"{one.ours.of.theirs:.3g}"
    passes = "passes" if one.is_passed_by_control else "fails"
    control = f"{_number(one.control)}, {passes}" if one.is_controlled else "not run"
    return f"| {one.ours.of.quantity} | {theirs} | {_number(one.ours)} | {one.answer} | {control} |"


def _number(spread: Spread) -> str:
    """Return the mean, and its standard error where there are several networks."""
    return f"{spread.mean:.3g}" + (f" ± {spread.error:.2g}" if len(spread.numbers) > 1 else "")


def _table(table: Mapping[str, Sequence[str]]) -> list[str]:
    head = table[""]
    lines = ["| | " + " | ".join(head) + " |", "|" + "---|" * (len(head) + 1)]
    rows = {name: cells for name, cells in table.items() if name}
    return lines + [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
