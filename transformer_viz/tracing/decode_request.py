"""What `decode` is asked for: every keyword read, checked and completed before anything is run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from transformer_viz import edits as plain_edits
from transformer_viz.edits import Edit, Flip, Force
from transformer_viz.errors import InputError, OptionError, listed
from transformer_viz.keywords import with_keywords
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import mistakes
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import TapName
from transformer_viz.schema import whole_number
from transformer_viz.terms import KINDS, Kind
from transformer_viz.tracing.edit_tap import kind_sizes, looks_ahead
from transformer_viz.tracing.framing import LONGEST, Rows, Target, framed_sources, framed_targets
from transformer_viz.tracing.recording_options import RecordingKeywords, RecordingOptions, keep
from transformer_viz.tracing.strategies import Strategy, StrategyOptions, strategy_of
from transformer_viz.tracing.trace_builder import Sentence
from transformer_viz.tracing.trace_size import Plan, checked_limit
from transformer_viz.tracing.watching import OnToken, Watch
from transformer_viz.tracing.writing_keywords import MOST_CANDIDATES, WritingKeywords

RECORDED: tuple[TapName, ...] = ("weights", "scores")
TEACHER_FORCING = "teacher forcing"


class DecodeKeywords(WritingKeywords, StrategyOptions, RecordingKeywords, total=False):
    """The keywords of `decode` but for `target`, whose type depends on the text's."""

    pad_to: int | None
    pad_target_to: int | None
    edits: Iterable[Edit | str]
    mistake: str | None
    record: Sequence[str]
    max_trace_bytes: int | None
    on_token: OnToken | None


DEFAULTS: DecodeKeywords = {
    "strategy": "greedy",
    "candidates": 10,
    "edits": (),
    "record": ("weights",),
    "precision": "float32",
    "prefix": (),
    "ban": (),
}
"""Of the keywords of `decode`; None of the others."""

with_decode_keywords = with_keywords(DecodeKeywords, DEFAULTS)


@dataclass(frozen=True, kw_only=True)
class DecodeRequest:
    """One call of `decode`, checked and not yet run.

    Attributes:
        checkpoint: the model and its task.
        sentences: each text with the tokens that its Trace will have.
        sources: what the encoder reads.
        forced: the targets that are read (teacher forcing), or None where the model writes.
        strategy: how tokens are chosen.
        edits: of masks, heads and rows of weights.
        mistake: a deliberate mask mistake, or None.
        keep: what the Traces keep of the attention.
        with_scores: whether they keep the scores before the mask too.
        max_length: the most tokens to write, `<end>` included.
        n_candidates: how many of the most probable tokens each step keeps.
        max_trace_bytes: the most that all Traces may take together.
        watch: asks whoever watches whether to go on, or None.
        keeps_padding: whether Traces keep it, of sources and of targets.
    """

    checkpoint: LoadedModel
    sentences: Sequence[Sentence]
    sources: Rows
    forced: Rows | None
    strategy: Strategy
    edits: tuple[Edit, ...]
    mistake: Mistake | None
    keep: RecordingOptions
    with_scores: bool
    max_length: int
    n_candidates: int
    max_trace_bytes: int
    watch: Watch | None
    keeps_padding: tuple[bool, bool]

    def __post_init__(self) -> None:
        """Refuses keywords that are possible alone and not with each other."""
        chosen = self.strategy
        if chosen.beam is not None and (self.edits or self.mistake or self.with_scores):
            raise OptionError("edits, mistake and recorded scores need strategy 'greedy' or 'sample'; a beam search has none")
        if chosen.beam is not None and any(sentence.n_padded_before for sentence in self.sentences):
            raise OptionError("a beam search keeps no padding before a prompt; leave pad_to out")
        is_uneven = len({len(sentence.prompt) for sentence in self.sentences}) > 1
        if moved := [edit for edit in self.edits if is_uneven and isinstance(edit, Flip | Force)]:
            raise OptionError(
                f"edit {moved[0]} names positions, and shorter prompts are padded before their first token, which moves them; "
                "decode one after the other, or keep the padding in the Traces with pad_to"
            )
        if self.forced is not None and (chosen.name != "greedy" or chosen.prefix or chosen.ban):
            raise OptionError("a target leaves nothing to choose; leave strategy, prefix and ban out")

    @classmethod
    def of(
        cls,
        checkpoint: LoadedModel,
        text: str | list[str] | tuple[str, ...],
        target: Target | Sequence[Target] | None,
        **options: Unpack[DecodeKeywords],
    ) -> "DecodeRequest":
        """The request that the arguments of `decode` make; there is said what they mean and what is raised."""
        if unknown := sorted(options.keys() - DecodeKeywords.__annotations__.keys()):
            raise TypeError(f"decode() has no keyword {unknown[0]!r}")
        asked: DecodeKeywords = {**DEFAULTS, **options}
        texts, targets = _lists(text, target)
        sizes, pad_to, pad_target_to = checkpoint.model.sizes, asked.get("pad_to"), asked.get("pad_target_to")
        with_scores = "scores" in _recorded(asked["record"])
        n_candidates = whole_number("candidates", asked["candidates"], 1, MOST_CANDIDATES)
        sources = framed_sources(checkpoint, texts, pad_to)
        has_prompt = checkpoint.model.kind.has_prompt
        n_given = sources.width - 1 if has_prompt else 0
        max_length = most_written(checkpoint, asked.get("max_length"), n_given)
        strategy = strategy_of(checkpoint, asked["strategy"], max_length, **_only(StrategyOptions, asked))
        forced = None if targets is None else framed_targets(checkpoint, targets, len(texts), pad_target_to, n_given)
        if forced is None and pad_target_to is not None:
            raise OptionError("pad_target_to pads a given target; give target too")
        edits, mistake = plain_edits.read(asked["edits"]), asked.get("mistake")
        n_steps = n_given + (max_length if forced is None else forced.width)
        plain_edits.check(edits, kind_sizes(sizes), sources.width, n_steps)
        padded = None if pad_target_to is None else forced
        n_padded = [0] * len(texts) if padded is None else [padded.width - len(row) for row in padded.rows]
        return cls(
            checkpoint=checkpoint,
            sentences=list(map(Sentence, texts, *_read(sources, pad_to is not None, has_prompt), n_padded)),
            sources=sources,
            forced=forced,
            strategy=strategy,
            edits=edits,
            mistake=None if mistake is None else mistakes.named(mistake),
            keep=keep(sizes, **_only(RecordingKeywords, asked)),
            with_scores=with_scores,
            max_length=max_length,
            n_candidates=n_candidates,
            max_trace_bytes=checked_limit(asked.get("max_trace_bytes")),
            keeps_padding=(pad_to is not None, pad_target_to is not None),
            watch=_watch(checkpoint, len(texts), len(strategy.prefix), asked.get("on_token")),
        )

    @property
    def is_recomputed(self) -> bool:
        """Whether an edit or the mistake lets a row see a later token, so that every step computes all rows again."""
        return looks_ahead(self.edits, self.mistake)

    @property
    def closed(self) -> frozenset[Kind]:
        """Kinds whose padded keys are cropped from every Trace, so that no edit opens them.

        Not of a decoder that reads one row a time: behind a text's end it has no rows, and a window masks what is no padding.
        """
        if len(self.sentences) == 1:
            return frozenset()
        of_source, of_target = self.keeps_padding
        in_passes = self.is_recomputed or self.forced is not None
        of_decoder = not in_passes or (of_source if self.checkpoint.model.kind.has_prompt else of_target)
        kept: dict[Kind, bool] = {"encoder": of_source, "decoder": of_decoder, "cross": of_source}
        return frozenset(kind for kind, is_kept in kept.items() if not is_kept)

    @property
    def target_width(self) -> int:
        """The most that is written, the end included, or read of a target."""
        if self.watch is not None and self.watch.is_stopped:
            return self.watch.n_steps
        return self.max_length if self.forced is None else self.forced.width

    @property
    def strategy_name(self) -> str:
        """As a Trace records it."""
        return self.strategy.name if self.forced is None else TEACHER_FORCING

    def plan(self) -> Plan:
        """What decides the size of the Traces."""
        targets = [[]] * len(self.sentences) if self.forced is None else self.forced.rows
        written = [self.max_length] * len(targets) if self.forced is None else map(len, targets)
        n_steps = [n + each.n_padded_steps + each.n_given for n, each in zip(written, self.sentences, strict=True)]
        return Plan(
            sizes=self.checkpoint.model.sizes,
            keep=self.keep,
            n_sources=[len(sentence.source_ids) for sentence in self.sentences],
            n_steps=n_steps,
            n_candidates=self.n_candidates,
            with_scores=self.with_scores,
            by_head=frozenset(KINDS if self.mistake else [edit.place.kind for edit in self.edits]),
            beam=self.strategy.beam,
            n_at_once=max(each.n_given for each in self.sentences) + (0 if self.forced is None else self.forced.width),
            longest_token=self.checkpoint.tokenizer.longest_label,
            n_ends=len(self.checkpoint.model.end_ids),
        )


def _lists(text: str | list[str] | tuple[str, ...], target: Any) -> tuple[list[str], Sequence[Target] | None]:
    """One text is a list of one; None is no target at all."""
    if isinstance(text, str):
        return [text], None if target is None else [target if isinstance(target, str) else tuple(target)]
    if isinstance(target, str):
        raise InputError("There are several sources and one target text; give a list with one target for each source.")
    if not text:
        raise InputError("There is no text to decode; give at least one.")
    return list(text), target


def _recorded(names: Sequence[str]) -> Sequence[str]:
    if unknown := [name for name in names if name not in RECORDED]:
        raise OptionError(f"record={unknown[0]!r} is not possible; choose from {listed(RECORDED)}")
    return names


def _read(
    sources: Rows, is_padded: bool, has_prompt: bool
) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]], list[int]]:
    """Of each sentence what the encoder reads, what a decoder without one reads first, and how much of it is padding."""
    read = [sources.padded(i, on_left=has_prompt) for i in range(len(sources.rows))] if is_padded else sources.rows
    n_padded = [len(row) - len(own) for row, own in zip(read, sources.rows, strict=True)]
    nothing = [()] * len(read)
    return (nothing, read, n_padded) if has_prompt else (read, nothing, n_padded)


def most_written(checkpoint: LoadedModel, given: int | None, n_given: int) -> int:
    """`max_length` as it was given, or by default; `n_given` tokens are read before what is written, after the first.

    Raises:
        OptionError: it is not possible.
    """
    most = min(LONGEST, checkpoint.model.sizes.longest_target) - n_given
    total = checkpoint.default_total_length
    by_total = most if total is None else max(1, total - n_given - 1)
    if given is None:
        return min(most, by_total, checkpoint.default_max_length)
    return whole_number("max_length", given, 1, most)


def _watch(checkpoint: LoadedModel, n_texts: int, n_prefix: int, on_token: OnToken | None) -> Watch | None:
    return None if on_token is None else Watch(checkpoint, n_texts, n_prefix, on_token)


def _only(keywords: type, options: DecodeKeywords) -> Any:
    """Those of the options that are keywords of this kind."""
    return {name: value for name, value in options.items() if name in keywords.__annotations__}
