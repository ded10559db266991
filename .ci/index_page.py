"""Render the README of a wheel as an index does: `python index_page.py WHEEL PAGE.html`.

Fails if a picture has no alt text or cannot be shown: it stands at an address, or, while the
repository has none, in this copy of the repository.
"""

import sys
from email import message_from_bytes
from html.parser import HTMLParser
from pathlib import Path
from zipfile import ZipFile

from readme_renderer import markdown

ROOT = Path(__file__).parents[1]


class Pictures(HTMLParser):
    """The pictures of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Keep the attributes of a picture."""
        if tag == "img":
            self.found.append(dict(attrs))


def faults(pictures, links):
    """Return a line for each picture that an index page cannot show."""
    for picture in pictures:
        source = picture.get("src") or ""
        if not picture.get("alt"):
            yield f"{source}: no alt text"
        if links and not source.startswith("https://"):
            yield f"{source}: not absolute, although the repository has an address"
        if not source or not (source.startswith("https://") or (ROOT / source).is_file()):
            yield f"{source}: not there"


def main(wheel, page):
    """Write the page, and print what is wrong with it."""
    archive = ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(archive.read(name))
    html = markdown.render(metadata.get_payload(decode=True).decode("utf-8"))
    Path(page).write_text(f'<meta charset="utf-8">\n{html}', encoding="utf-8")
    links = metadata.get_all("Project-URL", [])
    pictures = Pictures(html).found
    lines = list(faults(pictures, links))
    if not pictures:
        lines.append("the README has no pictures")
    print("\n".join(lines) or f"The index page shows {len(pictures)} pictures: {page}")
    print(f"Links: {', '.join(links) or 'none, the repository has no address yet'}")
    sys.exit(bool(lines))


main(*sys.argv[1:])
