"""Greedy decoding with scripted logits, so that every expected token is known by hand."""

import pytest
import torch
from torch import Tensor

from transformer_viz.decoding.greedy import greedy
from transformer_viz.terms import ModelKind
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

VOCABULARY = 7


class Scripted:
    """A model that gives each sentence the logits of its script, and counts how it is called."""

    kind = ModelKind.ENCODER_DECODER
    training, start_id, end_ids, pad_id, rules = False, START_ID, (END_ID,), PAD_ID, None

    def __init__(self, scripts: Tensor) -> None:
        self.scripts = scripts  # (batch, step, vocabulary)
        self.encoded = 0
        self.read_tokens: list[list[int]] = []

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap=None) -> Tensor:
        self.encoded += 1
        return source[:, 0]

    def start_decoding(self, memory: Tensor, source_padding: Tensor | None = None) -> "Scripted":
        self.memory, self.length = memory, 0
        return self

    def read(self, tokens: Tensor, *, tap=None) -> Tensor:
        self.read_tokens.append(tokens.tolist())
        self.length += 1
        return self.scripts[self.memory][:, self.length - 1]


def script(*tokens: int, steps: int = 11) -> Tensor:
    """Logits that prefer `tokens`, then token 6 for ever."""
    logits = torch.zeros(steps, VOCABULARY)
    for t in range(steps):
        logits[t, tokens[t] if t < len(tokens) else 6] = 1.0
    return logits


def decoded(scripts: list[Tensor], **options):
    model = Scripted(torch.stack(scripts))
    source = torch.arange(len(scripts))[:, None]
    return model, greedy(model, source, None, **{"max_length": 11, **options})  # ty: ignore[invalid-argument-type]


def test_exact_ties_take_the_lowest_id():
    logits = torch.zeros(11, VOCABULARY)
    logits[0, [3, 5, 6]] = 2.0
    logits[1, [6, 4]] = 2.0
    logits[2, END_ID] = 1.0
    _, result = decoded([logits])
    assert result.ids.tolist() == [[3, 4, END_ID]]


def test_stops_at_end_and_feeds_back_what_it_wrote():
    model, result = decoded([script(4, 5, 4, END_ID)])
    assert result.ids.tolist() == [[4, 5, 4, END_ID]]
    assert result.lengths.tolist() == [4]
    assert result.ended.tolist() == [True]
    assert result.logits.shape == (1, 4, VOCABULARY)
    assert model.encoded == 1
    assert model.read_tokens == [[START_ID], [4], [5], [4]]


@pytest.mark.parametrize("limit", [1, 3, 11])
def test_the_length_limit_stops_without_an_end(limit):
    model, result = decoded([script()], max_length=limit)
    assert result.ids.tolist() == [[6] * limit]
    assert result.lengths.tolist() == [limit]
    assert result.ended.tolist() == [False]
    assert len(model.read_tokens) == limit


def test_end_as_the_last_allowed_token_counts_as_ended():
    _, result = decoded([script(4, 5, END_ID)], max_length=3)
    assert result.ended.tolist() == [True]
    assert result.lengths.tolist() == [3]


def test_does_not_stop_at_start_pad_or_unknown():
    """Guards stopping on the wrong symbol."""
    _, result = decoded([script(START_ID, PAD_ID, 3, 4, END_ID)])
    assert result.ids.tolist() == [[START_ID, PAD_ID, 3, 4, END_ID]]
    assert result.lengths.tolist() == [5]


def test_an_ended_sentence_is_padded_while_others_go_on():
    """Guards a second `<end>` or other tokens behind the first, and a length that counts them."""
    model, result = decoded([script(4, END_ID, 5, END_ID), script(5, 5, 5, END_ID), script(END_ID)], max_length=4)
    assert result.ids.tolist() == [[4, END_ID, PAD_ID, PAD_ID], [5, 5, 5, END_ID], [END_ID, PAD_ID, PAD_ID, PAD_ID]]
    assert result.lengths.tolist() == [2, 4, 1]
    assert result.ended.tolist() == [True, True, True]
    assert len(model.read_tokens) == 4


def test_train_mode_is_refused(make_model, ids):
    """Guards decoding through dropout."""
    model = make_model(13, dropout=0.5).train()
    with pytest.raises(AssertionError, match="eval"):
        greedy(model, ids(1, 1, 3), None, max_length=3)
