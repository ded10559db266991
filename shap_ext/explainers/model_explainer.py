"""Base of all explainers of a model with a masker, including those that combine others."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from typing import IO, Any, ClassVar

import numpy as np
import shap

from shapley_adapters.arguments import checked_flag, checked_seed
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentTypeError, warn_user

from ..argument_types import Link, Masker, Model, Rows
from ..games.links import checked_link
from ..inputs.backgrounds import bounded_background, check_masker
from ..inputs.models import ExplainedFunction, empty_table, explained_function, text_vectorizer
from ..maskers import TextSegments
from ..shap_internals import Deserializer, Serializer, prepared_attributes
from .legacy_calls import dict_of_row, shap_values

_STREAM = "shap_ext.CoalitionExplainer"


class _ByKeyword(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """The class that files name first, which builds the explainer that they hold.

    `shap.Explainer.load` passes on only the arguments that may be positional. This class has one
    such argument, which holds all of them.
    """

    def __new__(cls, arguments: dict[str, Any]) -> Any:
        explainer: type[Any] = arguments.pop("class")
        return explainer(**arguments)

    def __init__(self, arguments: dict[str, Any]) -> None:
        """Name the argument for shap; `__new__` returns an explainer that is built already."""

    @classmethod
    def load(
        cls,
        in_file: IO[bytes],
        model_loader: Callable[..., Any] | None = None,
        masker_loader: Callable[..., Any] | None = None,
        instantiate: bool = False,
    ) -> dict[str, Any]:
        """Return the arguments of the explainer, and its class."""
        del instantiate  # shap asks for the arguments alone
        explainer: type[Any] = pickle.load(in_file)
        arguments = explainer.load(in_file, model_loader, masker_loader, instantiate=False)
        return {"arguments": {"class": explainer, **arguments}}


def save_explainer(
    explainer: Any,
    out_file: IO[bytes],
    model_saver: str | Callable[..., Any],
    masker_saver: str | Callable[..., Any],
) -> None:
    """Write an explainer with all its options; each is an attribute of the same name."""
    pickle.dump(_ByKeyword, out_file)
    shap.Explainer.save(explainer, out_file, model_saver, masker_saver)
    saved = ("model", "masker", "link")
    options = {
        name: getattr(explainer, name)
        for name in inspect.signature(type(explainer)).parameters
        if name not in saved
    }
    with Serializer(out_file, _STREAM, version=0) as stream:
        stream.save("options", options)


def load_explainer(
    kind: type[Any],
    in_file: IO[bytes],
    model_loader: Callable[..., Any] | None,
    masker_loader: Callable[..., Any] | None,
    instantiate: bool,
) -> Any:
    """Return the explainer of a file, or its arguments, if it is of some class."""
    if instantiate:
        loaded = shap.Explainer.load(in_file, model_loader, masker_loader)
        if not isinstance(loaded, kind):
            raise InvalidArgumentTypeError(
                f"in_file holds a {type(loaded).__name__}, not a {kind.__name__}. "
                "shap.Explainer.load reads any of them."
            )
        return loaded
    arguments = shap.Explainer.load.__func__(
        kind, in_file, model_loader, masker_loader, instantiate=False
    )
    with Deserializer(in_file, _STREAM, 0, 0) as stream:
        arguments.update(stream.load("options"))
    return arguments


@write_constructor
class ModelExplainer(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """Base of all explainers, with the arguments of `shap.Explainer`.

    Attributes
    ----------
    seed : int
        Seed of all random choices, drawn from the operating system where none was given.
    """

    model: Model = field(kw_only=False)
    masker: Masker = field(default=None, kw_only=False)
    link: Link = field(default=shap.links.identity, kw_only=False)
    feature_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    linearize_link: bool = True
    seed: int | None = None
    model_output: str = "auto"

    def __post_init__(self) -> None:
        vectorizer = text_vectorizer(self.model) if self.masker is None else None
        if vectorizer is not None:
            self.masker = TextSegments("words", mask_token="")
            warn_user(
                f"No masker was given. {type(vectorizer).__name__} takes texts, so words are "
                "explained, and absent ones left out, as by masker=shap_ext.maskers."
                "TextSegments('words', mask_token=''). Pass it, or another masker."
            )
        self._masker_table = empty_table(getattr(self.masker, "data_frame", self.masker))
        masker, self._background_dtypes = bounded_background(self.masker)
        prepared = prepared_attributes(
            self.model,
            masker,
            link=checked_link(self.link),
            feature_names=_checked_names("feature_names", self.feature_names),
            output_names=_checked_names("output_names", self.output_names),
            linearize_link=checked_flag("linearize_link", self.linearize_link),
        )
        self.__dict__.update(prepared)
        check_masker(self.masker)
        given_seed, self.seed = self.seed, checked_seed(self.seed)
        self._drawn_seed = self.seed if given_seed is None else None

    # The model and the unit of the latest `explained_function`, which may be replaced, and itself.
    _explained: ClassVar[tuple[Any, str, Any]] = (None, "", None)

    @property
    def explained_function(self) -> ExplainedFunction:
        """What is explained of the model, found once: it may read all trees of the model."""
        model, unit, function = self._explained
        if model is not self.model or unit != self.model_output:
            function = explained_function(self.model, self.model_output)
            self.__dict__["_explained"] = (self.model, self.model_output, function)
        return function

    def shap_values(
        self,
        X: Rows,
        *,
        nsamples: int | str = "auto",
        max_evals: int | str | None = None,
        silent: bool = False,
        check_additivity: bool = False,
        l1_reg: object = None,
        gc_collect: bool = False,
    ) -> Any:
        """Return the attributions alone, as shap's KernelExplainer does.

        Parameters
        ----------
        X : array, DataFrame or Series
            The rows, or one row: a Series, or an array of one dimension.
        nsamples : int or "auto"
            How many coalitions are evaluated for each row, without the empty coalition and that of
            all features. This is `max_evals = nsamples + 2`.
        max_evals : int or "auto", optional
            The budget as in a call of the explainer, instead of `nsamples`.
        silent : bool
            Whether to show no progress bar.
        check_additivity : bool
            Whether to refuse attributions that do not sum to the model's output.
        l1_reg : None, "auto", False or 0
            KernelExplainer selects features by lasso. These estimators estimate all features,
            whichever of these is passed; any other value is refused.
        gc_collect : False
            Memory is bounded by the size of a batch, so True is refused.

        Returns
        -------
        array, (R, M) or (R, M, K)
            The attributions of R rows, M features and K outputs, without the last axis where the
            model has one output. One row gives (M,) or (M, K). Each row sums to the model's output
            less `expected_value`, where the estimator is efficient.
        """
        options = silent, check_additivity, l1_reg, gc_collect
        return shap_values(self, X, nsamples, max_evals, *options)

    def explain_row(self, *row_args: Rows, **options: Any) -> dict[str, Any]:
        """Explain one row with the options of a call; return a dict, as shap's explainers do."""
        return dict_of_row(self(*(np.asarray(arg)[None] for arg in row_args), **options))

    @property
    def expected_value(self) -> Any:
        """The value without any feature, in the units of the attributions.

        A float, or an array (K,) for K outputs. After a call it is the base value of that call.
        Before, it is computed from the background at one evaluation.

        Raises
        ------
        NoExpectedValueError
            If it differs between rows, as for texts, or if there is no background to compute it
            from. The base values of an explanation are in its `base_values`.
        """
        value = self._empty_value()
        return float(value[0]) if len(value) == 1 else value.copy()

    def _empty_value(self) -> FloatArray:
        """Return the value without any feature, (K,)."""
        raise NotImplementedError

    def save(
        self,
        out_file: IO[bytes],
        model_saver: str | Callable[..., Any] = ".save",
        masker_saver: str | Callable[..., Any] = ".save",
    ) -> None:
        """Write the explainer with all its options, its seed and its names to a file."""
        save_explainer(self, out_file, model_saver, masker_saver)

    @classmethod
    def load(
        cls,
        in_file: IO[bytes],
        model_loader: Callable[..., Any] | None = None,
        masker_loader: Callable[..., Any] | None = None,
        instantiate: bool = True,
    ) -> Any:
        """Read an explainer that `save` wrote.

        Models, maskers and options are stored as pickles, and reading a pickle runs the code in it.
        Load only files that you trust.
        """
        return load_explainer(cls, in_file, model_loader, masker_loader, instantiate)


def _checked_names(name: str, names: object) -> list[Any] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidArgumentTypeError(f"{name} must be a list of names; got {names!r}.")
    listed = list(names)
    for index, entry in enumerate(listed):
        if not isinstance(entry, Hashable):
            raise InvalidArgumentTypeError(
                f"{name}[{index}] is {entry!r}, a {type(entry).__name__}, not a name. Pass a flat "
                "list with one name for each, such as ['age', 'income']; joined columns are "
                "groups=."
            )
    return listed
