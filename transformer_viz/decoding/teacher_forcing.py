"""One pass over a target that is given, instead of step after step over what the model writes."""

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reader
from transformer_viz.decoding.stepwise import Decoded
from transformer_viz.model.tap import Tap


@torch.inference_mode()
def teacher_forced(
    reader: Reader,
    source: Tensor,
    source_padding: Tensor | None,
    target_in: Tensor,
    target_out: Tensor,
    target_padding: Tensor | None,
    *,
    tap: Tap | None = None,
) -> Decoded:
    """Reads `target_in` in one pass, as in training (Vaswani et al. 2017, section 3.1: masked self-attention).

    Args:
        reader: in eval mode.
        source: int (batch, source), framed.
        source_padding: bool (batch, source), or None when nothing is padded.
        target_in: int (batch, step), `<start>` first.
        target_out: int (batch, step), what each step should write.
        target_padding: bool (batch, step), or None when nothing is padded.
        tap: sees every attention.

    Returns:
        `target_out` as what was written, with the logits of every step; padded steps behind the others are not counted in the
        lengths.
    """
    assert not reader.training, "teacher forcing for a Trace needs a model in eval mode"
    memory = reader.encode(source, source_padding, tap=tap)
    logits = reader.decode(target_in, memory, source_padding, target_padding, tap=tap)
    n_steps = target_out.shape[1]
    if target_padding is None:
        lengths = torch.full((len(target_out),), n_steps, device=target_out.device)
    else:
        # Padding before a prompt are steps too.
        lengths = n_steps - target_padding.flip(1).int().cumprod(1).sum(1)
    return Decoded(target_out, lengths, torch.ones_like(lengths, dtype=torch.bool), logits)
