"""Traced greedy decoding against the same without a trace, and without the cache, in one run."""

import platform
import statistics
import time
from collections.abc import Callable

import torch

import transformer_viz as tv
from transformer_viz.decoding.greedy import greedy
from transformer_viz.model.transformer import Transformer
from transformer_viz.trace.recorder import Recorder
from transformer_viz.vocabulary import END_ID, START_ID

TEXTS = ("reversethis!", "abcdefghijklmnopqrstuvwxyz012345")
RUNS = 15


def main() -> None:
    """Prints medians in ms and the ratios."""
    checkpoint = tv.load_checkpoint("reverse", device="auto")
    print(f"decoding · {checkpoint.device_title}, {platform.machine()}, {torch.get_num_threads()} threads, {torch.__version__}")
    for text in TEXTS:
        task = checkpoint.task
        source = torch.tensor([task.source_vocabulary.encode(task.frame(task.read(text)))], device=checkpoint.device)
        plain = _median(lambda s=source: greedy(checkpoint.model, s, None, max_length=33))
        traced = _median(lambda s=source: greedy(checkpoint.model, s, None, max_length=33, tap=Recorder()))
        whole = _median(lambda t=text: tv.decode(checkpoint, t))
        beam = _median(lambda t=text: tv.decode(checkpoint, t, strategy="beam", beam_size=5))
        uncached = _median(lambda s=source: _without_cache(checkpoint.model, s, 33))
        print(
            f"  {len(text):2} letters: untraced {plain:6.1f} ms · recording {traced:6.1f} ms ({traced / plain:.2f}x) · "
            f"text to Trace {whole:6.1f} ms ({whole / plain:.2f}x) · "
            f"beam 5 to Trace {beam:6.1f} ms ({beam / whole:.2f}x of greedy) · "
            f"without cache {uncached:6.1f} ms ({uncached / plain:.2f}x)"
        )


@torch.inference_mode()
def _without_cache(model: Transformer, source: torch.Tensor, limit: int) -> None:
    memory = model.encode(source)
    target = torch.tensor([[START_ID]], device=source.device)
    while target.shape[1] <= limit:
        token = model.decode(target, memory)[:, -1].argmax(-1, keepdim=True)
        if token.item() == END_ID:
            return
        target = torch.cat([target, token], 1)


def _median(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


if __name__ == "__main__":
    main()
