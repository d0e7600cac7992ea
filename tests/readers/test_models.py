"""Where models that are not ours come from: found by name, described and refused before anything of them runs."""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families, saved_models
from transformer_viz import app_folders, readers
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import ModelError
from transformer_viz.model import devices
from transformer_viz.readers.firefox import folder as firefox
from transformer_viz.readers.huggingface.loading import HuggingFaceModel

pytestmark = needs("transformers")


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One folder a kind of model, made once; tests change copies."""
    home = tmp_path_factory.mktemp("saved")
    return {family: saved_models.save(home / family, family) for family in saved_models.KINDS}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models, and nothing else where names are looked up."""
    from huggingface_hub import constants

    home = tmp_path / "models"
    home.mkdir()
    monkeypatch.setattr(app_folders, "ROOT", tmp_path / "root")
    monkeypatch.delenv("TRANSFORMER_VIZ_CHECKPOINTS", raising=False)
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", str(home))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(firefox, "packaged", dict)
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def mine(home: Path, saved: dict[str, Path]) -> Path:
    """A GPT-2 in the folder of models that a test may spoil."""
    return Path(shutil.copytree(saved["gpt2"], home / "mine"))


def cached(cache: Path, name: str, of: Path, revision: str = "0123abc", ref: str = "main") -> Path:
    """The folder's files as the Hugging Face cache keeps them: blobs, and links to them."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / revision
    for folder in (snapshot, repository / "blobs", repository / "refs"):
        folder.mkdir(parents=True, exist_ok=True)
    for file in of.iterdir():
        blob = repository / "blobs" / f"{revision}-{file.name}"
        shutil.copy(file, blob)
        (snapshot / file.name).symlink_to(Path("..", "..", "blobs", blob.name))
    (repository / "refs" / ref).write_text(revision)
    return snapshot


def change(folder: Path, file: str = "config.json", **values: Any) -> None:
    data = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(data | values))


@pytest.mark.parametrize("family", saved_models.KINDS)
def test_a_folder_is_described_and_loaded_as_it_was_saved(home: Path, saved: dict[str, Path], family: str) -> None:
    """Against the tensors that were saved, in float32, on the CPU, with what transformers itself counts."""
    shutil.copytree(saved[family], home / family)
    original = families.untapped(family)
    loaded = tv.load_model(family, device="cpu")
    assert isinstance(loaded, HuggingFaceModel)
    assert (loaded.name, loaded.variant) == (family, family)
    assert repr(loaded) == f"<HuggingFaceModel '{family}': {family}, on cpu>"
    given = original.state_dict()
    assert given.keys() == loaded.network.model.state_dict().keys()
    saved_ones = {name: found for name, found in loaded.network.model.state_dict().items() if "embed_positions" not in name}
    assert all(torch.equal(given[name], found) for name, found in saved_ones.items())  # sinusoids are in no file
    [entry] = readers.entries()
    assert entry.description is not None
    assert entry.description.family == family
    assert entry.description.memory == 4 * entry.description.n_parameters
    assert entry.description.n_bytes == (home / family / "model.safetensors").stat().st_size
    numbers = load_file(home / family / "model.safetensors").values()
    assert entry.description.n_parameters == sum(tensor.numel() for tensor in numbers)


def test_half_precision_and_shards_are_counted_and_loaded_as_single_precision(home: Path) -> None:
    with saved_models.without_bars():
        families.untapped("gpt2").half().save_pretrained(home / "mine", max_shard_size="8KB")
    families.tokenizer().save_pretrained(home / "mine")
    assert len(list((home / "mine").glob("*.safetensors"))) > 2
    loaded = tv.load_model("mine")
    assert isinstance(loaded, HuggingFaceModel)
    assert {tensor.dtype for tensor in loaded.network.model.state_dict().values()} == {torch.float32}
    [entry] = readers.entries()
    assert entry.description is not None
    assert entry.description.n_parameters == loaded.n_parameters
    assert entry.description.n_bytes < entry.description.memory * 0.6


def test_a_model_has_the_name_of_its_folder_or_of_the_cache_and_never_a_path(
    home: Path, saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = cached(tmp_path / "cache", "Some-One/small", saved["gpt2"])
    shutil.copytree(saved["gpt2"], tmp_path / "elsewhere")
    for given, name in (
        ("./elsewhere", "elsewhere"),
        (str(tmp_path / "elsewhere"), "elsewhere"),
        ("Some-One/small", "Some-One/small"),
        (str(snapshot), "Some-One/small"),
    ):
        trace = tv.decode(tv.load_model(given), "w1 w2", max_length=1)
        assert trace.made_by["checkpoint"] == name
        assert str(tmp_path) not in json.dumps(trace.made_by)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert tv.load_model("./").name == "elsewhere"


def test_names_are_looked_up_in_order(
    home: Path, saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several folders, a model itself among them, then the cache; a checkpoint's name is the checkpoint."""
    second, alone = tmp_path / "second", tmp_path / "alone"
    for place, family in ((home / "one", "gpt2"), (second / "one", "bert"), (second / "two", "bert"), (alone, "marian")):
        shutil.copytree(saved[family], place)
    (home / "no-model").mkdir()
    shutil.copytree(Path(tv.__file__).parents[1] / "checkpoints" / "reverse-small", tmp_path / "root" / "checkpoints" / "ours")
    shutil.copytree(saved["gpt2"], home / "ours")
    cached(tmp_path / "cache", "a/b", saved["bert"])
    cached(tmp_path / "cache", "one", saved["marian"])
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", os.pathsep.join(map(str, (home, second, alone))))
    found = {entry.name: entry.description.family for entry in readers.entries() if entry.description}
    assert found == {"one": "gpt2", "two": "bert", "alone": "marian", "a/b": "bert"}
    assert isinstance(tv.load_model("ours"), Checkpoint)
    assert isinstance(tv.load_model(str(tmp_path / "root" / "checkpoints" / "ours")), Checkpoint)
    assert readers.load_named("one").variant == "gpt2"


def test_others_see_what_was_named_and_nothing_else_of_this_machine(
    home: Path, mine: Path, saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(tmp_path / "cache", "secretcorp/merger-2027", saved["bert"])
    monkeypatch.setattr(firefox, "packaged", lambda: {"firefox:pten": tmp_path / "packaged"})
    monkeypatch.setenv(app_folders.SHARED_VARIABLE, "1")
    assert [entry.name for entry in readers.entries()] == ["mine"]
    for name in ("secretcorp/merger-2027", "nope"):
        with pytest.raises(ModelError, match=r"Known are mine\."):
            readers.load_named(name)
    assert readers.load_named("mine").variant == "gpt2"
    monkeypatch.setenv(app_folders.SHARED_MODELS_VARIABLE, "cache")
    assert [entry.name for entry in readers.entries()] == ["mine", "firefox:pten", "secretcorp/merger-2027"]
    assert readers.load_named("secretcorp/merger-2027").variant == "bert"


def test_of_a_cached_model_the_revision_of_main_is_meant(home: Path, saved: dict[str, Path], tmp_path: Path) -> None:
    cached(tmp_path / "cache", "a/b", saved["bert"], "aaaa")
    cached(tmp_path / "cache", "a/b", saved["gpt2"], "bbbb", ref="another")
    [entry] = readers.entries()
    assert entry.description is not None
    assert entry.description.family == "bert"


@pytest.mark.parametrize("name", ["nope", "../mine", "mine/", "./mine", "a/b/c", "mine\0", ""])
def test_a_name_from_outside_never_becomes_a_path(mine: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)
    with pytest.raises(ModelError, match="Known are mine"):
        readers.load_named(name)


def test_a_missing_folder_or_cache_is_no_error(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", os.pathsep.join([str(tmp_path / "no"), "", str(home)]))
    assert readers.entries() == []
    with pytest.raises(ModelError, match=r"no model '\./no', neither as a folder"):
        tv.load_model("./no")


def planted_pickle(folder: Path) -> None:
    """Opening it would make a file."""
    import pickle

    class Planted:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return os.mkdir, (str(folder.parent / "planted"),)

    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Planted()))


def fifo(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


def link_out(folder: Path, name: str) -> None:
    outside = folder.parent / f"outside-{name}"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)


def another_shard(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))


SPOILED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pickle": (planted_pickle, "only pickled files (pytorch_model.bin)"),
    "code": (
        lambda f: change(f, model_type="mine", auto_map={"AutoModel": "a.B"}),
        "needs code that comes with it (auto_map in config.json), which is never run",
    ),
    "adapter": (lambda f: (f / "adapter_config.json").write_text("{}"), "is an adapter (adapter_config.json)"),
    "quantized": (lambda f: change(f, quantization_config={"quant_method": "gptq"}), "quantized ('gptq')"),
    "quantized inside": (lambda f: change(f, text_config={"quantization_config": {"quant_method": "awq"}}), "('awq')"),
    "other weights": (lambda f: change(f, transformers_weights="a.safetensors"), "another file of weights"),
    "pipe": (lambda f: fifo(f, "config.json"), "'config.json' cannot be read: it is a pipe, not a file"),
    "pipe of a tokenizer": (lambda f: fifo(f, "tokenizer.json"), "'tokenizer.json' cannot be read: it is a pipe"),
    "link": (lambda f: link_out(f, "config.json"), "'config.json' is a link that leads out"),
    "link of weights": (lambda f: link_out(f, "model.safetensors"), "'model.safetensors' is a link that leads out"),
    "link to nothing": (lambda f: (f / "vocab.json").symlink_to("nothing"), "'vocab.json' is missing"),
    "shard elsewhere": (lambda f: another_shard(f, "../a.safetensors"), "does not name the files of its weights"),
    "shard missing": (lambda f: another_shard(f, "a.safetensors"), "'a.safetensors' is missing"),
    "cut off": (
        lambda f: os.truncate(f / "model.safetensors", (f / "model.safetensors").stat().st_size - 8),
        "'model.safetensors' cannot be read: it is no whole safetensors file",
    ),
    "too large": (lambda f: os.truncate(f / "tokenizer.json", 2**28 + 1), "it has 268,435,457 bytes"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "there is no model.safetensors"),
    "no JSON": (lambda f: (f / "config.json").write_text("{"), "'config.json' cannot be read: it is not JSON"),
    "no family": (lambda f: (f / "config.json").write_text("{}"), "has no valid model_type"),
    "odd family": (lambda f: change(f, model_type="../x\n"), "has no valid model_type"),
}
UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    # transformers makes one that knows no words.
    "no tokenizer": (
        lambda f: [path.unlink() for path in f.glob("tokenizer*")],
        "its tokenizer, merges.txt or tokenizer.json or vocab.json, is missing",
    ),
    "other sizes": (
        lambda f: change(f, vocab_size=11),
        "mine: config.json and the weights do not fit together: transformer.wte.weight",
    ),
    **{
        content: (lambda f, content=content: (f / "tokenizer.json").write_text(content), sentence)
        for content, sentence in (
            ('{"version": "1.0", "model": {"type": "None"}}', "mine cannot be loaded: "),
            ("{", "'tokenizer.json' cannot be used: it is not JSON"),
            ("[]", "'tokenizer.json' cannot be used: it should be a JSON object"),
            ('{"normalizer": {"type": "Replace"}}', "'tokenizer.json' does not describe a tokenizer"),
        )
    },
}
"""What is seen only when a model is loaded."""


@pytest.mark.parametrize("what", [*SPOILED, *UNUSABLE])
def test_what_is_not_safe_or_usable_is_refused_in_a_line_without_a_path(mine: Path, what: str) -> None:
    spoil, sentence = (SPOILED | UNUSABLE)[what]
    spoil(mine)
    with pytest.raises(ModelError) as caught:
        tv.load_model("mine")
    said = str(caught.value)
    assert sentence in said and said.startswith("mine")
    assert str(mine.parent) not in said and "\n" not in said
    assert not (mine.parent / "planted").exists()
    [entry] = readers.entries()
    assert entry.error == (said if what in SPOILED else None)


def test_the_sentence_about_pickles_says_how_to_convert_them(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it says makes a folder that loads."""
    weights = families.untapped("gpt2").state_dict()
    (mine / "model.safetensors").unlink()
    torch.save(weights, mine / "pytorch_model.bin")
    [entry] = readers.entries()
    program = str(entry.error).split('python -c "')[1].removesuffix('"')
    monkeypatch.chdir(mine)
    with saved_models.without_bars():
        exec(program, {})
    assert tv.load_model("mine").n_parameters == families.untapped("gpt2").num_parameters()


def test_links_within_the_cache_are_followed_and_no_others(home: Path, saved: dict[str, Path], tmp_path: Path) -> None:
    snapshot = cached(tmp_path / "cache", "a/b", saved["gpt2"])
    assert tv.load_model("a/b").variant == "gpt2"
    link_out(snapshot.parent, snapshot.name)  # the revision itself stands elsewhere
    with pytest.raises(ModelError, match="leads out"):
        tv.load_model("a/b")


def test_code_of_a_known_family_is_left_alone(mine: Path) -> None:
    """Many models of the hub still carry the code with which they came before transformers had it."""
    (mine / "a.py").write_text("raise SystemExit('it ran')")
    change(mine, auto_map={"AutoConfig": "a.B", "AutoModelForCausalLM": "a.C"})
    change(mine, "tokenizer_config.json", auto_map={"AutoTokenizer": ["a.D", "a.D"]})
    assert tv.load_model("mine").variant == "gpt2"


def test_what_is_too_large_is_refused_with_the_figures(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_parameters = families.untapped("gpt2").num_parameters()
    monkeypatch.setattr(devices, "memory_of_machine", lambda: 4 * n_parameters)
    with pytest.raises(ModelError, match=rf"mine needs .* kB for its {n_parameters:,} parameters .* cpu has .* kB free"):
        tv.load_model("mine", device="cpu")
    monkeypatch.setattr(devices, "memory_of_machine", lambda: 6 * n_parameters)
    assert tv.load_model("mine", device="cpu").n_parameters == n_parameters


def test_weights_that_the_file_does_not_have_are_not_made_up(home: Path) -> None:
    """An encoder without a head is read without one; a decoder with a missing layer is refused."""
    saved_models.save(home / "base", "bert", "base_model")
    trace = tv.decode(tv.load_model("base"), "w1 [MASK] w2")
    assert (trace.kinds, trace.fills) == (("encoder",), ())
    saved_models.save(home / "lacking")
    weights = load_file(home / "lacking" / "model.safetensors")
    weights = {name: tensor for name, tensor in weights.items() if ".1.attn" not in name}
    save_file(weights, home / "lacking" / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"lack weights that a GPT2LMHeadModel needs: transformer\.h\.1\.attn"):
        tv.load_model("lacking")


@needs("sentencepiece")
def test_marians_own_tokenizer_reads_with_sentencepiece(home: Path, saved: dict[str, Path]) -> None:
    """Two vocabularies in one, as its authors save them; pieces are those that the library itself finds."""
    sentencepiece = import_module("sentencepiece")

    mine = Path(shutil.copytree(saved["marian"], home / "mine", ignore=shutil.ignore_patterns("tokenizer*")))
    model = io.BytesIO()
    texts = iter(["the cat sat on the mat", "a dog ran to the house"] * 50)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=texts, model_writer=model, vocab_size=20, minloglevel=2)
    read = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = ["</s>", "<unk>", *map(read.id_to_piece, range(3, read.get_piece_size())), "<pad>"]
    for name in ("source.spm", "target.spm"):
        (mine / name).write_bytes(model.getvalue())
    (mine / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (mine / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    trace = tv.decode(tv.load_model("mine"), "the cat sat", max_length=2)
    assert trace.source_tokens == (*(piece.replace("▁", " ") for piece in read.encode("the cat sat", out_type=str)), "</s>")


@pytest.mark.parametrize(
    ("installed", "sentence"),
    [
        (None, "transformers is not installed"),
        ("4.57.1", "transformers 4.57.1 is"),
        # In transformers' own words, from its tokenizer.
        ("5.23.0", "sentencepiece is not installed"),
    ],
)
def test_what_is_not_installed_is_said_by_name(
    mine: Path, installed: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    from transformer_viz.readers.huggingface import loading

    def version(name: str) -> str:
        if installed is None:
            raise loading.PackageNotFoundError(name)
        return installed

    def lacking(*given: Any, **options: Any) -> None:
        raise ImportError("\nMarianTokenizer requires the SentencePiece library but it was not found in your environment.")

    monkeypatch.setattr(loading, "version", version)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lacking)
    with pytest.raises(ModelError, match=sentence) as caught:
        tv.load_model("mine")
    assert "pip install 'transformers>=5.23,<6' sentencepiece" in str(caught.value)


QUIET = """
import json, os, sys
asked = []
sys.addaudithook(lambda event, args: asked.append(event) if event.startswith("socket.") and event != "socket.__new__" else None)
import transformer_viz as tv
from transformer_viz import readers
found = [entry.name for entry in readers.entries()]
listed = [name for name in ("transformers", "tokenizers", "streamlit") if name in sys.modules]
models = [tv.load_model(name) for name in found]
tv.decode(models[0], "w1 w2", max_length=2)
import socket
here = len(asked)
try: socket.getaddrinfo("localhost", 1)
except OSError: pass
print(json.dumps([found, listed, asked[:here], len(asked) > here]))
"""


@pytest.mark.slow
def test_no_request_leaves_and_a_list_loads_no_library(home: Path, saved: dict[str, Path]) -> None:
    """In a process of its own, where every use of a socket is heard, and a proxy that would be asked is named."""
    for family, place in saved.items():
        shutil.copytree(place, home / family)
        change(home / family, attn_implementation="kernels-community/flash-attn", _name_or_path="someone/else")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        environment = {**os.environ, "HF_HUB_OFFLINE": "0", "HTTPS_PROXY": address, "HTTP_PROXY": address}
        environment["PYTHONPATH"] = str(Path(tv.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", QUIET], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
    assert done.returncode == 0, done.stderr
    found, listed, asked, was_heard = json.loads(done.stdout)
    assert (sorted(found), listed, asked) == (sorted(saved), [], [])
    assert was_heard
    assert done.stderr == ""
