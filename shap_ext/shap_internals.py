"""Every piece of shap that is not public and that we use. Checked with shap 0.46 to 0.54."""

from __future__ import annotations

import copy
import re
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse
import shap
from shap._serializable import Deserializer, Serializer
from shap.utils import OpChain
from shap.utils._exceptions import InvalidAlgorithmError
from shap.utils._legacy import DenseData, SparseData
from slicer import Obj

__all__ = [
    "BUILT_IN_ALGORITHMS",
    "SUMMARIES",
    "Deserializer",
    "InvalidAlgorithmError",
    "Serializer",
    "arguments_of",
    "background_of",
    "chosen_by",
    "image_shape",
    "inner_masker",
    "inpaints",
    "is_identity",
    "is_op_chain",
    "keeps_row_between_calls",
    "masks_each_place_alone",
    "masks_neighbours",
    "names_of_summary",
    "needed_evaluations",
    "own_copy",
    "prepared_attributes",
    "row_output_names",
    "set_bounds",
]

BUILT_IN_ALGORITHMS = frozenset(
    ["auto", "exact", "permutation", "partition", "tree", "additive", "linear", "deep"]
)


SUMMARIES = (DenseData, SparseData)
"""What `shap.kmeans` returns: background rows with a weight each, as KernelExplainer takes them."""


def background_of(masker: Any) -> Any:
    """Return the background of a masker that only puts background values in, (B, D), else None.

    Arrays that shap leaves as they are, such as images, are backgrounds themselves. shap's tabular
    maskers keep state between calls and multiply by the mask, so that NaN leaks; their background
    is all that is needed to mask without them.
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


def names_of_summary(summary: Any) -> Any:
    """Return the names of the columns of a frame that `shap.kmeans` made a summary of, or None."""
    names = getattr(summary, "group_names", None)
    is_numbered = names is not None and list(names) == [str(place) for place in range(len(names))]
    return None if is_numbered else names


def is_identity(link: Any) -> bool:
    """Tell whether `link` is shap's identity."""
    return link is shap.links.identity


def is_op_chain(outputs: Any) -> TypeGuard[OpChain]:
    """Tell whether `outputs` is a chain such as `shap.Explanation.argsort.flip[:2]`."""
    return isinstance(outputs, OpChain)


def chosen_by(chain: OpChain, values: Any) -> Any:
    """Return the places that a chain picks among the outputs of one row."""
    return chain.apply(shap.Explanation(values)).values


class _Prepared(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """What shap's constructor makes of a model and a masker, before an algorithm is chosen."""


def prepared_attributes(model: Any, masker: Any, **arguments: Any) -> dict[str, Any]:
    """Return the attributes that shap's constructor gives to an explainer.

    For pipelines of transformers it calls `self.__init__` again with other models, and without the
    options of a subclass. So it runs on an object of its own.
    """
    return dict(vars(_Prepared(model, masker, **arguments)))


def own_copy(masker: Any) -> Any:
    """Return a copy that nobody else calls, of a masker of shap; None for a user's.

    shap's maskers remember the latest row: texts are tokenized anew at each change of rows, and
    Image tells rows apart by `id`, which another row may get. What they remember is replaced, never
    written into, so that a shallow copy will do.
    """
    if type(masker) is shap.maskers.Text:
        own = copy.copy(masker)
        own._s = None
        return own
    if type(masker) is shap.maskers.Image:
        own = copy.copy(masker)
        own.last_xid = None
        return own
    if type(masker) is shap.maskers.Fixed:
        return masker
    return None


def inner_masker(masker: Any) -> Any:
    """Return the masker inside a FixedComposite or an OutputComposite, else None."""
    wrappers = (shap.maskers.FixedComposite, shap.maskers.OutputComposite)
    return masker.masker if type(masker) in wrappers else None


def arguments_of(composite: Any) -> list[int]:
    """Return how many inputs each masker of a Composite takes."""
    return list(composite.arg_counts)


def image_shape(masker: Any) -> tuple[int, ...] | None:
    """Return the shape of the images that an Image masker is built for, else None."""
    return tuple(masker.input_shape) if isinstance(masker, shap.maskers.Image) else None


def inpaints(masker: Any) -> bool:
    """Tell whether a masker fills in images, for which it brings them to 8 bits."""
    is_image = isinstance(masker, shap.maskers.Image)
    return is_image and isinstance(masker.mask_value, str) and masker.blur_kernel is None


def masks_each_place_alone(masker: Any) -> bool:
    """Tell whether what an absent place becomes does not depend on the other places."""
    return type(masker) is shap.maskers.Image and not inpaints(masker)


def masks_neighbours(masker: Any) -> bool:
    """Tell whether the places of a masker stand in an order that means something."""
    return isinstance(masker, (shap.maskers.Text, shap.maskers.Image))


def keeps_row_between_calls(model: Any) -> bool:
    """Tell whether a model of shap takes all rows of a call for variants of one explained row."""
    return isinstance(model, (shap.models.TeacherForcing, shap.models.TopKLM))


def row_output_names(model: Any, fixed: Any) -> list[str]:
    """Make a model that keeps its row learn it; return the names of the row's outputs.

    Parameters
    ----------
    model : TeacherForcing or TopKLM
        A copy for this row.
    fixed : array, (1, …)
        What the model gets beside the masked row: the target, or the row as it is.
    """
    if isinstance(model, shap.models.TeacherForcing):
        model.update_output_names(fixed)
    else:
        model.update_cache_X(fixed)
    return [str(name) for name in model.output_names]


def needed_evaluations(error: ValueError) -> int | None:
    """Return how many evaluations shap's explainers ask for in an error, None in other errors."""
    text = str(error)
    asked = re.search(r"It takes (\d+) masked evaluations", text) or re.search(
        r"max_evals=\d+ is too low .* = (\d+)!?$", text
    )
    return None if asked is None else int(asked[1])


def loader_of(loader: Any) -> Any:
    """Return a user's loader, or None for shap 0.46's default, which reads no pickles."""
    is_default = loader in (shap.models.Model.load, shap.maskers.Masker.load)
    return None if is_default else loader


def saver_of(value: Any, saver: Any) -> Any:
    """Return what writes a model or masker: itself only where it can, else pickle.

    shap 0.46 takes for granted that it can.
    """
    return "auto" if saver == ".save" and not hasattr(value, "save") else saver


def set_bounds(explanation: Any, lower: Any, upper: Any, errors: Any) -> None:
    """Give an Explanation other bounds and standard errors, or None; shap has no setters for them.

    The slicer keeps the axes of what it replaces, unless a new `Obj` tells it to look again.
    """
    fields = {"lower_bounds": lower, "upper_bounds": upper, "error_std": errors}
    for name, value in fields.items():
        setattr(explanation._s, name, Obj(value))
