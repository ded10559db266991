"""What the docstrings of methods share, in a section for each text.

shared
------
forward_func : callable
    The model, or any function of the inputs.
seed : int, optional
    Seed of all random choices.
value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
    The function of a classifier's outputs to explain, or a `ValueFunction` with options.
    `target`, if passed, is the class.
n_jobs : int, optional
    The number of workers of joblib that share the examples: processes by default, threads or
    the workers of a cluster by `joblib.parallel_config`. −1 stands for one per core. None
    stands for 1, unless `joblib.parallel_config` is active. The numbers do not depend on it.

independent_rows
----------------
independent_rows : bool
    Whether each example has random draws of its own, made from the seed and the example's
    values. The errors of different examples are then independent, so that averages over
    examples, over calls or over the samples of `NoiseTunnel` have smaller errors. By default
    all examples share their draws, which is faster.

graph
-----
graph : str, graph, or list of graphs, optional
    The neighbours of each feature: a networkx graph, a scipy sparse adjacency matrix, a pandas
    frame of adjacency, an edge index (2, E), a list of edges `[(i, j), …]`, PyTorch Geometric
    data, or a `PlayerGraph`, each with one node per feature; `"line"`, `"ring"` or `"grid"`, in
    the order of the features; or a list with one graph per example. Nodes must be the indices
    of the features from 0; others need `PlayerGraph.from_networkx(graph, nodelist)`. By
    default features are neighbours if they touch along any dimension of an input except the
    first: token ids are a line, an image is a grid of pixels and channels, and the groups of
    `feature_mask`, such as superpixels, are neighbours if they touch. Required for tables,
    which are floats of two dimensions.

distances
---------
graph : str, graph, or list of graphs, optional
    Which features are near each other, in the forms that `Myerson` takes. By default this is
    not known.

hierarchy
---------
hierarchy : nested lists, array, list of Tensors, or PlayerTree, optional
    The unions of features: lists of indices of features and of further unions, such as
    `[[0, 1], [2, [3, 4]]]`; a linkage of SciPy, (M − 1, 4); feature masks of segments, from
    coarse to fine, in the shape of an example; a `PlayerTree`, or one for each example. By
    default quadrants of images and halves of sequences, by the shape of an example; the groups
    of `feature_mask`, such as superpixels, stand at the mean of their places. Required for
    tables, which are floats of two dimensions.

causes
------
order : list of indices, or of lists of indices, optional
    Causes before effects: `[0, [1, 2], 3]`. Features whose order is not known are in one list.
    Indices of features, or of the groups of `feature_mask`; each once.
graph : networkx.DiGraph, or list of pairs, optional
    In place of an order: edges from causes to effects, such as `[(0, 1)]`. Other features may
    come at any time. Features that are a node together, a tuple, come before the effects and
    after the causes of each of them.

networks
--------
forward_func : callable
    The model, or any function of the inputs.
seed : int, optional
    Seed of the weights, the order of the examples and all coalitions.
value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
    The function of a classifier's outputs to explain, or a `ValueFunction` with options.
n_jobs : int, optional
    The number of workers that evaluate the labels of the training, as in the other methods.
"""

from __future__ import annotations

import sys

from shapley_adapters.constructors import indented_sections

TEXTS = indented_sections(sys.modules[__name__])
"""What this host adds to the docstrings of estimators; see `options_from`."""

TEXTS["examples"] = """>>> import torch
>>> from captum_ext import {name}
>>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
>>> {name}(model, seed=0{argument}).attribute(torch.tensor([[1.0, 2.0, 3.0]]))
tensor([[1., 1., 3.]])"""
