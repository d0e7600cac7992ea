"""Run by `test_memory.py` in processes of their own: `python memory_program.py thousand | app | peak NAME`. Prints JSON."""

import gc
import json
import logging
import random
import string
import sys
from pathlib import Path
from typing import Any

import torch

from transformer_viz import decode, load_checkpoint, trace_size
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.vocabulary import END_ID


def status(name: str) -> int:
    """`VmRSS`, what the process takes now, or `VmHWM`, the most that it took; bytes."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def thousand() -> dict[str, Any]:
    """Decodes of a thousand texts, none twice: greedy, beam, sampled, half, in batches."""
    checkpoint, texts = load_checkpoint("reverse-small", "cpu"), _texts(1200)
    ways: list[dict[str, Any]] = [{"strategy": "beam", "beam_size": 4}, {"strategy": "sample"}, {"precision": "float16"}]

    def run(first: int, last: int) -> None:
        for i in range(first, last):
            decode(checkpoint, texts[i], **(ways[i % 3] if i % 5 == 0 else {}))
            if i % 50 == 0:
                decode(checkpoint, texts[i : i + 7])

    run(0, 200)
    before = _settled()
    run(200, 1200)
    return {"grown": _settled() - before}


def app() -> dict[str, Any]:
    """The functions behind the pages, which hold what they made; the store is made small, so that it lets go."""
    from transformer_viz.views.cache import computing, model_list, runs
    from transformer_viz.views.cache.store import Store

    computing.store = Store(2_000_000)
    from transformer_viz.views.masks import batch_runs
    from transformer_viz.views.masks.batch import Typed

    # Outside a page Streamlit says at every call that it is.
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("streamlit"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    checkpoint, texts = model_list.load("reverse-small", "cpu"), _texts(1200)
    most = 0

    def run(first: int, last: int) -> None:
        nonlocal most
        for i in range(first, last):
            trace = runs.run(checkpoint, "cpu", texts[i])
            assert runs.run(checkpoint, "cpu", texts[i]) is trace
            if i % 10 == 0:
                runs.run(checkpoint, "cpu", texts[i], (("strategy", "beam"), ("beam_size", 3)))
                runs.untrained(checkpoint, "cpu", trace)
                runs.what_if(checkpoint, "cpu", trace, ("a",), (), None)
            if i % 50 == 0:
                batch_runs.forced(checkpoint, Typed((texts[i], texts[i + 1]), (None, None)))
            most = max(most, computing.store.results.currsize)

    run(0, 200)
    before = _settled()
    run(200, 1190)
    return {"grown": _settled() - before, "held": most, "things": len(computing.store.results)}


LARGE: dict[str, tuple[int, dict[str, Any]]] = {
    # symbols of the text, keywords
    "greedy": (253, {}),
    "half": (253, {"precision": "float16"}),
    "cross": (253, {"kinds": ("cross",)}),
    "scores": (149, {"record": ("weights", "scores")}),
    "recomputed": (97, {"mistake": "no-causal"}),
    "beam": (97, {"strategy": "beam", "beam_size": 7, "stop": "never"}),
    "batch": (97, {}),
}


def peak(name: str) -> dict[str, Any]:
    """What one large run takes at most, and what was predicted."""
    task = Reverse(string.ascii_lowercase, 300, (1, 300))
    size = len(task.source_vocabulary)
    torch.manual_seed(3)
    model = Transformer(
        ModelConfig(
            source_vocabulary_size=size,
            target_vocabulary_size=size,
            d_model=26,
            n_heads=13,
            n_encoder_layers=3,
            n_decoder_layers=5,
            d_ff=17,
        )
    )
    assert model.output.bias is not None
    model.output.bias.data[END_ID] = -1e9
    checkpoint = Checkpoint("large", Path("large"), model.eval(), task, "pre-norm", {}, {}, torch.device("cpu"))
    length, options = LARGE[name][0], dict(LARGE[name][1])
    text: Any = "ab" * (length // 2) if name != "batch" else ["ab" * (length // 2), "abc", "a" * (length - 3), "b" * length]
    short: dict[str, Any] = {**options, "max_length": 3}
    decode(checkpoint, "ab", **short)
    options["max_length"] = length
    predicted = trace_size(checkpoint, text, **options)
    before = _settled()
    traces = decode(checkpoint, text, **options)
    nbytes = traces.nbytes if isinstance(text, str) else sum(trace.nbytes for trace in traces)
    return {"grown": status("VmHWM") - before, "predicted": predicted.peak, "arrays": predicted.arrays, "nbytes": nbytes}


def _settled() -> int:
    gc.collect()
    return status("VmRSS")


def _texts(count: int) -> list[str]:
    rng = random.Random(0)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 19)))] = None
    return list(found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({"thousand": thousand, "app": app, "peak": peak}[sys.argv[1]](*sys.argv[2:])))
