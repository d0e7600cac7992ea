"""Models made by hand that copy a text through heads that are known, while the others decorate."""

from pathlib import Path

import torch

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model.blocks import DecoderLayer
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.copy import Copy

ALPHABET, LENGTH = "abcdefgh", 8
TEXT = "cafedbgh"
N, P = 4 + len(ALPHABET), LENGTH + 2
"""Tokens, and positions: the stream has a place for each source token, each position, and each token to be written."""
READ, PLACE, WRITE = slice(0, N), slice(N, N + P), slice(N + P, 2 * N + P)
CERTAIN, SOFT = 60.0, 4.0


def copying(*copiers: int) -> Checkpoint:
    """One layer of four heads, of which these copy: at step t they look at token t + 1 and write it.

    The others write nothing: head 1 looks at everything alike, head 2 at the first token, head 3, more softly, at the token
    before the right one.
    """
    config = ModelConfig(
        source_vocabulary_size=N, target_vocabulary_size=N, d_model=2 * N + P, n_heads=4, d_k=P, d_v=N, d_ff=1,
        n_encoder_layers=1, n_decoder_layers=1, max_positions=P, position="learned", final_norm=False, norm_affine=False,
    )  # fmt: skip
    model = Transformer(config).double()
    for parameter in model.parameters():
        parameter.data.zero_()
    assert model.source_embedding is not None and model.positions.table is not None
    model.source_embedding.weight.data[:, READ] = torch.eye(N)
    model.positions.table.data[:, PLACE] = torch.eye(P)
    [layer] = model.decoder
    assert isinstance(layer, DecoderLayer)
    attention = layer.cross_attention
    by_head = {name: getattr(attention, name).weight.data.view(4, -1, 2 * N + P) for name in ("query", "key", "value")}
    next_place, same_place = torch.eye(P).roll(1, 0), torch.eye(P)
    for head in range(4):
        by_head["key"][head][:, PLACE] = same_place
        by_head["value"][head][:, READ] = torch.eye(N)
        if head in copiers:
            by_head["query"][head][:, PLACE] = CERTAIN * next_place
            attention.out.weight.data[WRITE, head * N : (head + 1) * N] = 9 * torch.eye(N)
        elif head == 2:
            attention.query.bias.data[head * P] = 10 * CERTAIN
        elif head == 3:
            by_head["query"][head][:, PLACE] = SOFT * same_place
    assert isinstance(model.output, torch.nn.Linear)
    model.output.weight.data[:, WRITE] = torch.eye(N)
    model.eval().requires_grad_(False)
    return Checkpoint(
        "copying", Path("copying"), model, Copy(ALPHABET, LENGTH, (1, LENGTH)), "pre-norm", {}, {}, torch.device("cpu")
    )
