"""Run by `test_memory.py` in processes of their own: `python memory_program.py pages | NAME`. Prints JSON."""

import gc
import itertools
import json
import logging
import string
import sys
from pathlib import Path
from typing import Any

import torch

from tests.memory import bytes_now, peak
from transformer_viz import decode, load_checkpoint, trace_size
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.vocabulary import END_ID

WAYS: list[dict[str, Any]] = [{}, {}, {"strategy": "beam"}, {"strategy": "sample"}, {"precision": "float16"}]


def pages() -> dict[str, Any]:
    """A thousand decodes of a thousand texts behind the pages, with a store that is full, after 200 to warm up."""
    from transformer_viz.views.cache import computing, runs
    from transformer_viz.views.cache.store import Store

    logging.disable(logging.CRITICAL)  # outside a page Streamlit says at every call that it is
    computing.store = Store(2_000_000)
    checkpoint, before = load_checkpoint("reverse-small", "cpu"), 0
    texts = itertools.islice(itertools.permutations(string.ascii_lowercase, 11), 0, 1200 * 7919, 7919)
    for i, text in enumerate(map("".join, texts)):
        if i == 200:
            gc.collect()
            before = bytes_now()
        runs.run(checkpoint, text, **WAYS[i % 5])
    gc.collect()
    return {"grown": bytes_now() - before}


LARGE: dict[str, tuple[int, dict[str, Any]]] = {
    # symbols of the text, keywords
    "greedy": (253, {}),
    "half": (253, {"precision": "float16", "kinds": ("cross",)}),
    "scores": (149, {"record": ("weights", "scores")}),
    "recomputed": (97, {"mistake": "no-causal"}),
    "beam": (97, {"strategy": "beam", "beam_size": 7, "stop": "never"}),
    "batch": (97, {}),
    "forced": (197, {"target": "ba" * 98}),
}


def measure(name: str) -> dict[str, Any]:
    """What one large run takes at most, and what was predicted."""
    task = Reverse(string.ascii_lowercase, 300, (1, 300))
    size = len(task.source_vocabulary)
    torch.manual_seed(3)
    layers: dict[str, Any] = {"n_encoder_layers": 3, "n_decoder_layers": 5, "n_heads": 13, "d_model": 26, "d_ff": 17}
    model = Transformer(ModelConfig(source_vocabulary_size=size, target_vocabulary_size=size, **layers))
    assert model.output.bias is not None
    model.output.bias.data[END_ID] = -1e9
    checkpoint = Checkpoint("large", Path("large"), model.eval(), task, "pre-norm", {}, {}, torch.device("cpu"))
    length, options = LARGE[name][0], dict(LARGE[name][1])
    text: Any = "ab" * (length // 2) if name != "batch" else ["ab" * (length // 2), "abc", "a" * (length - 3), "b" * length]
    short: dict[str, Any] = {**options, "max_length": 3} | ({"target": "ba"} if "target" in options else {})
    decode(checkpoint, "ab", **short)
    options["max_length"] = length
    predicted = trace_size(checkpoint, text, **options)
    gc.collect()
    before = bytes_now()
    traces = decode(checkpoint, text, **options)
    nbytes = traces.nbytes if isinstance(text, str) else sum(trace.nbytes for trace in traces)
    return {"grown": peak() - before, "predicted": predicted.peak, "arrays": predicted.arrays, "nbytes": nbytes}


if __name__ == "__main__":
    torch.set_num_threads(1)
    name = sys.argv[1]
    print(json.dumps(measure(name) if name in LARGE else pages()))
