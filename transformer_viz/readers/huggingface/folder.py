"""Checks a folder with a Hugging Face model before it is loaded: how large the model is, and whether loading is safe.

Only `config.json` and the names and shapes of the weights are read, and nothing of transformers or of a model runs.
"""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer_viz import untrusted_files
from transformer_viz.errors import FileError, ModelError, join_names, short_repr
from transformer_viz.readers.description import Description, model_errors
from transformer_viz.readers.huggingface import bounds
from transformer_viz.readers.huggingface.bounds import Weights

_LARGEST_CONFIG, _LARGEST_INDEX, _LARGEST_FILE, _LARGEST_WEIGHTS, _LARGEST_HEADER = 2**20, 2**23, 2**28, 2**40, 2**24
"""Bytes of `config.json`, of a list of files of weights, of any other file, of a file of weights, and of the names and shapes
in it."""
_MOST_SHARDS, _MOST_TENSORS = 1000, 2**16
_SHARD = re.compile(r"[A-Za-z0-9][\w.-]{0,199}\.safetensors", re.ASCII)
_FAMILY = re.compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]{0,79}")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_NEVER_READ = (*_PICKLED, ".h5", ".msgpack", ".onnx", ".gguf", ".ot", ".md", ".tflite", ".mlmodel")


@dataclass(frozen=True)
class Contents:
    """The description of the model in a folder.

    Attributes:
        config: what `config.json` holds, without what names another implementation of attention or of experts.
        weights: the names and shapes of its tensors.
        description: the same for people.
    """

    config: Mapping[str, Any]
    weights: Weights
    description: Description


def read_contents(folder: Path, name: str) -> Contents:
    """Lists the files of a folder that may be loaded.

    Args:
        folder: that may be anybody's.
        name: what messages call the model.

    Raises:
        ModelError: it is no model, it cannot be read, or loading it would not be safe.
    """
    _check_files(folder, name)
    with model_errors(name, "config.json"):
        config = untrusted_files.read_json(folder / "config.json", _LARGEST_CONFIG)
    family = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(family, str) or not _FAMILY.fullmatch(family):
        raise ModelError(f"{name}: config.json has no valid model_type. Give the folder of a Hugging Face model.")
    _check_config(config, name)
    paths = _files_of_weights(folder, name, config)
    shapes: dict[str, tuple[int, ...]] = {}
    n_parameters = 0
    for path in paths:
        with model_errors(name, path.name), untrusted_files.open_tensors(path, _LARGEST_WEIGHTS, _LARGEST_HEADER) as file:
            slices = {tensor: file.get_slice(tensor) for tensor in file.keys()}  # noqa: SIM118
            kinds = {tensor: str(part.get_dtype()) for tensor, part in slices.items()}
            if low := sorted({kind for kind in kinds.values() if kind.startswith(("F4", "F6", "F8"))}):
                raise FileError(f"it holds quantized weights, of type {low[0]}; take the model that it was made from")
            shapes |= {tensor: tuple(part.get_shape()) for tensor, part in slices.items()}
            n_parameters += sum(math.prod(shapes[tensor]) for tensor, kind in kinds.items() if "F" in kind)
            if len(shapes) > _MOST_TENSORS:
                raise FileError(f"the files up to this one have {len(shapes):,} tensors; at most {_MOST_TENSORS:,} are read")
    weights = Weights(shapes, n_parameters)
    bounds.check_config(config, weights, name)
    return Contents(
        bounds.without_implementations(config),
        weights,
        Description(family, n_parameters, sum(map(untrusted_files.file_size, paths))),
    )


def name_of(folder: Path) -> str:
    """Names the model in a folder: the folder's name, or in a Hugging Face cache the model's id there."""
    real = Path(os.path.realpath(folder))
    return real.parent.parent.name.removeprefix("models--").replace("--", "/") if _is_cached(real) else real.name


def _is_cached(folder: Path) -> bool:
    """Tells whether it is `models--ORGANISATION--NAME/snapshots/REVISION`, which holds links into the cache."""
    return folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--")


def _check_files(folder: Path, name: str) -> None:
    """Refuses files that transformers could read but that are no regular files of the folder, such as pipes and links."""
    if os.path.lexists(folder / "adapter_config.json"):
        raise ModelError(
            f"{name}: it is an adapter (adapter_config.json), which works only with the model that it was made for. "
            "Merge it into that model first, for example with peft: merge_and_unload() and save_pretrained()."
        )
    real = Path(os.path.realpath(folder))
    root = real.parents[2] if _is_cached(real) else real
    for path in (*untrusted_files.list_folder(folder), *untrusted_files.list_folder(folder / "additional_chat_templates")):
        if untrusted_files.is_folder(path) or path.suffix in _NEVER_READ:
            continue
        if not Path(os.path.realpath(path)).is_relative_to(root):
            raise ModelError(
                f"{name}: {short_repr(path.name)} is a link that leads out of the folder. Put a copy in its place."
            )
        largest = _LARGEST_WEIGHTS if path.suffix == ".safetensors" else _LARGEST_FILE
        with model_errors(name, path.name), untrusted_files.open_file(path, largest):
            pass


def _check_config(config: Mapping[str, Any], name: str) -> None:
    """Refuses settings that would run code of the folder, open another file, or need another package."""
    # Where transformers is not installed, that is said at loading.
    if "auto_map" in config and find_spec("transformers") is not None:
        from transformers import CONFIG_MAPPING

        if (family := config["model_type"]) not in CONFIG_MAPPING:
            raise ModelError(
                f"{name}: it needs code that comes with it (auto_map in config.json), which is never run here. "
                f"Take a model of a family that transformers has; {family!r} is none."
            )
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        if "quantization_config" in part or "compression_config" in part:
            how = part.get("quantization_config") or part.get("compression_config")
            method = how.get("quant_method", "no name") if isinstance(how, dict) else how
            raise ModelError(
                f"{name}: its weights are quantized ({short_repr(method)}), which cannot be read here. "
                "Take the model that it was made from, or save it dequantized."
            )
    if "transformers_weights" in config:
        raise ModelError(f"{name}: config.json names another file of weights (transformers_weights). Remove that setting.")


def _files_of_weights(folder: Path, name: str, config: Mapping[str, Any]) -> list[Path]:
    """The files of weights: one, or the shards that an index names."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if os.path.lexists(single):
        return [single]
    if os.path.lexists(index):
        with model_errors(name, index.name):
            listing = untrusted_files.read_json(index, _LARGEST_INDEX)
        places = listing.get("weight_map") if isinstance(listing, dict) else None
        shards = sorted(set(map(str, places.values()))) if isinstance(places, dict) else []
        if not shards or len(shards) > _MOST_SHARDS or not all(map(_SHARD.fullmatch, shards)):
            raise ModelError(f"{name}: {index.name} does not name the files of its weights. Copy the whole folder again.")
        return [folder / shard for shard in shards]
    if not (pickled := [path.name for path in untrusted_files.list_folder(folder) if path.suffix in _PICKLED]):
        raise ModelError(f"{name}: there is no model.safetensors. Copy or download the whole folder again.")
    classes = config.get("architectures")
    first = str(classes[0]) if isinstance(classes, list) and classes else ""
    kind = first if _CLASS.fullmatch(first) else "AutoModel"
    raise ModelError(
        f"{name}: its weights are only pickled files ({join_names(pickled[:3])}), which can run code when opened. "
        f'If you trust them, convert them in the folder: python -c "from transformers import {kind} as M; '
        "M.from_pretrained('.').save_pretrained('.')\""
    )
