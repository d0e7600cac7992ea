"""Every family that is served: what is written and drawn is what the model itself computes."""

from typing import Any

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.readers import families  # noqa: E402
from tests.readers.families import DECODERS, ENCODERS, N_WRITTEN, TEXTS, WRITERS, family, own  # noqa: E402
from transformer_viz import Trace, decode  # noqa: E402
from transformer_viz.terms import Kind, Reason  # noqa: E402


def written(trace: Trace) -> list[int]:
    assert trace.output_ids is not None
    return list(trace.output_ids[trace.n_given :])


def theirs(model: Any, ids: list[int], **options: Any) -> list[int]:
    """What `generate` writes, its start or the prompt left out."""
    source = torch.tensor([ids])
    options = {"max_new_tokens": N_WRITTEN, "do_sample": False, "num_beams": 1, **options}
    found = model.generate(input_ids=source, attention_mask=torch.ones_like(source), **options)[0].tolist()
    return found[1:] if model.config.is_encoder_decoder else found[len(ids) :]


def bare(model: Any) -> Any:
    """A generation config that says where to begin and to end, and nothing else."""
    names = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
    return transformers.GenerationConfig(**{name: getattr(model.generation_config, name) for name in names})


@torch.no_grad()
def returned(model: Any, source: list[int], target: list[int], **options: Any) -> tuple[dict[Kind, np.ndarray], torch.Tensor]:
    """All attentions that a model returns of one full pass, (layer, head, query, key), and the logits."""
    read: dict[str, Any] = {"input_ids": torch.tensor([source or target])}
    if model.config.is_encoder_decoder:
        read["decoder_input_ids"] = torch.tensor([target])
    found = model(**read, output_attentions=True, **options)

    def whole(layers: Any) -> np.ndarray:
        return torch.cat([layer for layer in layers if layer is not None]).numpy()

    if not model.config.is_encoder_decoder:
        kind: Kind = "encoder" if source else "decoder"
        return {kind: whole(found.attentions)}, found.logits[0]
    decoder, cross = whole(found.decoder_attentions), whole(found.cross_attentions)
    return {"encoder": whole(found.encoder_attentions), "decoder": decoder, "cross": cross}, found.logits[0]


def drawn(trace: Trace, kind: Kind) -> np.ndarray:
    return trace.attentions[kind].weights


@pytest.mark.parametrize("name", families.cases(WRITERS))
def test_greedy_is_their_generate(name, monkeypatch):
    """In a padded batch as alone (prompts are padded before, sources after), with the generation config and without it."""
    reader, model = family(name), own(name)
    assert reader.network.kind == ("decoder" if name in DECODERS else "encoder-decoder")
    assert (reader.network.start_id is None) == (name in DECODERS)
    every = [(text, reader.tokenizer.encode_source(text)) for text in TEXTS]
    for (text, ids), trace in zip(every, decode(reader, list(TEXTS), max_length=N_WRITTEN), strict=True):
        alone = decode(reader, text, max_length=N_WRITTEN)
        assert written(alone) == written(trace) == theirs(model, ids)
        for kind in reader.network.sizes.kinds:
            assert np.abs(drawn(trace, kind) - drawn(alone, kind)).max() < 1e-5
            assert np.array_equal(trace.attentions[kind].reasons, alone.attentions[kind].reasons)
    monkeypatch.setattr(model, "generation_config", bare(model))
    for text, ids in every[:2]:
        plain = decode(reader.with_generation(False), text, max_length=N_WRITTEN)
        assert written(plain) == theirs(model, ids) and plain.model_kind == reader.network.kind


def test_about_half_of_what_is_written_ends():
    """Guards tests in which nothing ends, and tests in which nothing is written."""
    traces = [trace for name in [*WRITERS][::2] for trace in decode(family(name), list(TEXTS), max_length=N_WRITTEN)]
    lengths = [len(written(trace)) for trace in traces]
    n_ended = sum(length < N_WRITTEN for length in lengths)
    assert len(lengths) / 4 < n_ended < len(lengths) * 3 / 4
    assert sum(length > 2 for length in lengths) > len(lengths) / 2


@pytest.mark.parametrize("name", families.cases(WRITERS))
def test_attention_is_theirs_to_the_bit_and_cached_nearly(name):
    reader, text = family(name), TEXTS[0]
    target = (5, 9, 9, 3, 30, 12, 7)
    trace = decode(reader, text, target=target)
    expected, logits = returned(own(name), list(trace.source_ids or ()), list(trace.target_ids or ()))
    assert expected.keys() == set(reader.network.sizes.kinds)
    for kind, whole in expected.items():
        assert np.array_equal(drawn(trace, kind), whole)
        assert whole.std() > 0.05, "flat attention proves little"
    chosen = logits.double().log_softmax(-1).gather(1, torch.tensor(trace.output_ids)[:, None])[:, 0]
    assert np.allclose([step.log_probability for step in trace.steps], chosen, atol=1e-5)
    cached = decode(reader.with_generation(False), text, prefix=target, max_length=len(target) + 1)
    for kind, whole in expected.items():
        assert np.abs(drawn(cached, kind) - whole).max() < 1e-5


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_alone(name):
    reader, texts = family(name), ["w1 [MASK] w3 w4 w5", "w2 [MASK]"]
    assert reader.network.kind == "encoder" and reader.network.start_id is None
    batch = decode(reader, texts, candidates=3)
    for text, trace in zip(texts, batch, strict=True):
        alone = decode(reader, text, candidates=3)
        expected, logits = returned(own(name), list(alone.source_ids or ()), [])
        assert np.array_equal(drawn(alone, "encoder"), expected["encoder"]) and expected["encoder"].std() > 0.05
        assert np.abs(drawn(trace, "encoder") - drawn(alone, "encoder")).max() < 1e-5
        (fill,) = alone.fills
        assert list(fill.candidate_ids) == logits[1].topk(3).indices.tolist()
        assert np.allclose([p for _, p in fill.candidates], logits[1].double().softmax(-1).topk(3).values)
        assert fill.candidate_ids == trace.fills[0].candidate_ids
        assert "generation" not in alone.made_by


def test_the_local_layers_of_an_encoder_look_to_both_sides():
    """ModernBERT: the first layer sees all, the others two tokens to each side, and what is further away says so."""
    trace = decode(family("modernbert"), "w1 w2 w3 w4 w5 w6 w7")
    apart = np.abs(np.subtract.outer(range(8), range(8)))
    reasons = np.where(apart > 2, Reason.WINDOW, 0)
    assert trace.encoder.reasons[:, 0].tolist() == [np.zeros((8, 8)).tolist(), reasons.tolist(), reasons.tolist()]


@pytest.mark.parametrize("name", DECODERS)
def test_pad_as_end_is_no_padding(name):
    """Whichever id stands there, padding is what the mask says: a text may hold the pad, and the pad may be the end."""
    model = families.untapped(name, pad_token_id=families.EOS)
    reader = families.wrap_model(model, families.tokenizer(), name)
    texts = ["w3 </s> w4 </s> w5", "<pad> </s>"]
    for text, trace in zip(texts, decode(reader, texts, max_length=5), strict=True):
        alone = decode(reader, text, max_length=5)
        assert trace.output_ids == alone.output_ids
        assert np.abs(drawn(trace, "decoder") - drawn(alone, "decoder")).max() < 1e-5
    assert reader.network.pad_id in reader.network.end_ids
