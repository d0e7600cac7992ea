"""Hugging Face folders that somebody has spoiled on purpose: refused by a sentence, or used like any other."""

import base64
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer_viz as tv
from tests.needs import needs
from tests.readers import hostile_folders
from transformer_viz.errors import InputError, ModelError, OptionError
from transformer_viz.readers.huggingface.folder import describe_folder

pytestmark = needs("transformers")
PROGRAM = Path(__file__).with_name("hostile_program.py")
SECONDS, BYTES = 5, 500_000_000
"""Of the processor, and of memory beyond what is in use before, that a folder may take to be refused or used."""
KERNELS = '''
"""Stands for the package that downloads kernels: whoever asks it for one ends the program."""
import os

def get_kernel(*given, **options):
    os.write(2, b"a kernel was asked for\\n")
    os._exit(4)

def use_kernel_forward_from_hub(*given, **options):
    return lambda made: made

use_kernelized_func = replace_kernel_forward_from_hub = use_kernel_forward_from_hub

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
'''


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return hostile_folders.sound(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def spoil(tmp_path: Path, sound: dict[str, Path]) -> Callable[..., str]:
    """A copy of a family's folder in which a file of JSON has other values."""

    def spoil(family: str, file: str = "config.json", **values: Any) -> str:
        folder = hostile_folders.copied(sound[family], tmp_path / family)
        hostile_folders.change(folder, file, lambda found: found.update(values))
        return str(folder)

    return spoil


def refused(folder: str) -> str:
    with pytest.raises(ModelError) as caught:
        tv.load_model(folder, "cpu")
    return str(caught.value)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package `kernels`, as transformers looks for it."""
    from transformers.utils.import_utils import KERNELS_MIN_VERSION as version

    folder = tmp_path_factory.mktemp("packages")
    for name, file, content in (
        ("kernels", "__init__.py", KERNELS),
        (f"kernels-{version}.dist-info", "METADATA", f"Metadata-Version: 2.1\nName: kernels\nVersion: {version}\n"),
    ):
        (folder / name).mkdir()
        (folder / name / file).write_text(content)
    return folder


def outcomes(folders: list[Path], sound: Path, kernels: Path) -> list[dict[str, Any]]:
    """What came of each, in one process of its own."""
    paths = os.pathsep.join(map(str, (kernels, Path(tv.__file__).parents[1])))
    environment = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "0", "RUST_BACKTRACE": "0"}
    command = [sys.executable, str(PROGRAM), str(sound), *map(str, folders)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_each_is_refused_or_used_in_little_time_and_memory(
    part: int, sound: dict[str, Path], kernels: Path, tmp_path: Path
) -> None:
    """In a process in which a network, or a kernel, that is asked for ends the program."""
    folders = []
    for number, (family, damage) in enumerate(hostile_folders.DAMAGES[part::3]):
        folders.append(hostile_folders.copied(sound[family], tmp_path / f"{number}-{family}"))
        damage(folders[-1])
    found = outcomes(folders, sound["gpt2"], kernels)
    assert len(found) == len(folders)
    for outcome in found:
        assert not outcome["said"].startswith("FAILED"), outcome
        assert outcome["seconds"] < SECONDS and outcome["bytes"] < BYTES, outcome
    assert any(outcome["said"] == "usable" for outcome in found), "what is harmless is used"


LAYERS = ("gpt2.n_layer", "marian.decoder_layers", "bart.encoder_layers", "t5.num_layers", "llama.num_hidden_layers")
POSITIONS = ("gpt2.n_positions", "marian.max_position_embeddings", "bert.max_position_embeddings", "llama.head_dim")


@pytest.mark.parametrize("n", [10**5, 10**9])
@pytest.mark.parametrize("place", [*LAYERS, *POSITIONS])
def test_sizes_that_the_weights_do_not_have(spoil: Callable[..., str], place: str, n: int) -> None:
    """Layers are told before anything of transformers is asked: the list of models says it as well."""
    family, key = place.split(".")
    folder = spoil(family, **{key: n})
    said = refused(folder)
    if place in POSITIONS:
        assert "describes a larger model than the" in said
        return
    assert re.search(rf"config.json sets '{key}' to {n:,}, but its weights have [23] layers", said)
    with pytest.raises(ModelError, match=re.escape(said)):
        describe_folder(Path(folder), family)


def test_a_model_may_have_its_weights_several_times(spoil: Callable[..., str]) -> None:
    """ALBERT's layers are one, T5's embedding stands in four places, and this BERT has a head that is in no file."""
    assert tv.load_model(spoil("albert", num_hidden_layers=9)).architecture
    assert tv.load_model(spoil("t5")).n_parameters
    assert tv.load_model(spoil("bert", num_labels=7)).n_parameters


@pytest.mark.slow
def test_another_implementation_is_never_asked_for(sound: dict[str, Path], kernels: Path, tmp_path: Path) -> None:
    """Of attention or of experts, at any depth of config.json: the model is used with its own."""
    folders = []
    kernel = "evil/kernel"
    for number, key in enumerate(hostile_folders.IMPLEMENTATIONS):
        value = ({key: kernel}, {key: {"": kernel}}, {"encoder": [{key: kernel}]})[number % 3]
        folders.append(hostile_folders.copied(sound["gpt2"], tmp_path / key))
        hostile_folders.change(folders[-1], "config.json", lambda config, value=value: config.update(value))
    assert [found["said"] for found in outcomes(folders, sound["gpt2"], kernels)] == ["usable"] * len(folders)


def test_what_exchanges_code_of_transformers_is_refused(spoil: Callable[..., str]) -> None:
    assert "config.json sets fusion_config, which would replace code" in refused(spoil("gpt2", fusion_config={"a": "b"}))


SETTINGS: list[tuple[str, Any, str]] = [
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


@pytest.mark.parametrize(("name", "value", "sentence"), SETTINGS)
def test_a_setting_of_generation_that_is_impossible(spoil: Callable[..., str], name: str, value: Any, sentence: str) -> None:
    """It is said when it is asked for, and the model writes without it."""
    model: Any = tv.load_model(spoil("bart", "generation_config.json", **{name: value}))
    for strategy in ("greedy", "beam", "sample"):
        with pytest.raises(OptionError) as caught:
            tv.decode(model, "w1 w2", strategy=strategy, max_length=2)
        assert sentence in str(caught.value) and "model.with_generation(False)" in str(caught.value)
        assert len(str(caught.value)) < 400
    assert tv.decode(model.with_generation(False), "w1 w2", max_length=2).steps


def test_ids_that_no_logit_is_for(spoil: Callable[..., str]) -> None:
    """A start is needed; an end that is never written ends nothing, and padding may be any token."""
    assert "its decoder begins with the token 999 " in refused(
        spoil("t5", "generation_config.json", decoder_start_token_id=999)
    )
    model: Any = tv.load_model(spoil("bart", "generation_config.json", eos_token_id=[2, 999], pad_token_id=-1))
    assert (model.model.end_ids, model.model.pad_id) == ((2,), 2)
    assert len(tv.decode(model, ["w1 w2 w3", "w1"], max_length=2)) == 2


def charsmap(text: bytes) -> str:
    return base64.b64encode(b"\4\0\0\0\0\0\0\0" + text + b"\0a").decode()


def replaced(pattern: dict[str, str], content: str, n: int = 1) -> dict[str, Any]:
    rule = {"type": "Replace", "pattern": pattern, "content": content}
    return {"type": "Sequence", "normalizers": [rule] * n}


RULES: dict[str, tuple[dict[str, Any], str]] = {
    "e becomes 20 e, eight times": ({"normalizer": replaced({"String": "e"}, "e" * 20, 8)}, "25,600,000,000 times as long"),
    "nothing becomes much": ({"normalizer": replaced({"Regex": "x*"}, "e" * 999)}, "1,000 times as long"),
    "a map": ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap(b"e" * 5000)}}, "5,000 times as long"),
    "many": ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * 999}}, "at most 64 are possible"),
    "before": (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "use_regex": False}] * 40}},
        "1,099,511,627,776 times as long",
    ),
    "after": ({"post_processor": hostile_folders.TWICE}, "387,420,489 times as long"),
    "many tokens": ({"post_processor": hostile_folders.template(300)}, "it adds 300 tokens to a text"),
    "decoder": ({"decoder": {"type": "Replace", "pattern": {"String": "w"}, "content": "w" * 999}}, "999 times as long"),
    "words": ({"model": {"type": "WordLevel", "vocab": {f"x{i}": i for i in range(10**6)}}}, "it has more tokens than"),
    "some words": ({"model": {"type": "WordLevel", "vocab": {f"x{i}": i for i in range(5000)}}}, "it has 5,005 tokens"),
}  # fmt: skip


@pytest.mark.parametrize("what", RULES)
def test_a_tokenizer_that_makes_too_much(spoil: Callable[..., str], what: str) -> None:
    values, sentence = RULES[what]
    said = refused(spoil("gpt2", "tokenizer.json", **values))
    assert said.startswith("gpt2: 'tokenizer.json' cannot be used: ") and sentence in said


def test_the_rules_that_known_tokenizers_have_are_followed(spoil: Callable[..., str]) -> None:
    """Spaces are put together and written another way, as in T5 and NLLB."""
    normalizers = [
        {"type": "NFKC"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
        {"type": "Prepend", "prepend": "▁"},
    ]
    folder = spoil("gpt2", "tokenizer.json", normalizer={"type": "Sequence", "normalizers": normalizers})
    assert tv.load_model(folder).n_parameters


@needs("sentencepiece")
@pytest.mark.parametrize("spoiled", [False, True])
def test_the_map_in_a_model_of_sentencepiece_is_bounded(sound: dict[str, Path], tmp_path: Path, spoiled: bool) -> None:
    """As the library writes it, it is let through; where 3000 bytes of its texts become one text, it is refused."""
    from sentencepiece import SentencePieceTrainer

    model, texts = io.BytesIO(), iter(["the house is small"] * 50)
    SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=model, vocab_size=20, hard_vocab_limit=False, minloglevel=2
    )
    data = model.getvalue()
    # What one Arabic sign becomes: the longest of the texts.
    start = data.index("صلى الله عليه وسلم".encode())
    folder = hostile_folders.copied(sound["gpt2"], tmp_path / "mine")
    made = data[:start] + data[start : start + 3000].replace(b"\0", b"e") + data[start + 3000 :] if spoiled else data
    (folder / "spiece.model").write_bytes(made)
    if spoiled:
        assert "'spiece.model' cannot be used: its rules can make a text" in refused(str(folder))
    else:
        assert tv.load_model(str(folder)).n_parameters


def test_a_text_that_the_tokenizer_cannot_read(spoil: Callable[..., str]) -> None:
    """A word-level one without its unknown word; a pattern that has no end; and one that is of another model."""
    model = {"type": "WordLevel", "vocab": {"w1": 0, "w2": 60}, "unk_token": "<unk>"}
    words = tv.load_model(spoil("gpt2", "tokenizer.json", model=model, added_tokens=[]))
    with pytest.raises(InputError, match=r"tokenizer cannot read this text \(WordLevel error: Missing \[UNK\] token"):
        tv.decode(words, "house")
    with pytest.raises(InputError, match="turns this text into the token #60, but the model knows only 47 tokens"):
        tv.decode(words, "w1 w2")


def test_more_tensors_than_any_model_has(sound: dict[str, Path], tmp_path: Path) -> None:
    folder = hostile_folders.copied(sound["gpt2"], tmp_path / "mine")
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {f"x.{i}": torch.zeros(0) for i in range(2**16)}, folder / "model.safetensors", {"format": "pt"})
    assert "the files up to this one have 65," in refused(str(folder))
