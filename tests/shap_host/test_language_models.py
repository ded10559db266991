"""Answers of language models through shap: the numbers by hand, the passes, chance, bad input."""

import pickle
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError
from tests.helpers.brute_force import shapley_values
from tests.helpers.optional import HAS_TORCH, torch
from tests.shap_host.games import reloaded

if not HAS_TORCH:
    pytest.skip("needs torch", allow_module_level=True)

from tests.helpers.language_models import (
    WORDS,
    TinyLanguageModel,
    WordTokenizer,
    fast_tokenizer,
    log_probabilities_by,
    prompts_of_passes,
    transformer,
)

SENTENCES = ["the cat ran slowly . ", "a dog . ", "on the mat under a tree ."]
CONTEXT = "".join(SENTENCES)
TEMPLATE, TARGET = "the dog {} sat", "on a tree"


def without_stops(text):
    """Return a prompt in the words of the tiny models, which have no full stops."""
    return TEMPLATE.replace("{}", text.replace(".", ""))


def ids_of(text, start=()):
    return [*start, *(WORDS.index(word) for word in text.split())]


def oracle(score, sentences=SENTENCES):
    """Return the Shapley values of a score of prompts, one prompt at a time."""

    def value(coalition):
        kept = [text for i, text in enumerate(sentences) if i in coalition]
        return score(without_stops("".join(kept)))

    return shapley_values(len(sentences), value)


def explained(model, texts=(CONTEXT,), *targets, name="enumeration", masker=None, **options):
    if masker is None:
        masker = shap_ext.maskers.TextSegments("sentences", mask_token="")
    explainer = shap.Explainer(model, masker, algorithm=name, seed=0)
    return explainer(list(texts), *targets, **options), explainer


def wrapped(network, tokenizer=None, **options):
    tokenizer = tokenizer or fast_tokenizer()
    return shap_ext.models.LanguageModel(network, tokenizer, without_stops, **options)


def of_tiny(**options):
    return wrapped(TinyLanguageModel(), WordTokenizer(), **options)


@pytest.mark.parametrize(("kind", "side"), [("gpt2", "left"), ("llama", "right")])
def test_sentences_have_their_shapley_values(kind, side):
    network = transformer(kind)
    sv, _ = explained(wrapped(network, fast_tokenizer(side)), [CONTEXT], [TARGET])
    wanted = oracle(
        lambda prompt: np.array(log_probabilities_by(network, ids_of(prompt), ids_of(TARGET)))
    )
    np.testing.assert_allclose(sv.values[0], wanted, rtol=0, atol=1e-5)  # Llama is in float32
    if kind == "gpt2":
        np.testing.assert_allclose(sv.values[0], wanted, rtol=0, atol=1e-10)
    assert list(sv.data[0]) == SENTENCES
    assert list(np.ravel(sv.output_names)) == ["whole answer", *TARGET.split()]
    np.testing.assert_allclose(sv.values[0][:, 0], sv.values[0][:, 1:].sum(axis=1), atol=1e-5)


def test_rows_have_answers_of_their_own():
    """Of several lengths, given or written by the model; tokens may be the players."""
    network, tokenizer = transformer("gpt2"), fast_tokenizer()
    model = shap_ext.models.LanguageModel(network, tokenizer, gen_args={"max_new_tokens": 2})
    masker = shap.maskers.Text(tokenizer, mask_token="a", collapse_mask_token=True)
    texts, targets = ["the cat sat", "dog ran"], ["on", "under a mat"]
    together, _ = explained(model, texts, targets, masker=masker)
    for row, (text, target) in enumerate(zip(texts, targets, strict=True)):
        n_words = len(text.split())

        def value(coalition, text=text, target=target, n_words=n_words):
            (prompt,) = masker(np.isin(np.arange(n_words), list(coalition)), text)[0]
            ids = tokenizer.encode(str(prompt))
            return np.array(log_probabilities_by(network, ids, ids_of(target)))

        wanted = shapley_values(n_words, value)
        np.testing.assert_allclose(together.values[row], wanted, rtol=0, atol=1e-10)
    written, explainer = explained(model, texts, masker=masker)
    for row, text in enumerate(texts):
        names = explainer.explained_rows((texts,)).game.output_names[row]
        ids = ids_of(text)
        greedy = network.generate(
            input_ids=_tensor([ids]), attention_mask=_tensor([[1] * len(ids)]), max_new_tokens=2,
            do_sample=False,
        )[0, len(ids):]  # fmt: skip
        assert names == ["whole answer", *(WORDS[token] for token in greedy)]
        full = log_probabilities_by(network, ids, greedy.tolist())
        sums = written.values[row].sum(axis=0) + written.base_values[row]
        np.testing.assert_allclose(sums, full, rtol=0, atol=1e-10)


def _tensor(ids):
    return torch.tensor(ids)


def names_a_cat(answers):
    return [float("cat" in text) for text in answers.texts]


@pytest.mark.filterwarnings("error")  # of a model that is not deterministic
def test_sampled_answers_follow_from_the_seed_and_have_errors():
    network, gen_args = TinyLanguageModel(), {"max_new_tokens": 3, "do_sample": True}
    state = torch.get_rng_state()

    def model(seed, **options):
        return wrapped(network, WordTokenizer(), gen_args=gen_args, seed=seed, **options)

    said = [model(seed).text_generate(CONTEXT).tolist() for seed in (0, 0, 1, 2)]
    assert said[0] == said[1]
    assert len(set(map(str, said))) > 1
    many, scored = (np.array([CONTEXT] * 40), np.array(["a"] * 40)), model(0, score=names_a_cat)
    assert (scored(*many) != scored(*many)).any()  # batches are drawn apart
    options: dict[str, Any] = {"error_bounds": True, "batch_size": 50}
    (one, explainer), (other, _) = (
        explained(model(0, score=names_a_cat), [CONTEXT], ["a"], **options) for _ in range(2)
    )
    assert (one.error_std[0] > 0).all()
    assert explainer.last_estimate.check_evaluations == 0
    np.testing.assert_array_equal(one.values[0], other.values[0])
    assert torch.equal(torch.get_rng_state(), state)


def test_models_behind_an_interface():
    network, tokenizer = TinyLanguageModel(), WordTokenizer()

    class Provider:
        def get_logprobs(self, input_prompt, target_str, tokenizer=None):
            return log_probabilities_by(network, ids_of(input_prompt, [1]), ids_of(target_str))[1:]

        def generate(self, prompt, **_):
            return TARGET

    model = wrapped(Provider(), tokenizer, remote_options={"concurrency": 2})
    sv, explainer = explained(model)
    wanted, _ = explained(of_tiny(), [CONTEXT], [TARGET])
    np.testing.assert_allclose(sv.values[0], wanted.values[0], rtol=0, atol=1e-10)
    assert explainer.last_estimate.usage.rows == 2**3 + explainer.last_estimate.check_evaluations


def test_models_are_saved():
    model = shap_ext.models.LanguageModel(TinyLanguageModel(), WordTokenizer(), "the {}", seed=3)
    loaded: Any = reloaded(model, shap.models.Model)
    assert (loaded.template, loaded.seed) == ("the {}", 3)
    texts, answer = np.array(["cat sat", "dog"]), np.array(["on", "on"])
    pickled = pickle.loads(pickle.dumps(model))
    for other in (loaded, pickled):
        np.testing.assert_array_equal(other(texts, answer), model(texts, answer))


@pytest.mark.parametrize(
    ("options", "texts", "target", "message"),
    [
        ({}, ["cat", " ".join(["cat"] * 28)], TARGET, "row 1: .*31 tokens.*need 33.*has 32"),
        ({}, ["cat"], "a zebra", "row 0: The answer has words.*zebra"),
        ({"template": None}, ["cat"], "a", "no token left where its parts are absent.*mask_token"),
        ({"template": "no place"}, ["cat"], "a", "must have one {}.*has 0"),
        ({"score": "odds"}, ["cat"], "a", "score must be one of 'log_prob', 'prob'"),
        ({"score": names_a_cat, "contrast": "a"}, ["cat"], "a", "let it compare both"),
        ({"remote_options": {}}, ["cat"], "a", "for a provider; model is a GPT2LMHeadModel"),
    ],
)
def test_bad_input_is_refused_before_the_first_pass(options, texts, target, message):
    network, tokenizer = transformer("gpt2"), fast_tokenizer()
    sizes = prompts_of_passes(network)
    options = {"template": without_stops, **options}
    with pytest.raises(InvalidArgumentError, match=message):
        explained(
            shap_ext.models.LanguageModel(network, tokenizer, **options),
            texts,
            [target] * len(texts),
        )
    assert not sizes
    with pytest.raises(InvalidArgumentError, match="has no token: the model wrote nothing"):
        explained(of_tiny(gen_args={"max_new_tokens": 0}))


def test_the_example_of_the_page_runs():
    docs = Path(__file__).parents[2] / "docs"
    read_blocks = runpy.run_path(str(docs / "run_pages.py"))["read_blocks"]
    blocks = read_blocks(docs / "coming_from_shap.md")
    (code,) = [block.code for block in blocks if block.reason == "needs a language model"]
    code = code.replace("Context: {}\\nQuestion: where is she?\\nAnswer:", "the {} sat")
    names: dict[str, Any] = {
        "language_model": TinyLanguageModel(),
        "tokenizer": WordTokenizer(),
        "context": "the cat sat on a mat",
        "shap": shap,
        "shap_ext": shap_ext,
    }
    exec(compile(code.replace("In Paris.", TARGET), "page", "exec"), names)
    assert names["explanation"].values.shape == (1, 1, 4)
