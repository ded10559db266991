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
LISTED = r"(?m)^(?:   ~?|\.\. \w+module:: )(?:\w+\.)*(\w+)$"  # names, which have pages, and modules
LINK = r"<shapley_adapters\.(\w+)>`"  # to the page of the core, for what both hosts share


@pytest.mark.parametrize("page", PACKAGES)
def test_public_names_are_on_the_page(page):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    documented = set(re.findall(LISTED, text)) | set(re.findall(LINK, text))
    public = {name for package in PACKAGES[page] for name in package.__all__}
    assert public <= documented


def test_what_the_hosts_share_is_described_once():
    shared = {
        name
        for name in set(shap_ext.__all__) & set(shapley_adapters.__all__)
        if getattr(shap_ext, name) is getattr(shapley_adapters, name)
    }
    assert shared
    for page in ("shap_ext", "captum_ext"):
        text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
        assert set(re.findall(LISTED, text)) & shared == set()
        assert shared <= set(re.findall(LINK, text))
