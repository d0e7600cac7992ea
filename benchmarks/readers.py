"""Hugging Face models decoded live: against their own `generate` with all attentions, the same weights and tokens written.

Marian with random weights, and SmolLM2 where `benchmarks.smollm2` has made it and a variable says where it is. Ours ends in a
whole Trace, theirs in tuples of tensors. Nothing ends before its last token.
Memory is the kernel's high-water mark, against what `trace_size` predicts before anything is run.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import transformer_viz as tv
from benchmarks import marian, reader_memory, smollm2
from benchmarks.cases import SIZES
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from transformer_viz.loaded_model import LoadedModel

TITLE = "Hugging Face models, decoded live"
TARGETS = {
    "greedy": Target(
        "tracing a Hugging Face model, 32 tokens: times its own generate with all attentions", "at most", 1.3, "×"
    ),
    "beam": Target("likewise a beam of 4", "at most", 1.5, "×"),
    "memory": Target("peak memory of a run of 32 and of 200 tokens: share of what was predicted", "at most", 1.0, "×"),
    "too-much": Target("what was predicted, times the peak", "at most", 3.0, "×"),
}
N_TOKENS, WIDTH, WORDS = 32, 4, 64
_BUDGET = 20.0


def measure(report: Report) -> None:
    """Each model greedily and with a beam, and the memory of models of their sizes."""
    _memory(report)
    for name, made in (("Marian, 6+6 layers", _marian), ("SmolLM2-135M", _smollm2)):
        try:
            ours, theirs, text = made()
        except Skipped as reason:
            report.remark(f"{name}: skipped: {reason}")
            continue
        ids = torch.tensor([ours.tokenizer.source(text)])
        for key, n_beams in (("greedy", 1), ("beam", WIDTH)):
            seconds = in_turns(
                {"ours": _traced(ours, text, n_beams), "theirs": _generated(theirs, ids, n_beams)}, budget=_BUDGET
            )
            mine, other = (
                Number.of(whose, [1000 * each for each in seconds[way]])
                for way, whose in (("ours", "traced"), ("theirs", "Hugging Face, with all attentions"))
            )
            report.add(Line(f"{name}, {N_TOKENS} tokens, {key}", mine, other, "ms", len(seconds["ours"])))
            report.worst(key, mine.value / other.value, "at most")


def _memory(report: Report) -> None:
    for name, words in reader_memory.NAMES.items():
        try:
            found = reader_memory.measured(name)
        except Skipped as reason:
            report.remark(f"{words}: memory skipped: {reason}")
            continue
        for n, (peak, predicted) in zip(reader_memory.LENGTHS, found, strict=False):
            mine, other = Number("peak", peak / 1e6), Number("predicted", predicted / 1e6)
            report.add(Line(f"{words}, {n} tokens, memory", mine, other, "MB", 1))
            report.worst("memory", peak / predicted, "at most")
            report.worst("too-much", predicted / peak, "at most")


def _marian() -> tuple[LoadedModel, Any, str]:
    """Random weights twice, since ours puts its attention in the place of the model's."""
    model = marian.ours(SIZES["6+6"], WORDS)
    theirs = marian.theirs(model)
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from transformer_viz.readers.huggingface.loading import wrapped

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0")
    return wrapped(marian.theirs(model), tokenizer, "marian"), theirs, " ".join(f"w{i}" for i in range(8, 40))


def _smollm2() -> tuple[LoadedModel, Any, str]:
    folder = smollm2.folder()
    return tv.load_model(str(folder), "cpu"), smollm2.theirs(folder), "Once upon a time there was"


def _traced(model: LoadedModel, text: str, n_beams: int) -> Callable[[], Any]:
    if n_beams == 1:
        return partial(tv.decode, model, text, max_length=N_TOKENS)
    return partial(tv.decode, model, text, max_length=N_TOKENS, strategy="beam", beam_size=n_beams, refill=True)


def _generated(model: Any, ids: torch.Tensor, n_beams: int) -> Callable[[], Any]:
    asked = {"attention_mask": torch.ones_like(ids), "max_new_tokens": N_TOKENS, "do_sample": False, "num_beams": n_beams}
    return partial(model.generate, ids, **asked, output_attentions=True, return_dict_in_generate=True)
