"""What the pictures of all heads weigh, and how long they take to build: 6 layers x 8 heads of all three kinds.

HTML is weighed without plotly.js, which is 4.8 MB more, once.
"""

import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import transformer_viz as tv
from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.trace import Step, Trace

LAYERS, HEADS = 6, 8
SIZES = (12, 64, 256)
TRIES = 7


def main() -> None:
    """Prints bytes and medians."""
    print(f"pictures · {LAYERS} layers x {HEADS} heads, three kinds, {platform.machine()}")
    for n in SIZES:
        trace = random_run(n)
        made, took = _timed(lambda t=trace: [tv.figures.mosaic(t, kind) for kind in KINDS])
        sent, packing = _timed(lambda f=made: sum(len(str(figure.to_json()).encode()) for figure in f))
        bodies = sum(len(tv.export.figure_html(figure, plotlyjs=False).encode()) for figure in made)
        page, paging = _timed(lambda t=trace: len(tv.export.html(t, plotlyjs=False).encode()), tries=1)
        print(
            f"  {n:3} tokens: mosaics {sent:>9,} bytes of JSON, built in {took:5.1f} ms, written in {packing:5.1f} ms, "
            f"{bodies:>9,} bytes as HTML · whole run as HTML, every weight exact {page:>10,} bytes, {paging:5.0f} ms"
        )
    word = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "reversethis!")
    sizes = {name: len(tv.export.html(word, plotlyjs=choice).encode()) for name, choice in (("with", True), ("without", False))}
    print(f"  12 letters, 2 x 4 heads: page {sizes['with']:,} bytes with plotly.js, {sizes['without']:,} without")


def random_run(n: int, layers: int = LAYERS, heads: int = HEADS) -> Trace:
    """A run that nobody made: random weights in the right shapes, with the causal mask."""
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
        encoder_attentions=weights("encoder"),
        decoder_attentions=weights("decoder"),
        cross_attentions=weights("cross"),
        mask_reasons=reasons,
        finished="length",
        alignment=(None,) * n,
        source_letters=tuple(range(n)),
    )


def _timed(work: Callable[[], Any], tries: int = TRIES) -> tuple[Any, float]:
    """The result, and the median in ms."""
    times, result = [], work()
    for _ in range(tries):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
    return result, 1000 * statistics.median(times)


if __name__ == "__main__":
    main()
