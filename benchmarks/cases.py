"""The cases of the decoding benchmarks: sizes, lengths, and every way to decode one text.

One text of random letters, batch 1, float32, as many tokens written as read, the same weights everywhere (`marian`).
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import transformer_viz as tv
from benchmarks import marian
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.greedy import greedy
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.trace.recorder import Recorder
from transformer_viz.vocabulary import END_ID, START_ID

LENGTHS = (16, 64, 256)
SIZES = {
    "1+1": {"layers": 1, "d_model": 128, "heads": 4, "d_ff": 512},
    "6+6": {"layers": 6, "d_model": 512, "heads": 8, "d_ff": 2048},
}

Ways = dict[str, Callable[[], Any]]


def subject(size: dict[str, int], device: torch.device) -> Checkpoint:
    """A checkpoint with random weights that never ends by itself."""
    task = Reverse(max_length=max(LENGTHS))
    model = marian.ours(size, len(task.target_vocabulary)).to(device)
    return Checkpoint("random", Path(), model, task, "post-norm", {}, {}, device)


def text_of(n: int) -> str:
    """Random letters that make `n` tokens with `<start>` and `<end>`."""
    return "".join(np.random.default_rng(n).choice(list("abcdefghijklmnopqrstuvwxyz"), n - 2))


def ways(checkpoint: Checkpoint, n: int) -> Ways:
    """Everything that is timed for one length, ours first."""
    model, text = checkpoint.model, text_of(n)
    return {
        "traced": lambda: tv.decode(checkpoint, text, max_length=n),
        "recording": lambda: greedy(model, source_of(checkpoint, text), None, max_length=n, tap=Recorder()),
        "untraced": lambda: without_trace(checkpoint, text, n),
        "no cache": lambda: without_cache(model, source_of(checkpoint, text), n),
    }


def source_of(checkpoint: Checkpoint, text: str) -> torch.Tensor:
    """The text as ids, (1, source)."""
    task = checkpoint.task
    return torch.tensor([task.source_vocabulary.encode(task.frame(task.read(text)))], device=checkpoint.device)


def without_trace(checkpoint: Checkpoint, text: str, n: int) -> str:
    """Text to text, with the cache and no tap."""
    task = checkpoint.task
    decoded = greedy(checkpoint.model, source_of(checkpoint, text), None, max_length=n)
    return task.join(task.target_vocabulary.decode(decoded.ids[0].tolist()))


def hugging_face(marian_model: Any, checkpoint: Checkpoint, n: int) -> Callable[[], Any]:
    """Hugging Face's `generate` with all attentions."""
    source = source_of(checkpoint, text_of(n))
    asked = {"attention_mask": torch.ones_like(source), "max_new_tokens": n, "do_sample": False, "num_beams": 1}
    return partial(marian_model.generate, source, **asked, output_attentions=True, return_dict_in_generate=True)


@torch.inference_mode()
def without_cache(model: Transformer, source: torch.Tensor, n: int) -> torch.Tensor:
    """As decoders are first written: every step computes all rows again; the source is read once. Gives the ids."""
    memory = model.encode(source)
    target = torch.tensor([[START_ID]], device=source.device)
    for _ in range(n):
        token = model.decode(target, memory)[:, -1].argmax(-1, keepdim=True)
        target = torch.cat([target, token], 1)
        if token.item() == END_ID:
            break
    return target[:, 1:]
