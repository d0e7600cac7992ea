"""A decoder alone and an encoder alone are checked as such, by modules and functions of one text."""

from typing import Any

import pytest
import torch
from torch import nn

import transformer_viz as tv
from tests.mask_checks.ports import PAD, Decoder, V
from transformer_viz.errors import OptionError


class Encoder(nn.Module):
    """A padding mask by the pads' id; without one where it is faulty."""

    def __init__(self, *, is_masked: bool = True) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.is_masked = is_masked
        self.embedding, self.output = nn.Embedding(V, 16), nn.Linear(16, V)
        self.layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True)

    def forward(self, ids):
        padding = (ids == PAD) if self.is_masked else None
        return self.output(self.layer(self.embedding(ids), src_key_padding_mask=padding))


QUICK: dict[str, Any] = {"vocabulary_size": V, "pad_id": PAD, "max_length": 5, "replacements": 1}


def test_a_decoder_alone_is_sound_or_leaks():
    report = tv.check_masks(Decoder(), **QUICK)
    assert report.sound and {*report.checked} == {"finite", "batch invariance", "future", "target length", "target padding"}
    assert any("checked as a decoder alone" in note for note in report.notes) and "texts" in report.headline
    report = tv.check_masks(lambda ids: Decoder("no causal", n=1)(ids).logits, **QUICK)
    assert (report.verdict, report.causes) == ("leaking", ("no-causal",))


def test_an_encoder_alone_is_sound_though_its_steps_see_each_other():
    report = tv.check_masks(Encoder().eval(), causal=False, **QUICK)
    assert report.sound and {*report.checked} == {"finite", "batch invariance", "source padding"}
    report = tv.check_masks(Encoder(is_masked=False).eval(), causal=False, **QUICK)
    assert report.verdict == "leaking" and {finding.rule for finding in report.findings} == {"source padding"}
    # As a decoder it leaks, and the note says what to give.
    report = tv.check_masks(Encoder().eval(), **QUICK)
    assert report.verdict == "leaking" and any("give causal=False" in note for note in report.notes)


def test_padding_that_turns_to_nan_is_named_only_where_nothing_else_does():
    def nan(where):
        return lambda ids: torch.where(where(ids)[..., None], torch.nan, Decoder()(ids).logits)

    beside_padding = tv.check_masks(nan(lambda ids: (ids == PAD).any(1, keepdim=True).expand_as(ids)), **QUICK)
    assert beside_padding.causes == ("padded-queries-nan",)
    everywhere = tv.check_masks(nan(lambda ids: ids > 0), **QUICK)
    assert everywhere.causes == () and not everywhere.sound
    both = tv.check_masks(nan(lambda ids: (ids == 5) | (ids == PAD).any(1, keepdim=True)), **QUICK)
    assert both.causes == () and {"finite", "target padding"} <= {finding.rule for finding in both.findings}


def test_causal_is_of_one_text():
    with pytest.raises(OptionError, match="this one reads a source and a target"):
        tv.check_masks(lambda source, target: Decoder()(target).logits, causal=True, **QUICK)
