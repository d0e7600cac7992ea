"""The keywords of `decode`, read, checked and completed before anything is run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from transformer_viz import edits as plain_edits
from transformer_viz.decoding.beam import Beam
from transformer_viz.decoding.sampling import Sampling
from transformer_viz.decoding.token_batch import KeptPadding, TokenBatch, n_rows_of
from transformer_viz.edits import Edit, Flip, Force
from transformer_viz.errors import InputError, OptionError, join_names
from transformer_viz.keywords import with_keywords
from transformer_viz.loaded_model import LoadedModel, check_loaded
from transformer_viz.model import mistakes
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import Tap, TapName, checked
from transformer_viz.schema import LARGEST, check_keywords, whole_number
from transformer_viz.terms import STRATEGIES, Kind
from transformer_viz.tracing.edit_tap import check_edits, looks_ahead
from transformer_viz.tracing.progress import OnToken
from transformer_viz.tracing.recording_options import MAX_TRACE_BYTES, RecordingKeywords, RecordingOptions, check_recording
from transformer_viz.tracing.tokenize_batch import framed_sources, framed_targets, longest_source, longest_target, most_written
from transformer_viz.tracing.writing_keywords import MOST_CANDIDATES, OF_STRATEGY, WritingKeywords

RECORDED: tuple[TapName, ...] = ("weights", "scores")
TEACHER_FORCING = "teacher forcing"


class DecodeKeywords(WritingKeywords, RecordingKeywords, total=False):
    """The keywords of `decode` but for `target`, whose type depends on the text's."""

    prefix: Sequence[str | int]
    ban: Sequence[str | int]
    pad_to: int | None
    pad_target_to: int | None
    edits: Iterable[Edit | str]
    mistake: str | None
    record: Sequence[str]
    max_trace_bytes: int | None
    on_token: OnToken | None
    tap: Tap | None


DEFAULTS: DecodeKeywords = {
    "strategy": "greedy",
    "candidates": 10,
    "edits": (),
    "record": ("weights",),
    "precision": "float32",
    "prefix": (),
    "ban": (),
}
"""Defaults of the keywords of `decode`; a keyword that is missing here is None by default."""

with_decode_keywords = with_keywords(DecodeKeywords, DEFAULTS)


@dataclass(frozen=True, kw_only=True)
class DecodeRequest:
    """One call of `decode`, checked and not yet run.

    Attributes:
        model: the model and its task.
        texts: the source texts.
        batch: their ids, with the padding that their Traces keep.
        strategy: how tokens are chosen, as a Trace records it.
        prefix: ids that the output begins with.
        ban: ids that are never written.
        beam: of a beam search, else None.
        sampling: of sampling, else None.
        writing: the keywords about the choice of tokens, as the caller gave them.
        edits: of masks, heads and rows of weights.
        mistake: a deliberate mask mistake, or None.
        recording: what the Traces keep of the attention.
        with_scores: whether they keep the scores before the mask too.
        max_length: the most tokens to write, or so many that the longest target has, `<end>` included.
        n_candidates: how many of the most probable tokens each step keeps.
        max_trace_bytes: the most that all Traces may take together.
        on_token: is called after each token, or None.
        tap: sees and may change every intermediate after edits and mistake, or None.
    """

    model: LoadedModel
    texts: Sequence[str]
    batch: TokenBatch
    strategy: str
    prefix: tuple[int, ...]
    ban: tuple[int, ...]
    beam: Beam | None
    sampling: Sampling | None
    writing: Mapping[str, Any]
    edits: tuple[Edit, ...]
    mistake: Mistake | None
    recording: RecordingOptions
    with_scores: bool
    max_length: int
    n_candidates: int
    max_trace_bytes: int
    on_token: OnToken | None
    tap: Tap | None

    @classmethod
    def of(
        cls,
        model: LoadedModel,
        text: str | list[str] | tuple[str, ...],
        target: Any,
        **options: Unpack[DecodeKeywords],
    ) -> "DecodeRequest":
        """The request that the arguments of `decode` make; its docstring says what they mean and what is raised."""
        if unknown := sorted(options.keys() - DecodeKeywords.__annotations__.keys()):
            raise TypeError(f"decode() has no keyword {unknown[0]!r}")
        check_loaded(model)
        given: DecodeKeywords = {**DEFAULTS, **options}
        reader, pad_to, pad_target_to = model.network, given.get("pad_to"), given.get("pad_target_to")
        if isinstance(text, str):
            texts, targets = [text], None if target is None else [target if isinstance(target, str) else tuple(target)]
        elif isinstance(target, str):
            raise InputError("There are several sources and one target text; give a list with one target for each source.")
        elif not text:
            raise InputError("There is no text to decode; give at least one.")
        else:
            texts, targets = list(text), target
        if unknown := [name for name in given["record"] if name not in RECORDED]:
            raise OptionError(f"record={unknown[0]!r} is not possible; choose from {join_names(RECORDED)}")
        n_candidates = whole_number("candidates", given["candidates"], 1, MOST_CANDIDATES)
        rows = framed_sources(model, texts)
        width = max(map(len, rows))
        if pad_to is not None:
            width = whole_number("pad_to", pad_to, width, longest_source(model))
        max_length = most_written(model, given.get("max_length"), width)
        writing = _writing(model, given, max_length)
        forced: list[list[int]] | None = None
        if targets is not None:
            if len(targets) != len(texts):
                words = "give one target for each source"
                raise InputError(f"There are {len(texts)} sources and {len(targets)} targets; {words}.")
            forced = framed_targets(model, targets, width)
            max_length = max(map(len, forced))
            if pad_target_to is not None:
                max_length = whole_number("pad_target_to", pad_target_to, max_length, longest_target(model, width))
        elif pad_target_to is not None:
            raise OptionError("pad_target_to pads a given target; give target too")
        edits, mistake = plain_edits.read(given["edits"]), given.get("mistake")
        check_edits(edits, reader.sizes, width, n_rows_of(reader.kind, width, max_length))
        batch = TokenBatch.of(
            reader,
            rows,
            forced,
            width=width,
            n_steps=max_length,
            keeps=KeptPadding(pad_to is not None, pad_to is not None, pad_target_to is not None),
            device=model.device,
        )
        max_trace_bytes = given.get("max_trace_bytes")
        request = cls(
            model=model,
            texts=texts,
            batch=batch,
            strategy=given["strategy"] if targets is None else TEACHER_FORCING,
            **writing,
            edits=edits,
            mistake=None if mistake is None else mistakes.named(mistake),
            recording=check_recording(reader.sizes, given.get("kinds"), given.get("layers"), given["precision"]),
            with_scores="scores" in given["record"],
            max_length=max_length,
            n_candidates=n_candidates,
            max_trace_bytes=MAX_TRACE_BYTES
            if max_trace_bytes is None
            else whole_number("max_trace_bytes", max_trace_bytes, 1, LARGEST),
            on_token=given.get("on_token"),
            tap=checked(given.get("tap")),
        )
        if request.beam is not None and (edits or mistake or request.with_scores):
            raise OptionError("edits, mistake and recorded scores need strategy 'greedy' or 'sample'; a beam search has none")
        if request.beam is not None and any(batch.kept_padding("target", i)[0] for i in range(len(batch))):
            raise OptionError("a beam search keeps no padding before a prompt; leave pad_to out")
        if moved := [edit for edit in edits if batch.is_uneven and isinstance(edit, Flip | Force)]:
            raise OptionError(
                f"edit {moved[0]} names positions, and shorter prompts are padded before their first token, which moves them; "
                "decode one after the other, or keep the padding in the Traces with pad_to"
            )
        if targets is not None and (given["strategy"] != "greedy" or request.prefix or request.ban):
            raise OptionError("a target leaves nothing to choose; leave strategy, prefix and ban out")
        return request

    @property
    def is_forced(self) -> bool:
        """Tells whether targets are read (teacher forcing), and nothing is written."""
        return self.batch.is_given and self.model.network.kind.writes

    @property
    def is_changed(self) -> bool:
        """Tells whether an edit or a mistake changes what the model computes."""
        return bool(self.edits) or self.mistake is not None

    @property
    def closed(self) -> frozenset[Kind]:
        """Kinds whose padded keys are cropped from every Trace, so that no edit opens them.

        Not a decoder's that reads one row at a time: it has no rows after a text's end, and a window also masks real keys.
        """
        if len(self.batch) == 1:
            return frozenset()
        in_passes = looks_ahead(self.edits, self.mistake) or self.is_forced
        return self.batch.cropped_kinds - (frozenset() if in_passes else {"decoder"})

    def most_steps(self, i: int) -> int:
        """The most target rows that the Trace of text i can have."""
        return self.batch.lengths("target")[i] if self.batch.is_given else self.batch.n_rows(i, self.max_length)


def _writing(model: LoadedModel, options: DecodeKeywords, max_length: int) -> dict[str, Any]:
    """The fields of a request about the choice of tokens. Keywords of another strategy, which would do nothing, are refused.

    Raises:
        OptionError: an impossible value, or one that contradicts another.
        InputError: a token that the model does not know.
    """
    name, reader, tokenizer = options["strategy"], model.network, model.tokenizer
    if name not in STRATEGIES:
        raise OptionError(f"strategy {name!r} is not known; choose one of {join_names(STRATEGIES)}")
    names = {"prefix", "ban"}.union(*OF_STRATEGY.values())
    given: dict[str, Any] = {key: value for key, value in options.items() if key in names and value not in (None, (), [])}
    check_keywords(WritingKeywords, given)
    if others := sorted(set(given) - OF_STRATEGY[name] - {"prefix", "ban"}):
        raise OptionError(f"{others[0]} means nothing to strategy {name!r}; leave it out or choose another strategy")
    prefix, ban = (tuple(tokenizer.ids_of(f"{what}: token", given.get(what, ()))) for what in ("prefix", "ban"))
    if ends := [token for token in prefix if token in reader.end_ids]:
        end = tokenizer.target_labels(ends)[0]
        raise OptionError(f"prefix holds {end}, after which nothing comes; leave it out, or limit max_length")
    if both := [token for token in prefix if token in ban]:
        name_of_both = tokenizer.target_labels(both)[0]
        raise OptionError(f"{name_of_both!r} is forced by prefix and forbidden by ban; take it out of one of them")
    if len(prefix) > max_length:
        raise OptionError(f"prefix has {len(prefix)} tokens; at most max_length={max_length} are written")
    if ban and len(set(ban)) >= reader.sizes.vocabulary:
        raise OptionError("ban forbids every token; leave at least one")
    beam, sampling, size = None, None, given.get("beam_size", 5)
    if name == "beam":
        n_best, stop = given.get("n_best", size), given.get("stop", "bound")
        beam = Beam(size, float(given.get("length_penalty", 0.6)), n_best, stop, given.get("refill", False))
    elif name == "sample":
        temperature, top_p = float(given.get("temperature", 1)), float(given.get("top_p", 1))
        sampling = Sampling(temperature=temperature, top_k=given.get("top_k"), top_p=top_p, seed=given.get("seed", 0))
    return {"prefix": prefix, "ban": ban, "beam": beam, "sampling": sampling, "writing": given}
