"""Sphinx configuration. The packages must be installed."""

from importlib.metadata import version as installed_version

project = "shapley-ext"
author = "The shapley-ext authors"
copyright = "2026, The shapley-ext authors"
release = version = installed_version("shapley-ext")

# Nothing here needs a network: no links into the documentation of other projects.
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "examples"]
default_role = "literal"  # a word in backticks is code, as it is in the sources' comments

html_theme = "furo"
html_title = "shapley-ext"

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# The sections of the docstrings say what the types are.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

doctest_global_setup = """
import warnings
import numpy as np
import torch
import shap
import shap_ext
import captum_ext
torch.set_num_threads(1)
"""
