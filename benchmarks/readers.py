"""Hugging Face models decoded live: against their own `generate` with all attentions, the same weights and tokens written.

Marian with random weights, and the folder that TRANSFORMER_VIZ_BENCH_MODEL names (a decoder-only model such as SmolLM2-135M).
Ours ends in a whole Trace, theirs in tuples of tensors. Nothing ends before its last token.
"""

import os
from functools import partial
from typing import Any

import torch

import transformer_viz as tv
from benchmarks import marian
from benchmarks.decoding import SIZES
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from transformer_viz.loaded_model import LoadedModel

TITLE = "Hugging Face models, decoded live"
TARGETS = {
    "greedy": Target("a Hugging Face model traced, 32 tokens: times its own generate with all attentions", "at most", 1.3, "×")
}
VARIABLE = "TRANSFORMER_VIZ_BENCH_MODEL"
N_TOKENS, WORDS, _BUDGET = 32, 64, 20.0


def measure(report: Report) -> None:
    for made in (_marian, _folder):
        try:
            name, ours, theirs, text = made()
        except (Skipped, ImportError) as reason:
            report.remark(f"skipped: {reason}")
            continue
        ids = torch.tensor([ours.tokenizer.encode_source(text)])
        works = {
            "traced": partial(tv.decode, ours, text, max_length=N_TOKENS),
            "Hugging Face, with all attentions": partial(marian.generated, theirs, ids, N_TOKENS),
        }
        seconds = in_turns(works, budget=_BUDGET)
        mine, other = (Number.of(whose, [1000 * each for each in taken]) for whose, taken in seconds.items())
        report.add(Line(f"{name}, {N_TOKENS} tokens", mine, other, "ms", len(seconds["traced"])))
        report.worst("greedy", mine.value / other.value, "at most")


def _marian() -> tuple[str, LoadedModel, Any, str]:
    """Two copies, since ours puts its attention in the place of the model's."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from transformer_viz.readers.huggingface.loading import wrap_model

    model = marian.ours(SIZES["6+6"], WORDS)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0")
    ours, text = wrap_model(marian.theirs(model), tokenizer, "marian"), " ".join(f"w{i}" for i in range(8, 40))
    return "Marian, 6+6 layers", ours, marian.theirs(model), text


def _folder() -> tuple[str, LoadedModel, Any, str]:
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise Skipped(f"{VARIABLE} names no folder")
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return folder, tv.load_model(folder, "cpu"), theirs, "Once upon a time there was"
