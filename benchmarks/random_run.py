"""A run that nobody made: random weights in the right shapes, for pictures of any size."""

from dataclasses import replace

import numpy as np

from transformer_viz.trace.trace import Trace

LAYERS, HEADS = 6, 8


def random_run(n: int, layers: int = LAYERS, heads: int = HEADS) -> Trace:
    """`n` source tokens and `n` steps; few large weights a row, and the causal mask."""
    raw = np.random.default_rng(0).random((3, layers, heads, n, n), dtype=np.float32) ** 8 + np.float32(1e-6)
    raw[1] = np.tril(raw[1])
    encoder, decoder, cross = raw / raw.sum(-1, keepdims=True)
    tokens = [chr(97 + i % 26) for i in range(n)]
    return Trace.from_arrays(
        encoder=encoder,
        decoder=decoder,
        cross=cross,
        source_tokens=tokens,
        target_tokens=["<start>", *tokens[:-1]],
        output_tokens=tokens,
        masks={"decoder": "causal"},
        candidates=[[(token, 0.9)] for token in tokens],
    )


def random_decoder(n: int, layers: int, heads: int) -> Trace:
    """`n` steps of a model that has a decoder alone, in half precision, as large files are."""
    raw = np.tril(np.random.default_rng(0).random((layers, heads, n, n), dtype=np.float32) ** 8 + np.float32(1e-6))
    tokens = [chr(97 + i % 26) for i in range(n)]
    whole = Trace.from_arrays(
        decoder=raw / raw.sum(-1, keepdims=True),
        target_tokens=["<start>", *tokens[:-1]],
        output_tokens=tokens,
        masks={"decoder": "causal"},
        candidates=[[(token, 0.9)] for token in tokens],
    )
    halved = replace(whole.decoder, weights=whole.decoder.weights.astype(np.float16))
    return replace(whole, attentions={"decoder": halved})
