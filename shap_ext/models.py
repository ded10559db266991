"""Models beside those of shap: answers of language models, and conditional means by regressors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import shap

from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray, ValueArray
from shapley_adapters.conditional import regression
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import floats_from_frame
from shapley_adapters.remote import Usage

from .argument_types import Rows, Table
from .inputs.datasets import converted, dense_table, plain_rows
from .inputs.models import empty_table, in_native_frames, prediction_function
from .shap_internals import SavedByArguments

if TYPE_CHECKING:
    from shapley_adapters.language_models.answers import Answers
    from shapley_adapters.language_models.causal_model import AnswersPrompts

__all__ = ["ConditionalMean", "LanguageModel"]

_GEN_ARGS = {"max_new_tokens": 25, "do_sample": False}
"""How an answer is written by default, as in captum: the most likely tokens."""


class ConditionalMean(regression.ConditionalMean[Rows]):
    """With its `reference` as the masker, it takes the place of the model in any explainer.

    Examples
    --------
    >>> import numpy as np
    >>> import shap
    >>> import shap_ext
    >>> rng = np.random.default_rng(0)
    >>> first = rng.normal(size=1000)
    >>> X = np.column_stack([first, first + rng.normal(size=1000)])
    >>> predicted = shap_ext.models.ConditionalMean(lambda x: 4 * x[:, 0], X)
    >>> explainer = shap.Explainer(predicted, predicted.reference, algorithm="enumeration", seed=0)
    >>> explainer([[1.0, 2.0]]).values.round()  # the second column tells the first one
    array([[2., 2.]])
    """

    _data_text = "array or DataFrame, (N, D)"

    def _read(self, data: Rows) -> tuple[npt.NDArray[Any], Any, Any]:
        rows, dataset = plain_rows(data, "data"), dense_table(data)
        self._predict = in_native_frames(prediction_function(self.model), [empty_table(data)])
        self._columns, self._dtypes = dataset.columns, dataset.dtypes
        return dataset.array(), self._columns, rows

    def _evaluated(self, rows: Any) -> Any:
        types = self._dtypes  # beside NaN, columns hold floats
        return self._predict(np.asarray(rows) if types is None else converted(rows, types))

    def __call__(self, rows: Table) -> ValueArray:
        """Return the outputs, (R,) or (R, K), of rows whose absent values are NaN."""
        is_frame = isinstance(rows, pd.DataFrame)
        numbers = floats_from_frame(rows) if is_frame else np.asarray(rows, dtype=np.float64)
        return self._means(numbers, lambda selected: rows[selected])

    @property
    def reference(self) -> FloatArray | pd.DataFrame:
        """A row of which nothing is present, the masker that goes with this model."""
        row = np.full_like(self._data[:1], np.nan)
        return row if self._columns is None else pd.DataFrame(row, columns=self._columns)


class LanguageModel(SavedByArguments, shap.models.TeacherForcing):  # type: ignore[misc] # shap is untyped
    """Scores of the answer of a causal language model to masked prompts.

    It takes the place of `shap.models.TeacherForcing`. Prompts run in batches, with the positions
    that they have alone, and the model reads the whole answer together with the prompt: one pass
    for all tokens. Outputs are the log-probability of the whole answer and of each of its tokens,
    from the same evaluations.

    The answers to explain are the second argument of the explainer, a text for each row; without
    it, the model writes them first. `shap_ext.maskers.TextSegments` makes sentences or retrieved
    passages the players, `shap.maskers.Text(tokenizer)` tokens.

    Parameters
    ----------
    model : causal language model of transformers, or provider
        The model; or one behind an interface, with the methods of `captum.attr.RemoteLLMProvider`:
        `get_logprobs(input_prompt, target_str, tokenizer)` returns the log-probability of each
        token of the target, and `generate(prompt, **gen_args)` a text.
    tokenizer : tokenizer
        Its tokenizer.
    template : str or function, optional
        What is around the masked text and always present, such as a question: a text with one
        `{}`, or a function from the masked text to the prompt, such as one that calls
        `tokenizer.apply_chat_template`. The prompt is a text, or a tensor of tokens, (1, L).
    score : {"log_prob", "prob"} or function
        Whether log-probabilities or probabilities of the answer are explained. A function gets the
        answers to P prompts and returns P numbers: `answers.logits`, (P, T, vocabulary), and
        `answers.log_probs`, (P, T), belong to the T tokens of the answer; `answers.texts` are P
        texts that the model writes itself, as `gen_args` say.
    contrast : str, optional
        Another answer: the score of the answer less that of the other is explained, in two passes.
    gen_args : dict, optional
        Arguments of the model's `generate`. By default it writes the 25 most likely tokens.
    seed : int, optional
        The seed of answers that are sampled (`do_sample=True`). Equal calls with equal batches
        (`batch_size=`) then give equal results. `repeats=` of the explainer evaluates each
        coalition several times, and errors hold the noise.
    remote_options : dict, optional
        For a provider: options of `RemoteModel`, such as `concurrency`, `retries` and `memory`.

    Raises
    ------
    InvalidArgumentError
        By the explainer, before the first evaluation: an answer has no token or unknown ones, or a
        prompt and its answer need more positions than the model has.

    Examples
    --------
    Which sentences of a context lead to an answer, by a network and a tokenizer of transformers::

        model = shap_ext.models.LanguageModel(network, tokenizer, "Context: {} Where is she?")
        masker = shap_ext.maskers.TextSegments("sentences", mask_token="")
        explainer = shap.Explainer(model, masker, algorithm="oddgp")
        explanation = explainer([context], ["In Paris."])
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        template: str | Callable[[str], Any] | None = None,
        score: str | Callable[[Answers], Any] = "log_prob",
        contrast: str | None = None,
        gen_args: Mapping[str, Any] | None = None,
        seed: int | None = None,
        remote_options: Mapping[str, Any] | None = None,
    ) -> None:
        shap.models.Model.__init__(self, model)  # that of TeacherForcing changes the tokenizer
        if isinstance(template, str) and template.count("{}") != 1:
            raise InvalidArgumentError(
                f"template must have one {{}}, where the masked text stands; {template!r} has "
                f"{template.count('{}')}."
            )
        if not callable(score):
            checked_choice("score", score, ("log_prob", "prob"))
        elif contrast is not None:
            raise InvalidArgumentError(
                "contrast cannot be used where score is a function: let it compare both."
            )
        self.model, self.tokenizer, self.template = model, tokenizer, template
        self.score, self.contrast, self.gen_args = score, contrast, gen_args
        self.seed, self.remote_options = seed, remote_options
        self._model = _answering_model(model, tokenizer, remote_options)
        self._scorer: Any = None  # of the stored answer
        self.output: Any = None
        self.output_names: Any = None
        self._n_calls = 0

    @property
    def rounding(self) -> float:
        """The relative rounding error of the model."""
        return self._model.rounding

    @property
    def answers_at_random(self) -> bool:
        """Whether the score may depend on texts that the model draws at random."""
        return callable(self.score) and self._model.samples(self.gen_args or _GEN_ARGS)

    @property
    def usage(self) -> Usage | None:
        """What a model behind an interface was used for so far."""
        return getattr(self._model, "usage", None)

    @property
    def rows_at_once(self) -> int | None:
        """The prompts that keep a model behind an interface busy; None for others."""
        return getattr(self._model, "rows_at_once", None)

    def text_generate(self, text: str) -> npt.NDArray[np.intp]:
        """Return the tokens that the model writes after a prompt, (1, T)."""
        from shapley_adapters.language_models.answers import check_answer

        prompt = self._prompt(text)
        self._model.check(prompt, 1)
        with self._seeded():
            tokens = self._model.generated(prompt, self.gen_args or _GEN_ARGS)
        check_answer("The answer", None, tokens, self._model)
        return np.asarray(tokens)[None]

    def update_output_names(self, output: npt.NDArray[Any]) -> None:
        """Store the answer of a row, a text, (1,), or tokens, (1, T), and name its outputs."""
        if self.output is not None and np.array_equal(self.output, output):
            return
        from shapley_adapters.language_models.answers import AnswerScorer, checked_answer

        answer = output[0] if output.ndim > 1 else str(output[0])
        tokens, contrast = checked_answer("The answer", answer, self._model), None
        if self.contrast is not None:
            contrast = checked_answer("contrast", self.contrast, self._model)
        gen_args = self.gen_args or _GEN_ARGS
        self._scorer = AnswerScorer(self._model, tokens, contrast, self.score, gen_args)
        self.output, self.output_names = output, self._names(tokens.tolist())

    def check_prompt(self, text: str) -> None:
        """Refuse a masked text that the model cannot read together with the stored answer."""
        answers = (self._scorer.target, self._scorer.contrast)
        n_tokens = max(len(tokens) for tokens in answers if tokens is not None)
        self._model.check(self._prompt(text), n_tokens)

    def __call__(
        self, X: Sequence[str] | npt.NDArray[Any], Y: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """Return the scores of the answers to masked texts, (P, K).

        Parameters
        ----------
        X : array of texts, (P,)
            The masked texts.
        Y : array, (P,) or (P, T)
            The answer, P times: a text, or tokens.
        """
        self.update_output_names(Y[:1])
        self._n_calls += 1
        with self._seeded():
            return np.asarray(self._scorer([self._prompt(text) for text in X]).cpu())

    def _prompt(self, text: str) -> Any:
        text = str(text)  # NumPy's have other operations
        if callable(self.template):
            return self.template(text)
        return text if self.template is None else self.template.replace("{}", text)

    def _names(self, tokens: Sequence[int]) -> list[str]:
        if callable(self.score):
            return [getattr(self.score, "__name__", "score")]
        if self.contrast is not None:
            return [f"{self.tokenizer.decode(tokens)} rather than {self.contrast}"]
        return ["whole answer", *(self.tokenizer.decode([token]).strip() for token in tokens)]

    def _seeded(self) -> Any:
        from shapley_adapters.torch_support.random_state import seeded

        seed, device = self.seed, getattr(self._model, "device", None)
        if seed is not None:
            seed = int(np.random.SeedSequence([seed, self._n_calls]).generate_state(1)[0])
        return seeded(seed, device)


def _answering_model(
    model: Any, tokenizer: Any, options: Mapping[str, Any] | None
) -> AnswersPrompts:
    """Return a model of transformers, or one behind an interface, as one that answers prompts."""
    if callable(getattr(model, "get_logprobs", None)):
        from shapley_adapters.language_models.remote_language_model import RemoteLanguageModel

        return RemoteLanguageModel(model, tokenizer, options or {})
    if options is not None:
        raise InvalidArgumentError(
            f"remote_options are for a provider; model is a {type(model).__name__}. Leave them out."
        )
    from shapley_adapters.language_models.encoder_decoder_model import language_model
    from shapley_adapters.torch_support.array_module import warn_in_training_mode

    warn_in_training_mode(model)
    return language_model(model, tokenizer, next(model.parameters()).device)
