"""Traced greedy decoding: against Hugging Face's traced `generate`, our own without a trace, and a decoder without a cache.

One text of random letters, batch 1, float32, as many tokens written as read, the same weights everywhere (`marian`), the
same number of threads. *Ours* ends in a whole Trace in numpy, with every mask and its reasons and each step's candidates;
Hugging Face's ends in tuples of tensors, one a step and layer.
"""

from functools import partial
from statistics import median
from typing import Any

import torch

import transformer_viz as tv
from benchmarks import decoding_memory, marian
from benchmarks.cases import LENGTHS, SIZES, Ways, hugging_face, subject, text_of, ways
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model import devices

TITLE = "traced decoding"
TARGETS = {
    "hf 1+1": Target("traced decoding, 1+1 layers: times as fast as Hugging Face's traced generate", "at least", 4, "×"),
    "hf 6+6": Target("traced decoding, 6+6 layers, d_model 512: times as fast as Hugging Face's", "at least", 1, "×"),
    "trace 6+6": Target("what tracing costs over our own untraced decoding, 6+6 layers", "at most", 10, "%"),
    "trace 1+1": Target("what tracing costs over our own untraced decoding, 1+1 layers", "at most", 30, "%"),
    "cache 1+1": Target("traced against decoding without a cache, 256 tokens, 1+1 layers: times as fast", "at least", 4, "×"),
    "cache 6+6": Target("traced against decoding without a cache, 256 tokens, 6+6 layers: times as fast", "at least", 6, "×"),
}
# Seconds for one size and length, beyond the three rounds that are always made.
_BUDGET = 6.0
# Rounds at the most. A few of four milliseconds each would say how busy the host is just then.
_MOST = 400
_OURS = ("traced", "recording", "untraced")


def measure(report: Report) -> None:
    """All sizes and lengths on the CPU, and on the GPU where there is one. A target's value is the worst of its lengths."""
    _on(torch.device("cpu"), report)
    _beam(report)
    for name, size in SIZES.items():
        _memory(name, size, report)
    if torch.cuda.is_available():
        _on(torch.device("cuda"), report)
    else:
        report.remark("decoding on a GPU: skipped: no CUDA device")


def _on(device: torch.device, report: Report) -> None:
    threads = torch.get_num_threads()
    for name, size in SIZES.items():
        # One thread for the small model, as the app takes it; two are no faster, and the same for all.
        torch.set_num_threads(1 if size["layers"] == 1 else threads)
        try:
            _size(name, size, device, report)
        finally:
            torch.set_num_threads(threads)


def _size(name: str, size: dict[str, int], device: torch.device, report: Report) -> None:
    checkpoint = subject(size, device)
    where = f"{devices.title(device)}, {torch.get_num_threads()} threads" if device.type == "cpu" else devices.title(device)
    report.remark(f"{name} layers, d_model {size['d_model']}, {size['heads']} heads, on {where}")
    try:
        other = marian.theirs(checkpoint.model)
        _check_same(other, checkpoint)
    except Skipped as reason:
        report.remark(f"Hugging Face: skipped: {reason}")
        other = None
    for n in LENGTHS:
        works = ways(checkpoint, n)
        if other is not None:
            works["hf"] = hugging_face(other, checkpoint, n)
        synchronize = torch.cuda.synchronize if device.type == "cuda" else None
        seconds = in_turns(works, budget=_BUDGET, most=_MOST, often=_OURS, is_warm=n > LENGTHS[0], synchronize=synchronize)
        _lines(name, n, {way: [n / s for s in each] for way, each in seconds.items()}, device, report)


def _check_same(other: Any, checkpoint: Checkpoint) -> None:
    """Both must write the same tokens, or they are not the same model."""
    n = LENGTHS[0]
    found = hugging_face(other, checkpoint, n)().sequences[0, 1:].tolist()
    tokens = tv.decode(checkpoint, text_of(n), max_length=n).output_tokens
    assert checkpoint.task.target_vocabulary.encode(tokens) == found, "Hugging Face's model writes other tokens"


_OTHERS = {
    "hf": "Hugging Face, traced",
    "untraced": "ours without trace",
    "no cache": "without cache or trace",
}


def _lines(name: str, n: int, rates: dict[str, list[float]], device: torch.device, report: Report) -> None:
    """Tokens a second; the targets, on the CPU."""
    where = "" if device.type == "cpu" else f" on {devices.title(device)}"
    found: dict[str, float] = {}
    for way, words in _OTHERS.items():
        if way in rates:
            ours, other = Number.of("ours, traced", rates["traced"]), Number.of(words, rates[way])
            what = f"{name} layers, {n} tokens: text to Trace{where}"
            found[way] = report.add(Line(what, ours, other, "tokens/s", len(rates[way]), "more")).ratio
    bare = Number.of("ours, recording", rates["recording"])
    untraced = Number.of(_OTHERS["untraced"], rates["untraced"])
    what = f"{name} layers, {n} tokens: text to recorded tensors{where}"
    report.add(Line(what, bare, untraced, "tokens/s", len(rates["recording"]), "more"))
    if device.type != "cpu":
        return
    if "hf" in found:
        report.worst(f"hf {name}", found["hf"], "at least")
    # Round by round: a slow quarter of a minute is slow for both.
    costs = [without / traced - 1 for without, traced in zip(rates["untraced"], rates["traced"], strict=True)]
    report.worst(f"trace {name}", 100 * median(costs), "at most")
    if n == max(LENGTHS):
        report.values[f"cache {name}"] = found["no cache"]


def _beam(report: Report) -> None:
    """What a beam costs, with the checkpoint and the texts of the app."""
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    for text in ("reversethis!", "abcdefghijklmnopqrstuvwxyz012345"):
        works: Ways = {
            "greedy": partial(tv.decode, checkpoint, text),
            "beam": partial(tv.decode, checkpoint, text, strategy="beam", beam_size=5),
        }
        seconds = in_turns(works, budget=_BUDGET / 2)
        milliseconds = {way: [1000 * each for each in taken] for way, taken in seconds.items()}
        beam, one = Number.of("a beam of 5, traced", milliseconds["beam"]), Number.of("greedy, traced", milliseconds["greedy"])
        report.add(Line(f"`reverse`, {len(text)} letters: text to Trace, a beam of 5", beam, one, "ms", len(seconds["beam"])))


def _memory(name: str, size: dict[str, int], report: Report) -> None:
    """Peak memory over the loaded model, each way in a process of its own."""
    try:
        peaks = {way: decoding_memory.in_process("decoding_memory", way, name) for way in ("traced", *_OTHERS)}
    except Skipped as reason:
        report.remark(f"peak memory: skipped: {reason}")
        return
    for i, n in enumerate(LENGTHS):
        for way, words in _OTHERS.items():
            if (there := peaks[way]) is not None and (here := peaks["traced"]) is not None:
                ours, other = Number("ours, traced", here[i] / 2**20), Number(words, there[i] / 2**20)
                report.add(Line(f"{name} layers, {n} tokens: peak memory above the model", ours, other, "MB", 1))
