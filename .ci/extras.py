"""Print the extras of pyproject.toml, or the packages of one of them: `extras.py dask`."""

import re
import sys
import tomllib
from pathlib import Path

FILE = Path(__file__).parents[1] / "pyproject.toml"
PROJECT = tomllib.loads(FILE.read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def packages_of(extra):
    """Yield the names of an extra's packages, and of those of the extras that it names."""
    for requirement in EXTRAS[extra]:
        name, extras = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", requirement).groups()
        if name != PROJECT["name"]:
            yield name
        else:
            for other in extras.split(","):
                yield from packages_of(other)


print(*(packages_of(sys.argv[1]) if sys.argv[1:] else EXTRAS), sep="\n")
