"""Prompts of language models in batches: the numbers, the passes, scores of answers, bad input."""

import functools

import captum.attr
import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, TextTemplateInput, TextTokenInput

from captum_ext import Exact, LLMAttribution, OddGP, RandomOrder
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    ShapleyExtWarning,
)
from shapley_adapters.language_models import causal_model
from tests.helpers.brute_force import shapley_values
from tests.helpers.interaction_oracles import matrix_of, pair_interactions
from tests.helpers.language_models import (
    WORDS,
    TinyLanguageModel,
    WordTokenizer,
    fast_tokenizer,
    log_probabilities_by,
    prompts_of_passes,
    transformer,
)
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

PASSAGES = ["the cat ran slowly", "a dog", "on the mat under a tree"]
QUESTION, TARGET, OTHER = "the dog sat", "on a tree", "under the mat slowly"

each_kind = pytest.mark.parametrize("kind", ["gpt2", "llama"])


def prompt_of(*passages):
    """Return the passages that are left and the question, as retrieval puts them together."""
    return " ".join([*filter(None, passages), QUESTION])


def passages():
    return TextTemplateInput(prompt_of, list(PASSAGES))


def ids_of(text):
    return [WORDS.index(word) for word in text.split()]


def oracle(score, n_players=3):
    """Return the Shapley values of a score of the tokens of a prompt, one prompt at a time."""

    def value(coalition):
        kept = [text if i in coalition else "" for i, text in enumerate(PASSAGES)]
        return score(ids_of(prompt_of(*kept)))

    return torch.as_tensor(shapley_values(n_players, value).T.copy())


def assert_equal(attributions, wanted):
    """Compare to rounding; Llama of transformers 4 returns logits in single precision."""
    limit = 1e-10 if attributions.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(attributions.double(), wanted, rtol=0, atol=limit)


def long_prompt():
    """Return 20 words and 10 for the answer."""
    return " ".join((WORDS[2:] * 2)[:20]), " ".join(WORDS[3:13])


# The numbers


@pytest.mark.parametrize(
    ("kind", "side", "per_pass"),
    [("gpt2", "left", None), ("gpt2", "right", 3), ("llama", "left", 3), ("llama", "right", None)],
)
def test_prompts_of_several_lengths_are_read_as_if_alone(kind, side, per_pass):
    model = transformer(kind)
    sizes = prompts_of_passes(model)
    explainer = LLMAttribution(Exact(model), fast_tokenizer(side))
    result = explainer.attribute(passages(), TARGET, perturbations_per_eval=per_pass)
    assert max(sizes) == (3 if per_pass else 6)  # all but the ends, which run first, at once
    wanted = oracle(lambda ids: np.array(log_probabilities_by(model, ids, ids_of(TARGET))))
    assert_equal(result.seq_attr, wanted[0])
    assert_equal(result.token_attr, wanted[1:])
    assert result.input_tokens == PASSAGES
    assert result.output_tokens == TARGET.split()


def tokens_of_passes(model):
    """Return a list that gets the shape of the tokens of each later pass."""
    shapes, forward = [], model.forward

    @functools.wraps(forward)
    def counted(*arguments, **options):
        ids = options["input_ids"] if "input_ids" in options else arguments[0]
        shapes.append(tuple(ids.shape))
        return forward(*arguments, **options)

    model.forward = counted
    return shapes


def after_instructions(*passages):
    """Return 17 tokens that all prompts share, and the passages that are left."""
    return " ".join([*WORDS[2:11], *WORDS[2:10], *filter(None, passages)])


@each_kind
@pytest.mark.parametrize("is_wrong", [False, True])
def test_tokens_before_all_passages_are_read_once(kind, is_wrong):
    model = transformer(kind)
    shapes = tokens_of_passes(model)
    if is_wrong:  # a model that cannot go on from what it keeps
        forward = model.forward

        @functools.wraps(forward)
        def forgetful(*arguments, past_key_values=None, **options):
            if past_key_values is not None:
                options["attention_mask"] = torch.ones_like(options["input_ids"])
            return forward(*arguments, **options)

        model.forward = forgetful
    words = [*PASSAGES[0].split(), "dog"]
    inputs = TextTemplateInput(after_instructions, words)
    explainer = LLMAttribution(Exact(model), fast_tokenizer())
    result = explainer.attribute(inputs, TARGET)
    n_read = sum(rows * length for rows, length in shapes)

    def value(coalition):
        ids = ids_of(after_instructions(*(words[i] for i in sorted(coalition))))
        return np.array(log_probabilities_by(model, ids, ids_of(TARGET)))

    assert_equal(result.seq_attr, torch.as_tensor(shapley_values(5, value).T.copy())[0])
    n_whole = 32 * (17 + 2) + 16 * 5
    assert n_read > n_whole if is_wrong else n_read < 0.6 * n_whole


@each_kind
def test_shared_tokens_are_read_again_after_the_weights_change(kind):
    model, tokens = transformer(kind), torch.tensor(ids_of(TARGET))
    prompts = [after_instructions("cat"), after_instructions("dog ran")]
    reader = causal_model.CausalLanguageModel(model, fast_tokenizer(), torch.device("cpu"))
    with torch.no_grad():
        before = reader.log_probs(prompts, tokens)
        for parameter in model.parameters():
            parameter.mul_(0.5)
        after = reader.log_probs(prompts, tokens)
    wanted = [log_probabilities_by(model, ids_of(p), ids_of(TARGET))[1:] for p in prompts]
    assert_equal(after, torch.tensor(wanted, dtype=torch.float64))
    assert not torch.allclose(before, after)


def test_prompts_are_read_whole_where_the_shared_tokens_take_too_much_memory(monkeypatch):
    monkeypatch.setattr(causal_model, "_MOST_BYTES", 15_000)  # 17 tokens take 8,704 for each prompt
    model, tokens = transformer("gpt2"), torch.tensor(ids_of(TARGET))
    reader = causal_model.CausalLanguageModel(model, fast_tokenizer(), torch.device("cpu"))
    shapes = tokens_of_passes(model)
    reader.log_probs([after_instructions("cat"), after_instructions("dog")], tokens)
    assert len(shapes) == 2  # the shared tokens, whose size is not known before, and all


def test_two_hundred_prompts_take_at_most_thirty_one_passes():
    prompt, target = long_prompt()
    results = []
    for per_pass in (None, 8):
        model, tokenizer = transformer("llama"), fast_tokenizer()
        sizes = prompts_of_passes(model)
        explainer = LLMAttribution(OddGP(model, seed=0), tokenizer)
        results.append(
            explainer.attribute(
                TextTokenInput(prompt, tokenizer),
                target,
                n_samples=200,
                perturbations_per_eval=per_pass,
            )
        )
        assert len(sizes) <= 31  # the first 20 choose the others, and end within a pass
        estimate = results[-1].estimate
        assert sum(sizes) == estimate.evaluations[0] + estimate.check_evaluations >= 200
    for other in results[1:]:
        assert_equal(other.token_attr, results[0].token_attr.double())


@pytest.mark.parametrize(
    ("kind", "dtype"), [("gpt2", torch.float16), ("llama", torch.bfloat16)], ids=str
)
def test_half_precision(kind, dtype):
    model, tokenizer = transformer(kind).to(dtype), fast_tokenizer()
    result = LLMAttribution(Exact(model), tokenizer).attribute(passages(), TARGET)
    same_weights = transformer(kind).to(dtype).double()
    wanted = oracle(lambda ids: np.array(log_probabilities_by(same_weights, ids, ids_of(TARGET))))
    assert result.seq_attr.dtype == torch.float32
    # Measured: 12 to 30 rounding errors, where attributions reach 6.
    limit = 50 * torch.finfo(dtype).eps
    torch.testing.assert_close(result.token_attr.double(), wanted[1:], rtol=0, atol=limit)
    # The logarithms themselves are in single precision: the whole is the sum of its tokens.
    torch.testing.assert_close(result.seq_attr, result.token_attr.sum(dim=0), rtol=0, atol=1e-5)
    assert result.estimate.rounding == torch.finfo(dtype).eps


def test_passes_are_split_where_logits_would_fill_the_memory(monkeypatch):
    model, tokenizer = transformer("gpt2"), fast_tokenizer()
    whole = LLMAttribution(Exact(model), tokenizer).attribute(passages(), TARGET)
    monkeypatch.setattr(causal_model, "_MOST_LOGITS", 2 * len(WORDS) * len(TARGET.split()))
    sizes = prompts_of_passes(model)
    split = LLMAttribution(Exact(model), tokenizer).attribute(passages(), TARGET)
    assert max(sizes) <= 2  # without logits_to_keep, all tokens have logits
    assert_equal(split.token_attr, whole.token_attr.double())


# What is explained


@each_kind
@pytest.mark.parametrize("unit", ["log_prob", "prob"])
def test_contrasts_compare_two_answers(kind, unit):
    model, tokenizer = transformer(kind), fast_tokenizer()
    explainer = LLMAttribution(Exact(model), tokenizer, attr_target=unit)
    result = explainer.attribute(passages(), TARGET, contrast=OTHER)
    in_unit = np.exp if unit == "prob" else float

    def difference(ids):
        both = (log_probabilities_by(model, ids, ids_of(text))[0] for text in (TARGET, OTHER))
        first, second = map(in_unit, both)
        return np.array([first - second])

    assert_equal(result.seq_attr, oracle(difference)[0])
    assert result.token_attr is None


def test_functions_of_logits():
    model, tokenizer = transformer("llama"), fast_tokenizer()
    cat, dog = map(WORDS.index, ("cat", "dog"))
    explainer = LLMAttribution(
        Exact(model),
        tokenizer,
        lambda answers: answers.logits[:, 1, cat] - answers.logits[:, 1, dog],
    )
    result = explainer.attribute(passages(), TARGET)

    def by_hand(ids):
        with torch.no_grad():
            logits = model(torch.tensor([[*ids, ids_of(TARGET)[0]]])).logits[0, -1]
        return np.array([float(logits[cat] - logits[dog])])

    assert_equal(result.seq_attr, oracle(by_hand)[0])


@pytest.mark.parametrize(("kind", "side"), [("gpt2", "right"), ("llama", "left")])
def test_functions_of_written_answers(kind, side):
    model, tokenizer = transformer(kind), fast_tokenizer(side)
    model.generation_config.eos_token_id = None
    seen = []

    def n_letters(answers):
        seen.extend(answers.texts)
        return [len(text) for text in answers.texts]

    gen_args = {"max_new_tokens": 4, "do_sample": False}
    explainer = LLMAttribution(Exact(model), tokenizer, n_letters)
    result = explainer.attribute(passages(), gen_args=gen_args)

    def by_hand(ids):
        for _ in range(4):
            with torch.no_grad():
                ids = [*ids, int(model(torch.tensor([ids])).logits[0, -1].argmax())]
        written = ids[-4:]
        return np.array([float(len(tokenizer.decode(written, skip_special_tokens=True)))])

    assert_equal(result.seq_attr, oracle(by_hand)[0])
    assert len(set(seen)) > 2


def test_sampled_targets_follow_from_the_seed():
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    gen_args = {"max_new_tokens": 5, "do_sample": True}
    state = torch.get_rng_state()
    said = [
        LLMAttribution(Exact(model, seed=seed), tokenizer)
        .attribute(passages(), gen_args=gen_args)
        .output_tokens
        for seed in (0, 0, 1)
    ]
    assert said[0] == said[1] != said[2]
    assert torch.equal(torch.get_rng_state(), state)


def test_answers_at_random_have_errors_that_repeats_reduce():
    model, tokenizer = TinyLanguageModel(), WordTokenizer()

    def names_a_cat(answers):
        return [float("cat" in text) for text in answers.texts]

    gen_args = {"max_new_tokens": 3, "do_sample": True}
    errors = []
    for repeats in (10, 160):
        explainer = LLMAttribution(Exact(model, seed=0), tokenizer, names_a_cat)
        result = explainer.attribute(
            passages(), "a", gen_args=gen_args, repeats=repeats, n_samples=8 * repeats
        )
        errors.append(float(result.seq_standard_error.mean()))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.4)  # the root of 16


def test_each_prompt_can_be_watched():
    seen = []
    LLMAttribution(Exact(TinyLanguageModel()), WordTokenizer()).attribute(
        TextTokenInput("cat sat", WordTokenizer(), skip_tokens=[1]),
        "on a",
        _inspect_forward=lambda *all_of_it: seen.append(all_of_it),
    )
    assert ("<s> cat <unk>", "on a") in [entry[:2] for entry in seen]
    assert {len(entry[2]) for entry in seen} == {3}


# The result


def test_interactions_of_passages():
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    explainer = LLMAttribution(Exact(model), tokenizer)
    result = explainer.attribute(passages(), TARGET, interactions=True)

    def value(coalition):
        kept = [text if i in coalition else "" for i, text in enumerate(PASSAGES)]
        return np.array(log_probabilities_by(model, [1, *ids_of(prompt_of(*kept))], ids_of(TARGET)))

    pairs = pair_interactions("shapley", 3, value)
    matrices = matrix_of(3, pairs, shapley_values(3, value))
    wanted = torch.as_tensor(np.moveaxis(matrices, 2, 0).copy())
    assert_equal(result.seq_interactions, wanted[0])
    assert_equal(result.token_interactions, wanted[1:])
    assert not result.token_interactions_standard_error.any()
    torch.testing.assert_close(result.seq_interactions.sum(dim=1), result.seq_attr, **EXACT)
    later = explainer.attribute(passages(), TARGET)
    with pytest.raises(InvalidArgumentError, match="interactions=True"):
        _ = later.seq_interactions


def test_standard_errors_are_those_of_the_estimate():
    prompt, target = long_prompt()
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    inp = TextTokenInput(prompt, tokenizer, skip_tokens=[1])
    mask = torch.arange(20)[None] // 2 + 5
    explainer = LLMAttribution(RandomOrder(model, seed=0), tokenizer)
    result = explainer.attribute(inp, target, n_samples=100, feature_mask=mask)
    estimate = result.estimate
    assert estimate.values.shape == (1, 10, 11)
    errors = np.repeat(estimate.standard_errors[0], 2, axis=0).T
    np.testing.assert_array_equal(result.seq_standard_error, errors[0])
    np.testing.assert_array_equal(result.token_standard_error, errors[1:])
    assert (errors > 0).all()
    assert result.player_names[0] == "the a"


def test_slots_in_groups_have_one_attribution():
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    inp = TextTemplateInput(prompt_of, list(PASSAGES), mask=[4, 7, 4])
    result = LLMAttribution(Exact(model), tokenizer).attribute(inp, TARGET)
    assert result.seq_attr[0] == result.seq_attr[2] != result.seq_attr[1]
    assert result.player_names == [f"{PASSAGES[0]} {PASSAGES[2]}", PASSAGES[1]]


def test_plots_show_intervals():
    pytest.importorskip("matplotlib")
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    inp = TextTokenInput(" ".join(WORDS[2:10]), tokenizer, skip_tokens=[1])
    explainer = LLMAttribution(OddGP(model, seed=0), tokenizer)
    result = explainer.attribute(inp, TARGET, n_samples=100, interactions=True)
    lower, upper = result.estimate.interval(0.9)
    _, axes = result.plot_seq_attr(level=0.9)
    (bars,) = axes.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([lower[0, :, 0], upper[0, :, 0]], axis=1))
    _, axes = result.plot_token_attr()
    assert all("±" in cell.get_text() for cell in axes.texts)
    assert axes.get_xlabel() == "±: 95 % intervals"
    for token in (None, 2):
        _, axes = result.plot_interactions(token=token)
        assert len(axes.texts) == 8**2


@pytest.mark.parametrize(
    ("n_parts", "draw"),
    [
        *((n_parts, "plot_token_attr") for n_parts in (3, 17)),
        *((n_parts, "plot_interactions") for n_parts in (12, 17)),
        (15, "plot_seq_attr"),
    ],
)
def test_plots_are_legible_at_any_number_of_parts(n_parts, draw):
    pytest.importorskip("matplotlib")
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    inp = TextTokenInput(" ".join((WORDS[2:] * 5)[:n_parts]), tokenizer)
    explainer = LLMAttribution(OddGP(model, seed=0), tokenizer)
    target = " ".join((WORDS[2:] * 5)[: min(n_parts, 12)])
    has_pairs = draw == "plot_interactions"
    result = explainer.attribute(inp, target, n_samples=8 * n_parts, interactions=has_pairs)
    if n_parts < 17:  # long numbers
        result.token_attr *= 1000
    figure, axes = getattr(result, draw)()
    figure.canvas.draw()
    texts = [text for text in axes.texts if text.get_text()]
    numbers = [text.get_window_extent() for text in texts if text.get_text() != "•"]
    assert bool(numbers) == (n_parts < 17 and draw != "plot_seq_attr")
    cells = cells_of(axes) if numbers else []
    for text, cell in zip(numbers, cells, strict=True):
        assert cell.x0 <= text.x0 <= text.x1 <= cell.x1
        assert cell.y0 <= text.y0 <= text.y1 <= cell.y1
    if n_parts == 17 and draw == "plot_token_attr":
        widths = (result.estimate.interval()[1] - result.estimate.values)[0].T[1:]
        are_unclear = [text.get_text() == "•" for text in axes.texts]
        np.testing.assert_array_equal(
            are_unclear, (np.abs(result.token_attr.numpy()) <= widths).ravel()
        )
        assert 0 < sum(are_unclear) < len(are_unclear)
    lines = axes.get_xticklabels()
    spacing = axes.bbox.width / np.ptp(axes.get_xlim()) * np.sin(np.deg2rad(30))
    assert spacing > lines[0].get_fontsize() * figure.dpi / 72
    frame = figure.bbox
    for label in [*lines, *(axes.get_yticklabels() if axes.images else [])]:
        box = label.get_window_extent()
        assert frame.x0 <= box.x0 <= box.x1 <= frame.x1
        assert frame.y0 <= box.y0 <= box.y1 <= frame.y1


def cells_of(axes):
    """Return the boxes of the cells of a heat map, in pixels, row by row."""
    from matplotlib.transforms import Bbox

    n_rows, n_columns = axes.images[0].get_array().shape
    for row, column in np.ndindex(n_rows, n_columns):
        corners = axes.transData.transform([(column - 0.5, row + 0.5), (column + 0.5, row - 0.5)])
        yield Bbox(corners)


# Bad input


NOTHING_LEFT = TextTemplateInput("{} {}", ["cat", "dog"])


@pytest.mark.parametrize(
    ("kind", "inp", "target", "options", "message"),
    [
        ("gpt2", " ".join(["cat"] * 31), "a mat on", {}, "31 tokens.*needs? 33.*has 32"),
        ("llama", " ".join(["cat"] * 33), None, {}, "has 32.*max_position_embeddings"),
        ("llama", "the cat", "", {}, "target has no token"),
        ("llama", "the cat", torch.tensor([], dtype=torch.long), {}, "target has no token"),
        ("llama", "the cat", "a zebra", {}, r"does not know.*zebra.*<unk>"),
        ("llama", "the cat", torch.tensor([3, 13]), {}, "from 3 to 13.*0 to 12"),
        ("llama", "the cat", torch.tensor([-1]), {}, "0 to 12"),
        ("llama", "cat", "a mat", {}, "inp has 1 parts"),
        ("llama", NOTHING_LEFT, "a", {}, "no token left"),
        ("llama", "the cat", "a", {"contrast": "a"}, "must differ"),
        ("llama", "the cat", "a", {"contrast": "zebra"}, "contrast has words"),
    ],
)
def test_bad_input_is_refused_before_the_first_pass(kind, inp, target, options, message):
    model, tokenizer = transformer(kind), fast_tokenizer()
    sizes = prompts_of_passes(model)
    if isinstance(inp, str):
        inp = TextTokenInput(inp, tokenizer)
    for method in (Exact(model), FeatureAblation(model)):
        with pytest.raises(InvalidArgumentError, match=message):
            LLMAttribution(method, tokenizer).attribute(inp, target, **options)
    assert not sizes


def test_the_last_position_can_be_used():
    model, tokenizer = transformer("gpt2"), fast_tokenizer()
    inp = TextTokenInput(" ".join(["cat", "dog"] * 15), tokenizer)
    mask = torch.arange(30)[None] // 15
    result = LLMAttribution(Exact(model), tokenizer).attribute(inp, "a mat on", feature_mask=mask)
    assert result.seq_attr.isfinite().all()


def test_wrong_types_are_refused_before_the_first_pass():
    model, tokenizer = TinyLanguageModel(), WordTokenizer()
    explainer = LLMAttribution(Exact(model), tokenizer)
    with pytest.raises(InvalidArgumentTypeError, match="inp must be one of.*got str"):
        explainer.attribute("the cat sat", TARGET)
    with pytest.raises(InvalidArgumentTypeError, match="target and contrast must be.*int"):
        explainer.attribute(passages(), 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentTypeError, match="interactions=True needs"):
        LLMAttribution(FeatureAblation(model), tokenizer).attribute(
            passages(), TARGET, interactions=True
        )
    with pytest.raises(InvalidArgumentError, match="contrast cannot be used"):
        LLMAttribution(Exact(model), tokenizer, lambda answers: answers.logits[:, 0, 0]).attribute(
            passages(), TARGET, contrast=OTHER
        )
    assert not model.n_passes


def test_scores_of_another_length_are_refused():
    explainer = LLMAttribution(
        Exact(TinyLanguageModel()), WordTokenizer(), lambda answers: answers.log_probs
    )
    with pytest.raises(ModelOutputError, match=r"one number for each of its 1 answers.*\(1, 3\)"):
        explainer.attribute(passages(), TARGET)


def test_dropout_is_warned_of():
    model = TinyLanguageModel()
    model.drop = torch.nn.Dropout(0.1)
    model.train()
    with pytest.warns(ShapleyExtWarning, match=r"training mode.*Dropout.*eval"):
        LLMAttribution(Exact(model), WordTokenizer()).attribute(passages(), TARGET)


def test_models_behind_an_interface_give_no_logits():
    from captum_ext import RemoteLLMAttribution

    class Provider:
        def get_logprobs(self, input_prompt, target_str, tokenizer=None):
            return [0.0]

    method = Exact(captum.attr.RemoteLLMAttribution.placeholder_model)
    explainer = RemoteLLMAttribution(
        method, WordTokenizer(), Provider(), lambda answers: answers.logits[:, 0, 0]
    )
    with pytest.raises(InvalidArgumentError, match="asks for logits"):
        explainer.attribute(passages(), TARGET)
    explainer = RemoteLLMAttribution(method, WordTokenizer(), Provider())
    with pytest.raises(ModelOutputError, match="1 log-probabilities for a target of 3"):
        explainer.attribute(passages(), TARGET)


@pytest.mark.parametrize("make", [Exact, FeatureAblation])
def test_tokens_are_named_before_evaluations_are_paid_for(make, monkeypatch):
    model = TinyLanguageModel()

    def no_names(tokens, tokenizer):
        raise KeyError("offset_mapping")  # as captum does with tokenizers that lack them

    monkeypatch.setattr("captum_ext.captum_tools.language_models.readable_tokens", no_names)
    with pytest.raises(KeyError):
        LLMAttribution(make(model), WordTokenizer()).attribute(passages(), TARGET)
    assert not model.n_passes
