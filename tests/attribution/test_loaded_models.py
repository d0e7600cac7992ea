"""Models that are not ours: occlusion is a loop of their own passes, and all families can be asked for gradients."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import transformer_viz as tv
from tests.attribution import plain
from tests.readers.families import DECODERS, TEXTS, WRITERS, cases, family, own, tokenizer, untapped, wrap_model
from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.query_rows import real_queries
from transformer_viz.attribution.contributions import sublayers
from transformer_viz.attribution.knock_out import all_heads
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.patch import BY, patched
from transformer_viz.attribution.rerun import Run
from transformer_viz.errors import OptionError

UNKNOWN = 3


def log_p(model, source, read):
    ids = {"input_ids": torch.tensor([source])} if source else {}
    with torch.no_grad():
        logits = model(**ids, **{"decoder_input_ids" if source else "input_ids": torch.tensor([read])}).logits
    return logits[0].double().log_softmax(-1).numpy()


@pytest.mark.parametrize("name", ["marian", "t5", "gpt2", "gemma2"])
def test_occlusion_is_a_loop_of_their_own_passes(name):
    trace = tv.decode(family(name), TEXTS[0], max_length=4)
    source, read, written = (list(ids or ()) for ids in (trace.source_ids, trace.target_ids, trace.output_ids))
    keys = read if name in DECODERS else source
    found = tv.attribute(family(name), trace, "occlusion").values
    before = log_p(own(name), source, read)
    for j in range(len(keys)):
        kept = keys[j]
        keys[j] = UNKNOWN
        after = log_p(own(name), source, read)
        keys[j] = kept
        for t, token in enumerate(written):
            is_later = name in DECODERS and j > t
            expected = np.nan if is_later else before[t, token] - after[t, token]
            assert np.isclose(found[t, j], expected, atol=1e-4, equal_nan=True)
    assert np.nanmax(np.abs(found)) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_parameters_that_require_gradients_change_nothing(method):
    trace = tv.decode(family("marian"), TEXTS[0], max_length=3)
    expected = tv.attribute(family("marian"), trace, method)
    other = wrap_model(untapped("marian").requires_grad_(True), tokenizer(ends=True), "marian")
    assert np.array_equal(tv.attribute(other, trace, method).values, expected.values)


@pytest.mark.parametrize("name", cases(WRITERS))
def test_every_family_can_be_asked(name):
    """Also for gradients, after passes without any; a later token gives nothing."""
    trace = tv.decode(family(name), TEXTS[0], max_length=3)
    for kind in {"cross", "decoder"} & set(trace.kinds):
        for method in ("gradient", "rollout"):
            found = tv.attribute(family(name), trace, method, kind=kind).values
            assert np.isfinite(found).all() and (found >= 0).all() and found.max() > 0
            assert kind == "cross" or not np.triu(found, 1).any()
    closed = tv.attribute(family(name), trace, "occlusion", mode="position")
    assert closed.kind == ("decoder" if name in DECODERS else "cross") and np.nanmax(np.abs(closed.values)) > 1e-3


@pytest.mark.parametrize("name", ["marian", "t5", "pegasus", "llama", "gpt2", "opt"])
def test_the_terms_and_the_biases_are_the_row_of_other_models_too(name):
    """Norms of both kinds, before and behind; keys that heads share; to single precision."""
    trace = tv.decode(family(name), TEXTS[0], max_length=4)
    found = sublayers(Run.of(family(name), trace), "ALTI+", streams=("residual_before", "added", "residual_after"))
    assert {each.site.kind for each in found} == set(trace.kinds)
    for each in found:
        after = each.stream["residual_after"]
        rows = torch.cat([of_keys.sum(1) + own for _, of_keys, own in each.terms()]) + plain.bias_terms(each)
        assert (rows - after).abs().max() < 1e-5 * after.abs().max()
    shares = [tv.attribute(family(name), trace, "alti", kind=kind).values.sum(1) for kind in trace.kinds if kind != "encoder"]
    assert np.allclose(sum(shares), 1)


def test_padding_before_a_prompt_is_read_again():
    model = family("qwen2")
    n = len(model.tokenizer.encode_source(TEXTS[1]))
    padded, alone = (tv.decode(model, TEXTS[1], pad_to=width, max_length=3) for width in (n + 3, None))
    found, own_values = (tv.attribute(model, trace, "occlusion", mode="position").values for trace in (padded, alone))
    assert np.allclose(found[3:, 3:], own_values, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "text"), [("marian", "w1 <pad> w3"), ("t5", "<pad> w1 w2"), ("gpt2", "<pad> w1"), ("llama", "w1 w2 <pad>")]
)
def test_a_typed_pad_is_a_token_like_any_other(name, text):
    """It is read by all: masks call nothing padding, and neither does what reads the run again."""
    trace = tv.decode(family(name), text, max_length=4)
    tokens, place = trace.source_tokens or trace.target_tokens, text.split().index("<pad>")
    assert tokens[place] == "<pad>"
    for kind in trace.kinds:
        assert real_queries(trace, kind).all()
    found = tv.attribute(family(name), trace, "occlusion", mode="position").values
    assert np.nanmax(np.abs(found[:, place])) > 1e-3


@pytest.mark.parametrize("edits", [(), ("cross.1.1:zero",)])
def test_padding_of_other_models_is_found_beside_a_typed_pad(edits):
    """Behind a target too, whose end has a label of its own; edits leave no reasons to go by."""
    trace = tv.decode(family("marian"), "w1 <pad> w3", target="w5 w6", pad_to=6, pad_target_to=6, edits=edits)
    assert trace.source_tokens == ("w1", "<pad>", "w3", "</s>", "<pad>", "<pad>")
    assert trace.target_tokens == ("<pad>", "w5", "w6", "<pad>", "<pad>", "<pad>")
    assert real_queries(trace, "encoder").tolist() == [True] * 4 + [False] * 2
    assert real_queries(trace, "cross").tolist() == real_queries(trace, "decoder").tolist() == [True] * 3 + [False] * 3
    found = tv.attribute(family("marian"), trace, "occlusion", mode="position")
    assert np.abs(found.values[:3, :4]).max() > 1e-3 and not np.nan_to_num(found.values[:3, 4:]).any()


def test_who_cannot_be_asked_is_told_why():
    bert, of_gpt2 = family("bert"), tv.decode(family("gpt2"), TEXTS[0], max_length=2)
    of_gemma2 = tv.decode(family("gemma2"), TEXTS[0], max_length=2)
    refused = (
        (
            bert,
            tv.decode(bert, TEXTS[0] + " [MASK]"),
            "occlusion",
            "bert writes nothing, so no key has caused anything",
        ),
        (family("llama"), of_gpt2, "rollout", r"This is no run of llama: step \d+ has log p"),
        (family("bart"), of_gpt2, "occlusion", "no run of bart: one has a source"),
        (family("gemma2"), of_gemma2, "alti", r"ALTI\+ is not available for gemma2: it is not known where norms"),
    )
    for model, trace, method, words in refused:
        with pytest.raises(OptionError, match=words):
            tv.attribute(model, trace, method)


@pytest.mark.parametrize("name", ["marian", "gpt2", "gemma2"])
def test_weights_of_other_models_move_within_their_masks(name):
    """All layers together: shared keys, and windows of some of them."""
    trace = tv.decode(family(name), TEXTS[0], max_length=4)
    for kind in trace.kinds:
        found = tv.counter_proof(family(name), trace, scope=kind)
        of_run = trace.attentions[kind].weights
        assert of_run is not None and np.allclose(found.weights, of_run, atol=1e-5)
        masked = np.broadcast_to(trace.attentions[kind].reasons != 0, found.weights.shape)
        for each in found.moved:
            assert each.share > 0 and each.distance > 0 and each.change <= found.epsilon
            assert not each.weights[masked].any() and np.allclose(each.weights.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", ["marian", "t5", "llama", "gpt2"])
def test_patching_of_other_models_ends_where_it_must(name):
    """All heads of cross-attention make one run the other; a layer is all its heads."""
    model = family(name)
    a, b = (tv.decode(model, text, max_length=5) for text in ("w1 w2 w3 w4", "w9 w2 w7 w4"))
    found = tv.patch(model, a, b, by="layer")
    y_a, y_b = (trace.output_ids[found.step] for trace in (a, b) if trace.output_ids is not None)
    of_a, of_b = found.differences

    def effect(heads, query=None):
        logits = patched(model, a, b, heads, query)
        return (logits[-1, y_a] - logits[-1, y_b] - of_b) / (of_a - of_b)

    for kind, effects in found.effects.items():
        layer, query = np.unravel_index(np.abs(effects).argmax(), effects.shape)
        heads = [HeadAddress(kind, int(layer), head) for head in range(model.network.sizes.heads[kind])]
        assert effects[layer, query] == pytest.approx(effect(heads, query), abs=1e-4)
        assert abs(effects[layer, query]) > 0.01
    if name not in DECODERS:
        every = [place for place in all_heads(model.network.sizes) if place.kind == "cross"]
        log_p = torch.as_tensor(patched(model, a, b, every)).log_softmax(-1).numpy()
        for t, (step, token) in enumerate(zip(a.steps[: found.step + 1], a.output_ids or (), strict=False)):
            assert log_p[t, token] == pytest.approx(step.log_probability, abs=1e-4)
        assert effect(every) == pytest.approx(1, abs=1e-4)


def test_what_cannot_be_patched_is_said(monkeypatch):
    model = family("gpt_neox")
    longer = [tv.decode(model, text, max_length=3) for text in ("w1 w2 w3", "w1 w2")]
    with pytest.raises(OptionError, match="A read 3 prompt tokens and B 2: patching needs the same number"):
        tv.patch(model, *longer)
    runs = [tv.decode(model, text, max_length=5) for text in ("w1 w2 w3 w4", "w9 w2 w7 w4")]
    # All families tell what is added; this one does not tell the stream before it.
    monkeypatch.setitem(BY, "layer", "residual_before")
    with pytest.raises(OptionError, match="what all heads of layer 1 of decoder self-attention add together is not known"):
        tv.patch(model, *runs, by="layer")
    assert np.isfinite(tv.patch(model, *runs).effects["decoder"]).all()
