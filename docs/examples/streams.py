"""A stream of rows that is stopped and goes on, from a file to a file, through shap and captum.

Writes 20,000 rows to a file, explains them by a network, stops in between as Ctrl-C would, goes on,
and compares with one ordinary call. Needs no memory for all rows.

    python docs/examples/streams.py [--output FOLDER]
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
import shap
import torch

import captum_ext
import shap_ext

N_ROWS, N_FEATURES = 20_000, 10


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("streams_output"))
    folder = arguments.parse_args().output / "streams"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_rows(folder / "rows.npy")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 1),
        torch.nn.Flatten(0),
    ).eval()
    through_shap(network, folder)
    through_captum(network, folder)


def write_rows(path: Path) -> None:
    """Write rows to a file, as another program would."""
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (N_ROWS, N_FEATURES))
    for start in range(0, N_ROWS, 5_000):
        rows[start : start + 5_000] = rng.normal(size=(5_000, N_FEATURES))
    rows.flush()


def through_shap(network, folder: Path) -> None:
    """Explain rows of a file, stop, and go on."""
    background = np.zeros((1, N_FEATURES), dtype=np.float32)
    explainer = shap.Explainer(network, background, algorithm="leastsquares", seed=0)
    out, options = folder / "values.npz", {"max_evals": 100, "error_bounds": True}
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    try:
        explainer.explain_stream(interrupted(rows, 7_500), out, **options)
    except KeyboardInterrupt:
        finished = shap_ext.StreamedExplanations.open(out)
        print(f"Stopped after {finished.n_rows} rows: {finished[0].values.round(2)[:4]} …")

    result = explainer.explain_stream(rows, out, checkpoint=True, **options)
    some = slice(8_000, 8_100)
    gap = np.abs(result.values[some] - explainer(rows[some], **options).values).max()
    print(f"Went on to {result.n_rows} rows; largest difference from one call: {gap:.1g}")
    print(f"Mean |attribution| of each feature: {mean_magnitudes(result).round(2)}")
    print(f"Files: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def interrupted(rows, n_rows: int):
    """Yield batches of rows until Ctrl-C is pressed."""
    for start in range(0, n_rows, 500):
        yield rows[start : start + 500]
    raise KeyboardInterrupt


def mean_magnitudes(result) -> np.ndarray:
    """Return a statistic of all rows, chunk after chunk."""
    sums = sum(np.abs(explanation.values).sum(axis=0) for explanation in result)
    return sums / result.n_rows


def through_captum(network, folder: Path) -> None:
    """Attribute the rows of a DataLoader whose batches hold labels, too."""
    rows = torch.from_numpy(np.load(folder / "rows.npy"))[:2_000]
    labels = torch.zeros(len(rows))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(rows, labels), batch_size=64
    )
    method = captum_ext.LeastSquares(network, seed=0)
    result = method.attribute_stream(
        loader, folder / "attributions.npz", roles=("inputs", "unused"), n_samples=100
    )
    print(
        f"captum: {result.n_rows} rows, attributions {tuple(result[:3].shape)} of the first three"
    )


if __name__ == "__main__":
    main()
