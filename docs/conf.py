"""Configuration of the documentation."""

import ast
import re
import sys
from pathlib import Path

from sphinx.addnodes import index
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docstrings import prepare_docstring

from shapley_adapters import __version__ as version  # noqa: F401  Sphinx reads it

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # finds tutorial_pictures

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
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "shapley-ext"
html_static_path = ["_static"]
html_css_files = ["katex/katex.min.css", "pages.css"]
exclude_patterns = ["_build", "examples", "pictures", "tutorials", "_static"]

# `.ci/release` builds each version in its own folder, with a choice of versions in the sidebar.
templates_path = ["_templates"]
html_context = {"is_versioned": tags.has("versioned")}  # noqa: F821, Sphinx defines it

# sphinx.ext.mathjax marks the formulas and loads one script on pages that have some. That script is
# KaTeX, from our own files, so that pages need no network; draw_formulas.js calls it.
mathjax_path = "katex/katex.min.js"
mathjax_options = {"defer": "defer"}
myst_update_mathjax = False
html_js_files = [("draw_formulas.js", {"defer": "defer"})]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False

default_role = "literal"  # single backticks are code
autosummary_generate = True
# What the page of a class describes beside the class.
_OWN = ":members: {}".format
_STREAMED = [_OWN("open, chunks, array"), ":inherited-members:"]
_SURROGATE = [_OWN("fit, reference, validation, evaluations, save, load, __call__")]
_NO_CONSTRUCTOR = [":exclude-members: __init__, __new__"]
autosummary_context = {
    "options_of_classes": {
        "captum_ext.AVA": [_OWN("attribute, forget")],
        "captum_ext.BaselineDistribution": _NO_CONSTRUCTOR,
        "captum_ext.Convex": [_OWN("learn")],
        "captum_ext.LLMAttribution": [_OWN("attribute")],
        "captum_ext.PerExample": _NO_CONSTRUCTOR,
        "captum_ext.Shared": _NO_CONSTRUCTOR,
        "captum_ext.SimShap": [_OWN("fit, attribute, save_trained, load_trained")],
        "captum_ext.StackedGraphs": [_OWN("forward")],
        "captum_ext.StreamedAttributions": _STREAMED,
        "captum_ext.Surrogate": _SURROGATE,
        "captum_ext.results.language_model_results.LLMAttributionResult": [
            _OWN(
                "seq_standard_error, token_standard_error, player_names, seq_interactions, "
                "token_interactions, seq_interactions_standard_error, "
                "token_interactions_standard_error, plot_seq_attr, plot_token_attr, "
                "plot_interactions"
            )
        ],
        "shap_ext.AVAExplainer": [_OWN("forget")],
        "shap_ext.ConvexExplainer": [_OWN("learn")],
        "shap_ext.SimShapExplainer": [_OWN("fit, stream, save_trained")],
        "shap_ext.StreamedExplanations": _STREAMED,
        "shap_ext.Surrogate": _SURROGATE,
        "shap_ext.maskers.Superpixels": [_OWN("paint")],
        "shap_ext.models.LanguageModel": [_OWN("text_generate")],
        "shap_ext.importance.ExplainedImportance": [_OWN("to_explanation")],
        "shapley_adapters.Estimate": [
            _OWN("interval, rank_interactions, set_interactions, to_shapiq")
        ],
        "shapley_adapters.Game": [":members:"],
        "shapley_adapters.PlayerGraph": [":members:"],
        "shapley_adapters.PlayerTree": [
            _OWN("from_nested, from_linkage, from_labels, nested, to_linkage")
        ],
        "shapley_adapters.aggregation.KemenyRanking": [":members:"],
        "shapley_adapters.aggregation.SpentEvaluations": [_OWN("total")],
        "shapley_adapters.batch_function.BatchFunction": [
            _OWN("each_batch, columns, arrow_schema, spark_schema"),
            ":special-members: __call__",
        ],
        "shapley_adapters.criteria.CoalitionErrors": [":members:"],
        "shapley_adapters.criteria.Curve": [":members:"],
        "shapley_adapters.estimators.Design": [":members:"],
        "shapley_adapters.estimators.Estimator": [":members:"],
        "shapley_adapters.global_importance.result.GlobalImportance": [
            _OWN("interval, to_frame, plot")
        ],
        "shapley_adapters.interactions.ranking.PairRanking": [_OWN("n_discoveries, to_frame")],
        "shapley_adapters.interactions.result.Interactions": [
            _OWN("sets, matrices, error_matrices")
        ],
        "shapley_adapters.interactions.result.SetInteractions": [_OWN("strongest")],
        "shapley_adapters.language_models.answers.Answers": [_OWN("logits, log_probs, texts")],
    }
}
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The tutorials: scripts that run while the pages are built. A failed cell fails the build. A script
# that ran before runs again only if it was changed; delete docs/gallery to run all of them.
html_css_files += ["gallery.css"]
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [
        "tutorials/tables",
        "tutorials/texts_images_graphs",
        "tutorials/budgets_and_scale",
        "tutorials/methods",
    ],
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r".*\.csv",  # the data of the tutorials, beside the notebooks
    "image_scrapers": "tutorial_pictures.save_figures",
    "ignore_repr_types": r"matplotlib|list",  # what plotting functions return
    "download_all_examples": False,  # each page offers its own notebook
    "thumbnail_size": (480, 336),
    "write_computation_times": False,  # as pages, which load scripts from the network
    "junit": "../tutorials.xml",  # the times, beside the pages
}


def readable_defaults(app, what, name, obj, options, signature, return_annotation):
    """Write functions among the defaults of a signature by their names."""
    if signature is None:
        return None
    function = r"<function (?:[\w.]+\.)?(\w+)(?: at 0x\w+)?>"
    readable = re.sub(rf"CPUDispatcher\({function}\)", r"\1", signature)
    readable = re.sub(function, r"\1", readable)
    return readable, return_annotation


def read_provisional():
    """Return the names and packages that versions.md lists as provisional."""
    _, _, section = (DOCS / "versions.md").read_text("utf-8").partition("**Provisional**")
    return set(re.findall(r"`([\w.]+)`", section.partition("\n\n")[0]))


PROVISIONAL = read_provisional()


def mark_provisional(app, what, name, obj, options, lines):
    """Write below the summary of a provisional name that it is."""
    if name.partition(".")[2] in PROVISIONAL:
        end = lines.index("") if "" in lines else len(lines)
        lines[end:end] = ["", "**Provisional**: may change without a warning (:doc:`/versions`)."]


def index_whole_pages(app, doctree):
    """Let entries of `{index}` lead to the top of their page, where we write them.

    Sphinx's search shows the text at an entry's anchor, and fails because that anchor is empty.
    """
    for node in doctree.findall(index):
        node["entries"] = [
            (kind, words, "" if anchor.startswith("index-") else anchor, *others)
            for kind, words, anchor, *others in node["entries"]
        ]


def document_defaults(app):
    """Let autodoc find the texts of members that `default` makes plain attributes."""
    for name in ("shapley_adapters.games.game", "shapley_adapters.estimators.protocol"):
        analyzer = ModuleAnalyzer.for_module(name)
        analyzer.analyze()
        for kind in ast.parse(analyzer.code).body:
            for member in getattr(kind, "body", []):
                if "default" in map(ast.unparse, getattr(member, "decorator_list", [])):
                    text = prepare_docstring(ast.get_docstring(member))
                    analyzer.attr_docs[kind.name, member.name] = text


def setup(app):
    app.connect("builder-inited", document_defaults)
    app.connect("doctree-read", index_whole_pages)
    app.connect("autodoc-process-signature", readable_defaults)
    app.connect("autodoc-process-docstring", mark_provisional, priority=400)  # before numpydoc
