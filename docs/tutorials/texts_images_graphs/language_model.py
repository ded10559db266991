"""
A language model, token by token
================================

**For whom:** you explain a language model of transformers with captum's `LLMAttribution`.

Each word that the model says gets the contributions of all words of the prompt. The model of this
page is tiny. It is built from its configuration and trained here in seconds, so that nothing is
downloaded. A large model is explained by the same calls. This page needs transformers (`pip
install transformers`).
"""

# %%
# A tiny language
# ---------------
# Sentences such as "the dogs near the house are small". The verb must agree with the first noun
# and not with the nearest one.

import itertools

import matplotlib.pyplot as plt
import numpy as np
import torch
from captum.attr import TextTokenInput
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, logging

from captum_ext import Exact, LLMAttribution

logging.set_verbosity_error()  # it speaks of padding, of which these texts have none

ANIMALS = ["dog", "cat", "horse", "bird"]
PLACES = ["house", "tree", "river"]
sentences = [
    f"the {animal}{plural} {where} the {place}{other} {'are' if plural else 'is'} {what}"
    for animal, plural, where, place, other, what in itertools.product(
        ANIMALS, ["", "s"], ["near", "behind"], PLACES, ["", "s"], ["small", "old", "quiet"]
    )
]
words = ["<pad>", *sorted({word for sentence in sentences for word in sentence.split()})]
print(f"{len(sentences)} sentences, {len(words)} words; the first one: {sentences[0]}")

# %%
# The tokenizer and the model
# ---------------------------
# Words are tokens. The model has two layers; transformers builds it from these numbers.

word_level = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>"))
word_level.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=word_level, pad_token="<pad>", unk_token="<pad>"
)
tokens = tokenizer(sentences, return_tensors="pt")["input_ids"]

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=len(words),
    n_positions=16,
    n_embd=32,
    n_layer=2,
    n_head=2,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)
model = GPT2LMHeadModel(config)
is_test = torch.arange(len(tokens)) % 5 == 0
optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
for _ in range(400):
    batch = tokens[~is_test][torch.randint(int((~is_test).sum()), (64,))]
    is_hidden = torch.rand(batch.shape) < 0.1  # the model knows absent words
    inputs = batch.masked_fill(is_hidden, 0)
    optimizer.zero_grad()
    model(inputs, labels=batch).loss.backward()
    optimizer.step()
model.eval().requires_grad_(False)

verb = 5
said = model(tokens[is_test][:, :verb]).logits[:, -1].argmax(dim=1)
print(f"right verb in {(said == tokens[is_test][:, verb]).float().mean():.0%} of other sentences")

# %%
# Why "are"?
# ----------
# `LLMAttribution` of `captum_ext` takes captum's inputs and our methods. The prompt has five
# words, so that `Exact` needs 32 prompts. An absent word becomes the padding token.

explainer = LLMAttribution(Exact(model), tokenizer)
prompt = TextTokenInput("the dogs near the house", tokenizer)
result = explainer.attribute(prompt, target="are small")
print(result.estimate)
print("attributions to the log-probability of the target:", result.seq_attr.numpy().round(2))

# %%
# captum draws which word of the prompt speaks for which word of the target:

result.plot_token_attr(show=True)

# %%
# "dogs" speaks for "are". The words that have no number say almost nothing about it.
#
# Many prompts
# ------------
# Does the model ever look at the wrong noun? We explain "is" and "are" for all four combinations
# of singular and plural: the contribution of each word to the log-probability of the right verb.

cases = [
    ("the dog near the house", "is"),
    ("the dogs near the house", "are"),
    ("the dog near the houses", "is"),
    ("the dogs near the houses", "are"),
]
table = []
for text, right_verb in cases:
    of_words = explainer.attribute(TextTokenInput(text, tokenizer), target=right_verb)
    table.append(of_words.seq_attr.numpy())

figure, axes = plt.subplots(figsize=(8, 3.4))
limit = 1.5 * np.abs(table).max()
picture = axes.imshow(table, cmap="coolwarm_r", vmin=-limit, vmax=limit)
for i, (text, _) in enumerate(cases):
    for j, word in enumerate(text.split()):
        axes.text(j, i, f"{word}\n{table[i][j]:+.2f}", ha="center", va="center")
axes.set_xticks([])
axes.set_yticks(range(4), [right_verb for _, right_verb in cases])
axes.set_title("what each word adds to the log-probability of the verb")
figure.colorbar(picture)
figure.tight_layout()
plt.show()

# %%
# What to read next
# -----------------
# - :doc:`answer_over_passages`: an answer from retrieved texts, with intervals.
# - :doc:`/coming_from_captum`: language models, and what an evaluation costs.
# - :doc:`/neighbouring_features`: long prompts, by C-Shapley.
# - :doc:`text_through_captum`: classifiers of texts.
