"""Reads a configuration as somebody gives it, and builds its model without weights."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

from torch import nn

from transformer_viz import untrusted_files
from transformer_viz.config_masks.weightless import build
from transformer_viz.errors import ModelError, OptionError, TransformerVizError, short_repr
from transformer_viz.model import devices
from transformer_viz.readers.huggingface import bounds
from transformer_viz.readers.huggingface.folder import name_of
from transformer_viz.text_display import shorten

_LARGEST_CONFIG, _MOST_EXPERTS = 2**20, 1024
_INSTALL = "Such models need: pip install 'transformers>=5.23,<6' sentencepiece"
_EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}


def read_configuration(config: Any) -> tuple[str, Any, Path | None]:
    """The name of a configuration, what transformers makes of it, and its folder."""
    try:
        from transformers import CONFIG_MAPPING, PreTrainedConfig
    except ImportError as error:
        raise ModelError(f"transformers is not installed. {_INSTALL}") from error
    if isinstance(config, PreTrainedConfig):
        return str(config.model_type), deepcopy(config), None
    folder, name = None, "the configuration"
    if isinstance(config, str) and config.lstrip().startswith("{"):
        try:
            read = untrusted_files.parse_json(config)
        except TransformerVizError as error:
            raise OptionError(f"the configuration cannot be read: {error}. Give the whole content of a config.json.") from error
    elif isinstance(config, str | PathLike):
        folder = Path(config)
        folder = folder.parent if folder.name == "config.json" else folder
        name = name_of(folder) or str(folder)
        try:
            read = untrusted_files.read_json(folder / "config.json", _LARGEST_CONFIG)
        except (TransformerVizError, OSError) as error:
            words = "there is no config.json that can be read. Give the folder of a Hugging Face model."
            raise ModelError(f"{name}: {words}") from error
    else:
        read = config
    if not isinstance(read, Mapping):
        raise OptionError(
            f"a folder with a config.json, its content or a configuration of transformers is needed, not {type(read).__name__}"
        )
    family = read.get("model_type")
    if family is None:
        raise ModelError(
            f"{name}: it has no model_type, which names the family. It stands in a Hugging Face model's config.json."
        )
    if not isinstance(family, str) or family not in CONFIG_MAPPING:
        words = f"model_type is {shorten(str(family), 60)!r}, which this version of transformers does not know"
        raise ModelError(f"{name}: {words}. Give a family of docs/families.md, or install a later transformers.")
    _check(read, name)
    # Older files name no layers, where a family has come to have two kinds of them (as in loading).
    made = "ministral" if family == "mistral" and "layer_types" in read else family
    with model_errors(name):
        return name, CONFIG_MAPPING[made].from_dict(dict(bounds.without_implementations(dict(read)))), folder


def _check(read: Mapping[str, Any], name: str) -> None:
    """Refuses what would run other code, or make more modules than any model has."""
    bounds.check_config(read, None, name)
    for key, value in bounds.settings(read):
        if isinstance(value, int) and "expert" in key and value > _MOST_EXPERTS:
            raise ModelError(f"{name}: it sets {short_repr(key)} to {value:,}; at most {_MOST_EXPERTS:,} are possible.")


def weightless_model(config: Any, name: str) -> nn.Module:
    """The model that writes or fills in, with its authors' own attention, in eval mode on the device "meta"."""
    kind = _class_of(config, name)
    return build(lambda: kind.from_config(deepcopy(config), **_EAGER))


def _class_of(config: Any, name: str) -> Any:
    import transformers as hf

    choices = (
        (hf.AutoModelForSeq2SeqLM, hf.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, config.is_encoder_decoder),
        (hf.AutoModelForMaskedLM, hf.MODEL_FOR_MASKED_LM_MAPPING, not getattr(config, "is_decoder", False)),
        (hf.AutoModelForCausalLM, hf.MODEL_FOR_CAUSAL_LM_MAPPING, True),
        (hf.AutoModelForImageTextToText, hf.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, True),
        (hf.AutoModel, hf.MODEL_MAPPING, True),
    )
    for kind, mapping, is_it in choices:
        if is_it and type(config) in mapping:
            return kind
    raise ModelError(f"{name}: the family {config.model_type!r} has no model that reads text.")


@contextmanager
def model_errors(name: str) -> Generator[None]:
    """Whatever transformers raises, in one line."""
    try:
        yield
    except TransformerVizError as error:
        if isinstance(error, ModelError) and not str(error).startswith(name):
            raise ModelError(f"{name}: {error}") from error
        raise
    except Exception as error:
        if devices.is_out_of_memory(error):
            raise
        words = f"{type(error).__name__}: {shorten(' '.join(str(error).split()), 200)}"
        advice = "Set right what its settings ask for that is not possible, or give the config.json of a published model."
        raise ModelError(f"{name}: its masks cannot be read from the configuration alone ({words}). {advice}") from error
