"""The command line: list the items, run them, write the pages."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from data_files import add_folder_arguments

from .catalogue import ITEMS
from .items import Item, Setting
from .page import write_pages
from .results import FOLDER, ROOT, code_of, compute, load

_N_NETWORKS = 5


def main() -> None:
    """Do what the command line says."""
    arguments = _arguments()
    if arguments.command == "list":
        _print_items()
    elif arguments.command == "run":
        _run(arguments)
    else:
        write_pages(ITEMS, arguments.results, ROOT)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("command", choices=("list", "run", "page"))
    parser.add_argument("names", nargs="*", help="items, or all")
    parser.add_argument(
        "--quick", action="store_true", help="fewer rows, one network; not for the page"
    )
    parser.add_argument(
        "--seed", type=int, nargs="+", help="numbers of the networks and splits: 0 to 4, or 0"
    )
    parser.add_argument("--again", action="store_true", help="also networks that have a result")
    parser.add_argument("--results", type=Path, default=None, help="folder of the results")
    add_folder_arguments(parser)
    arguments = parser.parse_args()
    if arguments.results is None:
        arguments.results = ROOT / "build" / "evidence" if arguments.quick else FOLDER
    if arguments.seed is None:
        arguments.seed = range(1 if arguments.quick else _N_NETWORKS)
    known = {item.name for item in ITEMS}
    unknown = sorted(set(arguments.names) - known - {"all"})
    if unknown or (arguments.command == "run" and not arguments.names):
        parser.error(f"unknown items {unknown}: choose from {sorted(known)}, or all")
    return arguments


def _print_items() -> None:
    for item in ITEMS:
        how = f"{item.minutes:g} min" if item.run is not None else "cannot be reproduced"
        print(f"{item.name:22} {how:22} {item.source}: {item.title}")


def _run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    for seed in arguments.seed:  # all items of a network: they share it
        setting = Setting(arguments.data, arguments.cache, arguments.quick, seed)
        for item in ITEMS:
            if item.name in arguments.names or "all" in arguments.names:
                said = _run_one(item, setting, arguments)
                print(f"{item.name:22} {seed}: {said}", flush=True)


def _run_one(item: Item, setting: Setting, arguments: argparse.Namespace) -> str:
    """Run an item with one network, and say how that ended."""
    if item.run is None:
        return f"cannot be reproduced: {item.reason}"
    known_code = {one.seed: one.origin["code"] for one in load(item.name, arguments.results)}
    if known_code.get(setting.seed) == code_of(item.run) and not arguments.again:
        return "has a result of this code; --again runs it once more"
    missing = [name for name in item.files if not (setting.data / name).is_file()]
    if missing:
        return f"SKIPPED: no {', '.join(missing)} in {setting.data}; name the folder by --data"
    started = time.perf_counter()
    result = compute(item, setting, arguments.results)
    seconds = time.perf_counter() - started
    work = result.origin["seconds"]  # on a busy machine, what the item itself takes
    return f"{seconds:.0f} s, {work} s of the processor"


if __name__ == "__main__":
    main()
