"""Explain boosted trees through shap and a network through captum, with error bars.

Both are trained on the breast-cancer data that scikit-learn ships. Prints the attributions of one
tumour with their intervals, and how far both libraries' estimators and `best` are from the exact
Shapley values at the same number of evaluations. Saves a waterfall plot with error bars.

    python docs/examples/quickstart.py [--output FOLDER]
"""

import argparse
import time
import warnings
from pathlib import Path

import captum.attr
import lightgbm
import matplotlib as mpl
import numpy as np
import shap
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import captum_ext
import shap_ext  # makes shap.Explainer know algorithm="best"

mpl.use("Agg")
import matplotlib.pyplot as plt

N_ROWS = 10
N_ORDERS = 2, 4, 8  # of shap, each with its reverse; captum gets twice as many
N_SHOWN = 6  # features in the first table


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("quickstart_output"))
    output = arguments.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # both models are so small that more threads would be slower
    warnings.simplefilter("ignore")  # of both libraries: names of columns, batches of rows
    started = time.perf_counter()

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    explain_trees(X_train, y_train, X_test, output / "waterfall.png")
    explain_network(X_train, y_train, X_test.iloc[:N_ROWS])
    print(f"\nwaterfall.png saved in {output.resolve()}")
    print(f"Took {time.perf_counter() - started:.0f} seconds.")


def explain_trees(X_train, y_train, X_test, picture: Path) -> None:
    """Explain boosted trees through shap, as a function, so that nothing knows they are trees."""
    trees = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, random_state=0, n_jobs=1)
    trees.fit(X_train, y_train)
    reference = X_train[y_train == 0].median().to_frame().T  # a typical malignant tumour
    tree_explainer = shap.TreeExplainer(trees, reference)  # the exact values

    def margin(X):
        return trees.predict(X, raw_score=True)

    budgets = [n_orders * (2 * X_test.shape[1] + 1) for n_orders in N_ORDERS]
    row = X_test.iloc[[int(np.argmax(margin(X_test)))]]  # the most clearly benign tumour
    explainer = shap.Explainer(margin, reference, algorithm="best", seed=0)
    explanation = explainer(row, max_evals=budgets[0], error_bounds=True)
    print(f"Boosted trees, 30 features: one tumour by algorithm='best', {budgets[0]} evaluations")
    show(explanation[0], tree_explainer.shap_values(row)[0])
    shap_ext.plots.waterfall(explanation[0], show=False)
    plt.gcf().set_size_inches(5, 6)
    plt.gcf().savefig(picture, dpi=120, bbox_inches="tight")

    rows = X_test.iloc[:N_ROWS]

    def by_permutation(budget: int):
        permutation = shap.Explainer(margin, reference, algorithm="permutation", seed=0)
        return permutation(rows, max_evals=budget, silent=True).values

    def by_kernel(budget: int):
        kernel = shap.KernelExplainer(margin, reference)
        return kernel.shap_values(rows, nsamples=budget - 2, silent=True, l1_reg=False)

    def by_best(budget: int):
        bounded = explainer(rows, max_evals=budget, error_bounds=True)
        return bounded.values, bounded.lower_bounds, bounded.upper_bounds

    print("\nThe same trees, 10 tumours: mean error (exact values by TreeExplainer)")
    methods = {
        "shap, PermutationExplainer": by_permutation,
        "shap, KernelExplainer": by_kernel,
        "algorithm='best'": by_best,
    }
    compare(methods, budgets, tree_explainer.shap_values(rows))


def explain_network(X_train, y_train, rows) -> None:
    """Explain a network through captum."""
    names = [*X_train.columns[:10], *X_train.columns[20:23]]  # means, and three of the worst
    scaler = StandardScaler().fit(X_train[names].to_numpy())
    network = train(scaler.transform(X_train[names].to_numpy()), y_train.to_numpy())
    inputs = torch.tensor(scaler.transform(rows[names].to_numpy()), dtype=torch.float32)
    baselines = torch.zeros(1, len(names))  # the mean, after scaling

    def by_sampling(budget: int):
        torch.manual_seed(0)
        method = captum.attr.ShapleyValueSampling(network)
        return method.attribute(inputs, baselines=baselines, n_samples=budget // len(names)).numpy()

    def by_kernel(budget: int):
        torch.manual_seed(0)
        method = captum.attr.KernelShap(network)
        return method.attribute(inputs, baselines=baselines, n_samples=budget).numpy()

    def by_best(budget: int):
        method = captum_ext.Best(network, seed=0)
        values = method.attribute(inputs, baselines=baselines, n_samples=budget).numpy()
        lower, upper = method.last_estimate.interval(0.95)
        return values, lower[..., 0], upper[..., 0]

    print("\nNetwork, 13 features, 10 tumours: mean error (exact values by all 8,192 coalitions)")
    methods = {
        "captum, ShapleyValueSampling": by_sampling,
        "captum, KernelShap": by_kernel,
        "captum_ext.Best": by_best,
    }
    exact = captum_ext.Exact(network).attribute(inputs, baselines=baselines).numpy()
    compare(methods, [2 * n_orders * len(names) + 1 for n_orders in N_ORDERS], exact)


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


def show(explanation, exact) -> None:
    """Print the largest attributions of one row with their intervals."""
    print(f"  {'feature':<22}{'attribution':>12}{'95 % interval':>18}{'exact':>8}")
    for i in np.argsort(-np.abs(explanation.values))[:N_SHOWN]:
        interval = f"{explanation.lower_bounds[i]:.2f} to {explanation.upper_bounds[i]:.2f}"
        name, value = explanation.feature_names[i], explanation.values[i]
        print(f"  {name:<22}{value:>12.2f}{interval:>18}{exact[i]:>8.2f}")


def compare(methods, budgets: list[int], exact) -> None:
    """Print each method's mean error, and how many exact values the intervals of `best` hold."""
    print(f"  {'evaluations of each tumour':<34}" + "".join(f"{budget:>8}" for budget in budgets))
    for name, method in methods.items():
        results = [method(budget) for budget in budgets]
        with_bounds = isinstance(results[0], tuple)
        values = [result[0] if with_bounds else result for result in results]
        errors = [np.abs(each - exact).sum(axis=1).mean() for each in values]
        print(f"  {name:<34}" + "".join(f"{error:>8.2f}" for error in errors))
    inside = [np.mean((lower <= exact) & (exact <= upper)) for _, lower, upper in results]
    print(f"  {'exact values in its 95 % intervals':<34}" + "".join(f"{x:>8.0%}" for x in inside))


if __name__ == "__main__":
    main()
