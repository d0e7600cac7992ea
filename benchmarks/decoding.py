"""Traced greedy decoding against Hugging Face's traced `generate`, and what a beam costs.

One text of random letters, batch 1, float32, as many tokens written as read, the same weights everywhere (`marian`), the
same number of threads. *Ours* ends in a whole Trace in numpy, with every mask and its reasons and each step's candidates;
Hugging Face's ends in tuples of tensors, one a step and layer.
"""

from functools import partial
from pathlib import Path

import numpy as np
import torch

import transformer_viz as tv
from benchmarks import marian
from benchmarks.measure import Line, Number, Report, Target, in_turns
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model import devices
from transformer_viz.tasks.reverse import Reverse

TITLE = "traced decoding"
TARGETS = {
    "hf": Target("decoding with its Trace: times as fast as Hugging Face's traced generate, the worst case", "at least", 1, "×")
}
LENGTHS = (16, 64, 256, 512)
SIZES = {
    "1+1": {"layers": 1, "d_model": 128, "heads": 4, "d_ff": 512},
    "6+6": {"layers": 6, "d_model": 512, "heads": 8, "d_ff": 2048},
}
_BUDGET, _LEAST, _MOST = 6.0, 7, 400


def measure(report: Report) -> None:
    """All sizes and lengths on the CPU, and on the GPU where there is one."""
    _beam(report)
    threads = torch.get_num_threads()
    for device in [torch.device("cpu"), *([torch.device("cuda")] if torch.cuda.is_available() else [])]:
        for name, size in SIZES.items():
            # One thread for the small model, as the app takes it; two are no faster, and the same for all.
            torch.set_num_threads(1 if size["layers"] == 1 else threads)
            try:
                _size(name, size, device, report)
            finally:
                torch.set_num_threads(threads)


def _size(name: str, size: dict[str, int], device: torch.device, report: Report) -> None:
    checkpoint = subject(size, device)
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    report.remark(f"{name} layers, d_model {size['d_model']}, {size['heads']} heads, on {devices.title(device)}{threads}")
    other = marian.theirs(checkpoint.network)
    for n in LENGTHS:
        works = {
            "ours, traced": partial(tv.decode, checkpoint, text_of(n), max_length=n),
            "Hugging Face, traced": partial(marian.generated, other, source_of(checkpoint, n), n),
        }
        seconds = in_turns(works, budget=_BUDGET, least=_LEAST, most=_MOST)
        numbers = [Number.of(way, [n / taken for taken in each]) for way, each in seconds.items()]
        what = f"{name} layers, {n} tokens on {device.type}: text to Trace"
        line = report.add(Line(what, *numbers, "tokens/s", len(seconds["ours, traced"]), "more"))
        if device.type == "cpu":
            report.worst("hf", line.ratio, "at least")


def subject(size: dict[str, int], device: torch.device) -> Checkpoint:
    """A checkpoint with random weights that never ends by itself."""
    task = Reverse(max_length=max(LENGTHS) - 2)
    model = marian.ours(size, len(task.target_vocabulary)).to(device)
    return Checkpoint("random", Path(), model, task, "post-norm", {}, {}, device)


def text_of(n: int) -> str:
    """Random letters that make `n` tokens with `<start>` and `<end>`."""
    return "".join(np.random.default_rng(n).choice(list("abcdefghijklmnopqrstuvwxyz"), n - 2))


def source_of(checkpoint: Checkpoint, n: int) -> torch.Tensor:
    """The text as ids, (1, source)."""
    task = checkpoint.task
    return torch.tensor([task.source_vocabulary.encode(task.frame(task.read(text_of(n))))], device=checkpoint.device)


def _beam(report: Report) -> None:
    """What a beam costs, with a checkpoint of the app."""
    checkpoint, text = tv.load_checkpoint("reverse", device="cpu"), "abcdefghijklmnopqrstuvwxyz012345"
    works = {
        "greedy, traced": partial(tv.decode, checkpoint, text),
        "a beam of 5, traced": partial(tv.decode, checkpoint, text, strategy="beam", beam_size=5),
    }
    seconds = in_turns(works, budget=_BUDGET / 2)
    one, beam = (Number.of(way, [1000 * each for each in taken]) for way, taken in seconds.items())
    report.add(Line("`reverse`, 32 letters: text to Trace, a beam of 5", beam, one, "ms", len(seconds[one.name])))
