"""`show`: attention and tokens in one line, as they come out of a model."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from transformer_viz.errors import TraceError
from transformer_viz.terms import Kind
from transformer_viz.trace import arrays
from transformer_viz.trace.trace import Trace


def show(
    attention: Any,
    tokens: Iterable[str] | None = None,
    source_tokens: Iterable[str] | None = None,
    *,
    kind: Kind | None = None,
    beam_indices: Any = None,
) -> Trace:
    """Makes a run of attention and its tokens, which a notebook shows in its cell.

    Args:
        attention: what a model returns with `output_attentions=True`, or `generate` does, or any array that `Trace.from_arrays`
            takes, such as (layer, head, query, key) or (query, key), rows that sum to 1; a Trace is shown as it is.
        tokens: a label for each row and column; of cross-attention for each row.
        source_tokens: of cross-attention, a label for each column.
        kind: `encoder`, `decoder` or `cross`. By default cross where there are source tokens; a decoder's where no row looks at
            a later key, and else an encoder's.
        beam_indices: of a beam search by `generate`, its `beam_indices`.

    Returns:
        A Trace.

    Raises:
        TraceError: the parts do not fit together; or the attention is empty, since it was computed by a fused kernel.

    Example:
        >>> import numpy as np
        >>> import transformer_viz as tv
        >>> trace = tv.show(np.eye(3), ["a", "b", "c"])
        >>> trace.kinds
        ('decoder',)
        >>> cross = np.full((2, 4), 0.25)  # (query, key)
        >>> tv.show(cross, ["x", "y"], ["a", "b", "c", "d"]).cross.weights.shape
        (1, 1, 2, 4)
    """
    if isinstance(attention, Trace) and tokens is None:
        return attention
    if tokens is None:
        raise TraceError("the tokens are missing: tv.show(attention, tokens), with a label for each row and column")
    tokens = [*tokens]
    if any(isinstance(token, list | tuple) for token in tokens):
        raise TraceError(
            "lists of tokens within tokens are not possible; of cross-attention it is "
            "tv.show(attention, target_tokens, source_tokens)"
        )
    if source_tokens is not None:
        if kind not in (None, "cross"):
            raise TraceError(f"source_tokens are of cross-attention, not of {kind}; leave them out")
        return Trace.from_arrays(cross=attention, target_tokens=tokens, source_tokens=source_tokens, beam_indices=beam_indices)
    labels = arrays.read_tokens("tokens", tokens)
    if arrays.are_steps(attention):
        attention, kind = arrays.join_steps("decoder", attention, beam_indices), kind or "decoder"
    weights = arrays.read_weights(kind or "decoder", attention, len(labels), len(labels))
    looks_back = not np.triu(weights, 1).any()
    kind = kind or ("decoder" if looks_back and len(labels) > 1 else "encoder")
    if kind == "encoder":
        return Trace.from_arrays(encoder=weights, source_tokens=labels)
    return Trace.from_arrays(decoder=weights, target_tokens=labels, masks={"decoder": "causal"} if looks_back else None)
