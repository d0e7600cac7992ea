"""A run that nobody made: random weights in the right shapes, for pictures of any size."""

import numpy as np

from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace

LAYERS, HEADS = 6, 8


def random_run(n: int, layers: int = LAYERS, heads: int = HEADS) -> Trace:
    """`n` source tokens and `n` steps; few large weights a row, and the causal mask."""
    generator = np.random.default_rng(0)
    none = np.zeros((n, n), np.uint8)
    reasons: dict[Kind, np.ndarray] = {
        "encoder": none,
        "decoder": np.triu(np.full((n, n), int(Reason.FUTURE), np.uint8), 1),
        "cross": none,
    }

    def weights(kind: Kind) -> np.ndarray:
        raw = generator.random((layers, heads, n, n), dtype=np.float32) ** 8 + np.float32(1e-6)
        raw = np.where(reasons[kind] > 0, np.float32(0), raw)
        return raw / raw.sum(-1, keepdims=True)

    tokens = tuple(chr(97 + i % 26) for i in range(n))
    return Trace(
        source="".join(tokens),
        text="".join(tokens),
        source_tokens=tokens,
        target_tokens=("<start>", *tokens[:-1]),
        output_tokens=tokens,
        steps=tuple(
            Step(token=token, probability=0.9, log_probability=float(np.log(0.9)), rank=0, candidates=((token, 0.9),))
            for token in tokens
        ),
        attentions={kind: Attention(weights=weights(kind), reasons=reasons[kind]) for kind in KINDS},
        finished="length",
        alignment=(None,) * n,
        source_letters=tuple(range(n)),
    )
