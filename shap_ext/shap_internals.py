"""All private parts of shap that we use. Checked with shap 0.49 to 0.54."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy.sparse
import shap
from shap._serializable import Deserializer, Serializable, Serializer
from shap.utils import OpChain
from shap.utils._exceptions import InvalidAlgorithmError
from shap.utils._legacy import DenseData, SparseData
from slicer import Obj

from shapley_adapters.array_types import FloatArray

from .argument_types import Explanation, Masker, Model

__all__ = [
    "BAR_DELAY",
    "BUILT_IN_ALGORITHMS",
    "SUMMARIES",
    "DenseData",
    "Deserializer",
    "InvalidAlgorithmError",
    "SavedByArguments",
    "Serializer",
    "SparseData",
    "arguments_of",
    "background_of",
    "chosen_by",
    "copied",
    "copy_tracked",
    "encoded_features",
    "image_shape",
    "inner_masker",
    "inpaints",
    "is_op_chain",
    "keeps_row_between_calls",
    "masks_entries_independently",
    "masks_neighbours",
    "merged_nodes",
    "names_of_summary",
    "needed_evaluations",
    "order_by_clusters",
    "own_copy",
    "prepared_attributes",
    "remove_tracked",
    "resolved_order",
    "row_output_names",
    "set_bounds",
    "set_clustering",
    "set_tables",
    "set_tracked",
    "shown_nodes",
    "tracked_of",
]

BAR_DELAY = 10.0
"""Seconds until a progress bar appears, as in shap."""

BUILT_IN_ALGORITHMS = frozenset(
    ["auto", "exact", "permutation", "partition", "tree", "additive", "linear", "deep"]
)


SUMMARIES = (DenseData, SparseData)
"""Results of `shap.kmeans`: background rows with weights, for KernelExplainer."""


def background_of(masker: Masker) -> Any:
    """Return the background, (B, D), of a masker that only inserts background values, else None.

    Arrays, such as images, are backgrounds themselves. shap's tabular maskers have state between
    calls and multiply by the mask, so that NaN stays NaN; we mask with their background instead of
    calling them.
    """
    if isinstance(masker, np.ndarray):
        return masker.reshape(len(masker), -1)
    if scipy.sparse.issparse(masker):
        return masker
    if isinstance(masker, SUMMARIES):
        return masker.data.T if masker.transposed else masker.data
    plain = (shap.maskers.Independent, shap.maskers.Partition)
    tabular_call = shap.maskers.Independent.__call__
    if isinstance(masker, plain) and type(masker).__call__ is tabular_call:
        return masker.data
    return None


def names_of_summary(summary: DenseData | SparseData) -> Any:
    """Return the names of columns that `shap.kmeans` took from a frame, or None."""
    names = getattr(summary, "group_names", None)
    is_numbered = names is not None and list(names) == [str(i) for i in range(len(names))]
    return None if is_numbered else names


def is_op_chain(outputs: object) -> TypeGuard[OpChain]:
    """Return whether `outputs` is a chain such as `shap.Explanation.argsort.flip[:2]`."""
    return isinstance(outputs, OpChain)


def chosen_by(chain: OpChain, values: FloatArray) -> Any:
    """Return the indices that a chain selects among the outputs of one row."""
    return chain.apply(shap.Explanation(values)).values


class _Prepared(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """A model and a masker after shap's constructor, before an algorithm is chosen."""


def prepared_attributes(model: Model, masker: Masker, **arguments: Any) -> dict[str, Any]:
    """Return the attributes that shap's constructor gives to an explainer.

    For pipelines of transformers it calls `self.__init__` again with other models, and without the
    options of a subclass. So it runs on an object of its own.
    """
    return dict(vars(_Prepared(model, masker, **arguments)))


def own_copy(masker: Any) -> Any:
    """Return a separate copy of a masker of shap; None for a masker of the user.

    shap's maskers store the latest row: Text tokenizes again whenever the row changes, and Image
    recognises a row by its `id`, which another row may get. The stored objects are replaced, never
    changed, so that a shallow copy is enough.
    """
    if type(masker) is shap.maskers.Text:
        masker_copy = copy.copy(masker)
        masker_copy._s = None
        if getattr(masker.tokenizer, "is_fast", True) is False:
            masker_copy.tokenizer = _without_offsets(masker.tokenizer)
        return masker_copy
    if type(masker) is shap.maskers.Image:
        masker_copy = copy.copy(masker)
        masker_copy.last_xid = None
        return masker_copy
    if type(masker) is shap.maskers.Fixed:
        return masker
    return None


def _without_offsets(tokenizer: Any) -> Any:
    """Return a copy of a slow tokenizer of transformers that says that it knows no offsets.

    As of transformers 5 they ignore `return_offsets_mapping`; shap's Text masker waits for an
    error, after which it asks for the tokens themselves.
    """
    kind = type(tokenizer)

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if options.pop("return_offsets_mapping", False):
            raise NotImplementedError
        return kind.__call__(self, *arguments, **options)

    changed = copy.copy(tokenizer)
    changed.__class__ = type(kind.__name__, (kind,), {"__call__": call})
    return changed


def inner_masker(masker: Any) -> Any:
    """Return the masker inside a FixedComposite or an OutputComposite, else None."""
    wrappers = (shap.maskers.FixedComposite, shap.maskers.OutputComposite)
    return masker.masker if type(masker) in wrappers else None


def arguments_of(composite: shap.maskers.Composite) -> list[int]:
    """Return the number of inputs of each masker of a Composite."""
    return list(composite.arg_counts)


def image_shape(masker: object) -> tuple[int, ...] | None:
    """Return the shape of the images of an Image masker, else None."""
    return tuple(masker.input_shape) if isinstance(masker, shap.maskers.Image) else None


def inpaints(masker: Any) -> bool:
    """Return whether a masker inpaints images, for which it converts them to 8 bits."""
    is_image = isinstance(masker, shap.maskers.Image)
    return is_image and isinstance(masker.mask_value, str) and masker.blur_kernel is None


def masks_entries_independently(masker: object) -> bool:
    """Return whether the value of an absent entry does not depend on the other entries."""
    return type(masker) is shap.maskers.Image and not inpaints(masker)


def masks_neighbours(masker: object) -> bool:
    """Return whether adjacent entries of a masker are neighbours."""
    return isinstance(masker, (shap.maskers.Text, shap.maskers.Image))


def keeps_row_between_calls(model: object) -> bool:
    """Return whether a model of shap treats all rows of a call as variants of one row."""
    return isinstance(model, (shap.models.TeacherForcing, shap.models.TopKLM))


def row_output_names(
    model: shap.models.TeacherForcing | shap.models.TopKLM, fixed: npt.NDArray[Any]
) -> list[str]:
    """Pass its row to a model that stores one; return the names of the row's outputs.

    Parameters
    ----------
    model : TeacherForcing or TopKLM
        A copy for this row.
    fixed : array, (1, …)
        The model's input besides the masked row: the target, or the unmasked row.
    """
    if isinstance(model, shap.models.TeacherForcing):
        model.update_output_names(fixed)
    else:
        model.update_cache_X(fixed)
    return [str(name) for name in model.output_names]


def needed_evaluations(error: ValueError) -> int | None:
    """Return the number of evaluations in an error of shap's explainers; None for other errors."""
    text = str(error)
    match = re.search(r"It takes (\d+) masked evaluations", text) or re.search(
        r"max_evals=\d+ is too low .* = (\d+)!?$", text
    )
    return None if match is None else int(match[1])


class SavedByArguments:
    """Saves and loads the arguments of a constructor, in the form of shap's `save` and `load`.

    Comes before a masker or model of shap among the bases of a class, which keeps each argument
    under its name.
    """

    def save(self, out_file: Any) -> None:
        """Write the arguments of the constructor to a file."""
        Serializable.save(self, out_file)
        with Serializer(out_file, type(self).__qualname__, version=0) as stream:
            for name in inspect.signature(type(self)).parameters:
                stream.save(name, getattr(self, name))

    @classmethod
    def load(cls, in_file: Any, instantiate: bool = True) -> Any:
        """Read an object, or the arguments of its constructor, from a file."""
        if instantiate:
            return cls._instantiated_load(in_file)  # type: ignore[attr-defined] # of shap's class
        with Deserializer(in_file, cls.__qualname__, min_version=0, max_version=0) as stream:
            return {name: stream.load(name) for name in inspect.signature(cls).parameters}


_FIELDS = (
    "base_values",
    "data",
    "display_data",
    "instance_names",
    "feature_names",
    "output_indexes",
    "lower_bounds",
    "upper_bounds",
    "error_std",
    "main_effects",
    "hierarchical_values",
    "clustering",
)


def copied(explanation: Explanation) -> Any:
    """Return a shallow copy of class `shap.Explanation`.

    shap (to 0.54) cannot copy one row that has the name of its output: an IndexError.
    """
    name = explanation.output_names
    if not isinstance(name, str):
        return shap.Explanation.__copy__(explanation)
    fields = {field: getattr(explanation, field) for field in _FIELDS}
    copy_of_row: Any = shap.Explanation(explanation.values, **fields)
    copy_of_row.output_names = name
    copy_of_row.op_history = copy.copy(explanation.op_history)
    return copy_of_row


def set_bounds(
    explanation: Explanation,
    lower: npt.NDArray[Any] | None,
    upper: npt.NDArray[Any] | None,
    errors: npt.NDArray[Any] | None,
) -> None:
    """Set bounds and standard errors of an Explanation, or None; shap has no setters for them.

    The slicer assumes the axes of the old object, unless it gets a new `Obj`.
    """
    fields = {"lower_bounds": lower, "upper_bounds": upper, "error_std": errors}
    for name, value in fields.items():
        setattr(explanation._s, name, Obj(value))


def shown_nodes(
    explanation: Explanation, threshold: float, separator: str
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return the nodes of a text's hierarchy that shap's text plot shows, and their values."""
    from shap.plots._text import process_shap_values

    _, values, _, _, nodes = process_shap_values(
        explanation.data,
        np.array(explanation.hierarchical_values),
        threshold,
        separator,
        explanation.clustering,
        return_meta_data=True,
    )
    return np.array(nodes, dtype=np.intp), values


def set_clustering(explanation: Explanation, clustering: npt.NDArray[Any]) -> None:
    """Set the linkage of each row of an Explanation."""
    explanation._s.clustering = Obj(clustering, [0])


def set_tables(explanation: Explanation, tables: Mapping[str, npt.NDArray[np.object_]]) -> None:
    """Set fields that are tables of objects, one object in each cell.

    From an array of objects itself, the slicer would find the number of axes by a visit of each
    cell, which takes some microseconds.
    """
    for name, table in tables.items():
        tracked = Obj(np.empty((0,) * table.ndim))
        tracked.o = table
        setattr(explanation._s, name, tracked)


def resolved_order(order: Any, values: Explanation | FloatArray) -> npt.NDArray[np.intp]:
    """Return the indices that an `order` of shap's plots gives for values.

    shap's plots import matplotlib, which is needed when a plot is drawn only.
    """
    from shap.plots._utils import convert_ordering

    return np.asarray(convert_ordering(order, values))


def order_by_clusters(
    distances: FloatArray,
    tree: FloatArray,
    sizes: FloatArray,
    cutoff: float,
    order: npt.NDArray[np.intp],
) -> npt.NDArray[np.intp]:
    """Return an order of features that keeps clusters together, as shap's bar plots do."""
    from shap.plots._utils import get_sort_order, sort_inds

    return np.asarray(get_sort_order(distances, sort_inds(tree, sizes), cutoff, order))


def merged_nodes(sizes: FloatArray, tree: FloatArray) -> tuple[FloatArray, int, int]:
    """Merge the two features of a clustering that shap merges first.

    Returns
    -------
    tree : array
        The clustering with one feature less.
    kept, merged : int
        The feature that stands for both, and the one that is removed.
    """
    from shap.plots._utils import merge_nodes

    new_tree, kept, merged = merge_nodes(sizes, tree)
    return new_tree, int(kept), int(merged)


def encoded_features(features: npt.NDArray[Any]) -> FloatArray:
    """Return the positions of feature values on the x axis of scatter plots."""
    from shap.utils._general import encode_array_if_needed

    return np.asarray(encode_array_if_needed(features), dtype=np.float64)


def set_tracked(explanation: Explanation, name: str, array: Any, n_axes: int) -> None:
    """Store an array that is sliced with the explanation along its first axes."""
    setattr(explanation._s, name, Obj(array, list(range(n_axes))))


def tracked_of(explanation: Explanation, name: str) -> Any:
    """Return an array that `set_tracked` stored, as it has been sliced; None if there is none."""
    return getattr(explanation._s, name) if name in explanation._s._objects else None


def copy_tracked(source: Explanation, target: Explanation, names: Sequence[str]) -> None:
    """Store in a copy the arrays that `set_tracked` stored in the original."""
    for name in names:
        if name in source._s._objects:
            setattr(target._s, name, source._s._objects[name])


def remove_tracked(explanation: Explanation, names: Sequence[str]) -> None:
    """Remove arrays that `set_tracked` stored."""
    for name in names:
        if name in explanation._s._objects:
            set_tracked(explanation, name, None, 0)


REGISTRY = "_shapley_ext_algorithms"
"""The attribute of `shap.Explainer` that holds our algorithms; see `registration`."""


def registered_name(name: str) -> str:
    """Return a name as algorithms are registered: "Random-Order" is "randomorder"."""
    return name.lower().replace("-", "").replace("_", "")


def algorithms() -> dict[str, type[Any]]:
    """Return the registered names and the explainers that they build.

    Names are matched without regard to case, hyphens and underscores.
    """
    return dict(getattr(shap.Explainer, REGISTRY, {}))
