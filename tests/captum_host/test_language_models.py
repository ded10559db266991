"""Language models through captum's LLMAttribution."""

import inspect
from types import SimpleNamespace

import captum.attr
import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, KernelShap, ShapleyValues, TextTemplateInput
from captum.attr import TextTokenInput as _TextTokenInput
from torch import nn

from captum_ext import Exact, LLMAttribution, RandomOrder, Shear, SimShap
from captum_ext.captum_tools import language_models
from shapley_adapters.errors import BudgetError, InvalidArgumentError, ShapleyExtWarning
from tests.helpers.brute_force import shapley_values
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.tolerances import Tolerances

pytestmark = pytest.mark.filterwarnings("error")

WORDS = ["<unk>", "<s>", "the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "tree"]
WORDS += ["slowly"]
PROMPT, TARGET = "the cat sat on", "a mat slowly"
# captum's results are in float32.
ROUNDING: Tolerances = {"rtol": 0, "atol": 1e-6}

every_row = pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
# captum 0.8 always runs the target token by token.
HAS_A_CHOICE = "forward_in_tokens" in inspect.signature(LLMAttribution.attribute).parameters
in_both_ways = pytest.mark.parametrize("in_tokens", [True, False] if HAS_A_CHOICE else [True])


def ways(in_tokens):
    """Return the argument that says whether the target runs token by token."""
    return {"forward_in_tokens": in_tokens} if HAS_A_CHOICE else {}


class WordTokenizer:
    """Words as tokens, with the methods that captum calls."""

    def encode(self, text, add_special_tokens=True, return_tensors=None):
        ids = [1] * add_special_tokens + [WORDS.index(word) for word in text.split()]
        return torch.tensor([ids]) if return_tensors == "pt" else ids

    def decode(self, ids, **_):
        ids = torch.as_tensor(ids).flatten().tolist()
        return " ".join(WORDS[i] for i in ids)

    def convert_ids_to_tokens(self, ids):
        return [WORDS[i] for i in ids] if isinstance(ids, list) else WORDS[ids]

    def convert_tokens_to_ids(self, tokens):
        return [WORDS.index(t) for t in tokens] if isinstance(tokens, list) else WORDS.index(tokens)

    def __call__(self, text, add_special_tokens=True, **_):
        words, offsets, start = text.split(), [(0, 0)] * add_special_tokens, 0
        for word in words:
            start = text.index(word, start)
            offsets.append((start, start + len(word)))
        return {"input_ids": self.encode(text, add_special_tokens), "offset_mapping": offsets}


class TinyLanguageModel(nn.Module):
    """Predicts the next token from all tokens so far and their order; counts its calls."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding(len(WORDS), 8)
        self.mix = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, len(WORDS))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        self.double().eval()
        self.prompts = []

    def forward(self, input_ids, attention_mask=None, use_cache=None, **_):
        assert len(input_ids) == 1, "captum runs one prompt at a time"
        self.prompts.append(input_ids[0].tolist())
        states, _ = self.mix(self.embedding(input_ids))
        return SimpleNamespace(logits=self.head(states))

    def generate(self, input_ids, max_new_tokens=3, **_):
        for _step in range(max_new_tokens):
            token = self(input_ids).logits[:, -1].argmax(dim=1, keepdim=True)
            input_ids = torch.cat([input_ids, token], dim=1)
        return input_ids


MODEL, TOKENIZER = TinyLanguageModel(), WordTokenizer()


def text_tokens(prompt=PROMPT, **options):
    """Return an input without the token that starts every text."""
    return _TextTokenInput(prompt, TOKENIZER, skip_tokens=[1], **options)


def log_probabilities(prompt_ids, target=TARGET, model=None):
    """Return the log-probability of the target and of each of its tokens, by hand."""
    target_ids = TOKENIZER.encode(target, add_special_tokens=False)
    with torch.no_grad():
        logits = (model or MODEL)(torch.tensor([prompt_ids + target_ids])).logits[0]
    logs = torch.log_softmax(logits, dim=1)
    start = len(prompt_ids) - 1
    each = [float(logs[start + i, token]) for i, token in enumerate(target_ids)]
    return np.array([sum(each), *each])


def by_hand(prompt=PROMPT, target=TARGET):
    """Return the Shapley values, (1 + T, M), of a prompt's words by the definition."""
    ids = TOKENIZER.encode(prompt)

    def value(coalition):
        kept = [1] + [t if i in coalition else 0 for i, t in enumerate(ids[1:])]
        return log_probabilities(kept, target)

    return shapley_values(len(ids) - 1, value).T


def as_given(target):
    """Return a target as ids where captum, as 0.8 does, would start its text anew."""
    if HAS_A_CHOICE or not isinstance(target, str):
        return target
    return torch.tensor(TOKENIZER.encode(target, add_special_tokens=False))


def attributed(method, inp=None, *, in_tokens=False, **arguments):
    """Return the result and the object that made it."""
    explainer = LLMAttribution(method, TOKENIZER)
    arguments = {"target": TARGET, "use_cached_outputs": False, **arguments}
    arguments["target"] = as_given(arguments["target"])
    inp = text_tokens() if inp is None else inp
    return explainer.attribute(inp, **ways(in_tokens), **arguments), explainer


# What comes out


@every_row
@in_both_ways
def test_sequences_and_tokens_get_their_shapley_values(row, in_tokens):
    method = row.attribution(MODEL, seed=0, **row.options)
    result, _ = attributed(method, in_tokens=in_tokens)
    wanted = torch.as_tensor(by_hand(), dtype=torch.float32)
    torch.testing.assert_close(result.seq_attr, wanted[0], **ROUNDING)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)
    assert result.input_tokens == PROMPT.split()
    assert result.output_tokens == TARGET.split()


@in_both_ways
def test_agrees_with_captums_exact_method_at_a_fraction_of_its_calls(in_tokens):
    MODEL.prompts.clear()
    theirs, _ = attributed(ShapleyValues(MODEL), in_tokens=in_tokens)
    n_theirs = len(MODEL.prompts)
    MODEL.prompts.clear()
    ours, explainer = attributed(Exact(MODEL), in_tokens=in_tokens)
    torch.testing.assert_close(ours.seq_attr, theirs.seq_attr, rtol=0, atol=1e-5)
    torch.testing.assert_close(ours.token_attr, theirs.token_attr, rtol=0, atol=1e-5)
    each = len(TARGET.split()) if in_tokens or not HAS_A_CHOICE else 1
    assert explainer.attr_method.last_estimate.evaluations.tolist() == [2**4]
    assert len(MODEL.prompts) == (2**4 + 3) * each  # three check that the model is deterministic
    assert n_theirs > 5 * len(MODEL.prompts)


def test_probabilities_in_place_of_their_logarithms():
    explainer = LLMAttribution(Exact(MODEL), TOKENIZER, attr_target="prob")
    result = explainer.attribute(
        text_tokens(), as_given(TARGET), use_cached_outputs=False, **ways(False)
    )
    ids = TOKENIZER.encode(PROMPT)
    ends = np.exp(log_probabilities(ids)) - np.exp(log_probabilities([1, 0, 0, 0, 0]))
    assert float(result.seq_attr.sum()) == pytest.approx(ends[0], abs=1e-6)
    assert result.token_attr.sum(dim=1).tolist() == pytest.approx(ends[1:].tolist(), abs=1e-6)


@pytest.mark.parametrize("target", ["mat", "a mat", torch.tensor([10])], ids=str)
def test_targets_of_any_length(target):
    words = target if isinstance(target, str) else TOKENIZER.decode(target)
    result, _ = attributed(Exact(MODEL), target=target)
    wanted = torch.as_tensor(by_hand(target=words), dtype=torch.float32)
    torch.testing.assert_close(result.seq_attr, wanted[0], **ROUNDING)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)


def test_targets_are_generated_where_none_is_given():
    result, _ = attributed(Exact(MODEL), target=None, gen_args={"max_new_tokens": 2})
    assert len(result.output_tokens) == 2
    wanted = torch.as_tensor(by_hand(target=" ".join(result.output_tokens)), dtype=torch.float32)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)


@every_row
def test_templates(row):
    template = TextTemplateInput(
        "the {} sat {} the {}", values=["cat", "on", "mat"], baselines=["dog", "under", "tree"]
    )

    def value(coalition):
        words = [
            present if i in coalition else absent
            for i, (present, absent) in enumerate(
                zip(["cat", "on", "mat"], ["dog", "under", "tree"], strict=True)
            )
        ]
        return log_probabilities(TOKENIZER.encode("the {} sat {} the {}".format(*words)))

    result, _ = attributed(row.attribution(MODEL, seed=0, **row.options), template)
    wanted = torch.as_tensor(shapley_values(3, value).T, dtype=torch.float32)
    torch.testing.assert_close(result.seq_attr, wanted[0], **ROUNDING)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)


def test_templates_whose_slots_go_together():
    template = TextTemplateInput("{} {} sat on {}", values=["the", "cat", "mat"], mask=[0, 0, 1])
    result, _ = attributed(Exact(MODEL), template)
    assert result.seq_attr[0] == result.seq_attr[1] != result.seq_attr[2]
    theirs, _ = attributed(ShapleyValues(MODEL), template)
    torch.testing.assert_close(result.seq_attr, theirs.seq_attr, rtol=0, atol=1e-5)


def test_feature_masks_join_tokens():
    mask = torch.tensor([[0, 0, 1, 1]])
    result, _ = attributed(Exact(MODEL), feature_mask=mask)
    theirs, _ = attributed(ShapleyValues(MODEL), feature_mask=mask)
    torch.testing.assert_close(result.token_attr, theirs.token_attr, rtol=0, atol=1e-5)


@pytest.mark.skipif(not hasattr(captum.attr, "ImageMaskInput"), reason="new in captum 0.9")
def test_images():
    image_of = pytest.importorskip("PIL.Image").fromarray
    pixels = np.zeros((2, 3, 3), dtype=np.uint8)
    pixels[..., 0] = [[2, 4, 6], [3, 5, 7]]

    def to_ids(image):  # the model reads the red channel as tokens
        red = torch.as_tensor(np.array(image)[..., 0].astype(np.int64)).reshape(1, -1)
        return {"input_ids": red % len(WORDS)}

    inp = captum.attr.ImageMaskInput(
        image_of(pixels),
        mask=torch.tensor([[0, 0, 1], [2, 2, 1]]),
        baseline=(0, 0, 0),
        processor_fn=to_ids,
    )
    result, _ = attributed(Exact(MODEL), inp)
    theirs, _ = attributed(ShapleyValues(MODEL), inp)
    torch.testing.assert_close(result.token_attr, theirs.token_attr, rtol=0, atol=1e-5)
    assert result.seq_attr.abs().min() > 1e-3


# What it costs, and what is passed on


@pytest.mark.parametrize("method", [RandomOrder, Shear])
def test_budgets_are_kept_and_prompts_run_one_at_a_time(method):
    prompt = "the cat sat on the mat under a tree"  # 2^9 coalitions
    MODEL.prompts.clear()
    result, explainer = attributed(method(MODEL, seed=0), text_tokens(prompt), n_samples=200)
    estimate = explainer.attr_method.last_estimate
    assert estimate.evaluations[0] <= 200
    each = 1 if HAS_A_CHOICE else len(TARGET.split())
    n_evaluations = estimate.evaluations[0] + estimate.check_evaluations
    assert n_evaluations <= 204  # 2 % more look for random answers
    assert len(MODEL.prompts) == n_evaluations * each
    assert (estimate.standard_errors > 0).all()
    ids = TOKENIZER.encode(prompt)
    ends = log_probabilities(ids) - log_probabilities([1] + [0] * 9)
    assert float(result.seq_attr.sum()) == pytest.approx(ends[0], abs=1e-5)
    if method is Shear:
        assert estimate.cooperators.tolist() == ["difference"]


def test_the_method_itself_is_left_as_it_is():
    method = Exact(MODEL)
    attributed(method)
    assert method.forward_func is MODEL
    assert method.last_estimate is None


def test_captums_own_methods_work_as_before():
    ours = LLMAttribution(FeatureAblation(MODEL), TOKENIZER)
    theirs = captum.attr.LLMAttribution(FeatureAblation(MODEL), TOKENIZER)
    given = {"target": TARGET, "use_cached_outputs": False}
    a, b = ours.attribute(text_tokens(), **given), theirs.attribute(text_tokens(), **given)
    assert torch.equal(a.seq_attr, b.seq_attr)
    assert torch.equal(a.token_attr, b.token_attr)
    torch.manual_seed(0)
    result = LLMAttribution(KernelShap(MODEL), TOKENIZER).attribute(
        text_tokens(), n_samples=20, **given
    )
    assert result.token_attr is None


def test_it_is_captums_class_with_captums_arguments():
    assert issubclass(LLMAttribution, captum.attr.LLMAttribution)
    assert inspect.signature(LLMAttribution) == inspect.signature(captum.attr.LLMAttribution)
    assert inspect.signature(LLMAttribution.attribute) == inspect.signature(
        captum.attr.LLMAttribution.attribute
    )
    # captum's own stays as it was.
    with pytest.raises(AssertionError, match="does not support"):
        captum.attr.LLMAttribution(Exact(MODEL), TOKENIZER)


def test_wrong_calls():
    with pytest.raises(InvalidArgumentError, match="perturbations_per_eval.*4"):
        attributed(Exact(MODEL), perturbations_per_eval=4)
    with pytest.raises(InvalidArgumentError, match=r"return_standard_error.*last_estimate"):
        attributed(Exact(MODEL), return_standard_error=True)
    with pytest.raises(BudgetError, match="n_samples=15"):
        attributed(Exact(MODEL), n_samples=15)
    with pytest.raises(TypeError, match="n_sample"):
        attributed(Exact(MODEL), n_sample=20)
    attributed(Exact(MODEL), perturbations_per_eval=1, return_standard_error=False)


def test_trained_methods_are_refused():
    pytest.importorskip("lightning")
    with pytest.raises(InvalidArgumentError, match=r"SimShap.*Pass an estimator"):
        attributed(SimShap(MODEL))


def test_its_name_reads_well():
    assert LLMAttribution(Exact(MODEL), TOKENIZER).get_name() == "LLM Attribution"


def test_trials_that_would_be_equal_are_warned_of():
    once, _ = attributed(Exact(MODEL))
    with pytest.warns(ShapleyExtWarning, match=r"num_trials=2.*n_samples"):
        twice, _ = attributed(Exact(MODEL), num_trials=2)
    torch.testing.assert_close(twice.seq_attr, once.seq_attr, **ROUNDING)


@pytest.mark.skipif(not hasattr(captum.attr, "RemoteLLMAttribution"), reason="new in captum 0.9")
def test_models_behind_an_interface():
    class Provider:
        def get_logprobs(self, input_prompt, target_str, tokenizer=None):
            ids = TOKENIZER.encode(input_prompt, add_special_tokens=False)
            return log_probabilities(ids, target_str)[1:].tolist()

    theirs = captum.attr.RemoteLLMAttribution
    explainer = language_models.RemoteLLMAttribution(
        Exact(theirs.placeholder_model), TOKENIZER, Provider()
    )
    assert isinstance(explainer, theirs)
    result = explainer.attribute(text_tokens(), TARGET)
    wanted = torch.as_tensor(by_hand(), dtype=torch.float32)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)


def test_results_can_be_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    result, _ = attributed(Exact(MODEL))
    for draw in (result.plot_token_attr, result.plot_seq_attr):
        figure, _ = draw()
        plt.close(figure)


# Models of transformers, which keep what earlier tokens took in a cache


def model_of(kind):
    """Return a tiny model with weights of its own, from its configuration."""
    transformers = pytest.importorskip("transformers")
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=len(WORDS), n_positions=32, n_embd=16, n_layer=2, n_head=2
        )
    else:
        config = transformers.LlamaConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=32,
        )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


each_kind = pytest.mark.parametrize("kind", ["gpt2", "llama"])


def shapley_of(model, target=TARGET):
    """Return the Shapley values, (1 + T, M), of the words of PROMPT, one forward pass each."""
    ids = TOKENIZER.encode(PROMPT)

    def value(coalition):
        kept = [1] + [t if i in coalition else 0 for i, t in enumerate(ids[1:])]
        return log_probabilities(kept, target, model)

    return torch.as_tensor(shapley_values(len(ids) - 1, value).T, dtype=torch.float32)


@each_kind
@pytest.mark.parametrize("target", ["mat", "a mat", TARGET])
@pytest.mark.parametrize("method", [Exact, RandomOrder, Shear, ShapleyValues])
def test_models_of_transformers_as_documented(kind, target, method):
    """With captum's defaults, through its own methods, too."""
    model = model_of(kind)
    options = {} if method in (Exact, ShapleyValues) else {"seed": 0}
    explainer = LLMAttribution(method(model, **options), TOKENIZER)
    result = explainer.attribute(text_tokens(), as_given(target))
    wanted = shapley_of(model, target)
    torch.testing.assert_close(result.seq_attr, wanted[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(result.token_attr, wanted[1:], rtol=0, atol=1e-5)


@each_kind
def test_caches_asked_for_are_right_or_refused(kind):
    model = model_of(kind)
    explainer = LLMAttribution(Exact(model), TOKENIZER)
    wanted = shapley_of(model)
    if int(pytest.importorskip("transformers").__version__.partition(".")[0]) >= 5:
        with pytest.raises(
            InvalidArgumentError, match="use_cached_outputs=True cannot.*in addition"
        ):
            explainer.attribute(text_tokens(), as_given(TARGET), use_cached_outputs=True)
    else:
        result = explainer.attribute(text_tokens(), as_given(TARGET), use_cached_outputs=True)
        torch.testing.assert_close(result.token_attr, wanted[1:], rtol=0, atol=1e-5)
    # One token needs no cache, and asking once says nothing about the next call.
    alone = explainer.attribute(text_tokens(), as_given("mat"), use_cached_outputs=True)
    torch.testing.assert_close(alone.token_attr, shapley_of(model, "mat")[1:], rtol=0, atol=1e-5)
    result = explainer.attribute(text_tokens(), as_given(TARGET))
    torch.testing.assert_close(result.token_attr, wanted[1:], rtol=0, atol=1e-5)


class CachingModel(TinyLanguageModel):
    """With a cache, the state of its recurrent layer; `cuts` says whether tokens come only once."""

    def __init__(self, *, cuts):
        super().__init__()
        self.cuts = cuts

    def forward(  # type: ignore[override] # with a cache instead
        self, input_ids, past_key_values=None, **_
    ):
        self.prompts.append(input_ids[0].tolist())
        states, last = self.mix(self.embedding(input_ids), past_key_values)
        return SimpleNamespace(logits=self.head(states), past_key_values=last)

    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, **_):
        if self.cuts and past_key_values is not None:
            input_ids = input_ids[:, -1:]
        return {"input_ids": input_ids, "past_key_values": past_key_values}

    def _update_model_kwargs_for_generation(self, outputs, arguments):
        return {**arguments, "past_key_values": outputs.past_key_values}


@pytest.mark.parametrize("cuts", [True, False])
def test_caches_are_used_where_each_step_holds_one_token(cuts):
    model = CachingModel(cuts=cuts)
    explainer = LLMAttribution(Exact(model), TOKENIZER)
    result = explainer.attribute(text_tokens(), as_given(TARGET))
    wanted = torch.as_tensor(by_hand(), dtype=torch.float32)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)
    n_tokens = len(TARGET.split())
    # One pass looks at the steps; three evaluations check that the model is deterministic.
    assert len(model.prompts) == 1 + (2**4 + 3) * n_tokens
    assert len(model.prompts[-1]) == (1 if cuts else 5 + n_tokens - 1)
    if cuts:
        explainer.attribute(text_tokens(), as_given(TARGET), use_cached_outputs=True)
    else:
        with pytest.raises(
            InvalidArgumentError, match=r"use_cached_outputs=True cannot.*in addition"
        ):
            explainer.attribute(text_tokens(), as_given(TARGET), use_cached_outputs=True)


def test_models_without_a_cache():
    result = LLMAttribution(Exact(MODEL), TOKENIZER).attribute(text_tokens(), as_given(TARGET))
    wanted = torch.as_tensor(by_hand(), dtype=torch.float32)
    torch.testing.assert_close(result.token_attr, wanted[1:], **ROUNDING)
    with pytest.raises(InvalidArgumentError, match="lacks the methods"):
        attributed(Exact(MODEL), in_tokens=True, use_cached_outputs=True)


def test_gradients_of_language_models_use_no_cache():
    """captum's LLMGradientAttribution needs no class here: its numbers are right."""
    model = model_of("gpt2")
    method = captum.attr.LayerGradientXActivation(model, model.transformer.wte)
    explainer = captum.attr.LLMGradientAttribution(method, TOKENIZER)
    result = explainer.attribute(text_tokens(), as_given(TARGET))
    ids, target_ids = TOKENIZER.encode(PROMPT), TOKENIZER.encode(TARGET, False)
    embedded = model.transformer.wte(torch.tensor([ids + target_ids])).detach().requires_grad_()
    logs = torch.log_softmax(model(inputs_embeds=embedded).logits[0], dim=1)
    for step, token in enumerate(target_ids):
        (slopes,) = torch.autograd.grad(
            logs[len(ids) - 1 + step, token], embedded, retain_graph=True
        )
        wanted = (slopes * embedded).sum(-1)[0, 1 : len(ids)]
        torch.testing.assert_close(result.token_attr[step], wanted.detach(), rtol=0, atol=1e-5)
