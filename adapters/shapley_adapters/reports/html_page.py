"""One HTML page without scripts and without links: text, tables and pictures inside the file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8884; --quiet: #888; --accent: #e8590c; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { line-height: 1.2; margin: .5rem 0; } h2 { border-top: 2px solid var(--accent); padding-top: .6rem; margin-top: 2.2rem; }
h3 { margin-bottom: .3rem; } .how { font-size: 1.05rem; } .quiet, figcaption { color: var(--quiet); font-size: .9rem; }
nav a { display: inline-block; margin: 0 1rem .3rem 0; }
figure, .wide { margin: 1rem 0; overflow-x: auto; }
img { display: block; max-width: 100%; min-width: 34rem; height: auto; background: #fff; border-radius: 6px; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td { overflow-wrap: normal; min-width: 4rem; max-width: 22rem; }
td:first-child { min-width: 7rem; overflow-wrap: anywhere; }
 .words { line-height: 2; } .words span { padding: .1rem .15rem; border-radius: 3px; color: #000; }
summary { cursor: pointer; }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")  # noqa: E501  a rule of the style in each line


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes
    ----------
    title : str
        Its heading, as plain text.
    how_to_read : str
        One sentence that says how to read it, as plain text.
    parts : sequence of str
        Its contents, as HTML.
    """

    title: str
    how_to_read: str
    parts: Sequence[str]


def html_page(title: str, summary: str, sections: Sequence[Section]) -> str:
    """Return the page: its title, a summary in plain text, links to the sections, the sections."""
    links = "".join(
        f'<a href="#s{index}">{escape(section.title)}</a>' for index, section in enumerate(sections)
    )
    body = [paragraph(summary), f"<nav>{links}</nav>"]
    body += [_section(index, section) for index, section in enumerate(sections)]
    return _PAGE.substitute(title=escape(title), body="\n".join(body))


def _section(index: int, section: Section) -> str:
    head = f'<h2>{escape(section.title)}</h2>\n<p class="how">{escape(section.how_to_read)}</p>'
    return "\n".join([f'<section id="s{index}">', head, *section.parts, "</section>"])


def heading(text: str) -> str:
    """Return a heading inside a section."""
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str, *, quiet: bool = False) -> str:
    """Return a paragraph of plain text."""
    return f'<p class="quiet">{escape(text)}</p>' if quiet else f"<p>{escape(text)}</p>"


def picture(png: bytes, description: str) -> str:
    """Return a picture that is stored in the page."""
    data = base64.b64encode(png).decode("ascii")
    return f'<figure><img alt="{escape(description)}" src="data:image/png;base64,{data}"></figure>'


def bullets(texts: Iterable[str]) -> str:
    """Return a list of plain texts."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def table(header: Sequence[str], rows: Sequence[Sequence[str | float]], n_open: int = 25) -> str:
    """Return a table; numbers have four significant digits.

    The rows after the first `n_open` are in a part that the reader opens.
    """
    numeric = [any(isinstance(row[column], float) for row in rows) for column in range(len(header))]
    shown = _table(header, rows[:n_open], numeric)
    if len(rows) <= n_open:
        return shown
    rest = _table(header, rows[n_open:], numeric)
    return f"{shown}<details><summary>{len(rows) - n_open} more rows</summary>{rest}</details>"


def _table(
    header: Sequence[str], rows: Sequence[Sequence[str | float]], numeric: Sequence[bool]
) -> str:
    head = "".join(map(_header_cell, header, numeric))
    lines = ["<tr>" + "".join(map(_cell, row, numeric)) + "</tr>" for row in rows]
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n'
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def _header_cell(text: str, is_number: bool) -> str:
    return f'<th class="number">{escape(text)}</th>' if is_number else f"<th>{escape(text)}</th>"


def _cell(value: str | float, is_number: bool) -> str:
    text = value if isinstance(value, str) else f"{value:.4g}"
    return f'<td class="number">{escape(text)}</td>' if is_number else f"<td>{escape(text)}</td>"


def coloured_words(words: Sequence[tuple[str, float, str]], limit: float) -> str:
    """Return words on a ground that is red for positive and blue for negative numbers.

    Parameters
    ----------
    words : sequence of (word, number, note)
        The note appears when the pointer rests on the word.
    limit : float
        The size of a number that has the full colour.
    """
    spans = []
    for word, number, note in words:
        red, green, blue = (255, 0, 81) if number > 0 else (0, 139, 251)  # those of shap
        share = min(1.0, abs(number) / limit) if limit > 0 else 0.0
        style = f"background:rgba({red},{green},{blue},{0.6 * share:.2f})"
        spans.append(f'<span style="{style}" title="{escape(note)}">{escape(word)}</span>')
    return f'<p class="words">{" ".join(spans)}</p>'
