"""Loads a Hugging Face model from a folder: local safetensors files only, and no code but that of transformers."""

import re
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import torch

from transformer_viz import untrusted_files
from transformer_viz.errors import ModelError, OptionError, TransformerVizError, join_names
from transformer_viz.loaded_model import in_one_line
from transformer_viz.model import devices
from transformer_viz.model.architecture import Architecture
from transformer_viz.model_options import ModelOptions
from transformer_viz.readers.description import Say, check_memory, in_silence
from transformer_viz.readers.huggingface import bounds
from transformer_viz.readers.huggingface.folder import Contents, read_contents
from transformer_viz.readers.huggingface.generation import Generation
from transformer_viz.readers.huggingface.probe import family, probe
from transformer_viz.readers.huggingface.reader import HuggingFaceReader, check_decoding
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer, is_ordinary
from transformer_viz.text_display import shorten

_LONGEST = 512
_VERSIONS = r"5\.(2[3-9]|[3-9]\d|\d{3})"
_INSTALL = "Such models need: pip install 'transformers>=5.23,<6' sentencepiece"
_OFTEN_LACKING = ("sentencepiece", "tiktoken", "protobuf", "sacremoses")


@dataclass(frozen=True)
class HuggingFaceModel:
    """See `loaded_model.LoadedModel`.

    Attributes:
        name: its folder's, or its id in the cache of this machine.
        network: reads and writes ids.
        tokenizer: makes them of text.
        device: where it is.
        architecture: how it is built, as far as that can be told.
    """

    name: str
    network: HuggingFaceReader
    tokenizer: HuggingFaceTokenizer
    device: torch.device
    architecture: Architecture

    task = None
    metrics: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __repr__(self) -> str:
        """One line."""
        return in_one_line(self)

    @property
    def variant(self) -> str:
        """The family's name."""
        return family(self.network.model)

    @property
    def generation(self) -> dict[str, Any]:
        """The part of its generation config that is in force, and its languages; empty where it writes nothing."""
        if not self.network.kind.writes:
            return {}
        named = {"source_language": self.source_language, "target_language": self.target_language}
        return {name: code for name, code in named.items() if code} | self.network.generation.in_force

    @property
    def languages(self) -> tuple[str, ...]:
        """The codes of those that it translates between, for `with_languages`; none for most models."""
        return tuple(self.tokenizer.languages)

    @property
    def source_language(self) -> str | None:
        """The code of what it reads."""
        return self.tokenizer.source_language

    @property
    def target_language(self) -> str | None:
        """The code of what it writes, where its generation config or a person says so."""
        settings = self.network.generation.in_force
        first = settings.get("forced_bos_token_id", settings.get("decoder_start_token_id"))
        return self._code(first)

    def with_languages(self, source: str | None = None, target: str | None = None) -> "HuggingFaceModel":
        """The same model that reads and writes other languages, by their codes; None leaves one as it is.

        Raises:
            OptionError: a language that it does not know; the message names those that it does.
        """
        tokenizer, generation = self.tokenizer, self.network.generation
        if source is not None:
            tokenizer.language_id(source)
            tokenizer = replace(tokenizer, source_language=source)
        if target is not None:
            number = tokenizer.language_id(target)
            tokenizer = replace(tokenizer, target_language=target)
            is_first = tokenizer.frame_of_target()[:1] == [number]
            generation = generation.with_target("forced_bos_token_id" if is_first else "decoder_start_token_id", number)
        return replace(self, tokenizer=tokenizer, network=replace(self.network, generation=generation))

    def _code(self, number: int | None) -> str | None:
        return next((code for code, other in self.tokenizer.languages.items() if other == number), None)

    @property
    def options(self) -> ModelOptions:
        """Its options of reading and writing."""
        generation, asked = self.network.generation, self.network.generation.target
        has_rules = self.network.kind.writes and (generation.settings or generation.refused)
        return ModelOptions(
            generation=generation.is_on if has_rules else None,
            chat=self.tokenizer.is_chat if self.tokenizer.tokenizer.chat_template else None,
            source_language=self.source_language,
            target_language=self._code(asked[1]) if asked else None,
        )

    def with_options(self, options: ModelOptions) -> "HuggingFaceModel":
        """The same model with other options; None leaves one as it is."""
        if options.shortlist is not None:
            raise OptionError(f"{self.name} has no shortlist; only Firefox's translators have one. Leave the option out.")
        model = self
        for method, keywords in options.calls():
            model = getattr(model, method)(**keywords)
        return model

    @property
    def default_max_length(self) -> int:
        """The length that its generation config says, and at most as much as is drawn."""
        return min(self.network.generation.default_max_length, _LONGEST)

    @property
    def default_total_length(self) -> int | None:
        """The length that its generation config says with the prompt counted, or None."""
        return self.network.generation.default_total_length

    def with_generation(self, is_on: bool) -> "HuggingFaceModel":
        """The same model with its generation config in force, or not: start, ends and padding stay what they are."""
        return replace(self, network=replace(self.network, generation=replace(self.network.generation, is_on=is_on)))

    def with_chat(self, is_on: bool = True) -> "HuggingFaceModel":
        """The same model, which reads a text as a user's message in its chat template, or as it stands.

        Raises:
            ModelError: its tokenizer has no such template.
        """
        if not self.tokenizer.tokenizer.chat_template:
            raise ModelError(
                f"{self.name} has no chat template. Leave chat out, and write the text as the model should read it."
            )
        return replace(self, tokenizer=replace(self.tokenizer, is_chat=is_on))

    @cached_property
    def n_parameters(self) -> int:
        """Trained numbers in the model, each once where layers share them."""
        return sum(parameter.numel() for parameter in self.network.model.parameters())


def load(folder: Path, name: str, device: torch.device, say: Say = in_silence) -> HuggingFaceModel:
    """Loads the model of a folder. No server is asked, and no code of the folder runs.

    Args:
        folder: where it is.
        name: the model's name.
        device: where it is to run.
        say: is called with the progress; an exception in it ends the loading.

    Raises:
        ModelError: no model, or one that is not safe to open, too large, or not recorded completely.
        DeviceError: out of memory.
    """
    contents = read_contents(folder, name)
    # By the package's own description: importing transformers takes seconds.
    try:
        installed = version("transformers")
    except PackageNotFoundError:
        raise ModelError(f"{name}: transformers is not installed. {_INSTALL}") from None
    if not re.match(_VERSIONS, installed):
        raise ModelError(f"{name}: transformers {installed} is installed; 5.23 or later, but below 6, is needed. {_INSTALL}")
    check_memory(contents.description, name, device)
    say("looking at its tokenizer", None)
    bounds.check_tokenizer(folder, contents.weights, name)
    say("starting transformers", None)
    with devices.memory_errors(device), _loading_errors(folder, name):
        with quiet_transformers(), _counted(say):
            model, tokenizer = _open(folder, contents, name, say)
            model = model.to(device).eval().requires_grad_(False)
        say("looking whether all of its attention is seen", 1.0)
        return wrap_model(model, tokenizer, name)


def _open(folder: Path, contents: Contents, name: str, say: Say) -> tuple[Any, Any]:
    """The model and its tokenizer, as transformers makes them."""
    from transformers import CONFIG_MAPPING, AutoTokenizer

    only_here = {"local_files_only": True, "trust_remote_code": False}
    # As `AutoConfig` makes it of a file, of what was read of it already.
    family = contents.config["model_type"]
    if family == "mistral" and "layer_types" in contents.config:
        family = "ministral"
    if family not in CONFIG_MAPPING:
        raise ModelError(
            f"{name}: transformers {version('transformers')} has no family {family!r}. A later version may have it."
        )
    config = CONFIG_MAPPING[family].from_dict(dict(contents.config), name_or_path=str(folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, config=config, **only_here)
    own = tokenizer.vocab_files_names.values()
    names = sorted({"tokenizer.json", *own})
    # Where there is none of them transformers makes a tokenizer that knows no words. One of bytes needs none.
    if own and not any(map(untrusted_files.is_file, map(folder.joinpath, names))):
        raise ModelError(f"{name}: its tokenizer, {' or '.join(names)}, is missing. Copy the whole folder again.")
    for kind in classes_of(config):
        # float32 whatever the file says: half precision is slow and rounds on a CPU, and rows must add up.
        how: dict[str, Any] = {
            "use_safetensors": True,
            "dtype": torch.float32,
            "attn_implementation": "eager",
            "output_loading_info": True,
        }
        how |= {"ignore_mismatched_sizes": True, "key_mapping": _wrappers(contents.weights.shapes)}
        with bounds.limit_modules(contents.weights, name, say):
            model, report = kind.from_pretrained(folder, config=config, **only_here, **how)
        if report["mismatched_keys"]:
            key, of_file, of_model = next(iter(report["mismatched_keys"]))
            raise ModelError(
                f"{name}: config.json and the weights do not fit together: {key} has the shape {tuple(of_file)}, and "
                f"{tuple(of_model)} is needed. Save both anew with save_pretrained, or set the sizes in config.json."
            )
        # What is not in the file would be random.
        if not (missing := sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))):
            return model, tokenizer
    lacking = f"its files lack weights that a {type(model).__name__} needs: {join_names(missing[:3])}"
    raise ModelError(f"{name}: {lacking}. Copy or download the whole folder again.")


def _separator(model: Any, tokenizer: Any, reader: HuggingFaceReader) -> int | None:
    """The token after which a second text begins, where the model has token types and they can be told by it."""
    separator, n_types = getattr(tokenizer, "sep_token_id", None), getattr(model.config, "type_vocab_size", 0) or 0
    if reader.kind.writes or separator is None or n_types < 2:
        return None
    try:
        pair = tokenizer("a", "a", return_token_type_ids=True)
    except Exception as error:
        if not is_ordinary(error):
            raise
        return None
    ids = torch.tensor([pair["input_ids"]])
    told = replace(reader, separator=separator)._types(ids).get("token_type_ids")
    return separator if told is not None and told[0].tolist() == list(pair["token_type_ids"]) else None


def _wrappers(names: Iterable[str]) -> dict[str, str] | None:
    """Patterns of what `torch.compile` and parallel training put before the names of weights; None = nothing."""
    names = [*names]
    patterns = {r"_orig_mod\.": any("_orig_mod." in name for name in names)}
    patterns[r"^module\."] = all(name.removeprefix("_orig_mod.").startswith("module.") for name in names)
    return {pattern: "" for pattern, is_there in patterns.items() if is_there} or None


def wrap_model(model: Any, tokenizer: Any, name: str) -> HuggingFaceModel:
    """A model and its tokenizer that are there already, as a reader. The model's attention is ours from here on."""
    with quiet_transformers():
        # Positions of the model, at most as many as are drawn.
        limits = (getattr(model.config.get_text_config(), "max_position_embeddings", None), tokenizer.model_max_length)
        probed = probe(model, int(min(_LONGEST, *(n for n in (_LONGEST, *limits) if isinstance(n, int | float) and n >= 1))))
        reader = HuggingFaceReader(model, probed, Generation.of(model, tokenizer, probed.sizes))
        check_decoding(reader)
        reader = replace(reader, separator=_separator(model, tokenizer, reader))
    own = HuggingFaceTokenizer.of(tokenizer, probed.sizes.vocabulary, probed.sizes.source_vocabulary)
    return HuggingFaceModel(name, reader, own, model.device, probed.architecture)


def wrap_in_memory(model: Any, tokenizer: Any, name: str | None = None) -> HuggingFaceModel:
    """A model that somebody has in memory. It is put into eval mode, and its attention is ours from here on.

    Raises:
        ModelError: this version of transformers is not served, or not all of its attention is seen.
    """
    if not re.match(_VERSIONS, installed := version("transformers")):
        raise ModelError(f"transformers {installed} is installed; 5.23 or later, but below 6, is needed. {_INSTALL}")
    return wrap_model(model.eval(), tokenizer, name or type(model).__name__)


def classes_of(config: Any) -> tuple[Any, ...]:
    """The classes to try in this order; the first with all weights is taken, since an encoder may be saved without a head."""
    import transformers as hf

    choices = (
        (hf.AutoModelForSeq2SeqLM, hf.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, config.is_encoder_decoder),
        (hf.AutoModelForMaskedLM, hf.MODEL_FOR_MASKED_LM_MAPPING, not getattr(config, "is_decoder", False)),
        (hf.AutoModelForCausalLM, hf.MODEL_FOR_CAUSAL_LM_MAPPING, True),
    )
    for kind, mapping, is_it in choices:
        if is_it and type(config) in mapping:
            return (kind, hf.AutoModel) if kind is hf.AutoModelForMaskedLM else (kind,)
    raise ModelError(f"A model of the family {config.model_type!r} cannot be shown here: it does not read and write text.")


@contextmanager
def _loading_errors(folder: Path, name: str) -> Generator[None]:
    """Shortens what transformers says about files that it cannot use to one line that names no path."""
    try:
        yield
    except TransformerVizError:
        raise
    except BaseException as error:
        if devices.is_out_of_memory(error) or not is_ordinary(error):
            raise
        if isinstance(error, ImportError):
            lacking = next((package for package in _OFTEN_LACKING if package in str(error).lower()), error.name)
            if lacking is not None:
                raise ModelError(f"{name}: {lacking} is not installed. {_INSTALL}") from error
        words = " ".join(str(error).replace(str(folder), name).split())
        raise ModelError(f"{name} cannot be loaded: {type(error).__name__}: {shorten(words, 300)}") from error


@contextmanager
def quiet_transformers() -> Generator[None]:
    """Switches off the progress bars and warnings of transformers inside the `with` block; what matters is an error here."""
    from transformers import logging

    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()


@contextmanager
def _counted(say: Say) -> Generator[None]:
    """Reports how many weights are loaded, from the hook of transformers' progress bar."""
    from transformers import logging

    def counted(things: Any) -> Iterator[Any]:
        for number, thing in enumerate(things):
            say(f"{number:,} of {len(things):,} weights", number / len(things))
            yield thing

    def bar(make: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return make(counted(args[0]), *args[1:], **options) if args and isinstance(args[0], Sized) else make(*args, **options)

    before = logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)
