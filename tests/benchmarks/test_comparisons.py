"""What is compared computes the same: otherwise a ratio would compare two models instead of two programs."""

import pytest
import torch

from benchmarks import cases, marian, training
from benchmarks.random_run import random_run
from benchmarks.reference_models import TorchTransformer
from tests.needs import needs
from transformer_viz.decoding.greedy import greedy
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.vocabulary import END_ID, START_ID

SIZE = {"layers": 2, "d_model": 20, "heads": 5, "d_ff": 28}
VOCABULARY, SOURCE, STEPS = 23, 11, 13


@needs("transformers")
def test_marian_has_our_weights_and_writes_our_tokens_and_weights() -> None:
    model = marian.ours(SIZE, VOCABULARY)
    source = torch.tensor([[START_ID, *range(4, 4 + SOURCE - 2), END_ID]])
    other = marian.theirs(model)
    asked = {"attention_mask": torch.ones_like(source), "max_new_tokens": STEPS, "do_sample": False, "num_beams": 1}
    found = other.generate(source, **asked, output_attentions=True, return_dict_in_generate=True)
    decoded = greedy(model, source, None, max_length=STEPS)
    assert found.sequences[0, 1:].tolist() == decoded.ids[0].tolist()
    assert len(set(decoded.ids[0].tolist())) > 1
    logits = other(input_ids=source, decoder_input_ids=found.sequences[:, :-1]).logits
    torch.testing.assert_close(logits, decoded.logits, atol=1e-5, rtol=0)
    # Eager attention: torch's fused kernel would give none.
    assert len(found.cross_attentions) == STEPS
    assert found.cross_attentions[-1][SIZE["layers"] - 1].shape == (1, SIZE["heads"], 1, SOURCE)


def test_nn_transformer_has_our_weights_and_gives_our_logits() -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        source_vocabulary_size=VOCABULARY,
        target_vocabulary_size=VOCABULARY,
        d_model=20,
        n_heads=4,
        d_ff=28,
        norm="post",
        dropout=0.1,
    )
    ours = Transformer(config).eval()
    theirs = TorchTransformer(ours).eval()
    source, target = torch.randint(4, VOCABULARY, (3, SOURCE)), torch.randint(4, VOCABULARY, (3, STEPS))
    source_padding, target_padding = torch.zeros(3, SOURCE, dtype=torch.bool), torch.zeros(3, STEPS, dtype=torch.bool)
    source_padding[0, 7:] = target_padding[1, 9:] = True
    with torch.no_grad():
        mine = ours(source, target, source_padding, target_padding)
        other = theirs(source, target, source_padding, target_padding)
    torch.testing.assert_close(other[~target_padding], mine[~target_padding], atol=1e-5, rtol=0)


def test_the_decoder_without_a_cache_reads_what_it_wrote() -> None:
    model = marian.ours(SIZE, VOCABULARY)
    source = torch.tensor([[START_ID, *range(4, 4 + SOURCE - 2), END_ID]])
    expected = greedy(model, source, None, max_length=STEPS).ids
    assert cases.without_cache(model, source, STEPS).tolist() == expected.tolist()


@pytest.mark.parametrize("n", [16, 64])
def test_a_text_has_the_tokens_that_its_line_says(n: int) -> None:
    checkpoint = cases.subject(SIZE, torch.device("cpu"))
    trace = cases.ways(checkpoint, n)["traced"]()
    assert len(trace.source_tokens) == len(trace.output_tokens) == n
    assert trace.finished == "length"


def test_batches_made_on_a_device_are_reversals() -> None:
    recipe = training._recipe("1+1", batch_size=7)
    batch = training._on_device(recipe, 3, torch.device("cpu"))
    letters = batch.source[:, 1:-1]
    assert letters.min() >= 4
    assert batch.target_in[:, 1:].tolist() == letters.flip(1).tolist() == batch.target_out[:, :-1].tolist()
    assert {START_ID} == set(batch.source[:, 0].tolist()) == set(batch.target_in[:, 0].tolist())
    assert {END_ID} == set(batch.source[:, -1].tolist()) == set(batch.target_out[:, -1].tolist())


def test_a_made_up_run_is_a_run() -> None:
    trace = random_run(7, layers=2, heads=3)
    for kind in trace.kinds:
        weights = trace.attentions(kind)
        assert weights is not None
        assert abs(weights.sum(-1) - 1).max() < 1e-6
        assert not weights[..., trace.masks[kind]].any()
