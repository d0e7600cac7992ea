"""What is compared computes the same: otherwise a ratio would compare two models instead of two programs."""

import pytest
import torch

import transformer_viz as tv
from benchmarks import decoding, marian
from tests.needs import needs
from transformer_viz.decoding.stepwise import stepwise
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.vocabulary import END_ID, START_ID

SIZE = {"layers": 2, "d_model": 20, "heads": 5, "d_ff": 28}
VOCABULARY, SOURCE, STEPS = 23, 11, 13


@needs("transformers")
def test_marian_has_our_weights_and_writes_our_tokens_and_weights() -> None:
    model = marian.ours(SIZE, VOCABULARY)
    source = torch.tensor([[START_ID, *range(4, 4 + SOURCE - 2), END_ID]])
    other = marian.theirs(model)
    found = marian.generated(other, source, STEPS)
    rows = list[torch.Tensor]()
    decoded = stepwise(
        model, TokenBatch.of(model, source.tolist()), max_length=STEPS, on_step=lambda _, row, token: rows.append(row)
    )
    assert found.sequences[0, 1:].tolist() == decoded.ids[0].tolist()
    assert len(set(decoded.ids[0].tolist())) > 1
    logits = other(input_ids=source, decoder_input_ids=found.sequences[:, :-1]).logits
    torch.testing.assert_close(logits, torch.stack(rows, 1), atol=1e-5, rtol=0)
    # Eager attention: torch's fused kernel would give none.
    assert len(found.cross_attentions) == STEPS
    assert found.cross_attentions[-1][SIZE["layers"] - 1].shape == (1, SIZE["heads"], 1, SOURCE)


@pytest.mark.parametrize("n", [16, 64])
def test_a_text_has_the_tokens_that_its_line_says(n: int) -> None:
    checkpoint = decoding.subject(SIZE, torch.device("cpu"))
    trace = tv.decode(checkpoint, decoding.text_of(n), max_length=n)
    assert len(trace.source_tokens) == len(trace.output_tokens) == n
    assert trace.finished == "length"
