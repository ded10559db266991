"""Write a report and take a picture of its first part with Chromium: docs/images/report.png.

python docs/pictures/report_screenshot.py
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import shap_ext

IMAGES = Path(__file__).parents[1] / "images"
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


def write_report(path: Path) -> None:
    """Explain the progression of diabetes, and write the report."""
    features, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    features = features.rename(columns=NAMES)
    model = GradientBoostingRegressor(random_state=0).fit(features, progression)
    explainer = shap.Explainer(model, features.iloc[:40], algorithm="oddgp", seed=0)
    explanation = explainer(features.iloc[:150], max_evals=64, error_bounds=True)
    shap_ext.report(explanation, path, title="Progression of diabetes")


def take_picture(page: Path, picture: Path) -> None:
    """Let Chromium draw the page."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Install chromium or google-chrome to take the picture.")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = "--window-size=1050,1150"
    subprocess.run([browser, *flags, size, f"--screenshot={picture}", page.as_uri()], check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_report(Path(folder) / "report.html")
        take_picture(Path(folder) / "report.html", IMAGES / "report.png")
