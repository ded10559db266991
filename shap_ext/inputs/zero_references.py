"""The reference of a call without a masker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from shapley_adapters.errors import InvalidArgumentError, warn_user

from .backgrounds import Background
from .datasets import Dataset, one_array


def zero_background(datasets: Sequence[Dataset]) -> Background:
    """Return the reference of a call without a masker: zeros.

    Raises
    ------
    InvalidArgumentError
        If the rows are not one table of numbers.
    """
    dataset = datasets[0]
    values = dataset.values if dataset.is_sparse else one_array(dataset.values)
    if len(datasets) > 1:
        raise InvalidArgumentError(_no_reference(f"{len(datasets)} inputs were passed."))
    unusable = [
        column
        for column, dtype in zip(dataset.columns or [], _dtypes(dataset), strict=True)
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c"
    ]
    if unusable:
        raise InvalidArgumentError(
            _no_reference(f"The columns {unusable[:5]} hold no real numbers.")
        )
    if dataset.columns is None and values.dtype.kind not in "biuf":
        raise InvalidArgumentError(_no_reference(f"X holds {values.dtype}, not real numbers."))
    warn_user(
        "No masker was given, so absent features are zero. Pass background rows as masker= to "
        "choose another reference."
    )
    n_columns = int(np.prod(dataset.row_shape))
    if dataset.is_sparse:
        zeros = scipy.sparse.csr_matrix((1, n_columns), dtype=values.dtype)
        return Background(zeros, is_sparse=True)
    columns = None if dataset.columns is None else dataset.dtypes.index
    return Background(np.zeros((1, n_columns), dtype=values.dtype), columns, dataset.dtypes)


def _dtypes(dataset: Dataset) -> list[Any]:
    return [] if dataset.dtypes is None else list(dataset.dtypes)


def _no_reference(reason: str) -> str:
    return (
        f"masker=None does not define the values of absent features: {reason} Pass background "
        "rows as masker=, such as a sample of the training data."
    )
