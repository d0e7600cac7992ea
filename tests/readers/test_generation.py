"""A model's generation config is in force, shown, and can be switched off; transformers' beam search is `refill`."""

from dataclasses import replace
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.needs import slow  # noqa: E402
from tests.readers import families  # noqa: E402
from tests.readers.families import EOS, N_WRITTEN, TEXTS, family, untapped  # noqa: E402
from tests.readers.test_families import theirs, written  # noqa: E402
from transformer_viz import decode, load_trace, save_trace, trace_size  # noqa: E402
from transformer_viz.errors import InputError, ModelError, OptionError  # noqa: E402
from transformer_viz.readers.huggingface.loading import HuggingFaceModel, wrap_model  # noqa: E402
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer  # noqa: E402
from transformer_viz.tracing.trace_size import bytes_of  # noqa: E402

SETTINGS: dict[str, dict[str, Any]] = {
    "ends": {"eos_token_id": [EOS, 7, 12]},
    "forced": {"forced_bos_token_id": 11, "forced_eos_token_id": EOS},
    "forced end of several": {"forced_eos_token_id": [EOS, 9]},
    "suppressed": {"suppress_tokens": [30, 38, 41], "begin_suppress_tokens": [EOS, 5]},
    "suppressed after a forced first": {"forced_bos_token_id": 11, "begin_suppress_tokens": [EOS, 11]},
    "bad words": {"bad_words_ids": [[38], [11, 11], [23, 14]]},
    "minimal length": {"min_length": 9},
    "minimal writing": {"min_new_tokens": 6},
    "no repeat": {"no_repeat_ngram_size": 2},
    "nothing of the source again": {"encoder_no_repeat_ngram_size": 1, "encoder_repetition_penalty": 1.5},
    "repetition": {"repetition_penalty": 1.7, "renormalize_logits": True},
}
NAMES = ("bart", "t5", "gpt2", "qwen2")
SEEDS = range(3)


def pair(name: str, seed: int = 1, **settings: Any) -> tuple[HuggingFaceModel, Any]:
    """A model as it is loaded, and the same untouched, with these settings in both generation configs."""
    models = [untapped(name, seed) for _ in range(2)]
    for model in models:
        model.generation_config.update(**settings)
    return wrap_model(models[0], families.tokenizer(ends=name not in families.DECODERS), name), models[1]


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        *((setting, "bart") for setting in SETTINGS),
        *((setting, "qwen2") for setting in ("ends", "bad words", "minimal writing")),
    ],
)
def test_each_setting_is_theirs(setting, name):
    """Greedily and by beams, and in a padded batch as alone. Guards also parity of settings that do nothing."""
    reader, model = pair(name, **SETTINGS[setting])
    several = decode(reader, list(TEXTS), max_length=N_WRITTEN)
    beams = decode(reader, list(TEXTS), max_length=N_WRITTEN, strategy="beam", beam_size=3, refill=True)
    without = decode(reader.with_generation(False), list(TEXTS), max_length=N_WRITTEN)
    assert name != "bart" or any(written(one) != written(other) for one, other in zip(several, without, strict=True))
    for text, trace, beam in zip(TEXTS, several, beams, strict=True):
        ids = reader.tokenizer.encode_source(text)
        assert written(decode(reader, text, max_length=N_WRITTEN)) == written(trace) == theirs(model, ids)
        found = theirs(model, ids, num_beams=3, early_stopping=False, length_penalty=0.6)
        assert written(beam) == without_pads(found, written(beam))


def without_pads(found: list[int], like: list[int]) -> list[int]:
    """`generate` fills up with pads what its best hypothesis has fewer of than it went on for."""
    assert set(found[len(like) :]) <= {families.PAD, EOS}
    return found[: len(like)]


def test_what_is_in_force_is_said(tmp_path):
    reader, _ = pair("bart", forced_bos_token_id=11, no_repeat_ngram_size=2, eos_token_id=[EOS, 9], do_sample=True, num_beams=4)
    trace = decode(reader, TEXTS[0], max_length=4)
    ends = {"decoder_start_token_id": EOS, "eos_token_id": [EOS, 9]}
    assert trace.made_by["generation"] == ends | {
        "no_repeat_ngram_size": 2,
        "forced_bos_token_id": 11,
        "forced_eos_token_id": EOS,
    }
    save_trace(trace, tmp_path / "run.npz")
    assert load_trace(tmp_path / "run.npz").made_by == trace.made_by
    off = decode(reader.with_generation(False), TEXTS[0], max_length=4)
    assert off.made_by["generation"] == ends and written(off)[0] != 11
    assert written(decode(reader.with_generation(False).with_generation(True), TEXTS[0], max_length=4)) == written(trace)


IMPOSSIBLE: list[tuple[str, Any, str]] = [
    ("sequence_bias", [[[5], 2.0]], "sequence_bias"),
    ("guidance_scale", 1.5, "guidance_scale"),
    ("stop_strings", ["w1"], "stop_strings"),
    ("repetition_penalty", 0, "repetition_penalty=0, which should be a number above 0"),
    ("no_repeat_ngram_size", -3, "no_repeat_ngram_size=-3, which should be a whole number from 0"),
    (
        "bad_words_ids",
        [[i] for i in range(9999)],
        "bad_words_ids=[[0], [1], [2], [3], [4], [5], ...], which should be lists of",
    ),
    ("forced_bos_token_id", 999, "forced_bos_token_id=999, which should be a token, by its id"),
    ("suppress_tokens", [-9], "suppress_tokens=[-9], which should be a list of tokens"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), IMPOSSIBLE)
def test_what_cannot_be_followed_is_refused_by_name(name, value, sentence):
    """It is said when it is asked for, and the model writes without it."""
    reader, _ = pair("gpt2", **{name: value})
    for strategy in ("greedy", "beam", "sample"):
        with pytest.raises(OptionError) as caught:
            decode(reader, TEXTS[0], strategy=strategy)
        assert sentence in str(caught.value) and "model.with_generation(False)" in str(caught.value)
        assert len(str(caught.value)) < 400
    assert decode(reader.with_generation(False), TEXTS[0], max_length=2).steps


def test_lengths_are_counted_as_theirs():
    """Their `max_length` counts the start, or the prompt, too."""
    for name, n_written in (("marian", 6), ("gpt2", 1)):
        reader, model = pair(name, max_length=7, suppress_tokens=[EOS], forced_eos_token_id=None)
        trace = decode(reader, TEXTS[0])
        assert len(written(trace)) == n_written
        assert written(trace) == theirs(model, reader.tokenizer.encode_source(TEXTS[0]), max_new_tokens=None)
        assert len(written(decode(reader, "w1 w2"))) == (6 if name == "marian" else 5)
        other, _ = pair(name, max_new_tokens=3, suppress_tokens=[EOS], forced_eos_token_id=None)
        assert len(written(decode(other, TEXTS[0]))) == 3


def test_a_prefix_stands_above_what_is_forced():
    reader, _ = pair("bart", forced_bos_token_id=11)
    for strategy in ("greedy", "sample", "beam"):
        assert written(decode(reader, TEXTS[0], prefix=(20, 21), strategy=strategy, max_length=4))[:2] == [20, 21]


@pytest.mark.parametrize("forced", [0, 11])
@pytest.mark.parametrize("strategy", ["greedy", "sample", "beam"])
def test_nothing_is_left(strategy, forced):
    """Never a token of −∞, but a sentence that says so."""
    reader, _ = pair("bart", forced_bos_token_id=forced)
    with pytest.raises(OptionError, match="no token may be written"):
        decode(reader, TEXTS[0], ban=(forced,), strategy=strategy)


@pytest.mark.parametrize("name", ["marian", "gpt2"])
def test_minus_infinity_is_never_written_nor_listed(name):
    """A model may say so itself: all but three tokens here."""
    model = untapped(name)
    allowed = [8, 21, 30]

    def hidden(module: Any, given: Any, output: Any) -> None:
        output.logits[..., [i for i in range(families.SIZE) if i not in allowed]] = float("-inf")

    model.register_forward_hook(hidden)
    reader = wrap_model(model, families.tokenizer(), name).with_generation(False)
    for strategy in ("greedy", "sample", "beam"):
        trace = decode(reader, TEXTS[0], strategy=strategy, max_length=5)
        assert set(written(trace)) <= set(allowed)
        for step in trace.steps:
            assert set(step.candidate_ids) == set(allowed) and len(step.candidates) == 3


@pytest.mark.parametrize("seed", [SEEDS[0], *map(slow, SEEDS[1:])])
@pytest.mark.parametrize("name", NAMES)
def test_refill_is_their_beam_search(name, seed):
    """Sequence and score, whichever the length penalty."""
    reader, model = pair(name, seed)
    for text, alpha in zip(TEXTS, (0.0, 1.0, -0.5 if seed % 2 else 2.0), strict=True):
        source = torch.tensor([reader.tokenizer.encode_source(text)])
        options = {"num_beams": 4, "early_stopping": False, "length_penalty": alpha, "do_sample": False}
        options |= {"max_new_tokens": N_WRITTEN, "output_scores": True, "return_dict_in_generate": True}
        found = model.generate(input_ids=source, attention_mask=torch.ones_like(source), num_return_sequences=4, **options)
        trace = decode(reader, text, strategy="beam", beam_size=4, length_penalty=alpha, max_length=N_WRITTEN, refill=True)
        assert trace.search is not None
        n_read = 1 if model.config.is_encoder_decoder else source.shape[1]
        for place, (sequence, score) in enumerate(zip(found.sequences.tolist(), found.sequences_scores.tolist(), strict=True)):
            own = written(trace.hypothesis(place))
            assert own == without_pads(sequence[n_read:], own)
            assert trace.search.nodes[trace.search.best[place]].score == pytest.approx(score, abs=1e-4)
        assert trace.search.settings["refill"] is True


@pytest.mark.parametrize("seed", [0, 2])
def test_refill_is_another_search(seed):
    """Guards parity that any beam search would show."""
    how: dict[str, Any] = {"strategy": "beam", "beam_size": 4, "length_penalty": 1.0, "max_length": N_WRITTEN}
    ours, their = (decode(pair("bart", seed)[0], TEXTS[1], refill=refill, **how) for refill in (False, True))
    assert ours.output_ids != their.output_ids
    assert their.search is not None and their.finished == "end" and len(their.steps) < N_WRITTEN
    for step in range(max(node.step for node in their.search.nodes)):
        assert sum(node.step == step and node.state in ("kept", "stopped") for node in their.search.nodes) == 4


def test_refill_takes_what_was_predicted():
    """With several ends more continuations are looked at, and counted."""
    reader, _ = pair("bart", eos_token_id=[EOS, 7, 12])
    trace = decode(reader, TEXTS[1], strategy="beam", refill=True, beam_size=4, max_length=N_WRITTEN)
    size = trace_size(reader, TEXTS[1], strategy="beam", refill=True, beam_size=4, max_length=N_WRITTEN)
    assert trace.search is not None and sum(node.step == 1 for node in trace.search.nodes) == 16
    assert size.total / 2 < bytes_of(trace) <= size.total


def test_a_token_that_only_the_model_has_can_be_banned_and_given():
    """Of a vocabulary that is padded: such a token is written, and its label is its id."""
    unnamed = families.SIZE + 2
    model = families.untapped("gpt2", vocab_size=families.SIZE + 5)

    def raised(module: Any, given: Any, output: Any) -> None:
        output.logits[..., unnamed] = 1e3

    model.register_forward_hook(raised)
    reader = families.wrap_model(model, families.tokenizer(), "padded")
    trace = decode(reader, TEXTS[0], max_length=2)
    label = trace.output_tokens[-1]
    assert written(trace) == [unnamed, unnamed] and label == str(unnamed)
    for named in (label, unnamed):
        banned = decode(reader, TEXTS[0], max_length=2, ban=[named])
        assert unnamed not in written(banned)
        given = decode(reader, TEXTS[0], max_length=2, prefix=[named, "w5"])
        assert written(given) == [unnamed, families.WORDS.index("w5")]
    for none in (families.SIZE + 5, str(families.SIZE + 5)):
        with pytest.raises(InputError, match="ban: token '52' is not in the vocabulary of this model"):
            decode(reader, TEXTS[0], ban=[none])


def test_a_token_that_only_the_tokenizer_has_is_refused():
    """In a ban, and in a text: it makes ids that the model has no embedding for."""
    other = families.tokenizer()
    other.add_tokens(["beyond"])
    reader = families.wrap_model(families.untapped("gpt2"), other, "small")
    for named in ("beyond", families.SIZE):
        with pytest.raises(InputError, match="is not in the vocabulary of this model"):
            decode(reader, TEXTS[0], ban=[named])
    with pytest.raises(ModelError, match="do not belong together"):
        decode(replace(family("gpt2"), tokenizer=HuggingFaceTokenizer.of(other)), "w1 beyond")
