"""captum's LLMAttribution with the methods of this package: its arguments, inputs and results."""

import importlib.util
import inspect
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch
from captum.attr import (
    FeatureAblation,
    KernelShap,
    ProductBaselines,
    Saliency,
    ShapleyValues,
    ShapleyValueSampling,
    TextTemplateInput,
)
from captum.attr import TextTokenInput as _TextTokenInput

from captum_ext import Exact, LLMAttribution, RandomOrder, RemoteLLMAttribution, Shear, SimShap
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtError
from tests.helpers.brute_force import shapley_values
from tests.helpers.estimator_table import every_row
from tests.helpers.language_models import (
    WORDS,
    TinyLanguageModel,
    WordTokenizer,
    log_probabilities_by,
    transformer,
)
from tests.helpers.tolerances import EXACT, Tolerances

pytestmark = pytest.mark.filterwarnings("error")

PROMPT, TARGET = "the cat sat on", "a mat slowly"

needs_networks = pytest.mark.skipif(
    importlib.util.find_spec("safetensors") is None, reason="safetensors is not installed"
)

MODEL, TOKENIZER = TinyLanguageModel(), WordTokenizer()


def text_tokens(prompt=PROMPT, **options):
    """Return an input without the token that starts every text."""
    return _TextTokenInput(prompt, TOKENIZER, skip_tokens=[1], **options)


def log_probabilities(prompt_ids, target=TARGET, model=MODEL):
    """Return the log-probability of the target and of each of its tokens, by hand."""
    target_ids = TOKENIZER.encode(target, add_special_tokens=False)
    return np.array(log_probabilities_by(model, prompt_ids, target_ids))


def by_hand(prompt=PROMPT, target=TARGET, model=MODEL):
    """Return the Shapley values, (1 + T, M), of a prompt's words by the definition."""
    ids = TOKENIZER.encode(prompt)

    def value(coalition):
        kept = [1] + [t if i in coalition else 0 for i, t in enumerate(ids[1:])]
        return log_probabilities(kept, target, model)

    return torch.as_tensor(shapley_values(len(ids) - 1, value).T.copy())


def attributed(method, inp=None, **arguments):
    """Return the result and the object that made it."""
    explainer = LLMAttribution(method, TOKENIZER)
    inp = text_tokens() if inp is None else inp
    return explainer.attribute(inp, **{"target": TARGET, **arguments}), explainer


# What comes out


@every_row
def test_sequences_and_tokens_get_their_shapley_values(row):
    method = row.attribution(MODEL, seed=0, **row.options)
    result, _ = attributed(method)
    wanted = by_hand()
    torch.testing.assert_close(result.seq_attr, wanted[0], **EXACT)
    torch.testing.assert_close(result.token_attr, wanted[1:], **EXACT)
    assert result.input_tokens == PROMPT.split()
    assert result.output_tokens == TARGET.split()


def test_targets_are_generated_where_none_is_given():
    result, _ = attributed(Exact(MODEL), target=None, gen_args={"max_new_tokens": 2})
    assert len(result.output_tokens) == 2
    wanted = by_hand(target=" ".join(result.output_tokens))
    torch.testing.assert_close(result.token_attr, wanted[1:], **EXACT)


@pytest.mark.parametrize("overlaps", [False, True])
def test_images(overlaps):
    image_of = pytest.importorskip("PIL.Image").fromarray
    pixels = np.zeros((2, 3, 3), dtype=np.uint8)
    pixels[..., 0] = [[2, 4, 6], [3, 5, 7]]

    def to_ids(image):  # the model reads the red channel as tokens
        red = torch.as_tensor(np.array(image)[..., 0].astype(np.int64)).reshape(1, -1)
        return {"input_ids": red % len(WORDS)}

    labels = torch.tensor([[0, 0, 1], [2, 2, 1]])
    parts = [labels == 0, labels == 1, labels > 0]
    inp = captum.attr.ImageMaskInput(
        image_of(pixels),
        **({"mask_list": parts} if overlaps else {"mask": labels}),
        baseline=(0, 0, 0),
        processor_fn=to_ids,
    )
    result, _ = attributed(Exact(MODEL), inp)
    theirs, _ = attributed(ShapleyValues(MODEL), inp)
    torch.testing.assert_close(result.token_attr.float(), theirs.token_attr, rtol=0, atol=1e-5)
    assert result.seq_attr.abs().min() > 1e-3
    if overlaps:
        inp.mask_list[1] = torch.zeros_like(labels, dtype=torch.bool)
        with pytest.raises(InvalidArgumentError, match=r"mask_list\[1\] has no pixels"):
            attributed(Exact(MODEL), inp)


# What it costs, and what is passed on


def test_the_method_itself_is_left_as_it_is():
    method = Exact(MODEL)
    attributed(method)
    assert method.forward_func is MODEL
    assert method.last_estimate is None


@pytest.mark.parametrize("per_pass", [1, 4])
@pytest.mark.parametrize("method", [FeatureAblation, ShapleyValueSampling, KernelShap])
def test_captums_own_methods_give_their_numbers_in_fewer_passes(method, per_pass):
    target = torch.tensor(TOKENIZER.encode(TARGET, add_special_tokens=False))
    options: dict[str, Any] = {} if method is FeatureAblation else {"n_samples": 20}
    results, passes = [], []
    for kind in (LLMAttribution, captum.attr.LLMAttribution):
        more: dict[str, Any] = {"use_cached_outputs": False}
        if kind is LLMAttribution:
            more = {"perturbations_per_eval": per_pass}
        torch.manual_seed(0)
        MODEL.n_passes = 0
        explainer = kind(method(MODEL), TOKENIZER)
        results.append(explainer.attribute(text_tokens(), target, **options, **more))
        passes.append(MODEL.n_passes)
    ours, theirs = results
    torch.testing.assert_close(ours.seq_attr.float(), theirs.seq_attr, rtol=0, atol=1e-5)
    assert passes[0] < passes[1]
    if method is KernelShap:
        assert ours.token_attr is None
    else:
        torch.testing.assert_close(ours.token_attr.float(), theirs.token_attr, rtol=0, atol=1e-5)


def test_trials_of_captums_methods_are_averaged():
    torch.manual_seed(0)
    one, two = (attributed(ShapleyValueSampling(MODEL), n_samples=2)[0] for _ in range(2))
    torch.manual_seed(0)
    both, _ = attributed(ShapleyValueSampling(MODEL), n_samples=2, num_trials=2)
    torch.testing.assert_close(both.token_attr, (one.token_attr + two.token_attr) / 2)


def test_it_is_captums_class_with_captums_arguments():
    assert issubclass(LLMAttribution, captum.attr.LLMAttribution)
    ours, theirs = map(inspect.signature, (LLMAttribution, captum.attr.LLMAttribution))
    assert list(ours.parameters) == list(theirs.parameters)
    assert ours.parameters["attr_target"].default == theirs.parameters["attr_target"].default
    names = list(inspect.signature(captum.attr.LLMAttribution.attribute).parameters)
    assert list(inspect.signature(LLMAttribution.attribute).parameters)[:3] == names[:3]
    # captum's own stays as it was.
    with pytest.raises(AssertionError, match="does not support"):
        captum.attr.LLMAttribution(Exact(MODEL), TOKENIZER)


class Provider:
    """A model behind an interface whose first calls fail."""

    def __init__(self, n_failures=0):
        self.n_failures, self.n_calls = n_failures, 0

    def get_logprobs(self, input_prompt, target_str, tokenizer=None):
        self.n_calls += 1
        if self.n_calls <= self.n_failures:
            raise ConnectionError("lost")
        ids = TOKENIZER.encode(input_prompt, add_special_tokens=False)
        return log_probabilities(ids, target_str)[1:].tolist()


class Writer(Provider):
    def generate(self, prompt, max_new_tokens=3, **_):
        return " ".join(TARGET.split()[:max_new_tokens])


def remote(provider, kind=RemoteLLMAttribution, method: Any = Exact, **options):
    placeholder: Any = captum.attr.RemoteLLMAttribution.placeholder_model
    return kind(method(placeholder), TOKENIZER, provider, **options)


def test_models_behind_an_interface(monkeypatch, tmp_path):
    monkeypatch.setattr("shapley_adapters.remote._FIRST_WAIT", 1e-3)
    provider = Provider(n_failures=2)
    memory = {"memory": tmp_path / "paid", "name": "tiny"}
    explainer = remote(provider, concurrency=2, cost=0.5, **memory)
    assert isinstance(explainer, captum.attr.RemoteLLMAttribution)
    result = explainer.attribute(text_tokens(), TARGET)
    torch.testing.assert_close(result.token_attr, by_hand()[1:], **EXACT)
    usage = result.estimate.usage
    assert usage.retries == 2 and usage.calls == provider.n_calls
    assert usage.money == 0.5 * usage.rows == 0.5 * 2**4
    again = remote(provider, **memory).attribute(text_tokens(), TARGET)
    assert torch.equal(again.token_attr, result.token_attr)
    assert again.estimate.usage.calls == 0
    theirs = remote(Provider(), captum.attr.RemoteLLMAttribution, ShapleyValues).attribute(
        text_tokens(), TARGET
    )
    torch.testing.assert_close(result.token_attr.float(), theirs.token_attr, rtol=0, atol=1e-5)


def test_remote_models_write_a_target_where_none_is_given():
    result = remote(Writer()).attribute(text_tokens(), gen_args={"max_new_tokens": 2})
    torch.testing.assert_close(result.token_attr, by_hand(target="a mat")[1:], **EXACT)
    with pytest.raises(InvalidArgumentError, match=r"no method generate.*target="):
        remote(Provider()).attribute(text_tokens())
    with pytest.raises(TypeError, match="concurency"):
        remote(Provider(), concurency=2)


# Models of transformers


@pytest.mark.parametrize(("kind", "target"), [("gpt2", TARGET), ("llama", "mat")])
@pytest.mark.parametrize("method", [Exact, RandomOrder, Shear, ShapleyValues])
def test_models_of_transformers_as_documented(kind, target, method):
    """With captum's defaults, through its own methods, too: its cache would be wrong."""
    model = transformer(kind)
    options = {} if method in (Exact, ShapleyValues) else {"seed": 0}
    explainer = LLMAttribution(method(model, **options), TOKENIZER)
    result = explainer.attribute(text_tokens(), target)
    # captum computes in single precision, and so do logits of Llama of transformers 4.
    in_double = result.seq_attr.dtype == torch.float64
    tolerance: Tolerances = EXACT if in_double else {"rtol": 0, "atol": 1e-5}
    wanted = by_hand(target=target, model=model).to(result.seq_attr)
    torch.testing.assert_close(result.seq_attr, wanted[0], **tolerance)
    torch.testing.assert_close(result.token_attr, wanted[1:], **tolerance)


PAIR: Any = ["cat", "sat"]
NAMED: Any = {"a": "cat", "b": "sat"}


@pytest.mark.parametrize(
    ("parts", "baselines", "message"),
    [
        (PAIR, ProductBaselines([["dog"]]), r"baselines.*1 value.*2 parts"),
        (PAIR, ProductBaselines([["dog"], []]), r"baselines.*list 1.*no value"),
        (NAMED, ProductBaselines({"a": ["dog"]}), "baselines.*'b'"),
        (PAIR, lambda: "dog", "baselines.*list of 2 texts"),
        (PAIR, lambda: ["dog"], "baselines.*list of 2 texts"),
        (NAMED, lambda: ["dog", "ran"], "baselines.*dict.*'a', 'b'.*list"),
    ],
)
@pytest.mark.parametrize("make", [Exact, FeatureAblation])
def test_functions_of_baselines_that_do_not_fit(parts, baselines, message, make):
    template = "the {a} {b}" if parts is NAMED else "the {} {}"
    with pytest.raises(InvalidArgumentError, match=message):
        attributed(make(MODEL), TextTemplateInput(template, parts, baselines))


def long_tokens():
    return text_tokens(2 * f"{PROMPT} ")


def of_method(method, tokenizer: Any = TOKENIZER, *unit):
    return LLMAttribution(method, tokenizer, *unit)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: of_method(Saliency(MODEL)), "attr_method.*Saliency.*Best"),
        (lambda: of_method(Exact(lambda x: x.sum(1))), "forward_func.*module.*function"),
        (lambda: of_method(Exact(torch.nn.Identity())), "forward_func.*device"),
        (lambda: of_method(Exact(MODEL), TOKENIZER, "logprob"), "attr_target.*log_prob.*'logprob'"),
        (lambda: of_method(Exact(MODEL), None), "tokenizer.*encode.*NoneType"),
        (lambda: attributed(Exact(MODEL), n_samples=15), "n_samples=15"),
        (lambda: attributed(Exact(MODEL), n_sample=20), "n_sample"),
        (lambda: attributed(Exact(MODEL), gen_args={"a": 2}), "gen_args.*target is given"),
        (
            lambda: attributed(Shear(MODEL, cooperators="hessian"), long_tokens(), n_samples=60),
            "the parts of a prompt are there or not",
        ),
        pytest.param(
            lambda: attributed(SimShap(MODEL)), r"SimShap.*Pass an estimator", marks=needs_networks
        ),
        *(
            (lambda make=make, n=n: attributed(make(MODEL), num_trials=n), "num_trials")
            for make, n in ((Exact, 0), (FeatureAblation, "2"), (Exact, 1.5))
        ),
    ],
)
def test_wrong_calls(call, words):
    with pytest.raises((ShapleyExtError, TypeError), match=words):
        call()
