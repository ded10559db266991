"""Absent parts of prompts that are drawn: exact where the cases are few, else with errors."""

import itertools
import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, ProductBaselines, TextTemplateInput

from captum_ext import Exact, LLMAttribution, OddGP, RandomOrder
from shapley_adapters.errors import BudgetError
from tests.helpers.brute_force import shapley_values
from tests.helpers.language_models import (
    WORDS,
    TinyLanguageModel,
    WordTokenizer,
    log_probabilities_by,
)
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

MODEL, TOKENIZER = TinyLanguageModel(), WordTokenizer()
PARTS, TARGET = ["cat", "sat", "mat"], "a tree"
FEW = [["dog", "the"], ["ran", "on", "slowly"], ["a", "tree"]]
MANY = [["dog", "the", "a", "tree", "mat"], ["ran", "on", "slowly", "under", "the"], WORDS[2:7]]


def score(texts):
    ids = TOKENIZER.encode(f"the {' '.join(texts)}")
    return np.array(log_probabilities_by(MODEL, ids, TOKENIZER.encode(TARGET, False)))


def oracle(cases):
    """Return the Shapley values, (M, 1 + T), of the mean over all cases of the baselines."""

    def value(coalition):
        kept = [PARTS[i] if i in coalition else None for i in range(3)]
        return np.mean(
            [score([k or b for k, b in zip(kept, case, strict=True)]) for case in cases], axis=0
        )

    return shapley_values(3, value)


def explained(method, baselines, parts: Any = PARTS, template="the {} {} {}", **options):
    inp = TextTemplateInput(template, parts, baselines)
    return LLMAttribution(method, TOKENIZER).attribute(inp, TARGET, **options)


def check_exact(result, wanted):
    torch.testing.assert_close(result.seq_attr, torch.as_tensor(wanted[:, 0]), **EXACT)
    torch.testing.assert_close(result.token_attr, torch.as_tensor(wanted[:, 1:].T.copy()), **EXACT)
    assert not result.seq_standard_error.any()


def test_groups_of_a_dict_and_repeated_values():
    values = {"first": "cat", "second": "sat", "third": "mat"}
    together = [("dog", "ran"), ("the", "on"), ("the", "on")]
    baselines = ProductBaselines({("first", "second"): together, "third": FEW[2]})
    result = explained(
        Exact(MODEL), baselines, values, "the {first} {second} {third}", interactions=True
    )
    check_exact(result, oracle([(*a, b) for a in together for b in FEW[2]]))
    two = [["dog"], ["ran"], FEW[2]]
    check_exact(
        explained(Exact(MODEL), ProductBaselines(two)), oracle(list(itertools.product(*two)))
    )


def test_equal_prompts_of_the_cases_are_read_once():
    model = TinyLanguageModel()
    explained(Exact(model), ProductBaselines(FEW), n_samples=8)
    n_prompts = np.prod([1 + len(values) for values in FEW])
    n_cases = np.prod([len(values) for values in FEW])
    assert n_prompts < len(model.prompts) <= n_prompts + 4 * n_cases  # four values are asked again


def test_captums_methods_get_the_means_too():
    cases = list(itertools.product(*FEW))
    result = explained(FeatureAblation(MODEL), ProductBaselines(FEW))
    wanted = []
    for part in range(3):
        absent = [
            [b if i == part else p for i, (p, b) in enumerate(zip(PARTS, c, strict=True))]
            for c in cases
        ]
        wanted.append(score(PARTS)[0] - np.mean([score(texts)[0] for texts in absent]))
    np.testing.assert_allclose(result.seq_attr, wanted, atol=1e-5)


def test_draws_follow_from_the_seed_and_leave_the_generators_alone():
    states = random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist()  # noqa: NPY002
    one, same, other = (
        explained(Exact(MODEL, seed=seed), ProductBaselines(MANY)).seq_attr for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert (random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist()) == states  # noqa: NPY002


def test_a_budget_that_pays_for_no_errors_is_refused():
    with pytest.raises(BudgetError, match="draws of absent features"):
        explained(Exact(MODEL), ProductBaselines(MANY), n_samples=8)


# Trials


def test_trials_of_an_exact_result_are_not_repeated():
    model = TinyLanguageModel()
    once = explained(Exact(model), ProductBaselines(FEW), n_samples=8, num_trials=5)
    n_prompts = len(model.prompts)
    twice = explained(Exact(model), ProductBaselines(FEW), n_samples=8)
    assert torch.equal(once.seq_attr, twice.seq_attr)
    assert len(model.prompts) == 2 * n_prompts


@pytest.mark.parametrize("method", [RandomOrder, OddGP])
def test_trials_of_samplers_have_coalitions_of_their_own(method):
    """On average over three seeds: of so few evaluations, a part of an error is the prior's."""
    parts = ["cat", "sat", "mat", "tree", "dog", "on"]
    inp = TextTemplateInput("the {} {} {} {} {} {}", parts)
    options: dict[str, Any] = {"interactions": method is OddGP}
    exact = LLMAttribution(Exact(MODEL), TOKENIZER).attribute(inp, TARGET, **options)
    off, of_pairs = np.zeros((2, 2))
    for seed in range(3):
        explainer = LLMAttribution(method(MODEL, seed=seed), TOKENIZER)
        results = [
            explainer.attribute(inp, TARGET, n_samples=20, num_trials=n, **options) for n in (1, 9)
        ]
        errors = [float(r.seq_standard_error.mean()) for r in results]
        assert errors[1] < errors[0]
        off += [float((r.seq_attr - exact.seq_attr).norm()) for r in results]
        if method is OddGP:
            of_pairs += [
                float((r.seq_interactions - exact.seq_interactions).norm()) for r in results
            ]
    assert off[1] < off[0]
    assert method is not OddGP or of_pairs[1] < of_pairs[0]


# Answers that the model writes


def test_sampled_answers_are_random_by_their_type():
    def names_a_cat(answers):
        return [float("cat" in text) for text in answers.texts]

    gen_args = {"max_new_tokens": 3, "do_sample": True}
    inp = TextTemplateInput("the {} {} {}", PARTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(4):
            explainer = LLMAttribution(OddGP(MODEL, seed=seed), TOKENIZER, names_a_cat)
            result = explainer.attribute(inp, TARGET, gen_args=gen_args)
            assert (result.seq_standard_error > 0).all()
            assert not (result.estimate.check_evaluations)
