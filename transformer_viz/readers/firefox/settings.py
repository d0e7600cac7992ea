"""Reads the architecture of a Marian model from the settings in its file, and refuses architectures that cannot run here."""

import re

from transformer_viz.errors import ConfigError, FileError, ModelError, short_repr
from transformer_viz.model.config import ModelConfig

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
