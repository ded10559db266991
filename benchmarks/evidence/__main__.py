"""The command line: list the items, run them, write the pages."""

import argparse
from pathlib import Path

import torch
from data_files import FOLDERS

from .catalogue import ITEMS
from .items import Item, Setting
from .page import write_pages
from .results import FOLDER, ROOT, code_of, compute, load

_N_NETWORKS = 5


def main() -> None:
    """Do what the command line says."""
    names = [item.name for item in ITEMS]
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("command", choices=("list", "run", "page"))
    parser.add_argument("names", nargs="*", default="all", choices=["all", *names], metavar="item")
    parser.add_argument("--quick", action="store_true", help="fewer rows; not for the page")
    parser.add_argument("--seed", type=int, nargs="+", help="numbers of networks: 0 to 4, or 0")
    parser.add_argument("--again", action="store_true", help="also networks that have a result")
    parser.add_argument("--results", type=Path, help="folder of the results")
    for name, folder in FOLDERS.items():
        parser.add_argument(f"--{name}", type=Path, default=folder)
    arguments = parser.parse_args()
    quick = ROOT / "build" / "evidence"
    arguments.results = arguments.results or (quick if arguments.quick else FOLDER)
    if arguments.command == "list":
        for item in ITEMS:
            how = f"{item.minutes:g} min" if item.run is not None else "cannot be reproduced"
            print(f"{item.name:22} {how:22} {item.source}: {item.title}")
    elif arguments.command == "page":
        write_pages(ITEMS, arguments.results, ROOT)
    else:
        torch.set_num_threads(1)
        for seed in arguments.seed or range(1 if arguments.quick else _N_NETWORKS):
            setting = Setting(arguments.data, arguments.cache, arguments.quick, seed)
            for item in ITEMS:  # all items of a network: they share it
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
    return f"{compute(item, setting, arguments.results).origin['seconds']} s of the processor"


if __name__ == "__main__":
    main()
