"""Values of coalitions by the imputers of shapiq, in a Python of their own.

    SHAPIQ_PYTHON shapiq_imputers.py INPUT.npz OUTPUT.npz

Started by `conditional_draws.py`, which also says which model it is. Needs shapiq and xgboost, and
nothing of the project.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
import shapiq
from shapiq.imputer import GaussianCopulaImputer, GaussianImputer, GenerativeConditionalImputer

IMPUTERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "GaussianImputer": (GaussianImputer, {}),
    "GaussianCopulaImputer": (GaussianCopulaImputer, {}),
    "GenerativeConditionalImputer": (GenerativeConditionalImputer, {"normalize": False}),
}


def main() -> None:
    """Write the values, (imputers, rows, coalitions), and the seconds of each imputer."""
    given = np.load(sys.argv[1])
    weights, matrix = given["weights"], given["matrix"]

    def model(x: Any) -> Any:
        return x @ weights + ((x @ matrix) * x).sum(axis=-1)

    warnings.simplefilter("ignore")
    values, fitting, drawing = [], [], []
    for kind, options in IMPUTERS.values():
        start = time.process_time()
        imputer = kind(
            model, given["data"], sample_size=int(given["n_draws"]), random_state=0, **options
        )
        imputer.fit(given["rows"][0])
        imputer(given["masks"][:1])
        fitted = time.process_time()
        of_rows = []
        for row in given["rows"]:
            imputer.fit(row)
            of_rows.append(imputer(given["masks"]))
        values.append(of_rows)
        fitting.append(fitted - start)
        drawing.append(time.process_time() - fitted)
    np.savez(
        sys.argv[2],
        values=np.array(values),
        fitting=fitting,
        drawing=drawing,
        names=list(IMPUTERS),
        version=shapiq.__version__,
    )


if __name__ == "__main__":
    main()
