"""Our estimators through shap and captum, on data that scikit-learn ships.

Trains a network and boosted trees on the breast-cancer data, explains both, saves pictures, and
prints how far each estimator is from the exact Shapley values at the same number of evaluations.

    python docs/examples/quickstart.py [--output FOLDER]
"""

import argparse
import time
import warnings
from pathlib import Path

import lightgbm
import matplotlib as mpl
import numpy as np
import shap
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import captum_ext
import shap_ext  # makes shap.Explainer know algorithm="oddgp"

mpl.use("Agg")
import matplotlib.pyplot as plt

N_ROWS = 10
EVALUATIONS_PER_FEATURE = 32
EVALUATIONS_OF_PICTURES = 3  # per feature; so few that error bars are long enough to be seen


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("quickstart_output"))
    output = arguments.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # both models are so small that more threads would be slower
    started = time.perf_counter()

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    rows = X_test.iloc[:N_ROWS]

    print("Boosted trees, 30 features (exact values by TreeExplainer):")
    explain_trees(X_train, y_train, X_test, rows, output)
    print("\nNetwork, 13 features (exact values by enumeration of 8,192 coalitions):")
    explain_network(X_train, y_train, rows)

    files = ", ".join(sorted(path.name for path in output.glob("*.png")))
    print(f"\n{files} saved in {output.resolve()}")
    print(f"Took {time.perf_counter() - started:.0f} seconds.")


def explain_trees(X_train, y_train, X_test, rows, output: Path) -> None:
    """Explain boosted trees through shap, and draw the explanation as always."""
    trees = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, random_state=0, n_jobs=1)
    trees.fit(X_train, y_train)
    reference = X_train[y_train == 0].median().to_frame().T  # a typical malignant case

    def margin(X):
        return trees.predict(X, raw_score=True)

    explainer = shap.Explainer(margin, reference, algorithm="oddgp", seed=0)  # the one word
    explanation = explainer(
        X_test, max_evals=EVALUATIONS_OF_PICTURES * rows.shape[1], error_bounds=True
    )
    benign = int(np.argmax(margin(X_test)))
    save(lambda: shap.plots.waterfall(explanation[benign], show=False), output / "waterfall.png")
    save(lambda: shap.plots.beeswarm(explanation, show=False), output / "beeswarm.png")

    exact = shap.TreeExplainer(trees, reference).shap_values(rows)
    budget = EVALUATIONS_PER_FEATURE * rows.shape[1]
    compare(margin, margin, reference, rows, exact, budget)


def explain_network(X_train, y_train, rows) -> None:
    """Explain a network through captum and through shap."""
    names = [*X_train.columns[:10], *X_train.columns[20:23]]  # means, and three of the worst
    scaler = StandardScaler().fit(X_train[names].to_numpy())
    network = train(scaler.transform(X_train[names].to_numpy()), y_train.to_numpy())
    inputs = torch.tensor(scaler.transform(rows[names].to_numpy()), dtype=torch.float32)
    baseline = torch.zeros(1, len(names))  # the mean, after scaling

    exact = captum_ext.Exact(network).attribute(inputs, baselines=baseline)
    budget = EVALUATIONS_PER_FEATURE * len(names)
    for method in (captum_ext.Shear(network, seed=0), captum_ext.OddGP(network, seed=0)):
        attributions, errors = method.attribute(
            inputs, baselines=baseline, n_samples=budget, return_standard_error=True
        )
        error = (attributions - exact).abs().sum(dim=1).mean()
        name = f"captum_ext.{type(method).__name__}"
        print(f"  {name}: error {error:.4f}, mean standard error {errors.mean():.4f}")

    def function(X):
        with torch.no_grad():
            return network(torch.as_tensor(X, dtype=torch.float32)).numpy()

    compare(network, function, baseline.numpy(), inputs.numpy(), exact.numpy(), budget)


def train(X, y) -> torch.nn.Module:
    """Fit a small smooth network that returns the log-odds."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], 32),
        torch.nn.ELU(),
        torch.nn.Linear(32, 32),
        torch.nn.ELU(),
        torch.nn.Linear(32, 1),
        torch.nn.Flatten(0),
    )
    inputs, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=1e-3)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(network(inputs), targets).backward()
        optimizer.step()
    return network.eval()


def compare(model, function, reference, rows, exact, budget: int) -> None:
    """Print the error of each estimator and the evaluations that it really made for a row.

    Ours take the model as it is and report their evaluations; shap's take a function.
    """
    print(f"  {'estimator':<28}{'evaluations':>12}{'error':>10}")
    for name, algorithm in [
        ("shap, algorithm='permutation'", "permutation"),
        ("shap, KernelExplainer", "kernel"),
        ("ours, algorithm='randomorder'", "randomorder"),
        ("ours, algorithm='leastsquares'", "leastsquares"),
        ("ours, algorithm='shear'", "shear"),
        ("ours, algorithm='oddgp'", "oddgp"),
    ]:
        if algorithm in shap_ext.algorithms():
            explainer = shap.Explainer(model, reference, algorithm=algorithm, seed=0)
            values = explainer(rows, max_evals=budget).values
            evaluations = explainer.last_estimate.evaluations.mean()
        else:
            values, evaluations = explain_with_shap(algorithm, function, reference, rows, budget)
        error = np.abs(values - exact).sum(axis=1).mean()
        print(f"  {name:<31}{evaluations:>9.0f}{error:>10.4f}")


def explain_with_shap(algorithm: str, function, reference, rows, budget: int):
    """Return the values of one of shap's own explainers, and how often it called the function."""
    n_called = 0

    def counted(X):
        nonlocal n_called
        n_called += len(X)
        return function(X)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap's kernel explainer hands over nameless columns
        if algorithm == "kernel":
            explainer = shap.KernelExplainer(counted, reference)
            n_called = 0
            values = explainer.shap_values(rows, nsamples=budget, silent=True, l1_reg=False)
        else:
            explainer = shap.Explainer(counted, reference, algorithm=algorithm, seed=0)
            values = explainer(rows, max_evals=budget, silent=True).values
    return values, n_called / len(rows)


def save(draw, path: Path) -> None:
    draw()
    plt.gcf().savefig(path, dpi=120, bbox_inches="tight")
    plt.close("all")


if __name__ == "__main__":
    main()
