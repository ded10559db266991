"""The API pages name everything that is public."""

import re
from pathlib import Path

import pytest

import shap_ext
import shapley_adapters
import shapley_adapters.estimators
from tests.helpers.optional import HAS_TORCH, captum_ext

PAGES = Path(__file__).parents[1] / "docs" / "api"
PACKAGES = {
    "shap_ext": [shap_ext],
    "captum_ext": [captum_ext] if HAS_TORCH else [],
    "shapley_adapters": [shapley_adapters, shapley_adapters.estimators],
}


@pytest.mark.parametrize("page", PACKAGES)
def test_public_names_are_on_the_page(page):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"\.\. auto\w+:: (?:[\w.]+\.)?(\w+)", text))
    public = {name for package in PACKAGES[page] for name in package.__all__}
    assert public <= documented
