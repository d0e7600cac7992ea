"""Source and target language of models that translate between many."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

from tests.readers.families import N_WRITTEN, family, untapped  # noqa: E402
from tests.readers.test_families import theirs, written  # noqa: E402
from transformer_viz import decode  # noqa: E402
from transformer_viz.errors import OptionError  # noqa: E402
from transformer_viz.model_options import ModelOptions  # noqa: E402
from transformer_viz.readers.huggingface.loading import HuggingFaceModel, wrap_model  # noqa: E402

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁w1", "▁w2", "▁w", *"w0123▁"]
TEXT = "w1 w2 w1"
CASES = {
    # tokenizer, model, source, target, which setting of generate the target's token is
    "mbart": ("MBartTokenizer", "mbart", "fr_XX", "de_DE", "decoder_start_token_id"),
    "mbart50": ("MBart50Tokenizer", "mbart", "fr_XX", "uk_UA", "forced_bos_token_id"),
    "nllb": ("NllbTokenizer", "m2m_100", "fra_Latn", "deu_Latn", "forced_bos_token_id"),
}


def made(case: str) -> tuple[HuggingFaceModel, Any, Any]:
    """A reader, and model and tokenizer again, untouched."""
    tokenizers = []
    for _ in range(2):
        cls = getattr(transformers, CASES[case][0])
        if case == "nllb":
            tokenizers.append(cls(vocab={piece: i for i, piece in enumerate(PIECES)}, merges=[]))
        else:
            tokenizers.append(cls(vocab=[(piece, 0.0) for piece in PIECES]))
    ids = {name: getattr(tokenizers[0], name) for name in ("pad_token_id", "eos_token_id", "bos_token_id")}
    models = [untapped(CASES[case][1], vocab_size=len(tokenizers[0]), **ids) for _ in range(2)]
    return wrap_model(models[0], tokenizers[0], case), models[1], tokenizers[1]


@pytest.mark.parametrize("case", CASES)
def test_languages_are_those_of_generate(case):
    _, _, source, target, setting = CASES[case]
    plain, model, tokenizer = made(case)
    assert {source, target} < set(plain.languages) and plain.target_language is None
    reader = plain.with_languages(source, target)
    tokenizer.src_lang = source
    ids = tokenizer(TEXT).input_ids
    assert tokenizer.convert_tokens_to_ids(source) in ids
    trace = decode(reader, TEXT, max_length=N_WRITTEN)
    assert list(trace.source_ids or ()) == ids
    assert written(trace) == theirs(model, ids, **{setting: tokenizer.convert_tokens_to_ids(target)})
    said = trace.made_by["generation"]
    assert (said["source_language"], said["target_language"]) == (source, target)
    assert (reader.source_language, reader.target_language) == (source, target)
    assert plain.source_language != source, "the model that it was made of is as it was"
    other = plain.with_languages(target=source)
    assert other.source_language == plain.source_language and other.target_language == source
    assert decode(other, TEXT, max_length=N_WRITTEN).steps[1].probability != trace.steps[1].probability


def test_a_language_that_is_not_known():
    reader, *_ = made("mbart")
    for options in ({"source": "xx"}, {"target": "xx"}):
        with pytest.raises(OptionError, match=r"language 'xx' is not known; choose one of .*cs_CZ"):
            reader.with_languages(**options)


def test_a_model_of_no_languages():
    assert family("marian").languages == () and family("gpt2").source_language is None
    with pytest.raises(OptionError, match="knows no languages"):
        family("marian").with_languages(target="de")


@pytest.fixture
def switching_often():
    """Threads take turns at every line rather than every five milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("case", CASES)
def test_threads_that_read_other_languages_and_targets_do_not_disturb_each_other(case, switching_often):
    _, _, source, target, _ = CASES[case]
    plain, *_ = made(case)
    one, other = plain.with_languages(source, target).tokenizer, plain.with_languages(target, source).tokenizer
    reads = (one.encode_source, other.encode_source, one.encode_target, other.encode_target, lambda _: one.frame_of_target())
    alone = [read(TEXT) for read in reads]
    assert alone[0] != alone[1]
    with ThreadPoolExecutor(len(reads)) as threads:
        together = [threads.submit(lambda read=read: [read(TEXT) for _ in range(50)]) for read in reads]
    assert [each.result() for each in together] == [[ids] * 50 for ids in alone]


@pytest.mark.parametrize("case", ["mbart", "mbart50"])
def test_a_language_that_is_asked_for_is_written_without_the_generation_config_too(case):
    _, _, source, target, setting = CASES[case]
    plain, model, tokenizer = made(case)
    reader = plain.with_options(ModelOptions(source_language=source, target_language=target, generation=False))
    assert reader.options.target_language == target and plain.options.target_language is None
    assert reader.options.generation == (None if plain.options.generation is None else False)
    tokenizer.src_lang = source
    ids = tokenizer(TEXT).input_ids
    number = tokenizer.convert_tokens_to_ids(target)
    # The last one is an end that only the generation config forces.
    assert written(decode(reader, TEXT, max_length=N_WRITTEN))[:-1] == theirs(model, ids, **{setting: number})[:-1]
    assert reader.target_language == target
