"""Models that read with an encoder and write with a decoder, as T5 and BART, in both hosts."""

import numpy as np
import pytest
import shap
import torch
from captum.attr import FeatureAblation, TextTemplateInput, TextTokenInput

import shap_ext
from captum_ext import Exact, LLMAttribution
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.helpers.brute_force import shapley_values
from tests.helpers.language_models import (
    TinyLanguageModel,
    encoder_decoder,
    fast_tokenizer,
    prompts_of_passes,
    transformer,
)
from tests.helpers.tolerances import EXACT

pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("error")

PROMPT, TARGET, OTHER = "the cat sat on", "a mat slowly", "the dog"


def log_probabilities(model, ids, target=TARGET):
    """Return the log-probability of a target and of its tokens, one prompt at a time."""
    answer = fast_tokenizer().encode(target)
    with torch.no_grad():
        decoder_ids = torch.tensor([[model.config.decoder_start_token_id, *answer[:-1]]])
        logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=decoder_ids).logits[0]
    logs = torch.log_softmax(logits, dim=1)[torch.arange(len(answer)), answer].numpy()
    return np.array([logs.sum(), *logs])


each_kind = pytest.mark.parametrize("kind", ["t5", "bart"])


@each_kind
def test_tokens_have_their_shapley_values(kind):
    model, tokenizer = encoder_decoder(kind), fast_tokenizer()
    sizes = prompts_of_passes(model)
    result = LLMAttribution(Exact(model), tokenizer).attribute(
        TextTokenInput(PROMPT, tokenizer), TARGET
    )
    ids = tokenizer.encode(PROMPT)

    def value(coalition):
        return log_probabilities(model, [t if i in coalition else 0 for i, t in enumerate(ids)])

    assert max(sizes) > 1
    wanted = torch.as_tensor(shapley_values(4, value).T.copy())
    torch.testing.assert_close(result.seq_attr, wanted[0], **EXACT)
    torch.testing.assert_close(result.token_attr, wanted[1:], **EXACT)


@each_kind
def test_prompts_of_several_lengths_are_padded(kind):
    model, parts = encoder_decoder(kind), ["the cat", "sat", "on the mat"]
    explainer = LLMAttribution(Exact(model), fast_tokenizer())
    inp = TextTemplateInput(lambda *texts: " ".join(filter(None, ("dog", *texts))), parts)
    result = explainer.attribute(inp, TARGET, contrast=OTHER)

    def value(coalition):
        kept = ["dog", *(text for i, text in enumerate(parts) if i in coalition)]
        ids = fast_tokenizer().encode(" ".join(kept))
        return log_probabilities(model, ids)[0] - log_probabilities(model, ids, OTHER)[0]

    torch.testing.assert_close(result.seq_attr, torch.as_tensor(shapley_values(3, value)), **EXACT)


@each_kind
def test_the_model_writes_the_answer(kind):
    model, tokenizer = encoder_decoder(kind), fast_tokenizer()
    gen_args = {"max_new_tokens": 3, "do_sample": False}
    ids = torch.tensor([tokenizer.encode(PROMPT)])
    wanted = model.generate(ids, **gen_args)[0, 1:].tolist()
    inp = TextTokenInput(PROMPT, tokenizer)
    explainer = LLMAttribution(Exact(model), tokenizer)
    result = explainer.attribute(inp, gen_args=gen_args)
    assert result.output_tokens == tokenizer.convert_ids_to_tokens(wanted)
    of_captum = LLMAttribution(FeatureAblation(model), tokenizer).attribute(inp, gen_args=gen_args)
    assert of_captum.output_tokens == result.output_tokens
    # Answers to prompts of several lengths are those to each of them.
    texts = explainer._answering_model().texts(["the cat", "a mat under the tree"], gen_args)
    for prompt, text in zip(["the cat", "a mat under the tree"], texts, strict=True):
        ids = torch.tensor([tokenizer.encode(prompt)])
        assert text == tokenizer.decode(model.generate(ids, **gen_args)[0, 1:])


def test_they_run_through_shap():
    model, tokenizer = encoder_decoder("t5"), fast_tokenizer()
    wrapped = shap_ext.models.LanguageModel(model, tokenizer, lambda text: f"dog {text}".strip())
    masker = shap_ext.maskers.TextSegments("words", mask_token="")
    found = shap.Explainer(wrapped, masker, algorithm="enumeration")(["the cat sat"], [TARGET])
    words = ["the", "cat", "sat"]

    def value(coalition):
        kept = ["dog", *(word for i, word in enumerate(words) if i in coalition)]
        return log_probabilities(model, tokenizer.encode(" ".join(kept)))

    np.testing.assert_allclose(found.values[0], shapley_values(3, value), rtol=0, atol=1e-10)


def test_positions_of_encoder_and_decoder_are_counted_apart():
    tokenizer = fast_tokenizer()
    explainer = LLMAttribution(Exact(encoder_decoder("bart")), tokenizer)
    explainer.attribute(TextTemplateInput("{} sat", ["the cat " * 5]), "the cat " * 6)
    with pytest.raises(InvalidArgumentError, match="12"):
        explainer.attribute(TextTemplateInput("{} sat", ["the cat " * 6]), "the")
    with pytest.raises(InvalidArgumentError, match="12"):
        explainer.attribute(TextTemplateInput("{} sat", ["the"]), "the cat " * 6 + "sat")


# Two start tokens


class Starting:
    """A tokenizer that begins each text with a start token, which a chat template writes, too."""

    def __init__(self):
        self.inner = fast_tokenizer()
        self.bos_token, self.bos_token_id = "<s>", 1

    def encode(self, text, add_special_tokens=True, return_tensors=None):
        ids = [1] * add_special_tokens + self.inner.encode(text)
        return torch.tensor([ids]) if return_tensors else ids

    def __call__(self, text, **options):
        return self.inner(text, **options)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("host", "model"), [("captum", "tiny"), ("shap", "gpt2"), ("captum", "bart"), ("shap", "bart")]
)
def test_two_start_tokens_are_warned_of_once(host, model):
    made = {"tiny": TinyLanguageModel, "gpt2": lambda: transformer("gpt2")}.get(
        model, lambda: encoder_decoder("bart")
    )()

    def explain(template):
        if host == "captum":
            inp = TextTemplateInput(template, ["the cat", "a dog"])
            LLMAttribution(Exact(made), Starting()).attribute(inp, TARGET)
        else:
            wrapped = shap_ext.models.LanguageModel(made, Starting(), template)
            masker = shap_ext.maskers.TextSegments("words", mask_token="")
            shap.Explainer(wrapped, masker, algorithm="enumeration")(["the cat"], [TARGET])

    slots = "{} {}" if host == "captum" else "{}"
    with pytest.warns(ShapleyExtWarning, match=r"begins with <s> twice.*removeprefix") as caught:
        explain(f"<s> {slots} sat")
    assert len(caught) == 1
    explain(f"{slots} sat")
