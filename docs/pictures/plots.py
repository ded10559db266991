"""Draw the pictures of "Plots with error bars", with data and models of scikit-learn, in a minute.

python docs/pictures/plots.py
"""

import random
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import shap
import torch
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import captum_ext
import shap_ext

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
IMAGES = FOLDER.parent / "images"
OPINIONS = FOLDER.parent / "tutorials" / "texts_images_graphs" / "opinions.csv"
TEXTS = [
    "a charming plot and i did not find the music boring",
    "hardly a funny cast and a silly story",
]
N_ROWS = 60
EVALUATIONS_PER_FEATURE = 3  # few, so that the error bars are easy to see
NAMES = {
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}


def save(name: str) -> None:
    plt.savefig(IMAGES / f"plots_{name}.png", dpi=100, bbox_inches="tight")
    plt.close("all")


def draw_tables() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X.rename(columns=NAMES)
    model = RandomForestRegressor(50, random_state=0).fit(X.to_numpy(), y)
    explainer = shap.Explainer(
        model.predict,
        X.median().to_frame().T.to_numpy(),
        algorithm="oddgp",
        seed=0,
        feature_names=[*X.columns],
    )
    rows = X.iloc[:N_ROWS].to_numpy()
    budget = EVALUATIONS_PER_FEATURE * X.shape[1]
    explanation = explainer(rows, max_evals=budget, error_bounds=True)
    np.random.seed(0)  # noqa: NPY002  shap places the dots of a beeswarm with it
    shap_ext.plots.bar(explanation, max_display=8, show=False)
    save("bar")
    shap_ext.plots.waterfall(explanation[0], max_display=8, show=False)
    save("waterfall")
    shap_ext.plots.beeswarm(explanation, max_display=8, show=False)
    save("beeswarm")
    column = explanation[:, "body mass index"]
    shap_ext.plots.scatter(column, color=explanation, show=False)
    save("scatter")
    shap_ext.plots.decision(explanation[[1, 2, 9]], efficient=True, show=False)
    save("decision")
    pairs = explainer(rows[:1], max_evals=8 * X.shape[1], interactions=True, error_bounds=True)
    shap_ext.plots.interactions(pairs[0], max_display=6, show=False)
    save("interactions")


def draw_text() -> None:
    opinions = pd.read_csv(OPINIONS)
    words = TfidfVectorizer(ngram_range=(1, 3))
    model = make_pipeline(words, LogisticRegression(C=30))
    model.fit(opinions["text"], opinions["is_good"])
    explainer = shap.Explainer(
        model.decision_function, shap.maskers.Text(r"\W+"), algorithm="oddgp", seed=0
    )
    explanation = explainer(TEXTS, max_evals=40, error_bounds=True)
    random.seed(0)  # shap names the words in the page with it
    html = shap_ext.plots.text(explanation, display=False)
    page = f'<div class="drawn-html">{html}</div>\n'
    lines = [line.rstrip() for line in page.splitlines() if line.strip()]
    (IMAGES / "plots_text.html").write_text("\n".join(lines) + "\n", encoding="utf-8")


def digit_network(images: torch.Tensor, digits: torch.Tensor) -> torch.nn.Module:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 64, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), digits).backward()
        optimizer.step()
    return network.eval()


def draw_image() -> None:
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    network = digit_network(images, torch.tensor(digits.target))
    image = images[4:5]
    attribution, error = captum_ext.OddGP(network, seed=0).attribute(
        image, target=int(digits.target[4]), n_samples=256, return_standard_error=True
    )
    figure, _ = captum_ext.visualize_image_attr_with_error(
        attribution[0].permute(1, 2, 0),
        error[0].permute(1, 2, 0),
        image[0].permute(1, 2, 0).numpy(),
        method="blended_heat_map",
        sign="all",
        alpha_overlay=0.7,
        title="attributions to the digit 4",
        fig_size=(4.4, 4.8),
        use_pyplot=False,
    )
    figure.savefig(IMAGES / "plots_image.png", dpi=100, bbox_inches="tight")


def main() -> None:
    draw_tables()
    draw_text()
    draw_image()


if __name__ == "__main__":
    main()
