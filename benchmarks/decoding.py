"""Traced greedy decoding against Hugging Face's traced `generate`, and our own without a trace.

One text of random letters, batch 1, float32, as many tokens written as read, the same weights everywhere (`marian`), the
same number of threads. *Ours* ends in a whole Trace in numpy, with every mask and its reasons and each step's candidates;
Hugging Face's ends in tuples of tensors, one a step and layer.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import transformer_viz as tv
from benchmarks import marian
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.greedy import greedy
from transformer_viz.model import devices
from transformer_viz.tasks.reverse import Reverse

TITLE = "traced decoding"
TARGETS = {
    "hf": Target("decoding with its Trace: times as fast as Hugging Face's traced generate, the worst case", "at least", 2, "×")
}
LENGTHS = (16, 64, 256)
SIZES = {
    "1+1": {"layers": 1, "d_model": 128, "heads": 4, "d_ff": 512},
    "6+6": {"layers": 6, "d_model": 512, "heads": 8, "d_ff": 2048},
}
_BUDGET, _MOST = 6.0, 400


def measure(report: Report) -> None:
    """All sizes and lengths on the CPU, and on the GPU where there is one."""
    for device in [torch.device("cpu"), *([torch.device("cuda")] if torch.cuda.is_available() else [])]:
        for name, size in SIZES.items():
            threads = torch.get_num_threads()
            # One thread for the small model, as the app takes it; two are no faster, and the same for all.
            torch.set_num_threads(1 if size["layers"] == 1 else threads)
            try:
                _size(name, size, device, report)
            finally:
                torch.set_num_threads(threads)
    _beam(report)


def _size(name: str, size: dict[str, int], device: torch.device, report: Report) -> None:
    checkpoint = subject(size, device)
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    report.remark(f"{name} layers, d_model {size['d_model']}, {size['heads']} heads, on {devices.title(device)}{threads}")
    try:
        other = marian.theirs(checkpoint.model)
    except Skipped as reason:
        report.remark(f"Hugging Face: skipped: {reason}")
        other = None
    for n in LENGTHS:
        text = text_of(n)
        works: dict[str, Callable[[], Any]] = {
            "traced": partial(tv.decode, checkpoint, text, max_length=n),
            "ours without trace": partial(greedy, checkpoint.model, source_of(checkpoint, text), None, max_length=n),
        }
        if other is not None:
            works["Hugging Face, traced"] = partial(generated, other, checkpoint, n)
        synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
        seconds = in_turns(works, budget=_BUDGET, most=_MOST, synchronize=synchronize)
        ours, *others = (Number.of(way, [n / taken for taken in each]) for way, each in seconds.items())
        for number in others:
            what = f"{name} layers, {n} tokens on {device.type}: text to Trace"
            line = report.add(Line(what, ours, number, "tokens/s", len(seconds["traced"]), "more"))
            if device.type == "cpu" and number.name.startswith("Hugging"):
                report.worst("hf", line.ratio, "at least")


def subject(size: dict[str, int], device: torch.device) -> Checkpoint:
    """A checkpoint with random weights that never ends by itself."""
    task = Reverse(max_length=max(LENGTHS))
    model = marian.ours(size, len(task.target_vocabulary)).to(device)
    return Checkpoint("random", Path(), model, task, "post-norm", {}, {}, device)


def text_of(n: int) -> str:
    """Random letters that make `n` tokens with `<start>` and `<end>`."""
    return "".join(np.random.default_rng(n).choice(list("abcdefghijklmnopqrstuvwxyz"), n - 2))


def source_of(checkpoint: Checkpoint, text: str) -> torch.Tensor:
    """The text as ids, (1, source)."""
    task = checkpoint.task
    return torch.tensor([task.source_vocabulary.encode(task.frame(task.read(text)))], device=checkpoint.device)


def generated(model: Any, checkpoint: Checkpoint, n: int) -> Any:
    """Hugging Face's `generate` of `n` tokens with all attentions."""
    source = source_of(checkpoint, text_of(n))
    asked = {"attention_mask": torch.ones_like(source), "max_new_tokens": n, "do_sample": False, "num_beams": 1}
    return model.generate(source, **asked, output_attentions=True, return_dict_in_generate=True)


def _beam(report: Report) -> None:
    """What a beam costs, with the checkpoint and the texts of the app."""
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    for text in ("reversethis!", "abcdefghijklmnopqrstuvwxyz012345"):
        works = {
            "greedy, traced": partial(tv.decode, checkpoint, text),
            "a beam of 5, traced": partial(tv.decode, checkpoint, text, strategy="beam", beam_size=5),
        }
        seconds = in_turns(works, budget=_BUDGET / 2)
        one, beam = (Number.of(way, [1000 * each for each in taken]) for way, taken in seconds.items())
        report.add(Line(f"`reverse`, {len(text)} letters: text to Trace, a beam of 5", beam, one, "ms", len(seconds[one.name])))
