"""Published tables and figures beside the same numbers computed here.

From the folder `benchmarks`:

    python -m evidence list
    python -m evidence run shear-2a [--quick]
    python -m evidence run all [--quick]
    python -m evidence page

`run` writes a file of numbers for each item and network, which has its own split of the data, and
skips those whose file is there already; `--seed 3` runs the fourth network. `page` writes
docs/evidence.md, the verdicts, and benchmarks/evidence.md, the numbers, from these files.

The item `everybody` runs the packages that are installed: `pip install --no-deps lightshap fastshap
shapley-regression`, and shapiq by benchmarks/requirements-shapiq.txt in a Python of its own,
which the environment variable SHAPLEY_EXT_SHAPIQ_PYTHON names.
"""

import sys
from pathlib import Path

# The scripts of the benchmarks import each other by their names alone.
sys.path.append(str(Path(__file__).resolve().parents[1]))
