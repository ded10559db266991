"""Published tables and figures beside the same numbers computed here.

From the folder `benchmarks`:

    python -m evidence list
    python -m evidence run shear-2a [--quick]
    python -m evidence run all [--quick]
    python -m evidence page

`run` writes a file of numbers for each item and network, which has its own split of the data, and
skips those whose file is there already; `--seed 3` runs the fourth network. `page` writes
docs/evidence.md, the verdicts, and benchmarks/evidence.md, the numbers, from these files.
"""

import sys
from pathlib import Path

import matplotlib as mpl

# The scripts of the benchmarks import each other by their names alone.
sys.path.append(str(Path(__file__).resolve().parents[1]))
mpl.use("Agg")
