"""Published tables and figures beside the same numbers computed here.

From the folder `tests`:

    python -m evidence list
    python -m evidence run shear-2a [--quick]
    python -m evidence run all [--quick]
    python -m evidence page

`run` writes one file of numbers and one picture for each item, and skips items whose file is there
already. `page` writes docs/evidence.md from these files.
"""

import sys
from pathlib import Path

# The scripts of the benchmarks import each other by their names alone.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
