"""Pipelines and language models of transformers, tiny, with random weights, made in memory."""

import os
from typing import Any

import cloudpickle
import numpy as np
import pytest
import shap

import shap_ext  # it makes shap know the algorithms
from shap_ext.shap_internals import own_copy
from tests.helpers.brute_force import shapley_values
from tests.helpers.tolerances import Tolerances
from tests.shap_host.test_text import values_by_oracle

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing here is to be looked up
transformers = pytest.importorskip("transformers", reason="needs transformers and tokenizers")
tokenizers = pytest.importorskip("tokenizers", reason="needs transformers and tokenizers")

torch = pytest.importorskip("torch", reason="needs torch")

from tests.helpers.language_models import encoder_decoder, fast_tokenizer, transformer  # noqa: E402

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "...", "this", "film", "is", "not", "good",
    "bad", "very", "a", "the", "was",
]  # fmt: skip
TEXTS = ["this film is not good", "very bad", "not a film"]
ANIMALS = ["the cat sat slowly on", "dog ran", "cat under a"]
SINGLE: Tolerances = {"rtol": 0, "atol": 2e-5}
"""For single precision, log odds of order ten, and sums over padded batches of several sizes."""


def with_marks(inner):
    """Return a tokenizer that writes marks around each text."""
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, cls_token="[CLS]", sep_token="[SEP]", **names
    )


def tokenizer():
    words = tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]")
    inner = tokenizers.Tokenizer(words)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return with_marks(inner)


PIECES = [*WORDS[:5], "un", "##hap", "##py", "film", "##s", "is", "not", "go", "##od", "."]


def word_pieces():
    """Return a tokenizer of WordPiece with offsets, in the style of BERT."""
    words = tokenizers.models.WordPiece({w: i for i, w in enumerate(PIECES)}, unk_token="[UNK]")
    inner = tokenizers.Tokenizer(words)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return with_marks(inner)


def byte_pairs():
    """Return a tokenizer of byte pairs, in the style of GPT-2."""
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=275,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(["unhappy films is not good ."] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner)


def classifier():
    torch.manual_seed(0)
    labels = ["neg", "neu", "pos"]
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        initializer_range=1.0,
        max_position_embeddings=16,
        id2label=dict(enumerate(labels)),
        label2id={name: i for i, name in enumerate(labels)},
    )
    network = transformers.BertForSequenceClassification(config).eval().double()
    return transformers.pipeline(
        "text-classification", model=network, tokenizer=tokenizer(), top_k=None
    )


def causal_model():
    """Return a language model and its tokenizer."""
    network, words = transformer("gpt2"), fast_tokenizer()
    network.config.is_decoder = True
    network.generation_config.max_new_tokens = 3
    network.generation_config.suppress_tokens = [0, 1]  # so that it does not end at once
    return network, words


def sequence_model():
    """Return a model from texts to texts, and its tokenizer."""
    network = encoder_decoder("bart", scale=1.0)  # with an answer of its own to each text
    network.generation_config.max_new_tokens = 4
    return network, fast_tokenizer()


@pytest.mark.parametrize(("name", "wrap"), [("enumeration", True), ("shear", False)])
@pytest.mark.slow
def test_pipelines(name, wrap):
    pipeline = classifier()
    given = shap.models.TransformersPipeline(pipeline) if wrap else pipeline
    explainer = shap.Explainer(given, algorithm=name, seed=0)
    sv = explainer(TEXTS)
    assert list(sv.output_names) == ["neg", "neu", "pos"]
    assert sv.feature_names[1] == ["", "very", "bad", ""]
    assert explainer.seed == 0
    masker = shap.maskers.Text(pipeline.tokenizer)
    model = shap.models.TransformersPipeline(pipeline)
    for place, text in enumerate(TEXTS):
        wanted = values_by_oracle(masker, model, text)
        np.testing.assert_allclose(sv.values[place], wanted, rtol=0, atol=1e-10)
    assert explainer.last_estimate.evaluations.tolist() == [32, 4, 8]  # without [CLS] and [SEP]
    for page in (shap.plots.text(sv, display=False), shap.plots.text(sv[0], display=False)):
        assert "film" in page
    shap.plots.bar(sv[:, :, "pos"].mean(0), show=False)


def test_options_outlast_what_shap_does_to_a_pipeline():
    """It calls the constructor again, without the options of a subclass."""
    options: dict[str, Any] = {"seed": 5, "paired": False, "output_names": ["a", "b", "c"]}
    for built in (
        shap_ext.LeastSquaresExplainer(classifier(), **options),
        shap.Explainer(classifier(), algorithm="leastsquares", **options),
    ):
        assert isinstance(built.model, shap.models.TransformersPipeline)
        assert {name: getattr(built, name) for name in options} == options


def test_pipelines_in_logits_with_their_tokenizer_as_masker():
    pipeline = classifier()
    model = shap.models.TransformersPipeline(pipeline, rescale_to_logits=True)
    sv = shap.Explainer(model, pipeline.tokenizer, algorithm="enumeration")(TEXTS)
    wanted = values_by_oracle(shap.maskers.Text(pipeline.tokenizer), model, TEXTS[0])
    np.testing.assert_allclose(sv.values[0], wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "build"), [("leastsquares", causal_model), ("enumeration", sequence_model)]
)
@pytest.mark.slow
def test_language_models(name, build):
    """Each row has its own target, which a TeacherForcing keeps from one call to the next."""
    network, words = build()
    explainer = shap.Explainer(network, words, algorithm=name, seed=0)
    assert isinstance(explainer.model, shap.models.TeacherForcing)
    sv = explainer(ANIMALS)
    for place, text in enumerate(ANIMALS):
        masker = shap.maskers.Text(words, mask_token="...", collapse_mask_token=True)
        one = shap.models.TeacherForcing(network, words)
        target = one.text_generate(text)
        wanted = values_by_oracle(masker, lambda texts: one(texts, target), text)  # noqa: B023
        np.testing.assert_allclose(sv.values[place], wanted, **SINGLE)
        np.testing.assert_array_equal(np.array(sv.output_names[place]), one.output_names)
    theirs = shap.Explainer(network, words, algorithm="partition")(ANIMALS, silent=True)
    assert sv.shape == theirs.shape
    np.testing.assert_array_equal(sv.output_names, theirs.output_names)
    np.testing.assert_allclose(sv.base_values, theirs.base_values, **SINGLE)
    assert ANIMALS[0].split()[1] in shap.plots.text(sv[0], display=False)


def test_language_models_with_given_targets_of_different_lengths():
    network, words = causal_model()
    targets = ["on mat", "tree", "under a tree slowly"]
    explainer = shap.Explainer(network, words, algorithm="enumeration")
    sv = explainer(ANIMALS, targets, error_bounds=False)
    theirs = shap.Explainer(network, words, algorithm="partition")(ANIMALS, targets, silent=True)
    assert [values.shape for values in sv.values] == [(5, 2), (2, 1), (3, 4)]
    for place, names in enumerate(theirs.output_names):
        assert list(sv.output_names[place]) == list(names)
        np.testing.assert_allclose(sv.base_values[place], theirs.base_values[place], **SINGLE)
        sums = sv.values[place].sum(axis=0)
        np.testing.assert_allclose(sums, theirs.values[place].sum(axis=0), **SINGLE)
    alone = explainer(ANIMALS[1:2], targets[1:2])
    np.testing.assert_allclose(alone.values[0].reshape(2, 1), sv.values[1], **SINGLE)
    with pytest.raises(ValueError, match=r"outputs=\[1\] .* beyond the 1 outputs of row 1"):
        explainer(ANIMALS, targets, outputs=[1])
    first = explainer(ANIMALS, targets, outputs=[0])
    assert [values.shape for values in first.values] == [(5, 1), (2, 1), (3, 1)]
    with pytest.raises(ValueError, match=r"value_function .* different outputs"):
        shap.Explainer(network, words, algorithm="shear", value_function="margin")(ANIMALS, targets)


def test_models_that_generate_nothing_are_named():
    network, words = causal_model()
    end = network.generation_config.eos_token_id
    network.generation_config.suppress_tokens = [i for i in range(len(words)) if i != end]
    explainer = shap.Explainer(network, words, algorithm="shear")
    with pytest.raises(ValueError, match=r"X, row 0: the model generates no text.* target texts"):
        explainer(ANIMALS)


def test_the_most_likely_words_of_each_row():
    """A TopKLM keeps its row, too."""
    network, words = causal_model()

    def explain(texts):
        model = shap.models.TopKLM(network, words, k=3, batch_size=64)
        return shap.Explainer(model, words, algorithm="enumeration")(texts)

    together = explain(ANIMALS)
    for place, text in enumerate(ANIMALS):
        alone = explain([text])
        np.testing.assert_allclose(together.values[place], alone.values[0], **SINGLE)
        np.testing.assert_array_equal(
            np.array(together.output_names[place]), np.array(alone.output_names)
        )


# Tokenizers of transformers, and how absent tokens are masked


def score(texts):
    """Return a score of texts in which their pieces interact."""
    return np.array([len(text) + 2.0 * text.count("[MASK]") * ("hap" in text) for text in texts])


@pytest.mark.parametrize("mask_token", [None, "...", "[MASK]"])
@pytest.mark.parametrize("collapse", [True, False, "auto"])
@pytest.mark.parametrize("build", [word_pieces, byte_pairs])
def test_tokens_are_masked_as_written_here(build, collapse, mask_token):
    """Pieces by the offsets of the tokenizer; absent ones, or runs of them, by the mask token."""
    text, words = "unhappy films is not good", build()
    offsets = words(text, return_offsets_mapping=True)["offset_mapping"]
    spans = [span for span in offsets if span[0] < span[1]]  # without [CLS] and [SEP]
    ends = [*(start for start, _ in spans[1:]), len(text)]
    pieces = [text[start : max(own, end)] for (start, own), end in zip(spans, ends, strict=True)]
    mark = mask_token or ("[MASK]" if build is word_pieces else "...")
    joins = collapse is True or (collapse == "auto" and (mask_token or build is byte_pairs))

    def value(coalition):
        parts, was_masked = [], False
        for place, piece in enumerate(pieces):
            if place in coalition:
                parts.append(piece)
            elif not (joins and was_masked):
                parts.append(f" {mark}")
            was_masked = place not in coalition
        return score([" ".join("".join(parts).split())])[0]

    masker = shap.maskers.Text(words, mask_token=mask_token, collapse_mask_token=collapse)
    sv = shap.Explainer(score, masker, algorithm="enumeration")([text])
    inside = slice(1, -1) if build is word_pieces else slice(None)
    wanted = shapley_values(len(pieces), value)
    np.testing.assert_allclose(sv.values[0][inside], wanted, rtol=0, atol=1e-10)
    assert list(sv.data[0])[inside] == pieces


def test_slow_tokenizers_know_no_offsets():
    class Slow(transformers.PreTrainedTokenizer):  # type: ignore[name-defined]
        def __init__(self):
            self.words = {word: i for i, word in enumerate(WORDS)}
            super().__init__(mask_token="[MASK]", unk_token="[UNK]")

        vocab_size = len(WORDS)

        def get_vocab(self):
            return dict(self.words)

        def _tokenize(self, text, **_):
            return text.split()

        def _convert_token_to_id(self, token):
            return self.words[token]

        def _convert_id_to_token(self, index):
            return WORDS[index]

    tokenizer = Slow()
    masker = shap.maskers.Text(tokenizer)
    sv = shap.Explainer(score, masker, algorithm="enumeration")(TEXTS)
    words = TEXTS[0].split()

    def value(coalition):
        kept = (word if i in coalition else "[MASK]" for i, word in enumerate(words))
        return score([" ".join(kept)])[0]

    wanted = shapley_values(len(words), value)
    np.testing.assert_allclose(sv.values[0], wanted, rtol=0, atol=1e-10)
    assert [str(word).strip() for word in sv.data[0]] == words
    assert type(tokenizer) is Slow and masker.tokenizer is tokenizer
    sent = cloudpickle.loads(cloudpickle.dumps(own_copy(masker)))  # as to workers
    assert sent.token_segments(TEXTS[0])[0] == own_copy(masker).token_segments(TEXTS[0])[0]
    tree = shap.Explainer(score, masker, algorithm="hierarchy", seed=0)(TEXTS)
    np.testing.assert_allclose(
        tree.values[0].sum(axis=0), sv.values[0].sum(axis=0), rtol=0, atol=1e-10
    )
