"""How the time of the tests is distributed: seconds per folder, file or function, from junit files.

    python -m pytest -n 2 --junit-xml=suite.xml
    python benchmarks/suite_seconds.py suite.xml                   # per file
    python benchmarks/suite_seconds.py suite.xml --by function --most 60
    python benchmarks/suite_seconds.py suite.xml --by test --only test_workers

The seconds of a test include its fixtures. With n workers, the wall time times n minus their sum is
the time for collection, imports and idle workers at the end.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


class Timing(NamedTuple):
    """One test of the report: the module and class it is in, its name and its seconds."""

    module: str
    name: str
    seconds: float

    def group(self, by: str) -> str:
        """Return the folder, file, function or test that this timing is summed under."""
        names = {
            "folder": self.module.rpartition(".")[0],
            "file": self.module,
            "function": f"{self.module}::{self.name.partition('[')[0]}",
            "test": f"{self.module}::{self.name}",
        }
        return names[by]


def timings(path: Path) -> Iterator[Timing]:
    """Yield the timing of each test in a junit file."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        yield Timing(case.get("classname", ""), case.get("name", ""), float(case.get("time", 0)))


def main() -> None:
    """Print the sums, largest first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--by", choices=["folder", "file", "function", "test"], default="file")
    parser.add_argument("--most", type=int, default=40, help="the number of lines")
    parser.add_argument("--only", default="", help="count tests with this text in their names")
    options = parser.parse_args()
    matching = [
        timing
        for path in options.reports
        for timing in timings(path)
        if options.only in timing.group("test")
    ]
    groups: dict[str, list[float]] = {}
    for timing in matching:
        groups.setdefault(timing.group(options.by), []).append(timing.seconds)
    print(f"{sum(timing.seconds for timing in matching):8.1f} s  {len(matching):6d} tests in all")
    for name, seconds in sorted(groups.items(), key=lambda group: -sum(group[1]))[: options.most]:
        print(f"{sum(seconds):8.1f} s  {len(seconds):6d} tests  {name}")


if __name__ == "__main__":
    main()
