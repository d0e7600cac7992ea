"""Addresses of attention: written and read again, what one names, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.addresses import AttentionAddress, HeadAddress, parse, parse_head, parse_row, row_address
from transformer_viz.errors import OptionError
from transformer_viz.terms import KINDS

NUMBERS = st.integers(0, 511)


@given(st.sampled_from(KINDS), NUMBERS, NUMBERS, NUMBERS)
def test_what_is_written_is_read_again(kind, layer, head, row):
    for place in (AttentionAddress(kind), AttentionAddress(kind, layer), AttentionAddress(kind, layer, head)):
        assert parse(str(place)) == (place, None)
        assert parse(f"{place}:{row + 1}") == (place, row)
    assert parse_row(row_address(HeadAddress(kind, layer, head), row)) == (HeadAddress(kind, layer, head), row)
    assert parse_head(f"L{layer + 1} H{head + 1}") == parse_head(f"{layer + 1}.{head + 1}") == (layer, head)


def test_a_place_holds_its_heads():
    heads = [HeadAddress(kind, layer, head) for kind in KINDS for layer in range(3) for head in range(2)]
    assert [*filter(parse("cross")[0].holds, heads)] == [head for head in heads if head.kind == "cross"]
    assert [*filter(parse("decoder.3")[0].holds, heads)] == [HeadAddress("decoder", 2, 0), HeadAddress("decoder", 2, 1)]
    assert [*filter(parse("encoder.1.2")[0].holds, heads)] == [HeadAddress("encoder", 0, 1)]


@pytest.mark.parametrize(
    "text", ["", "cross.", "cross.0", "cross.1.513", "mixed.1", "cross.1.2.3", "cross:0", "cross.²", "<b>"]
)
def test_what_is_no_address_is_refused_in_a_sentence(text):
    with pytest.raises(OptionError, match=r"address|kind .* is not known|not possible"):
        parse(text)
    assert parse_head(text) is None


def test_a_row_needs_its_head():
    with pytest.raises(OptionError, match="does not name a row of a head"):
        parse_row("cross.2:3")
