"""Hugging Face folders that somebody has spoiled on purpose: refused by a sentence, or used like any other."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import firefox_files, hostile_folders
from transformer_viz.errors import InputError, ModelError
from transformer_viz.readers.huggingface.folder import read_contents

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
    for number, (family, damage, _) in enumerate(hostile_folders.DAMAGES[part::3]):
        folders.append(hostile_folders.copied(sound[family], tmp_path / f"{number}-{family}"))
        damage(folders[-1])
    found = outcomes(folders, sound["gpt2"], kernels)
    assert len(found) == len(folders)
    for outcome in found:
        assert not outcome["said"].startswith("FAILED"), outcome
        assert outcome["seconds"] < SECONDS and outcome["bytes"] < BYTES, outcome
    assert any(outcome["said"] == "usable" for outcome in found), "what is harmless is used"


@pytest.mark.parametrize(("family", "damage", "sentence"), [damage for damage in hostile_folders.DAMAGES if damage[2]])
def test_what_is_impossible_is_refused_with_its_sentence(
    sound: dict[str, Path], tmp_path: Path, family: str, damage: Callable[[Path], None], sentence: str
) -> None:
    """Layers are told before anything of transformers is asked: the list of models says it as well."""
    folder = hostile_folders.copied(sound[family], tmp_path / family)
    damage(folder)
    said = refused(str(folder))
    assert family in said and re.search(sentence, said), said
    if "layers" in sentence:
        with pytest.raises(ModelError, match=re.escape(said)):
            read_contents(folder, family)


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


def test_ids_that_no_logit_is_for(spoil: Callable[..., str]) -> None:
    """An end that is never written ends nothing, and padding may be any token."""
    model: Any = tv.load_model(spoil("bart", "generation_config.json", eos_token_id=[2, 999], pad_token_id=-1))
    assert (model.network.end_ids, model.network.pad_id) == ((2,), 2)
    assert len(tv.decode(model, ["w1 w2 w3", "w1"], max_length=2)) == 2


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
    data = firefox_files.pieces()
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
    """A word-level one without its unknown word, and one that is of another model."""
    model = {"type": "WordLevel", "vocab": {"w1": 0, "w2": 60}, "unk_token": "<unk>"}
    words = tv.load_model(spoil("gpt2", "tokenizer.json", model=model, added_tokens=[]))
    with pytest.raises(InputError, match=r"tokenizer cannot read this text \(WordLevel error: Missing \[UNK\] token"):
        tv.decode(words, "house")
    with pytest.raises(InputError, match="turns this text into the token #60, but the model knows only 47 tokens"):
        tv.decode(words, "w1 w2")
