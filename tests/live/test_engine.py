"""The engine of live pages beside `tv.decode`: the same tokens, attention and masks.

Node.js runs the engine as a browser does, for which test_live_page.py has the page. Its numbers need not be the same to the
last digit: where the two best logits of a step are nearly equal the token may differ, and what follows it is not compared.
"""

import copy
import json
import math
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.conftest import build_checkpoint
from tests.needs import needs, slow
from tests.node import node
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, OptionError
from transformer_viz.live.model_data import MOST_PARAMETERS, WeightPrecision, model_data
from transformer_viz.model import config as configs
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.copy import Copy
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.tasks.shift import Shift
from transformer_viz.tasks.sort import Sort
from transformer_viz.tasks.task import Task
from transformer_viz.tasks.toys import GermanToy, PinyinToy
from transformer_viz.trace.trace import Trace

pytestmark = needs("playwright", "libatomic1")

SHIPPED = ("dates", "german", "numbers", "pinyin", "reverse", "reverse-leak", "reverse-small")
TOLERANCES: dict[WeightPrecision, tuple[float, float]] = {"int16": (5e-4, 1e-2), "float32": (1e-5, 1e-4)}
"""How far attention and probabilities may be off; and how near the two best logits are where another token may win."""
SWITCHES = ("final_norm", "norm_affine", "shared_norm", "embedding_norm", "attention_bias", "feed_forward_bias", "output_bias")
Cases = Sequence[tuple[str, dict[str, Any]]]


def ask(**what: Any) -> Any:
    """What `ask_engine.js` answers."""
    program = node()
    assert program is not None
    asker = Path(__file__).with_name("ask_engine.js")
    done = subprocess.run([program, asker], input=json.dumps(what), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def engine(checkpoint: Checkpoint, cases: Cases, precision: WeightPrecision = "int16") -> list[dict[str, Any]]:
    """What the engine makes of each text with its options."""
    return ask(model=model_data(checkpoint, precision), cases=list(cases))


def texts(task: Task, n: int, seed: int = 45) -> list[str]:
    """Examples, and texts of the lengths that the task draws."""
    rng = np.random.default_rng(seed)
    examples = [example.text for example in task.examples()]
    if len(examples) >= n:
        return examples[:n]
    lengths = rng.choice(task.evaluated_lengths, n - len(examples)).tolist()
    return [*examples, *task.mixed(lengths, rng)]


@dataclass(frozen=True)
class Worst:
    """How far the engine was off, and how many steps were compared."""

    attention: float
    probability: float
    n_steps: int


def compared(runs: list[dict[str, Any]], traces: list[Trace], precision: WeightPrecision) -> Worst:
    """Asserts that each run is that of its Trace, as far as one may ask, and says how well it fits."""
    most, margin = TOLERANCES[precision]
    worst_attention = worst_probability = 0.0
    n_steps = 0
    for run, trace in zip(runs, traces, strict=True):
        written, n = tuple(run["output_tokens"]), trace.n_steps
        differing = next((t for t in range(n) if written[t : t + 1] != trace.output_tokens[t : t + 1]), None)
        if differing is not None:
            assert _is_close_call(trace, differing, margin), f"{trace.source!r}: {written} for {trace.output_tokens}"
            n = differing
        else:
            assert run["text"] == trace.text
            assert run["finished"] == trace.finished
            assert run["source_letters"] == list(trace.source_letters)
            # A page knows the answers of some tasks to its examples alone.
            if run["expected"] is not None:
                assert (run["expected"], tuple(run["expected_tokens"])) == (trace.expected, trace.expected_tokens)
                assert run["alignment"] == list(trace.alignment)
        assert tuple(run["source_tokens"]) == trace.source_tokens
        for step, known in zip(run["steps"][:n], trace.steps[:n], strict=True):
            worst_probability = max(worst_probability, abs(step["probability"] - known.probability))
            assert len(step["candidates"]) == len(known.candidates)
            chances = dict(known.candidates)
            for token, p in step["candidates"]:
                # Of two that are as good as equal either may be the last of the list.
                worst_probability = max(worst_probability, abs(p - chances.get(token, known.candidates[-1][1])))
            if known.sampling_probability is not None:
                assert step["sampling_probability"] == pytest.approx(known.sampling_probability, abs=10 * most)
        for kind, attention in trace.attentions.items():
            own = run["attentions"][kind]
            weights, reasons = (np.array(own[name]["values"]).reshape(own[name]["shape"]) for name in ("weights", "reasons"))
            rows, keys = (None if kind == "encoder" else n), (n if kind == "decoder" else None)
            if 0 not in (part := attention.weights[:, :, :rows, :keys]).shape:
                worst_attention = max(worst_attention, float(np.abs(weights[:, :, :rows, :keys] - part).max()))
            if differing is None:
                np.testing.assert_array_equal(reasons, attention.reasons)
        n_steps += n
    assert worst_attention <= most, worst_attention
    assert worst_probability <= most, worst_probability
    return Worst(worst_attention, worst_probability, n_steps)


def _is_close_call(trace: Trace, step: int, margin: float) -> bool:
    """Whether another token could have been written at a step, which is nearly as probable."""
    (_, best), (_, second) = trace.steps[step].candidates[:2]
    return second > 0 and math.log(best / second) <= margin


def check_texts(name: str, n: int) -> None:
    checkpoint = tv.load_checkpoint(name, device="cpu")
    asked = texts(checkpoint.task, n)
    traces = tv.decode(checkpoint, asked)
    for precision in get_args(WeightPrecision):
        runs = engine(checkpoint, [(text, {}) for text in asked], precision)
        assert compared(runs, traces, precision).n_steps >= n
        assert any(run["expected"] is not None for run in runs)


@pytest.mark.parametrize("name", [name if name == "german" else slow(name) for name in SHIPPED])
def test_a_shipped_model_writes_the_same(name: str) -> None:
    check_texts(name, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_writes_the_same_of_200_texts(name: str) -> None:
    check_texts(name, 200)


@pytest.mark.parametrize(
    "edits",
    [
        "cross:off",
        slow("decoder:off"),
        slow("encoder:2-3"),
        "cross:2-*,cross.1:*-2",
        slow("cross.1.2:zero"),
        "cross.1.2:2=3,cross.1.1:2=1@0.25+3@0.75",
        slow("decoder.1.1:*=uniform"),
        slow("decoder:2-4,cross.1.3:zero"),
        slow("decoder.2.2:3=6,encoder.1.2:1-2"),
        slow("encoder:1-*"),
    ],
)
def test_edited_masks_and_heads(edits: str) -> None:
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    asked = ["edit it", "reversethis", "ab"]
    cases = [(text, {"edits": edits}) for text in asked[: 3 - edits.count("=3,")]]
    cases = [case for case in cases if len(case[0]) > 4 or "6" not in edits]
    runs = engine(checkpoint, cases, "float32")
    # An edit can make the model doubt, and then PyTorch's own float32 is off by more than the engine, which has 64 bits.
    checkpoint.network.double()
    compared(runs, [tv.decode(checkpoint, text, edits=[edits]) for text, _ in cases], "float32")


def test_a_beginning_of_ones_own_and_banned_tokens() -> None:
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    options: list[dict[str, Any]] = [
        {"prefix": ["s", "i"]},
        {"ban": ["s", "h"]},
        {"prefix": ["x"], "ban": ["e"], "max_length": 5, "candidates": 3},
        {"strategy": "sample", "prefix": ["q"], "seed": 3},
    ]
    traces = [tv.decode(checkpoint, "reversethis", **each) for each in options]
    compared(engine(checkpoint, [("reversethis", each) for each in options], "float32"), traces, "float32")


@pytest.mark.slow
def test_drawn_tokens_are_those_of_the_same_seed() -> None:
    """The generator is PyTorch's own, so that a seed draws the same; temperatures are high, so that much can be drawn."""
    checkpoint = tv.load_checkpoint("german", device="cpu")
    looks: list[dict[str, Any]] = [{"temperature": 2.0}, {"temperature": 4.0, "top_k": 7}, {"temperature": 3.0, "top_p": 0.9}]
    cases: list[tuple[str, dict[str, Any]]] = [
        (text, {"strategy": "sample", "seed": seed, **look})
        for seed, text in enumerate(texts(checkpoint.task, 10))
        for look in looks
    ]
    traces = [tv.decode(checkpoint, text, **options) for text, options in cases]
    assert len({trace.text for trace in traces}) > 20
    compared(engine(checkpoint, cases, "float32"), traces, "float32")


def random_checkpoint(number: int) -> Checkpoint:
    """A model of random sizes and switches, with queries and keys four times as large, so that attention is not flat."""
    choose = random.Random(number)
    task = [Reverse, Copy, Sort, Shift][number % 4]("abcdefgh", 9, (1, 9))
    n_heads, tied = choose.choice((1, 2, 3, 4)), choose.choice(get_args(configs.TiedEmbeddings))
    switches: dict[str, Any] = {name: choose.random() < 0.5 for name in SWITCHES}
    config = ModelConfig(
        source_vocabulary_size=len(task.source_vocabulary),
        target_vocabulary_size=len(task.target_vocabulary),
        d_model=12 * choose.choice((1, 2, 3)),
        n_heads=n_heads,
        d_k=choose.choice((None, 5, 8)),
        d_v=choose.choice((None, 3, 7)),
        n_encoder_layers=choose.choice((1, 2, 3)),
        n_decoder_layers=choose.choice((1, 2, 3)),
        d_ff=choose.choice((5, 40)),
        tied_embeddings=tied,
        activation=choose.choice(get_args(configs.Activation)),
        norm=get_args(configs.NormPlacement)[number % 3],
        embedding_scale=choose.choice(get_args(configs.EmbeddingScale)),
        position=choose.choice(get_args(configs.PositionEncoding)),
        sinusoid_base=choose.choice((20.0, 10_000.0)),
        max_positions=16,
        **switches,
    )
    torch.manual_seed(number)
    model = Transformer(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
            if name.endswith((".query.weight", ".key.weight")):
                parameter.mul_(4)
    return build_checkpoint(model.eval().requires_grad_(False), task)


def rounded(checkpoint: Checkpoint) -> Checkpoint:
    """The same with the weights that a page with whole numbers of 16 bits has."""
    model = copy.deepcopy(checkpoint.network)
    for tensor in model.state_dict().values():
        if tensor.dim() > 1:
            scale = tensor.abs().amax(-1, keepdim=True) / 32767
            tensor.copy_((tensor / scale).round() * scale)
    return build_checkpoint(model, checkpoint.task)


def check_random_models(numbers: range) -> None:
    """Beside the same model in double precision: its own rounding is larger than the engine's where queries are so large."""
    spread = 0.0
    for number in numbers:
        checkpoint = random_checkpoint(number)
        asked = ["abcdefgh", "hgab", "aaaaccccb"]
        for precision in get_args(WeightPrecision):
            same = checkpoint if precision == "float32" else rounded(checkpoint)
            traces = tv.decode(build_checkpoint(copy.deepcopy(same.network).double(), same.task), asked)
            compared(engine(checkpoint, [(text, {}) for text in asked], precision), traces, "float32")
        spread += float(np.mean([attention.weights.max(-1).mean() for attention in traces[0].attentions.values()]))
    assert spread / len(numbers) > 0.45, "attention is so flat that a fault in it would not be seen"


@pytest.mark.slow
def test_models_of_any_switches() -> None:
    check_random_models(range(12))


@pytest.mark.parametrize("task", [GermanToy(), PinyinToy()], ids=lambda task: task.name)
def test_tasks_of_words(task: Task) -> None:
    """The page knows all of their few answers."""
    sizes: dict[str, Any] = {
        "source_vocabulary_size": len(task.source_vocabulary),
        "target_vocabulary_size": len(task.target_vocabulary),
    }
    torch.manual_seed(3)
    model = Transformer(ModelConfig(**sizes, d_model=24, n_heads=2, d_ff=40, max_positions=16))
    checkpoint = build_checkpoint(model.double().eval().requires_grad_(False), task)
    asked = [example.text for example in task.examples()]
    runs = engine(checkpoint, [(text, {}) for text in asked], "float32")
    compared(runs, tv.decode(checkpoint, asked), "float32")
    assert [run["expected"] for run in runs] == [task.reference(text) for text in asked]


@pytest.mark.slow
def test_60_models_of_any_switches() -> None:
    check_random_models(range(100, 160))


@pytest.mark.parametrize("name", [name if name == "german" else slow(name) for name in SHIPPED])
def test_texts_that_cannot_be_read_are_told(name: str) -> None:
    checkpoint = tv.load_checkpoint(name, device="cpu")
    longest = (checkpoint.task.examples()[0].text + (" " if name == "german" else "")) * 40
    hostile = [
        "",
        "   ",
        "ich sehe Sie",
        "<img src=x onerror=alert(1)>",
        "\u202e\x00",
        "🙂",
        "<end>",
        "<unk>",
        longest,
        "Ω" * 10_000,
    ]
    for text, run in zip(hostile, engine(checkpoint, [(text, {}) for text in hostile]), strict=True):
        try:
            checkpoint.task.read(text)
        except InputError:
            assert run["error"].endswith((".", "…")) or "It knows" in run["error"] or "such as" in run["error"]
            assert len(run["error"]) < 500
        else:
            assert run["source"] == text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "beam"}, "greedy or sample"),
        ({"beam_size": 3}, "no option “beam_size”"),
        ({"__proto__x": 3}, "no option"),
        ({"max_length": 0}, "whole number from 1"),
        ({"temperature": -1}, "from 0 to 100"),
        ({"prefix": ["€"]}, "“€” is no token"),
        ({"prefix": ["<end>"]}, "<end>"),
        ({"edits": "cross.9.1:zero"}, "no layer 9"),
        ({"edits": "cross:40-1"}, "no query 40"),
        ({"edits": "cross:1=1@0.5"}, "add up to 1"),
        ({"edits": "<b>:off"}, "is not understood"),
    ],
)
def test_impossible_options_are_told(options: dict[str, Any], words: str) -> None:
    checkpoint = tv.load_checkpoint("reverse-small", device="cpu")
    (run,) = engine(checkpoint, [("abc", options)])
    assert words in run["error"]


@pytest.mark.parametrize("name", ["german", "numbers"])
def test_a_word_may_be_spelt_in_other_ways(name: str) -> None:
    checkpoint = tv.load_checkpoint(name, device="cpu")
    spelt = {
        "german": ["GESTERN habe ich den alten film gesehen.", "der Koenig sieht die Strasse", "der Konig schlaft", "heute!"],
        "numbers": ["DreiUndZwanzig", " dreissig ", "zwei hundert acht"],
    }[name]
    readable = []
    for text in spelt:
        try:
            readable.append((text, checkpoint.task.frame(checkpoint.task.read(text))))
        except InputError:
            continue
    assert len(readable) >= 2
    for (_, tokens), run in zip(readable, engine(checkpoint, [(text, {}) for text, _ in readable]), strict=True):
        assert run["source_tokens"] == tokens


def test_damaged_weights_are_told() -> None:
    weights = model_data(tv.load_checkpoint("reverse-leak", device="cpu"))["weights"]
    data = weights["data"]
    for damaged in (data[:-400], data[:1000] + "AAAA" + data[1004:], data + "!", ""):
        told = ask(weights={**weights, "data": damaged})
        assert told == "The weights in this file are damaged. Copy or download the file again."
    assert "damaged" in ask(weights={**weights, "tensors": weights["tensors"][:-1]})


def test_what_a_live_page_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = tv.load_checkpoint("reverse-leak", device="cpu")
    with pytest.raises(OptionError, match="choose one of"):
        model_data(checkpoint, "float16")  # ty: ignore[invalid-argument-type]
    monkeypatch.setattr(Checkpoint, "n_parameters", MOST_PARAMETERS + 1)
    with pytest.raises(OptionError, match="at most 20,000,000"):
        model_data(checkpoint)
    with pytest.raises(OptionError, match="Hugging Face"):
        model_data(object())  # ty: ignore[invalid-argument-type]
