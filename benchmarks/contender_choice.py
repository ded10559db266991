"""Which contenders take part, by parts of their names."""

from __future__ import annotations

import argparse


def add_choice_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which contenders to run, and which not."""
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    parser.add_argument("--without", nargs="+", default=[], metavar="WORD", help="the same")


def takes_part(name: str, arguments: argparse.Namespace) -> bool:
    """Tell whether the arguments let a contender take part."""
    is_named = arguments.only is None or any(word in name for word in arguments.only)
    return is_named and not any(word in name for word in arguments.without)
