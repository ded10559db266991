"""Share the rows of one call among workers of joblib: processes, and threads.

python docs/examples/workers.py [--output FOLDER]
"""

import argparse
import time
from pathlib import Path

import joblib
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import shap_ext  # noqa: F401 # makes shap.Explainer know algorithm="oddgp"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("workers_output"))
    output = arguments.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    data, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    data = data.iloc[:, :10]
    forest = RandomForestClassifier(50, random_state=0).fit(data, classes)
    rows, background = data.iloc[:20], data.iloc[300:310]

    explained = {}
    for n_jobs in (1, 2):
        explainer = shap.Explainer(forest, background, algorithm="oddgp", seed=0, n_jobs=n_jobs)
        started = time.perf_counter()
        explained[n_jobs] = explainer(rows, max_evals=100)
        print(f"n_jobs={n_jobs}: {time.perf_counter() - started:.1f} s")
    np.testing.assert_array_equal(explained[2].values, explained[1].values)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        explainer = shap.Explainer(forest, background, algorithm="oddgp", seed=0)
        by_threads = explainer(rows, max_evals=100)
    np.testing.assert_array_equal(by_threads.values, explained[1].values)
    np.save(output / "values.npy", by_threads.values)
    print(f"The three explanations have the same bits; values in {output / 'values.npy'}")


if __name__ == "__main__":
    main()
