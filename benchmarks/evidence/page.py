"""The pages of verdicts and of numbers, made from the saved results alone."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pages import table

from .items import Item
from .results import Result, differences, load
from .rule import OTHER, Evidence, Tested, gather, verdict, words

_BUDGET = re.compile(r"(, [NK] = )(\d+)$")

_HEAD = f"""# Evidence: published tables and ours

SHEAR's published lead over antithetic permutation sampling (item `shear-2a`) comes from an
[off-by-one error](errata.md) in the authors' baseline (item `shear-antithetic`).

In `benchmarks`, `python -m evidence run all` computes what is missing of five networks, and
`python -m evidence page` writes this page. `benchmarks/evidence.md` has the sentences, numbers and
controls.

{words()}

*Stable* says without how many of the networks, one left out at a time, the verdict is the same.
"""

_HEAD_OF_NUMBERS = """# The numbers of each item

The verdicts are in [Evidence](../docs/evidence.md). A dash stands where the paper shows a picture
without numbers. Numbers are means over networks, ± their standard errors; a row has those of all
budgets, separated by semicolons. A control *passes* where its answer is as good as ours. Settings,
notes and pictures are of the first network. The files in `evidence_results` have the numbers of the
controls, and the machine, versions and seconds of each run.
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
    """Return all that is known of an item; refuse networks that were not compared alike."""
    if different := differences(results):
        raise SystemExit(
            f"Networks of {item.name} differ in their {' and '.join(different)}, so that it has no "
            f"verdict. Compute them anew by `python -m evidence run {item.name} --again`."
        )
    tested = gather([result.comparisons for result in results])
    return Evidence(item.run is not None, len(results), tested)


def stability(item: Item, results: Sequence[Result]) -> str:
    """Return without how many of the networks, one at a time, the verdict is the same."""
    if not results:
        return "–"
    known = verdict(evidence(item, results))
    others = [evidence(item, [one for one in results if one is not left]) for left in results]
    return f"{sum(verdict(other) == known for other in others)}/{len(results)}"


def _summary(items: Sequence[Item], results: Mapping[str, Sequence[Result]]) -> str:
    """Return the table of verdicts."""
    lines = []
    for item in items:
        of_item = results[item.name]
        known = verdict(evidence(item, of_item))
        lines.append([f"`{item.name}`", item.title, known, stability(item, of_item)])
    return table(["item", "title", "verdict", "stable"], lines) + "\n"


def _section(item: Item, results: Sequence[Result]) -> str:
    known = evidence(item, results)
    lines = [f"## `{item.name}`: {item.title}", "", f"{item.source}. **{verdict(known)}**"]
    if item.run is None:
        lines[-1] += f": {item.reason}"
        return "\n".join(lines) + "\n"
    lines[-1] += f", stable {stability(item, results)}. `python -m evidence run {item.name}`."
    for place, claim in enumerate(item.claims):
        tested = [one for one in known.tested if one.ours.of.claim == place]
        rows: dict[str, list[Tested]] = {}  # the budgets of one quantity, "…, N = 8" and so on
        for one in sorted(tested, key=lambda one: one.answer != OTHER):
            rows.setdefault(_BUDGET.sub(r"\1", one.ours.of.quantity), []).append(one)
        head = ["", "published", "ours", "answer", "control", "networks"]
        cells = table(head, (_line(quantity, of_budgets) for quantity, of_budgets in rows.items()))
        lines += ["", f"“{claim.quote}” ({claim.place}). Control: {claim.control}.", "", cells]
    if not results:
        return "\n".join(lines) + "\n"
    first = results[0]
    lines += ["", "; ".join(f"{name}: {text}" for name, text in first.settings.items()) + "."]
    lines += ["", *first.notes] if first.notes else []
    if first.has_picture:
        lines += ["", f"![{item.title}](evidence_results/{item.name}/{first.seed}.png)"]
    return "\n".join(lines) + "\n"


def _line(quantity: str, of_budgets: Sequence[Tested]) -> list[str]:
    """Return the cells of a row: what it says of each budget, once if all are equal."""
    of_budgets = sorted(of_budgets, key=_budget)
    budgets = ", ".join(str(budget) for one in of_budgets if (budget := _budget(one)))
    columns = zip(*map(_cells, of_budgets), strict=True)
    cells = (of if len(set(of)) > 1 else of[:1] for of in columns)
    return [f"{quantity}{budgets}", *map("; ".join, cells)]


def _cells(one: Tested) -> tuple[str, ...]:
    """Return the published number, ours with its standard error, answer, control and networks."""
    ours, control = one.ours, "passes" if one.is_passed_by_control else "fails"
    return (
        "–" if ours.of.theirs is None else f"{ours.of.theirs:.3g}",
        f"{ours.mean:.3g}" + (f" ± {ours.error:.2g}" if len(ours.numbers) > 1 else ""),
        one.answer,
        control if one.is_controlled else "not run",
        str(len(ours.numbers)),
    )


def _budget(one: Tested) -> int:
    """Return the number at the end of a quantity, 0 if it has none."""
    found = _BUDGET.search(one.ours.of.quantity)
    return int(found[2]) if found else 0
