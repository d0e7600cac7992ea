"""Loads one of Firefox's translators from three files of a folder, none of which can run code."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import torch

from transformer_viz import untrusted_files
from transformer_viz.errors import FileError, ModelError, OptionError
from transformer_viz.loaded_model import in_one_line
from transformer_viz.model import devices
from transformer_viz.model.architecture import Architecture, Block, Sublayer, architecture_of, with_parameters
from transformer_viz.model.config import ModelConfig
from transformer_viz.model_options import ModelOptions
from transformer_viz.readers.description import Say, check_memory, in_silence, model_errors
from transformer_viz.readers.firefox import binary, shortlist
from transformer_viz.readers.firefox.folder import FAMILY, LARGEST, LARGEST_VOCABULARY, LONGEST, TABLE, read_contents
from transformer_viz.readers.firefox.model import END_ID, FirefoxReader, positions
from transformer_viz.readers.firefox.tokenizer import FirefoxTokenizer

_WHY_NO_SELF_ATTENTION = (
    "The decoder has no self-attention: what was written before reaches each step through a recurrence, "
    "a memory that every token fades and adds to, so there are no weights between written tokens"
)
_MODULES = {"embedding": "embedding", "output": "output_bias"}
"""The names in our module of blocks outside of the layers, by their role."""


@dataclass(frozen=True)
class FirefoxModel:
    """See `loaded_model.LoadedModel`.

    Attributes:
        name: `firefox:pten`, or its folder's.
        network: reads and writes ids.
        tokenizer: makes them of text.
        device: where it is.
        shortlist: which tokens may be written of a source; None where its folder has none.
    """

    name: str
    network: FirefoxReader
    tokenizer: FirefoxTokenizer
    device: torch.device
    shortlist: shortlist.Shortlist | None

    task = None
    variant = FAMILY
    languages = ()
    default_max_length = LONGEST
    default_total_length = None
    metrics: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __repr__(self) -> str:
        """One line."""
        return in_one_line(self)

    @cached_property
    def architecture(self) -> Architecture:
        """The model's architecture."""
        return architecture_of_translator(self.network.config)

    @property
    def generation(self) -> dict[str, Any]:
        """The shortlist, where it is in force: how many tokens it always allows."""
        return {} if self.network.rules is None or self.shortlist is None else {"shortlist": self.shortlist.first}

    @property
    def options(self) -> ModelOptions:
        """Its shortlist, where it has one."""
        return ModelOptions(shortlist=None if self.shortlist is None else self.network.rules is not None)

    def with_options(self, options: ModelOptions) -> "FirefoxModel":
        """The same model with its shortlist in force, or not; None leaves it."""
        others = (options.generation, options.chat, options.source_language, options.target_language)
        if others != (None,) * len(others):
            raise OptionError(
                f"{self.name} has no generation config, no chat template and no choice of languages. Leave these options out."
            )
        return self if options.shortlist is None else self.with_shortlist(options.shortlist)

    def with_shortlist(self, is_on: bool) -> "FirefoxModel":
        """The same model with its shortlist in force, or not.

        Raises:
            ModelError: its folder has none.
        """
        if self.shortlist is None:
            raise ModelError(f"{self.name} has no shortlist: its folder has no lex.*.bin. Leave the option out.")
        # Shares all weights.
        network = copy.copy(self.network)
        network.rules = self.shortlist if is_on else None
        return replace(self, network=network)

    @cached_property
    def n_parameters(self) -> int:
        """Trained numbers."""
        return sum(parameter.numel() for parameter in self.network.parameters())


def load(folder: Path, name: str, device: torch.device, say: Say = in_silence) -> FirefoxModel:
    """Loads the model of a folder.

    Args:
        folder: where it is.
        name: the model's name.
        device: where it is to run.
        say: is called with the progress; an exception in it ends the loading.

    Raises:
        ModelError: no such model, one that is not served, damaged or too large, or sentencepiece is not installed.
        DeviceError: out of memory.
    """
    files = read_contents(folder, name)
    config = files.config
    check_memory(files.description, name, device)
    say("reading its weights", None)
    with devices.memory_errors(device):
        with model_errors(name, files.vocabulary.name):
            try:
                tokenizer = FirefoxTokenizer.of(untrusted_files.read_bytes(files.vocabulary, LARGEST_VOCABULARY))
            except ImportError as error:
                raise ModelError(
                    f"{name}: sentencepiece is not installed. Firefox's translators need it: pip install sentencepiece"
                ) from error
            end, wanted = tokenizer.processor.eos_id(), config.target_vocabulary_size
            if tokenizer.n_ids != wanted or end != END_ID:
                needed = f"these weights need {wanted:,} and {END_ID}: the files do not belong together"
                raise FileError(f"it has {tokenizer.n_ids:,} pieces and ends a text with id {end}, but {needed}")
        with torch.device("meta"):
            model = FirefoxReader(config)
        with model_errors(name, files.model.name), untrusted_files.open_file(files.model, LARGEST) as file:
            weights = {own: torch.from_numpy(binary.numbers(file, item)) for own, item in files.weights.items()}
        for own, tensor in model.state_dict().items():
            if own == TABLE:
                weights[own] = weights[own].view(-1, config.d_model).T.contiguous()
            elif own in weights:  # matrices lie there turned, as torch has them
                weights[own] = weights[own].view(tensor.shape)
        weights["positions"] = positions(config.max_positions, config.d_model)
        model.load_state_dict(weights, assign=True)
        model = model.to(device).eval().requires_grad_(False)
        lexicon = None
        if files.lexicon is not None:
            with model_errors(name, files.lexicon.name):
                lexicon = shortlist.read(files.lexicon, config.target_vocabulary_size, device)
        model.rules = lexicon
    return FirefoxModel(name, model, tokenizer, device, lexicon)


def architecture_of_translator(config: ModelConfig) -> Architecture:
    """The drawing: the paper's architecture, with a norm after each sublayer and a recurrence for masked self-attention."""
    encoder, decoder = architecture_of(config).stacks
    width = config.d_model
    n_parameters = 2 * width * width + width
    words = f"{_WHY_NO_SELF_ATTENTION}: {width:,} units{with_parameters(n_parameters)}."
    layers = []
    for number, (attention, *others) in enumerate(decoder.layers):
        assert attention.after is not None
        place = f"decoder.{number}.recurrence"
        block = Block("recurrence", "Recurrence (SSRU)", words, place, place, n_parameters, layer=number)
        norm = replace(attention.after, place=f"{place}.after", module=f"decoder.{number}.around_recurrence.norm")
        layers.append((Sublayer(block, after=norm), *others))

    def named_blocks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(replace(block, module=_MODULES.get(block.role, block.module)) for block in blocks)

    decoder = replace(decoder, begin=named_blocks(decoder.begin), layers=tuple(layers), end=named_blocks(decoder.end))
    return Architecture((replace(encoder, begin=named_blocks(encoder.begin)), decoder))
