"""What the docstrings of explainers share, in a section for each text.

shared
------
model : callable, torch module, fitted estimator or Booster
    The model to explain, as `model_output` says.
masker : array, DataFrame, shap masker, `shap.kmeans`, function, or None
    Background rows, or anything that shap takes for a masker. Without one, absent features of
    tables of numbers are zero, with a warning.
link : callable, "identity" or "logit"
    Link function between the model's output and the units of the explanation.
feature_names, output_names : sequence of str, optional
    Names, for plots.
linearize_link : bool
    Whether background rows are weighted so that additive models stay additive, as in shap.
seed : int, optional
    Seed of all random choices.
model_output : {"auto", "raw", "probability", "log_odds"}
    The unit of a fitted estimator's output; functions and networks are explained as they are.
    By default it is that of shap's own default, whatever the algorithm and the background:
    `"raw"` for boosted trees and linear models (their margins), forests as they vote, and
    `"probability"` for other classifiers. Pipelines and searches are explained as their last or
    best estimator. `"log_odds"` are those of the probabilities.
groups : mapping of names to columns, or array of int, optional
    Columns that form one player, by name or index, such as one-hot blocks; or the label of the
    superpixel of each pixel of an image, (H, W), or of each entry, which shares its attribution
    equally between its numbers.
value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
    The function of a classifier's outputs to explain, or a `ValueFunction` with options. It
    returns one output, and needs the identity link.
n_jobs : int, optional
    The number of workers of joblib that share the rows: processes by default, threads or the
    workers of a cluster by `joblib.parallel_config`. −1 stands for one per core. None stands
    for 1, unless `joblib.parallel_config` is active. The numbers do not depend on it.

independent_rows
----------------
independent_rows : bool
    Whether each row has random draws of its own, made from the seed and the row's values. The
    errors of different rows are then independent, so that averages over rows or calls have
    smaller errors. By default all rows share their draws, which is faster.

graph
-----
graph : str, graph, or list of graphs, optional
    The neighbours of each feature: a networkx graph, a scipy sparse adjacency matrix, a pandas
    frame of adjacency, an edge index (2, E), a list of edges `[(i, j), …]`, PyTorch Geometric
    data, or a `PlayerGraph`, each with one node per feature; `"line"`, `"ring"` or `"grid"`, in
    the order of the features; or a list with one graph per row. The nodes of networkx graphs
    and frames, and the ends of edges, may be names of columns or groups; otherwise they must be
    indices from 0. Other nodes need an order: `PlayerGraph.from_networkx(graph, nodelist)`. By
    default texts are lines, and images are grids of pixels and channels; groups of columns are
    neighbours of the groups that they touch.

distances
---------
graph : str, graph, or list of graphs, optional
    Which features are near each other, in the forms that `MyersonExplainer` takes. By default
    this is not known.

hierarchy
---------
hierarchy : nested lists, mapping, array, list of arrays, or PlayerTree, optional
    The unions of features: lists of features and of further unions, such as
    `[["age", "sex"], ["income", ["rent", "debts"]]]`, by names or indices; a linkage of SciPy,
    (M − 1, 4); masks of segments in the shape of the input, from coarse to fine; a
    `PlayerTree`, or one for each row. By default the masker's `clustering`, if it has one;
    paragraphs, sentences and clauses of texts without one, or of more than 1,000 tokens;
    quadrants of images; and halves of sequences.

causes
------
order : list of features, or of lists of features, optional
    Causes before effects: `["age", ["income", "rent"], "savings"]`. Features whose order is not
    known are in one list. By name, or by index; each feature once.
graph : networkx.DiGraph, or list of pairs, optional
    In place of an order: edges from causes to effects, such as `[("age", "income")]`. Other
    features may come at any time. Features that are a node together, a tuple, come before the
    effects and after the causes of each of them.

aggregates
----------
model : callable, torch module, fitted estimator or Booster
    The model to explain, for the explainers that are passed by name.
masker : array, DataFrame, shap masker, function, or None
    Background rows, or anything that shap takes for a masker, for the same.
link : callable, "identity" or "logit"
    Link function between the model's output and the units of the explanation, for the same.
feature_names, output_names : sequence of str, optional
    Names, for plots.
linearize_link : bool
    As in shap, for explainers that are passed by name.
seed : int, optional
    Seed of all random choices.
model_output : {"auto", "raw", "probability", "log_odds"}
    The unit of a fitted estimator's output, for explainers that are passed by name.
n_jobs : int, optional
    The number of workers that share the rows, for our explainers that are passed by name.

explainers
----------
explainers : sequence, optional
    The explainers to combine: names of algorithms that `shap.Explainer` builds, shap's or
    ours; explainer objects; functions of the rows that return an Explanation, an array or a
    tensor; and captum's attribution methods, whose `attribute` gets the rows as a tensor. By
    default `("oddgp", "leastsquares", "shear")`. All must explain the same features and
    outputs.

networks
--------
training_data : array or DataFrame, optional
    The rows to train on; by default those that were given as masker.
features : callable, optional
    Makes an array of numbers of rows, for the network to see. If it changes the count of
    numbers, student `"embeddings"` needs `student_options={"players": …}`, the feature of each.
trained : path, optional
    A file that `save_trained` wrote, to use in place of training.
"""

from __future__ import annotations

import sys

from shapley_adapters.constructors import KindT, fill_docstring, indented_sections

TEXTS = indented_sections(sys.modules[__name__])
"""What this host adds to the docstrings of estimators; see `options_from`."""

TEXTS["examples"] = """>>> import numpy as np
>>> import shap_ext
>>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
>>> explainer = shap_ext.{name}(model, np.zeros((1, 3)), seed=0{argument})
>>> explainer(np.array([[1.0, 2.0, 3.0]])).values
array([[1., 1., 3.]])"""


def documented(explainer: KindT) -> KindT:
    """Put the shared parameters where the docstring names them in braces."""
    names = {"of_aggregates": "aggregates", "explainers": "explainers", "parameters": "shared"}
    return fill_docstring(explainer, **{name: TEXTS[title] for name, title in names.items()})
