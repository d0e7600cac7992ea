"""The model called once for each text, straight from its parameters, without anything of `attribution`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from transformer_viz import Trace
from transformer_viz.attribution.contributions import Sublayer
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model import variants
from transformer_viz.model.tap import RecordTap, Site, Tap, TapName, compose

VARIANTS = variants.names()
SMALL: dict[str, Any] = {
    "n_heads": 2,
    "d_k": 3,
    "d_v": 4,
    "d_model": 6,
    "d_ff": 5,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
}


def settings_of(variant: str) -> dict[str, Any]:
    """What makes a variant, but for its sizes."""
    sizes = ("d_model", "d_ff", "n_heads", "d_k", "d_v", "n_encoder_layers", "n_decoder_layers", "sinusoid_base")
    return {name: value for name, value in variants.settings(variant).items() if name not in sizes}


def ids(checkpoint: Checkpoint, trace: Trace) -> tuple[list[int], list[int], list[int]]:
    """What a run read and wrote."""
    task = checkpoint.task
    source, target = task.source_vocabulary, task.target_vocabulary
    return source.encode(trace.source_tokens), target.encode(trace.target_tokens), target.encode(trace.output_tokens)


def log_p(checkpoint: Checkpoint, source: list[int], read: list[int], tap: Tap | None = None) -> np.ndarray:
    """(step, vocabulary)."""
    with torch.no_grad():
        return checkpoint.network(torch.tensor([source]), torch.tensor([read]), tap=tap)[0].log_softmax(-1).numpy()


def kept(checkpoint: Checkpoint, trace: Trace, name: TapName, tap: Tap | None = None) -> dict[Site, np.ndarray]:
    """One intermediate of every attention in a pass over what a run read."""
    source, read, _ = ids(checkpoint, trace)
    keep = RecordTap(name)
    log_p(checkpoint, source, read, compose(tap, keep))
    return {site: values[name][0].numpy() for site, values in keep.kept.items()}


def without(
    checkpoint: Checkpoint, trace: Trace, change: Callable[[list[int], list[int], int], Any], n_keys: int
) -> np.ndarray:
    """D[t, j] by one pass for each key: `change(source, read, j)` gives what is read without it."""
    source, read, written = ids(checkpoint, trace)
    before = log_p(checkpoint, source, read)
    found = np.zeros((len(written), n_keys))
    for j in range(n_keys):
        after = log_p(checkpoint, *change(list(source), list(read), j))
        for t, token in enumerate(written):
            found[t, j] = before[t, token] - after[t, token]
    return found


def bias_terms(sublayer: Sublayer) -> torch.Tensor:
    """(query, d_model) of what belongs to no token in a sublayer: the biases of projection and norm."""
    after, around = sublayer.stream["residual_after"], sublayer.around
    bias = torch.zeros_like(after) if around.out_bias is None else around.out_bias.expand_as(after)
    bias = sublayer.norm_of(slice(None))(bias[:, None])[:, 0]
    return bias if around.placement == "pre" or around.norm is None or around.norm.bias is None else bias + around.norm.bias
