"""Run the Python blocks of the pages: each page in a process of its own, its blocks in order.

    python docs/run_pages.py                     # README, CONTRIBUTING and all pages in docs/
    python docs/run_pages.py docs/plots.md       # one page

The blocks of a page share their names, as in a notebook. Blocks with prompts (`>>>`) must also
print what the page shows, and so must a block before a text with the comment `<!-- printed -->`.
A block that cannot run follows a comment that says why:

    <!-- not run: needs a language model -->

A block that needs an environment of its own follows `<!-- run with: mlflow -->`, and is run by

    python docs/run_pages.py docs/integrations.md --with mlflow

Prints one line for each page and the trace of each fault, and fails if there is any.
"""

import argparse
import contextlib
import doctest
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MAX_SECONDS_PER_PAGE = 300
ENDED = "all blocks were run"

FENCE = re.compile(r"^( *)```(?:python|pycon|py)\b[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*")
RUN_WITH = re.compile(r"<!-- run with: ([\w.-]+) -->\s*")
PRINTED = re.compile(r"<!-- printed -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNREAD = re.compile(r"^ *<!--\s*not[ -]run\b", re.MULTILINE)


class Block(NamedTuple):
    """The code of a block, the number of its first line, why it does not run, what it prints.

    `package` is the one in whose environment it runs. The last three are empty where the page does
    not say.
    """

    code: str
    line: int
    reason: str
    printed: str
    package: str


def read_blocks(page: Path) -> list[Block]:
    """Return the Python blocks of `page` in order."""
    text = page.read_text(encoding="utf-8")
    blocks, end = [], 0
    matches = list(FENCE.finditer(text))
    starts = [*(match.start() for match in matches[1:]), len(text)]  # of what comes next
    for match, next_start in zip(matches, starts, strict=False):
        between = text[end : match.start()]
        paragraph = between.rstrip().rpartition("\n\n")[2]
        comment = NOT_RUN.fullmatch(paragraph.strip())
        line = text.count("\n", 0, match.start(2)) + 1
        code = textwrap.dedent(match[2])
        end = match.end()
        printed = PRINTED.search(text, end, next_start)
        reason = comment[1] if comment else ""
        package = RUN_WITH.fullmatch(paragraph.strip())
        blocks.append(
            Block(code, line, reason, printed[1] if printed else "", package[1] if package else "")
        )
    if len(UNREAD.findall(text)) != sum(bool(block.reason) for block in blocks):
        sys.exit(f"{page}: a comment 'not run' has no reason, or no Python block follows it")
    return blocks


def run_block(block: Block, page: Path, names: dict) -> None:
    """Run one block among `names`. Raises what the code raises, or that it printed otherwise."""
    if block.code.startswith(">>>"):
        example = doctest.DocTestParser().get_doctest(
            block.code, {}, page.name, str(page), block.line - 1
        )
        example.globs = names
        runner = doctest.DocTestRunner(verbose=False)
        if runner.run(example, clear_globs=False).failed:
            raise AssertionError("the block does not print what the page shows")
        return
    # Empty lines before it, so that traces name the lines of the page.
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
    if block.printed and out.getvalue() != block.printed:
        raise AssertionError(f"the page shows:\n{block.printed}The block prints:\n{out.getvalue()}")


def run_page(page: Path, package: str) -> None:
    """Run the blocks of `page` for the environment of `package` in this process.

    A block that fails does not stop the others.
    """
    main = types.ModuleType("__main__")  # where classes of the page are looked up
    sys.modules["__main__"] = main
    failed = False
    for block in read_blocks(page):
        if block.reason or block.package != package:
            continue
        try:
            run_block(block, page, vars(main))
        except (Exception, SystemExit):
            failed = True
            print(f"{page}, line {block.line}:")
            traceback.print_exc(file=sys.stdout)
    print(ENDED)
    sys.exit(failed)


def check_page(page: Path, package: str) -> tuple[bool, str]:
    """Run `page` in a process and a folder of its own. Return whether it ran, and what to print."""
    blocks = read_blocks(page)
    n_left_out = sum(bool(block.reason) or block.package != package for block in blocks)
    if n_left_out == len(blocks) and package:
        return False, f"{os.path.relpath(page, ROOT)}: no block runs with {package}"
    said = f"{os.path.relpath(page, ROOT)}: {len(blocks) - n_left_out} blocks run"
    said += f", {n_left_out} not" * bool(n_left_out)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            process = subprocess.run(
                [sys.executable, __file__, "--here", page, "--with", package],
                cwd=folder,
                env=os.environ | {"MPLBACKEND": "Agg"},
                capture_output=True,
                timeout=MAX_SECONDS_PER_PAGE,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, f"{said}: stopped after {MAX_SECONDS_PER_PAGE} seconds"
    said += f" ({time.perf_counter() - start:.0f} s)"
    printed = process.stdout.removesuffix(f"{ENDED}\n")
    ended = printed != process.stdout
    if process.returncode == 0 and ended:
        return True, said
    said += ": ended early" * (not ended)
    # Progress bars go to the other stream, and what ends Python itself.
    return False, f"{said}\n{printed or process.stderr[-3000:]}"


def all_pages() -> list[Path]:
    """Return the pages that have Python blocks."""
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").rglob("*.md"),
    ]
    built = {"_build", "gallery", "generated"}
    return [page for page in sorted(pages) if not built & set(page.parts) and read_blocks(page)]


def main() -> None:
    """Read the command line, run the pages two at a time, and print the faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="by default all that have Python")
    parser.add_argument("--here", action="store_true", help="run one page in this process")
    parser.add_argument("--with", default="", dest="package", help="run only the blocks with this")
    arguments = parser.parse_args()
    if arguments.here:
        run_page(arguments.pages[0], arguments.package)
    pages = [page.resolve() for page in arguments.pages] or all_pages()
    all_ran = True
    with ThreadPoolExecutor(2) as pool:
        for ran, said in pool.map(check_page, pages, itertools.repeat(arguments.package)):
            all_ran &= ran
            print(said, flush=True)
    sys.exit(not all_ran)


if __name__ == "__main__":
    main()
