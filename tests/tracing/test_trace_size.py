"""The size of a Trace before its run: exact where the steps are known, a bound where they are not, and the refusal."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_viz as tv
from transformer_viz.errors import OptionError, TraceTooLarge
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.tracing.decode_request import DecodeRequest
from transformer_viz.tracing.trace_size import (
    LEAST_PEAK,
    PEAK_TIMES,
    bytes_of,
    check,
    predicted,
)
from transformer_viz.vocabulary import END_ID


def arrays_of(trace) -> int:
    """By hand, from the fields."""
    attentions = trace.attentions.values()
    arrays = [array for each in attentions for array in (each.weights, each.reasons, each.scores)]
    arrays += [] if trace.search is None else [trace.search.decoder_rows, trace.search.cross_rows]
    return sum(array.nbytes for array in arrays if array is not None)


KEPT: list[dict[str, Any]] = [
    {},
    {"precision": "float16"},
    {"kinds": ("cross",)},
    {"kinds": ("encoder", "decoder"), "layers": (1,)},
    {"kinds": ("decoder", "cross"), "layers": (0, 2), "precision": "float16"},
    {"record": ("weights", "scores")},
    {"record": ("weights", "scores"), "precision": "float16", "layers": (1,)},
]


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_a_given_target_is_counted_exactly(tiny, kept):
    """One text, several of different lengths, and kept padding of both sides."""
    cases: list[tuple[Any, dict[str, Any]]] = [
        ("hello", {"target": "olleh"}),
        (["hello", "ab c", "d"], {"target": ["ol", "", "abcdabcd"]}),
        (["hello", "ab c"], {"target": ["ol", "abc"], "pad_to": 13, "pad_target_to": 11}),
    ]
    for text, more in cases:
        size = tv.trace_size(tiny, text, **more, **kept)
        made = tv.decode(tiny, text, **more, **kept)
        traces = [made] if isinstance(text, str) else made
        assert size.arrays == sum(map(arrays_of, traces)) == sum(trace.nbytes for trace in traces)


MODELS = {
    "n_heads": st.integers(1, 5),
    "n_encoder_layers": st.integers(1, 3),
    "n_decoder_layers": st.integers(1, 3),
    "d_model": st.sampled_from([2, 6, 22]),
}
ENDLESS = st.booleans()


@given(st.data(), st.fixed_dictionaries(MODELS), st.integers(0, 99), ENDLESS)
@settings(max_examples=30)
def test_no_run_is_larger_than_predicted(make_model, make_tiny, data, sizes, seed, endless):
    """Random models, texts, limits, strategies and choices. Where the limit is reached by all, the arrays are exact, or
    for a search at most twice and a little too many: its best hypothesis may be shorter, and its first steps narrower."""
    model = make_model(seed, **sizes)
    if endless:
        model.output.bias.data[END_ID] = -1e9
    checkpoint = make_tiny(model)
    texts = data.draw(st.lists(st.text("helo abcd", min_size=1, max_size=11), min_size=1, max_size=3))
    limit = data.draw(st.integers(1, 23))
    beam = data.draw(st.sampled_from([None, 1, 2, 5]))
    layers = data.draw(st.sampled_from([None, (0,)]))
    kinds = data.draw(st.sampled_from([None, ("cross",), ("encoder",), ("decoder", "cross")]))
    options: dict[str, Any] = {"max_length": limit, "kinds": kinds, "layers": layers}
    options |= {"precision": data.draw(st.sampled_from(["float32", "float16"])), "candidates": data.draw(st.integers(1, 20))}
    options |= {} if beam is None else {"strategy": "beam", "beam_size": beam, "stop": "never"}
    size = tv.trace_size(checkpoint, texts, **options)
    traces = tv.decode(checkpoint, texts, max_trace_bytes=max(size.total, size.peak), **options)
    actual = sum(map(arrays_of, traces))
    assert actual <= size.arrays
    assert sum(map(bytes_of, traces)) <= size.total <= size.peak
    if endless and beam is None:
        assert actual == size.arrays
    if endless and beam is not None and limit > 2:
        assert size.arrays <= 2 * actual


def test_edits_and_mistakes_stay_below_the_bound(tiny):
    """A mask that differs by head takes a byte for each weight."""
    changes: list[dict[str, Any]] = [{"edits": ["cross.2.4:3-5"]}, {"edits": ["decoder:off"]}, {"mistake": "no-causal"}]
    for more in changes:
        assert tv.decode(tiny, "hello", **more).nbytes <= tv.trace_size(tiny, "hello", **more).arrays
    by_head = tv.decode(tiny, "hello", target="olleh", edits=["cross.2.4:3-5"])
    assert by_head.cross.reasons.ndim == 4
    assert by_head.nbytes == tv.trace_size(tiny, "hello", target="olleh", edits=["cross.2.4:3-5"]).arrays


@pytest.mark.parametrize("more", [{}, {"strategy": "beam", "beam_size": 7, "stop": "never"}], ids=["greedy", "beam"])
def test_records_are_bounded_by_what_python_takes(make_model, make_tiny, more):
    """Counted by Python itself: all that a Trace's steps, candidates and nodes take."""
    model = make_model(3)
    model.output.bias.data[END_ID] = -1e9
    checkpoint = make_tiny(model)
    options: dict[str, Any] = {**more, "max_length": 31, "candidates": 13}
    tv.decode(checkpoint, "hello", **options)
    tracemalloc.start()
    trace = tv.decode(checkpoint, "hello", **options)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    size = tv.trace_size(checkpoint, "hello", **options)
    # tracemalloc sees numpy's arrays too.
    records = taken - trace.nbytes
    assert records <= size.records <= 4 * records
    assert taken <= bytes_of(trace) <= size.total


def test_what_is_too_large_is_refused_before_it_is_run(tiny, monkeypatch):
    exact = tv.trace_size(tiny, "hello", target="olleh").total
    assert isinstance(tv.decode(tiny, "hello", target="olleh", max_trace_bytes=10**6), tv.Trace)
    monkeypatch.setattr(type(tiny.network), "encode", lambda *_, **__: pytest.fail("the model was run"))
    with pytest.raises(TraceTooLarge) as caught:
        tv.decode(tiny, "hello", target="olleh", max_trace_bytes=exact - 1)
    error = caught.value
    assert (error.needed, error.allowed) == (exact, exact - 1)
    for words in (bytes_words(exact), f"max_trace_bytes={exact - 1}", "precision='float16'", "shorten the text"):
        assert words in str(error)
    assert isinstance(error, OptionError)


def test_every_offer_keeps_its_word(tiny):
    """Each fits and says its size; where there is none, the words say so."""
    size = tv.trace_size(tiny, "hello")
    seen = set()
    for most in range(size.total - 1, 0, -size.total // 24):
        with pytest.raises(TraceTooLarge) as caught:
            tv.decode(tiny, "hello", max_trace_bytes=most)
        for options, n_bytes in caught.value.offers:
            assert n_bytes <= most
            chosen: dict[str, Any] = dict(options)
            assert tv.trace_size(tiny, "hello", **chosen).total == n_bytes
            assert bytes_of(tv.decode(tiny, "hello", max_trace_bytes=most, **chosen)) <= n_bytes
            seen.add(str(options))
        assert bool(caught.value.offers) == ("It fits with" in str(caught.value))
    assert {"{'precision': 'float16'}", "{'kinds': ['cross']}", "{'layers': [1]}"} <= seen
    assert any("layers" in options and "kinds" in options and "precision" in options for options in seen)


def test_what_a_run_takes_while_it_is_made_is_bounded_too(tiny, make_model, make_tiny):
    """A large vocabulary's logits, of which no Trace has any trace. A gigabyte is allowed to every run."""
    model = make_model(0)
    model.sizes = replace(model.sizes, vocabulary=30_000_000)
    wide = DecodeRequest.of(make_tiny(model), "hello", None, max_length=41)
    size = predicted(wide)
    assert size.total < 10 * tv.trace_size(tiny, "hello", max_length=41).total
    assert LEAST_PEAK < size.peak < 2 * LEAST_PEAK
    with pytest.raises(TraceTooLarge, match=r"making it up to .*, of which 1 GB are allowed; max_trace_bytes"):
        check([wide], size.total)
    check([wide], size.peak // PEAK_TIMES + 1)
