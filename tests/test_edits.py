"""Edits as text: what is written is read again, and what cannot be is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz import edits
from transformer_viz.addresses import AttentionAddress
from transformer_viz.edits import Flip, Force, HeadOff, MaskOff
from transformer_viz.errors import OptionError
from transformer_viz.model.sizes import Sizes
from transformer_viz.terms import KINDS
from transformer_viz.tracing.edit_tap import check_edits

numbers = st.integers(0, 511)
places = st.builds(
    lambda kind, layer, head: AttentionAddress(kind, layer, None if layer is None else head),
    st.sampled_from(KINDS),
    st.none() | st.integers(0, 99),
    st.none() | st.integers(0, 99),
)
halves = st.lists(numbers, min_size=1, max_size=4, unique=True).map(lambda keys: tuple((key, 1 / len(keys)) for key in keys))
some_edits = st.one_of(
    st.builds(MaskOff, places),
    st.builds(HeadOff, places),
    st.tuples(places, st.none() | numbers, st.none() | numbers).filter(lambda t: t[1:] != (None, None)).map(lambda t: Flip(*t)),
    st.builds(Force, places, st.none() | numbers, st.just(()) | halves.filter(lambda h: len(h) in (1, 2, 4))),
)


@given(st.lists(some_edits, max_size=5))
def test_what_is_written_is_read_again(given_edits):
    assert edits.parse(edits.written(given_edits)) == tuple(given_edits)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        read = edits.parse(text)
    except OptionError:
        pass
    else:
        assert edits.parse(edits.written(read)) == read


def test_text_counts_from_one_and_python_from_zero():
    assert edits.parse(
        "cross:3-5, decoder.2.4:zero,encoder:*-1, cross.1:off, decoder.1.2:4=1@0.75+3@0.25, cross:2=uniform"
    ) == (
        Flip(AttentionAddress("cross"), 2, 4),
        HeadOff(AttentionAddress("decoder", 1, 3)),
        Flip(AttentionAddress("encoder"), None, 0),
        MaskOff(AttentionAddress("cross", 0)),
        Force(AttentionAddress("decoder", 0, 1), 3, ((0, 0.75), (2, 0.25))),
        Force(AttentionAddress("cross"), 1, ()),
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cross", "not understood"),
        ("sideways:off", "kind 'sideways' is not known"),
        ("cross:*-*", "not understood"),
        ("cross:0-5", "count from 1"),
        ("cross:3-513", "count from 1"),
        ("cross.1.2:3=1@0.5+2@0.4", "add up to 0.9"),
        ("cross.1.2:3=1@0.5+1@0.5", "each key once"),
        ("cross:3-٣", "not understood"),
        ("cross:off;drop", "not understood"),
        ("cross:1-1," * 201, "201 edits"),
    ],
)
def test_mistakes_are_named(text, named):
    with pytest.raises(OptionError, match=named):
        edits.parse(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cross.3:off", "no layer 3"),
        ("cross.2.6:zero", "no head 6"),
        ("encoder:8-1", "no query 8"),
        ("cross:12-8", "no key 8"),
        ("cross:13-1", "no query 13"),
        ("decoder:1=13", "no key 13"),
    ],
)
def test_what_a_run_cannot_have_is_named(text, named):
    sizes = Sizes({"encoder": (0, 1), "decoder": (0, 1, 2), "cross": (0, 1)}, dict.fromkeys(KINDS, 5), 9, 9, 9, 0)
    check_edits(edits.parse("cross.2.5:12-7,encoder:7-7,decoder.3:12-12"), sizes, n_source=7, most_steps=12)
    with pytest.raises(OptionError, match=named):
        check_edits(edits.parse(text), sizes, n_source=7, most_steps=12)
