"""Check the built pages: links and anchors, alt texts, defaults, and that nothing needs a network.

    python docs/check_pages.py docs/_build/html

Prints one line for each fault, and fails if there is any. Links to other sites are not followed.
"""

import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "link": "href", "img": "src", "source": "srcset", "iframe": "src"}
UNREADABLE = re.compile(r"CPUDispatcher|(?:object|function)\b[^<]* at 0x[0-9a-f]+")
FETCHED_RELATIONS = {"stylesheet", "icon", "preload", "shortcut icon"}


class Page(HTMLParser):
    """The links, the targets of links, and the loaded files of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.without_alt: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs) -> None:
        values = dict(attrs)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        address = values.get(LOADED.get(tag, ""))
        if address and (tag != "link" or values.get("rel") in FETCHED_RELATIONS):
            self.loaded.append(address)
        if tag == "img" and lacks_alt(values.get("src") or "", values.get("alt")):
            self.without_alt.append(values.get("src") or "?")


def lacks_alt(source: str, alt: str | None) -> bool:
    """Return whether an image has no text, or its address, which Sphinx writes in place of none.

    An empty text is right for pictures that only decorate, such as thumbnails beside their titles.
    """
    return alt is None or (alt != "" and source.endswith(alt.rpartition("/")[2]))


def faults(folder: Path) -> list[str]:
    """Return a line for each fault of the pages in `folder`."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    lines = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        lines += [f"{name}: the image {src} has no alt text" for src in page.without_alt]
        lines += [
            f"{name}: {address} is loaded from a network"
            for address in page.loaded
            if urlsplit(address).netloc
        ]
        own = [address for address in page.loaded if not urlsplit(address).scheme]
        lines += [
            f"{name}: {link} leads nowhere"
            for link in dict.fromkeys([*page.links, *own])
            if not leads_somewhere(link, path, pages)
        ]
        text = path.read_text(encoding="utf-8")
        lines += [f"{name}: {words} is no readable default" for words in UNREADABLE.findall(text)]
    for sheet in folder.rglob("*.css"):
        if re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")):
            lines.append(f"{sheet.name}: loads from a network")
    code_colours = folder / "_static" / "pygments.css"
    # The theme writes them at the end of a build, and not at all where the build failed before.
    if code_colours.exists() and "prefers-color-scheme: dark" not in code_colours.read_text(
        "utf-8"
    ):
        lines.append(f"{code_colours.name}: has no colours for dark pages")
    return lines


def leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Return whether the file of a link exists, and its anchor in that file."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return False
    return not parts.fragment or target not in pages or anchor_exists(parts, pages[target])


def anchor_exists(parts, page: Page) -> bool:
    return unquote(parts.fragment) in page.anchors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    lines = faults(parser.parse_args().folder)
    print("\n".join(lines) or "All links, alt texts and loaded files are right.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
