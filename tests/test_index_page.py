"""What an index shows of the package: its links, and the README with links that lead somewhere."""

import re
from pathlib import Path

import hatch_build

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "https://repository.invalid/ours"


def targets(text):
    return re.findall(r'\]\(([^)]+)|src(?:set)?="([^"]+)"', text)


def test_with_an_address_every_link_and_picture_is_absolute():
    before = targets(README)
    after = targets(hatch_build.with_absolute_links(README, ADDRESS, "v1"))
    assert len(after) == len(before) > 20
    for (link, picture), (new_link, new_picture) in zip(before, after, strict=True):
        if "://" in link:
            assert new_link == link
        elif link:
            assert new_link == f"{ADDRESS}/blob/v1/{link}"
        else:
            assert new_picture == f"{ADDRESS}/raw/v1/{picture}"


def test_without_an_address_nothing_is_invented():
    assert hatch_build.with_absolute_links(README, "", "v1") == README
    assert hatch_build.links_of("") == {}


def test_the_links_of_the_package_begin_with_the_address():
    links = hatch_build.links_of(ADDRESS)
    assert {"Repository", "Changelog", "Issues"} <= set(links)
    assert all(link.startswith(ADDRESS) for link in links.values())
