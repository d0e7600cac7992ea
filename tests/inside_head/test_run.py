"""One head looked into: every number against plain numpy, and that they are those of the run."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.plain_transformer import PlainTransformer
from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError
from transformer_viz.model import variants
from transformer_viz.terms import KINDS, Kind

SMALL: dict[str, Any] = {
    "d_model": 22,
    "n_heads": 5,
    "d_k": 3,
    "d_v": 7,
    "d_ff": 17,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
}
OF_HEADS = ("query", "scores", "weights", "output", "projected")
OF_KEYS = ("keys", "values")
STREAMS = ("entered", "added", "residual_before", "residual_after")


def plainly(checkpoint: tv.Checkpoint, trace: tv.Trace) -> PlainTransformer:
    """The run computed in float64 from the checkpoint's weights."""
    plain = PlainTransformer(checkpoint.network)
    task = checkpoint.task
    plain.read(task.source_vocabulary.encode(trace.source_tokens), task.target_vocabulary.encode(trace.target_tokens))
    return plain


def largest_difference(inside: tv.Inside, plain: PlainTransformer) -> dict[str, float]:
    """Of each array, from what numpy says."""
    site = plain.sites[inside.kind, inside.layer]
    want = {name: site[name][inside.head, inside.row] for name in OF_HEADS}
    want |= {name: site[name][inside.head] for name in OF_KEYS} | {name: site[name][inside.row] for name in STREAMS}
    return {name: float(np.abs(array - inside.require(name)).max()) for name, array in want.items()}


@pytest.fixture(scope="module", params=variants.names())
def variant(request: pytest.FixtureRequest, make_model: Any, make_tiny: Any) -> tv.Checkpoint:
    """A random float64 checkpoint of each variant."""
    return make_tiny(make_model(3, **(variants.settings(request.param) | SMALL)))


def test_every_number_is_that_of_plain_numpy(variant: tv.Checkpoint) -> None:
    trace = tv.decode(variant, "hello a", target="cb a ")
    plain = plainly(variant, trace)
    for kind in KINDS:
        for layer, head, row in ((0, 4, 3), (1, 2, 1)):
            inside = tv.inspect_head(variant, trace, HeadAddress(kind, layer, head), row)
            assert max(largest_difference(inside, plain).values()) < 1e-12
            assert inside.scale == pytest.approx(3**-0.5, abs=1e-15)
            assert (inside.bias, inside.softcap) == (None, None)


def test_the_norm_is_the_variants(variant: tv.Checkpoint) -> None:
    """What the norm makes of its input, with its weights, is what stands where this variant has it."""
    inside = tv.inspect_head(variant, tv.decode(variant, "hello"), "cross.3.2", 2)
    given = inside.require("norm_input")
    assert inside.norm_kind == "layer" and inside.norm_epsilon is not None
    made = (given - given.mean()) / np.sqrt(given.var() + inside.norm_epsilon)
    if variant.network.config.norm_affine:
        made = made * inside.require("norm_weight") + inside.require("norm_bias")
    added, before = inside.require("added"), inside.require("residual_before")
    stands = {"pre": inside.require("entered"), "post": inside.require("residual_after")}
    assert inside.norm == variant.network.config.norm
    np.testing.assert_allclose(made, stands.get(inside.norm, inside.require("residual_after") - before), atol=1e-12, rtol=0)
    after = {"pre": before + added, "post": made}.get(inside.norm, before + made)
    np.testing.assert_allclose(inside.require("residual_after"), after, atol=1e-12, rtol=0)


def test_the_heads_shares_and_the_bias_are_what_is_added(variant: tv.Checkpoint) -> None:
    trace = tv.decode(variant, "hello")
    heads = [tv.inspect_head(variant, trace, HeadAddress("decoder", 1, head), 2) for head in range(5)]
    bias = heads[0].out_bias
    assert (bias is None) == (not variant.network.config.attention_bias)
    shares = sum(each.require("projected") for each in heads) + (0 if bias is None else bias)
    np.testing.assert_allclose(shares, heads[0].require("added"), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("target", "row"), [(None, 2), ("", 0)], ids=["written", "fewer rows than layers"])
def test_the_lens_is_the_final_norm_and_the_output_over_every_state(
    variant: tv.Checkpoint, target: str | None, row: int
) -> None:
    trace = tv.decode(variant, "hello", target=target)
    inside = tv.inspect_head(variant, trace, "decoder.2.2", row)
    assert inside.lens is not None and len(inside.lens) == 4
    plain = plainly(variant, trace)
    for step, state in zip(inside.lens, plain.states, strict=True):
        logits = plain.written(state[row])
        logs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        order = np.argsort(-logs, kind="stable")
        labels = variant.task.target_vocabulary.decode(order.tolist())
        assert [token for token, _ in step.candidates] == labels[:5]
        np.testing.assert_allclose([p for _, p in step.candidates], np.exp(logs[order[:5]]), atol=1e-12)
        assert step.token == trace.output_tokens[row] and step.rank == labels.index(step.token)
        assert step.log_probability == pytest.approx(logs[order[step.rank]], abs=1e-11)
    assert inside.lens[-1].probability == pytest.approx(trace.steps[row].probability, abs=1e-12)


def test_an_encoders_row_has_no_lens(tiny: tv.Checkpoint, hello: tv.Trace) -> None:
    inside = tv.inspect_head(tiny, hello, "encoder.2.2", 3)
    assert inside.lens is None and inside.written is None
    assert (inside.row_token, inside.key_tokens) == ("l", hello.source_tokens)


def test_in_single_precision_of_a_trained_model() -> None:
    checkpoint = tv.load_checkpoint("reverse", device="cpu")
    trace = tv.decode(checkpoint, "Mississippi 2026!")
    plain = plainly(checkpoint, trace)
    for kind in KINDS:
        for head in range(4):
            found = largest_difference(tv.inspect_head(checkpoint, trace, HeadAddress(kind, 1, head), 9), plain)
            assert found.pop("scores") < 1e-4
            assert max(found.values()) < 1e-5


RUNS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"strategy": "sample", "seed": 3},
    "found": {"strategy": "beam", "beam_size": 3},
    "padded": {"pad_to": 9},
    "given": {"target": "ab"},
    "given and padded": {"target": "ab", "pad_to": 10, "pad_target_to": 6},
    "a head off": {"edits": ["cross.2.2:zero", "decoder.1.1:zero"]},
    "a row forced": {"edits": ["cross.2.2:2=5", "decoder.1.1:3=uniform"]},
    "a mask changed": {"edits": ["decoder:2-4", "cross:*-2", "encoder.1.2:off"]},
    "a mistake": {"mistake": "no-causal"},
    "half precision": {"precision": "float16"},
    "some layers": {"layers": [1]},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_its_weights_are_the_row_of_the_run(tiny: tv.Checkpoint, options: dict[str, Any]) -> None:
    trace = tv.decode(tiny, "hello", **options)
    atol = 1e-3 if trace.precision == "float16" else 1e-5
    for kind in KINDS:
        weights = trace.attentions[kind].weights
        for layer, head, row in ((1, 1, 0), (1, 0, weights.shape[2] - 1)):
            inside = tv.inspect_head(tiny, trace, HeadAddress(kind, layer, head), row)
            place = trace.attentions[kind].layer_index(layer)
            np.testing.assert_allclose(inside.weights, weights[place, head, row], atol=atol, rtol=0)
            assert inside.key_tokens == trace.attentions[kind].keys and inside.row_token == trace.attentions[kind].queries[row]
            assert not inside.weights[inside.masked].any()


def test_hypotheses_nodes_and_a_padded_batch(tiny: tv.Checkpoint) -> None:
    beam = tv.decode(tiny, "hello", strategy="beam", beam_size=3)
    for trace in (beam.hypothesis(1), beam.at_node(4), *tv.decode_forced(tiny, ["hello", "ab"], ["ba", None])):
        for row in range(trace.n_steps):
            inside = tv.inspect_head(tiny, trace, "cross.1.3", row)
            np.testing.assert_allclose(inside.weights, trace.cross.weights[0, 2, row], atol=1e-5, rtol=0)
            assert inside.written == trace.output_tokens[row]


def test_a_head_that_is_off_gives_nothing(tiny: tv.Checkpoint) -> None:
    off = tv.decode(tiny, "hello", edits=["cross.2.2:zero"])
    inside = tv.inspect_head(tiny, off, "cross.2.2", 2)
    assert inside.weights.any() and not inside.output.any() and not inside.require("projected").any()


def refused(tiny: tv.Checkpoint, trace: tv.Trace, words: str, place: tuple[Kind, int, int, int] = ("cross", 0, 0, 0)) -> None:
    with pytest.raises(OptionError, match=words):
        tv.inspect_head(tiny, trace, HeadAddress(*place[:3]), place[3])


def test_a_run_of_another_model_is_refused(tiny: tv.Checkpoint, hello: tv.Trace, make_model: Any, make_tiny: Any) -> None:
    refused(make_tiny(make_model(77)), hello, "other weights")
    refused(tv.load_checkpoint("numbers", device="cpu"), hello, "cannot be looked into with numbers")
    words = tv.by_words(tv.decode(tiny, "he lo"))
    refused(tiny, words, "cannot be looked into")
    arrays = tv.Trace.from_arrays(cross=np.eye(2), source_tokens=["a", "b"], target_tokens=["c", "d"])
    refused(tiny, arrays, "cannot be looked into")


def test_what_the_run_does_not_have_is_refused(tiny: tv.Checkpoint, hello: tv.Trace) -> None:
    refused(tiny, hello, "no head cross.4.1; its cross attention has layers 1 to 3", ("cross", 3, 0, 0))
    refused(tiny, hello, "no head cross.1.6; .* and heads 1 to 5", ("cross", 0, 5, 0))
    refused(tiny, hello, "query=-1 is not possible", ("cross", 0, 0, -1))
    only: Any = tv.decode(tiny, "hello", kinds=["cross"])
    refused(tiny, only, "no decoder attention; it has cross", ("decoder", 0, 0, 0))
    with pytest.raises(OptionError, match="'querry' is not known"):
        tv.inspect_head(tiny, hello, "cross.1.1", 0).require("querry")
