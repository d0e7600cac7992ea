"""Options of the commands that decode a text."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from transformer_viz.addresses import check_kind, range_words
from transformer_viz.commands._options import Settings, flag_of
from transformer_viz.commands._shared import Edits, Mistake, ModelChoice, read_text
from transformer_viz.errors import OptionError
from transformer_viz.model_options import ModelOptions
from transformer_viz.schema import Choice, Range, read_number
from transformer_viz.terms import KINDS, Kind
from transformer_viz.tracing.writing_keywords import OF_STRATEGY, WritingKeywords

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel
    from transformer_viz.trace.trace import Trace

_OF_MODELS = ("chat", "no_generation", "no_shortlist", "source_language", "target_language")
"""Options that only a model that is not ours has."""


def _read_kinds(text: str) -> list[Kind]:
    names = [check_kind(name.strip()) for name in text.split(",")]
    return [kind for kind in KINDS if kind in names]


def read_layers(text: str) -> list[int]:
    """Numbers from 1, as people count them."""
    return [read_number(int, Range(1, 1000), number.strip()) - 1 for number in text.split(",")]


@dataclass(frozen=True)
class RecordingOptions:
    """The options of what a trace keeps."""

    precision: Annotated[str | None, "how the trace stores weights (float32)", Choice(("float32", "float16"))] = None
    kinds: Annotated[list[Kind] | None, "kinds of attention that the trace keeps, as in decoder,cross (all)", _read_kinds] = (
        None
    )
    layers: Annotated[list[int] | None, "layers that the trace keeps, from 1, as in 1,3 (all)", read_layers] = None

    def keywords(self, model: "LoadedModel") -> dict[str, Any]:
        """The keywords of `decode` that were given.

        Raises:
            OptionError: a layer that there is not; the engine's own message counts from 0.
        """
        if self.layers:
            there = model.network.sizes.layers
            # A kind that the model does not have is refused by name.
            for kind, numbers in ((kind, there.get(kind)) for kind in self.kinds or there):
                if numbers is not None and (lacking := [number for number in self.layers if number not in numbers]):
                    raise OptionError(
                        f"--layers {max(lacking) + 1} is not possible; {kind} attention has layers {range_words(numbers)}. "
                        "--kinds chooses the kinds that have the layer."
                    )
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class DecodingOptions:
    """The options of how a text is decoded."""

    writing: Annotated[WritingKeywords, Settings(WritingKeywords)]
    prefix: Annotated[str, "begin the output with this text"] = ""
    ban: Annotated[list[str] | None, "never write this token; with --model also #ID; may be repeated"] = None
    chat: Annotated[bool, "with --model: put TEXT into the model's chat template"] = False
    no_generation: Annotated[bool, "with --model: ignore its generation config"] = False
    no_shortlist: Annotated[bool, "with a Firefox model: allow every token, not only the shortlist"] = False
    source_language: Annotated[str | None, "with a multilingual --model: the code of the language of TEXT"] = None
    target_language: Annotated[str | None, "with a multilingual --model: the code of the language to write"] = None
    edits: Edits = ""
    mistake: Mistake = None
    max_trace_bytes: Annotated[
        int | None, "refuse a run whose trace could be larger (256 MB, as in the app)", Range(1, 2**63 - 1)
    ] = None

    def read(self, text: str, model: ModelChoice, pair: str | None = None) -> str:
        """TEXT, or both texts of a pair as one, after all that can be refused of them and of the model without torch."""
        strategy = self.writing.get("strategy", "greedy")
        for other, names in OF_STRATEGY.items():
            if other != strategy and (given := [name for name in self.writing if name in names]):
                raise OptionError(
                    f"{flag_of(given[0])} works only with --strategy {other}, and this is {strategy}. "
                    "Leave it out, or choose that one."
                )
        if model.model is None and (given := [name for name in _OF_MODELS if getattr(self, name)]):
            raise OptionError(
                f"{flag_of(given[0])} works only with --model, and "
                f"{f'{model.module} is a module' if model.module else f'{model.checkpoint} is a checkpoint'}. "
                "Leave it out, or give --model."
            )
        text = read_text(text)
        if pair is not None:
            if model.model is None:
                raise OptionError("--pair needs --model: an encoder that reads two texts, such as BERT")
            text = f"{text} ||| {pair}"
        if (task := model.check([text])) is not None:
            from transformer_viz.task_tokenizer import TaskTokenizer

            if self.prefix:
                task.read_target(self.prefix)
            TaskTokenizer(task).ids_of("ban: token", self.ban or ())
        return text

    def load(self, model: ModelChoice) -> "LoadedModel":
        """The model, which reads and writes as these options say."""
        loaded = model.load()
        if not any(getattr(self, name) for name in _OF_MODELS):
            return loaded
        options = ModelOptions(
            chat=self.chat or None,
            generation=False if self.no_generation else None,
            source_language=self.source_language,
            target_language=self.target_language,
            shortlist=False if self.no_shortlist else None,
        )
        return loaded.with_options(options)

    def decode(self, model: "LoadedModel", text: str, recording: RecordingOptions | None = None) -> "Trace":
        """The run of the model."""
        from transformer_viz.trace.limits import MAX_TRACE_BYTES
        from transformer_viz.tracing.decode import decode

        keywords: dict[str, Any] = {**self.writing, **(recording.keywords(model) if recording else {})}
        if self.prefix:
            keywords["prefix"] = (model.task.read_target if model.task else model.tokenizer.encode_target)(self.prefix)
        # `#17` is the id 17 where labels do not tell ids.
        ids = re.compile(r"(?!)" if model.tokenizer.has_unique_labels else r"#\d{1,9}", re.ASCII)
        keywords["ban"] = [int(token[1:]) if ids.fullmatch(token) else token for token in self.ban or ()]
        most = self.max_trace_bytes or MAX_TRACE_BYTES
        return decode(model, text, edits=[self.edits], mistake=self.mistake, max_trace_bytes=most, **keywords)
