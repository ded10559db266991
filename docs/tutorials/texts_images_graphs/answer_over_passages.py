"""
An answer over passages
=======================

**For whom:** a language model answers from passages that were retrieved for it, and you want to
know which of them its answer rests on.

The players are whole passages. Absent ones are left out of the prompt, so that prompts differ
in length; they run in batches all the same. The model of this page is tiny. It is trained here
in seconds, so that nothing is downloaded; a large model is explained by the same calls. This
page needs transformers (`pip install transformers`).
"""

# %%
# A model that reads reviews
# --------------------------
# The prompt is a list of reviews and a question, and the answer is "come again" or "stay away".
# In the training data, "good" and "great" speak for the place, "bad" and "awful" against it,
# and the average decides.

import captum.attr
import matplotlib.pyplot as plt
import torch
from captum.attr import TextTemplateInput
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from captum_ext import LLMAttribution, OddGP

THINGS = ["soup", "bread", "coffee", "cake", "staff", "music", "view", "price"]
WEIGHTS = {"great": 2.0, "good": 1.0, "fine": 0.0, "bad": -1.0, "awful": -2.0}
words = ["<pad>", "<s>", "the", *THINGS, "was", *WEIGHTS, ".", "verdict", "come", "again"]
words += ["stay", "away"]

word_level = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
word_level.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=word_level, pad_token="<pad>", unk_token="<pad>"
)


def prompt_of(*reviews):
    """Put together the reviews that are left, and the question."""
    return " . ".join([*filter(None, reviews), "verdict"])


torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(words),
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=96,
)
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
kinds, weights = list(WEIGHTS), torch.tensor(list(WEIGHTS.values()))
for _ in range(100):
    n_reviews = int(torch.randint(1, 13, ()))
    adjectives = torch.randint(len(kinds), (32, n_reviews))
    is_for = torch.rand(32) < torch.sigmoid(4 * weights[adjectives].mean(dim=1))
    texts = []
    for row, yes in zip(adjectives.tolist(), is_for.tolist(), strict=True):
        things = torch.randint(len(THINGS), (n_reviews,)).tolist()
        pairs = zip(things, row, strict=True)
        reviews = [f"the {THINGS[thing]} was {kinds[kind]}" for thing, kind in pairs]
        texts.append(f"{prompt_of(*reviews)} {'come again' if yes else 'stay away'}")
    batch = tokenizer(texts, return_tensors="pt")["input_ids"]
    labels = batch.clone()
    labels[:, :-2] = -100  # the model learns the two words of the answer
    optimizer.zero_grad()
    model(batch, labels=labels).loss.backward()
    optimizer.step()
model.eval().requires_grad_(False)

# %%
# Which reviews speak for the answer?
# -----------------------------------
# Twelve reviews have 4,096 combinations, and 200 of them are evaluated. captum's
# `TextTemplateInput` takes our function as its template; an absent review is an empty text.
# Without a target, the model first writes its answer.

reviews = [
    "the soup was great",
    "the bread was bad",
    "the coffee was fine",
    "the cake was good",
    "the staff was awful",
    "the music was fine",
    "the view was great",
    "the price was bad",
    "the soup was good",
    "the cake was fine",
    "the coffee was bad",
    "the view was good",
]
prompt = TextTemplateInput(prompt_of, reviews)

passes: list[int] = []
model.register_forward_pre_hook(lambda *_: passes.append(1))
explainer = LLMAttribution(OddGP(model, seed=0), tokenizer)
result = explainer.attribute(
    prompt, gen_args={"max_new_tokens": 2, "do_sample": False}, n_samples=200
)
print("the answer:", " ".join(result.output_tokens))
print(result.estimate)
print(len(passes), "passes of the model, two of which wrote the answer")
result.plot_seq_attr(show=True)

# %%
# Each bar is what a review adds to the log-probability of the answer, with a 95 % interval for
# what 200 of the 4,096 prompts leave open.
#
# captum at the same number of prompts
# ------------------------------------
# captum's own class runs the prompts one by one, and its result has no errors. The dots are the
# exact values, from all 4,096 prompts.

answer = " ".join(result.output_tokens)
torch.manual_seed(0)
of_captum = captum.attr.LLMAttribution(captum.attr.ShapleyValueSampling(model), tokenizer)
theirs = of_captum.attribute(
    prompt, torch.tensor(tokenizer.encode(answer)), n_samples=16, use_cached_outputs=False
)
exact = explainer.attribute(prompt, answer, n_samples=2**12).seq_attr

figure, axes = plt.subplots(1, 2, figsize=(7, 4), sharex=True, sharey=True)
lower, upper = result.estimate.interval()  # as in the first picture
axes[0].barh(reviews, theirs.seq_attr, color="#b0b0b0")
axes[0].set_title("captum:\n193 prompts, one by one")
axes[1].barh(
    reviews, result.seq_attr, xerr=(upper - lower)[0, :, 0] / 2, capsize=2, color="#4772b3"
)
axes[1].set_title("captum_ext:\n200 prompts in batches")
for ax in axes:
    ax.plot(exact, reviews, "k.", label="exact")
    ax.axvline(0, color="black", linewidth=0.8)
axes[0].invert_yaxis()
figure.supxlabel(f'contribution to the log-probability of "{answer}"', fontsize=10)
figure.tight_layout()
axes[0].legend(loc="lower left")
plt.show()
for name, attributions in (("captum", theirs.seq_attr), ("captum_ext", result.seq_attr)):
    print(f"{name}: mean error {(attributions - exact).abs().mean():.4f}")

# %%
# Why this answer and not the other one?
# --------------------------------------
# `contrast` explains the log-probability of the target less that of another answer. A score of
# your own is a function of the answers' logits, log-probabilities or texts (`attr_target`).

both = explainer.attribute(prompt, "come again", contrast="stay away", n_samples=200)
for review, value, error in zip(reviews, both.seq_attr, both.seq_standard_error, strict=True):
    print(f"{value:+.2f} ± {1.96 * error:.2f}  {review}")

# %%
# The order is that of the training data: "great" before "good" before "fine". Interactions of
# reviews come from the same prompts, with `interactions=True`.
#
# What to read next
# -----------------
# - :doc:`language_model`: token by token.
# - :doc:`/coming_from_captum`: what an evaluation costs.
# - :doc:`/how_many_evaluations`: hundreds of passages.
