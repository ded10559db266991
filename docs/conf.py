"""Configuration of the documentation."""

project = "shapley-ext"
author = "The shapley-ext authors"
copyright = "2026, The shapley-ext authors"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "shapley-ext"
html_static_path = ["_static"]
html_css_files = ["pages.css"]  # widens the column, for code and tables
exclude_patterns = ["_build", "examples"]

default_role = "literal"  # single backticks are code
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
