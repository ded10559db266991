"""What a call holds in memory beside the model, by the size of its batches.

python benchmarks/batch_memory.py

Each cell is a process of its own: its peak of resident memory less what it had before the call. A
network of convolutions explains an image of 3 × 224 × 224 by 49 squares with 256 evaluations; a
GPT-2 of 4 layers with 50,000 words explains an answer of 10 tokens to a prompt of 100 with 200.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import subprocess
import sys
import time
from typing import Any

CASES = {"image": (None, 1, 16, 64), "prompt": (None, 1, 8, 32)}
"""Of each case: coalitions in a batch; None lets the package choose."""


def explain_image(size: int | None) -> None:
    """Explain an image by squares of 32 × 32 pixels."""
    import torch
    from torch import nn

    from captum_ext import OddGP, superpixels

    torch.manual_seed(0)
    image = torch.rand(1, 3, 224, 224)
    network = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 1)),
    ).eval()
    mask = superpixels(image, (7, 7))
    before = started()
    OddGP(network, seed=0).attribute(
        image, feature_mask=mask, n_samples=256, perturbations_per_eval=size
    )
    report(*before)


def explain_prompt(size: int | None) -> None:
    """Explain an answer of 10 tokens to a prompt of 10 passages of 10 tokens."""
    import torch
    from captum.attr import TextTemplateInput
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    from captum_ext import LLMAttribution, OddGP

    transformers: Any = importlib.import_module("transformers")  # it is untyped
    numbers = Tokenizer(WordLevel({str(i): i for i in range(50_257)}, unk_token="0"))
    numbers.pre_tokenizer = Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=numbers, unk_token="0")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=256, n_layer=4, n_head=4)
    network = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(1, 50_000, (110,)).tolist()
    passages = [" ".join(map(str, tokens[i : i + 10])) for i in range(0, 100, 10)]
    inputs = TextTemplateInput(lambda *kept: " ".join(filter(None, kept)) or "0", passages)
    before = started()
    LLMAttribution(OddGP(network, seed=0), tokenizer).attribute(
        inputs, " ".join(map(str, tokens[100:])), n_samples=200, perturbations_per_eval=size
    )
    report(*before)


def started() -> tuple[float, float]:
    """Return the processor time and the peak of memory so far."""
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(seconds: float, megabytes: float) -> None:
    """Print the seconds and the megabytes since then."""
    now, peak = started()
    print(f"{now - seconds:.1f} s, {peak - megabytes:,.0f} MB")


def main() -> None:
    """Run each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--size", type=int)
    options = parser.parse_args()
    if options.case is not None:
        {"image": explain_image, "prompt": explain_prompt}[options.case](options.size)
        return
    for case, sizes in CASES.items():
        for size in sizes:
            command = [sys.executable, "-W", "ignore", __file__, "--case", case]
            command += [] if size is None else ["--size", str(size)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(f"{case:7} {'default' if size is None else size!s:>8}  {printed.strip()}")


if __name__ == "__main__":
    main()
