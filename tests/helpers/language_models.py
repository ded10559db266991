"""Tiny language models and a tokenizer of words, built from nothing, that count their passes."""

import functools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

WORDS = ["<unk>", "<s>", "the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "tree"]
WORDS += ["slowly"]


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
    """Predicts the next token from all tokens so far and their order; keeps what it has read."""

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
        self.prompts, self.n_passes = [], 0

    def forward(self, input_ids, attention_mask=None, use_cache=None, **_):
        self.n_passes += 1
        self.prompts += input_ids.tolist()
        states, _ = self.mix(self.embedding(input_ids))
        return SimpleNamespace(logits=self.head(states))

    def generate(self, input_ids, max_new_tokens=3, do_sample=False, **_):
        for _step in range(max_new_tokens):
            logits = self(input_ids).logits[:, -1]
            token = logits.argmax(dim=1, keepdim=True)
            if do_sample:
                token = torch.multinomial(logits.softmax(dim=1), 1)
            input_ids = torch.cat([input_ids, token], dim=1)
        return input_ids


def log_probabilities_by(model, prompt_ids, target_ids):
    """Return the log-probability of the target and of each of its tokens, one prompt at a time."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt_ids, *target_ids]])).logits[0]
    logs = torch.log_softmax(logits, dim=1)
    start = len(prompt_ids) - 1
    each = [float(logs[start + i, token]) for i, token in enumerate(target_ids)]
    return [sum(each), *each]


def transformer(kind):
    """Return a tiny model of transformers in double precision, from its configuration."""
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": len(WORDS), "bos_token_id": 1, "eos_token_id": 0, "pad_token_id": 0}
    if kind == "gpt2":
        config = transformers.GPT2Config(n_positions=32, n_embd=16, n_layer=2, n_head=2, **sizes)
    else:
        config = transformers.LlamaConfig(
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=32,
            **sizes,
        )
    return drawn(transformers.AutoModelForCausalLM.from_config(config))


def drawn(model, scale=1.0):
    """Draw the weights that read the tokens before."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    return model


def encoder_decoder(kind, scale=0.5):
    """Return a tiny model that reads with an encoder, in double precision."""
    transformers = pytest.importorskip("transformers")
    sizes: dict[str, Any] = {
        "vocab_size": len(WORDS), "d_model": 16, "pad_token_id": 0, "eos_token_id": 1,
        "decoder_start_token_id": 2,
    }  # fmt: skip
    if kind == "t5":
        config = transformers.T5Config(d_kv=8, d_ff=16, num_layers=2, num_heads=2, **sizes)
    else:
        for part in ("encoder", "decoder"):
            sizes |= {f"{part}_attention_heads": 2, f"{part}_layers": 1, f"{part}_ffn_dim": 16}
        sizes |= {"max_position_embeddings": 12, "forced_eos_token_id": None}
        config = transformers.BartConfig(**sizes)
    model = drawn(transformers.AutoModelForSeq2SeqLM.from_config(config), scale)
    model.generation_config.suppress_tokens = [0, 1]  # so that it does not end at once
    return model


def fast_tokenizer(padding_side="right"):
    """Return a tokenizer of transformers with the same words, which knows unknown ones."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: i for i, word in enumerate(WORDS)}
    of_words = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    of_words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=of_words,
        unk_token="<unk>",
        bos_token="<s>",
        pad_token="<unk>",
        padding_side=padding_side,
    )


def prompts_of_passes(model):
    """Return a list that gets the number of prompts of each later pass of a model."""
    sizes, forward = [], model.forward

    @functools.wraps(forward)
    def counted(*arguments, **options):
        sizes.append(len(options["input_ids"] if "input_ids" in options else arguments[0]))
        return forward(*arguments, **options)

    model.forward = counted
    return sizes
