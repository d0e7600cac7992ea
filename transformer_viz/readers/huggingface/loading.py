"""A folder with a Hugging Face model, opened: files of this machine, safetensors, and no code but that of transformers."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from transformer_viz.model import devices
from transformer_viz.readers.huggingface.probe import family, probe
from transformer_viz.readers.huggingface.reader import HuggingFaceReader
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer

_LONGEST = 512
_DEFAULT_LENGTH = 64


@dataclass(frozen=True)
class HuggingFaceModel:
    """See `loaded_model.LoadedModel`.

    Attributes:
        name: its folder's, or its id in the cache of this machine.
        model: reads and writes ids.
        tokenizer: makes them of text.
        device: where it is.
        default_max_length: by its generation config.
    """

    name: str
    model: HuggingFaceReader
    tokenizer: HuggingFaceTokenizer
    device: torch.device
    default_max_length: int

    task = None

    @property
    def variant(self) -> str:
        """The family's name."""
        return family(self.model.model)

    @cached_property
    def device_title(self) -> str:
        """The device's name for people."""
        return devices.title(self.device)

    @cached_property
    def n_parameters(self) -> int:
        """Trained numbers in the model, each once where layers share them."""
        return sum(parameter.numel() for parameter in self.model.model.parameters())


def load(folder: Path, name: str, device: torch.device) -> HuggingFaceModel:
    """Opens a folder.

    Raises:
        ModelError: no model, one that is not safe to open, or one whose attention is not all seen.
        DeviceError: out of memory.
    """
    from transformers import AutoConfig, AutoTokenizer

    only_here = {"local_files_only": True, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(folder, **only_here)
    tokenizer = AutoTokenizer.from_pretrained(folder, **only_here)
    with devices.memory_errors(device):
        # float32 whatever the file says: half precision is slow and rounds on a CPU, and rows must add up.
        model = _class_of(config).from_pretrained(folder, **only_here, use_safetensors=True, dtype=torch.float32)
        model = model.to(device).eval().requires_grad_(False)
    return wrapped(model, tokenizer, name)


def wrapped(model: Any, tokenizer: Any, name: str) -> HuggingFaceModel:
    """A model and its tokenizer that are there already, as a reader. The model's attention is ours from here on."""
    longest = _longest(model, tokenizer)
    found = probe(model, longest)
    generation, config = getattr(model, "generation_config", None), model.config
    ends = _first(getattr(generation, "eos_token_id", None), getattr(config, "eos_token_id", None), tokenizer.eos_token_id)
    end_ids = tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)
    pad = _first(getattr(generation, "pad_token_id", None), getattr(config, "pad_token_id", None), tokenizer.pad_token_id)
    start = None
    if config.is_encoder_decoder:
        start = _first(
            getattr(generation, "decoder_start_token_id", None),
            getattr(config, "decoder_start_token_id", None),
            getattr(generation, "bos_token_id", None),
        )
    reader = HuggingFaceReader(
        model=model,
        found=found,
        start_id=start,
        end_ids=end_ids,
        pad_id=pad if isinstance(pad, int) else end_ids[0] if end_ids else 0,
    )
    written = getattr(generation, "max_new_tokens", None) or getattr(generation, "max_length", None) or _DEFAULT_LENGTH
    return HuggingFaceModel(name, reader, HuggingFaceTokenizer(tokenizer), model.device, min(int(written), _LONGEST))


def _class_of(config: Any) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

    if config.is_encoder_decoder:
        return AutoModelForSeq2SeqLM
    named = " ".join(config.architectures or ())
    return AutoModelForMaskedLM if "MaskedLM" in named or "PreTraining" in named else AutoModelForCausalLM


def _longest(model: Any, tokenizer: Any) -> int:
    """Positions of the model, at most as many as are drawn."""
    config = model.config.get_text_config()
    positions = getattr(config, "max_position_embeddings", None) or _LONGEST
    return max(1, min(_LONGEST, int(positions), int(min(tokenizer.model_max_length, _LONGEST))))


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
