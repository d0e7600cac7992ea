"""The Trace: the complete, unchanging record of one run of one sentence.

Numpy and plain Python only. Whatever looks at a run (analysis, figures, views, files, notebooks)
looks at this and at nothing else; whatever runs a model makes one of these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import transformer_viz
from transformer_viz.errors import TraceError, listed
from transformer_viz.terms import KINDS, Kind, ModelKind
from transformer_viz.trace import attribution
from transformer_viz.trace.attention import Attention, Attentions
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.checks import check
from transformer_viz.trace.groups import Group
from transformer_viz.trace.search import Precision, Search
from transformer_viz.vocabulary import END, PAD

if TYPE_CHECKING:
    import pandas as pd

Candidate = tuple[str, float]
Finished = Literal["end", "length", "given"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One written token and what else could have been written.

    Attributes:
        token: what was written.
        probability: of `token`, from the natural softmax over the whole vocabulary at temperature 1.
        log_probability: its natural logarithm, computed before the rounding to a probability; −∞ for 0.
        rank: place of `token` among all tokens, 0 = the most probable; ties by id; None where it was not recorded.
        candidates: the most probable tokens with their probabilities, best first; none where they were not recorded.
        sampling_probability: of `token` under the distribution it was drawn from, if it was sampled.
        token_id: of `token`, where labels do not tell tokens apart.
        candidate_ids: one for each candidate; none where labels tell tokens apart.
    """

    token: str
    probability: float
    log_probability: float
    rank: int | None
    candidates: tuple[Candidate, ...]
    sampling_probability: float | None = None
    token_id: int | None = None
    candidate_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fill:
    """What a model would put at a mask token of the source.

    Attributes:
        place: of the mask token among the source tokens.
        candidates: the most probable tokens with their probabilities, best first.
        candidate_ids: one for each candidate; none where labels tell tokens apart.
    """

    place: int
    candidates: tuple[Candidate, ...]
    candidate_ids: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One run.

    Attributes:
        source: the text as it was typed.
        text: what was written, without special symbols and without what was given.
        source_tokens: what the encoder read, special tokens (and kept padding) included.
        target_tokens: what the decoder read, `<start>` or a prompt first; labels of the decoder's query rows.
        output_tokens: what it wrote, after what was given; `output_tokens[t]` follows query row t. Empty where it was not
            recorded.
        steps: one per output token, given ones too; empty where no probabilities were recorded.
        attentions: of each kind that was recorded, in the order of `KINDS`; `trace.encoder`, `trace.decoder` and
            `trace.cross` are its entries. Weights are float32, or float16 of all kinds where half precision was asked for.
        finished: `end` when the model wrote `<end>`, `length` when the limit stopped it, `given` for tokens that
            came from elsewhere, of which nothing says how they ended.
        alignment: per target token the true key index, or None.
        source_letters: per source position the index of its letter, or None.
        expected: the task's true answer, or None where there is none.
        expected_tokens: the tokens of the true answer, `<end>` included, or None.
        made_by: checkpoint, variant, task, device, strategy, versions, seconds.
        mistake: name of a deliberate mask mistake in this run; only then may weights and probabilities be NaN.
        edits: what was changed in this run, as text (see `transformer_viz.edits`).
        search: the beam search that found this run, or None.
        n_given: how many leading `output_tokens` were given and not written: of a prompt all tokens but the first.
        source_ids: ids of `source_tokens`, or None where labels tell tokens apart.
        target_ids: of `target_tokens`, or None.
        output_ids: of `output_tokens`, or None.
        fills: what a model without a decoder would put at the mask tokens of the source.
        groups: more arrays of this run by the name of what computed them; unknown ones are kept.

    Raises:
        TraceError: the parts do not fit together; the message names them.
    """

    source: str
    text: str
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    output_tokens: tuple[str, ...]
    steps: tuple[Step, ...]
    attentions: Mapping[Kind, Attention]
    finished: Finished
    alignment: tuple[int | None, ...]
    source_letters: tuple[int | None, ...]
    expected: str | None = None
    expected_tokens: tuple[str, ...] | None = None
    made_by: Mapping[str, Any] = field(default_factory=dict)
    mistake: str | None = None
    edits: tuple[str, ...] = ()
    search: Search | None = None
    n_given: int = 0
    source_ids: tuple[int, ...] | None = None
    target_ids: tuple[int, ...] | None = None
    output_ids: tuple[int, ...] | None = None
    fills: tuple[Fill, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := [kind for kind in self.attentions if kind not in KINDS]:
            raise TraceError(f"attentions: {str(unknown[0])[:40]!r} is no kind of attention; there are {listed(KINDS)}")
        source, target = self.source_ids, self.target_ids
        ids = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        kinds = [kind for kind in KINDS if kind in self.attentions]
        labelled = {kind: self.attentions[kind].labelled(*self.labels(kind), *ids[kind]) for kind in kinds}
        object.__setattr__(self, "attentions", Attentions(labelled))
        check(self)

    @classmethod
    def from_arrays(
        cls,
        *,
        encoder: Any = None,
        decoder: Any = None,
        cross: Any = None,
        source_tokens: Iterable[str] | None = None,
        target_tokens: Iterable[str] | None = None,
        output_tokens: Iterable[str] | None = None,
        masks: Mapping[str, Any] | None = None,
        probabilities: Iterable[float] | None = None,
        candidates: Iterable[Iterable[tuple[str, float]]] | None = None,
        alignment: Iterable[int | None] | None = None,
        source: str | None = None,
        text: str | None = None,
        pad_token: str = "<pad>",
        normalised: bool = True,
        made_by: Mapping[str, Any] | None = None,
    ) -> "Trace":
        """A Trace from attention that another program computed. One of the three kinds is enough.

        Args:
            encoder: weights (layer, head, query, key), (head, query, key) or (query, key); numpy, lists, a tensor on
                the CPU, or a list with one array a layer, with or without a batch axis of 1. Any real dtype.
            decoder: likewise, of the decoder's self-attention; all that a decoder-only model has.
            cross: likewise; rows are target tokens, columns source tokens.
            source_tokens: labels of the source; `encoder` and `cross` need them.
            target_tokens: what the decoder read; `decoder` and `cross` need them.
            output_tokens: what was written from each target row, if it is known.
            masks: per kind bool that broadcasts to the weights, True = masked; `"causal"` for the decoder.
            probabilities: of each output token.
            candidates: per output token [(token, probability), …], best first.
            alignment: per target token the true source position, or None.
            source: the text that was read; the source tokens with spaces between by default.
            text: the text that was written; likewise.
            pad_token: a masked key with this label is masked because it is padding.
            normalised: whether every row must sum to 1; False accepts weights after dropout.
            made_by: what else should be known of the run; plain data.

        Raises:
            TraceError: the parts do not fit together; the message names the array, its shape and what is needed.
        """
        from transformer_viz.trace import from_arrays as read

        given = read.given_kinds(encoder=encoder, decoder=decoder, cross=cross)
        labels = read.Labels.of(given, source_tokens, target_tokens, output_tokens)
        return cls(
            source=read.text_of("source", source, labels.source),
            text=read.text_of("text", text, labels.output),
            source_tokens=labels.source,
            target_tokens=labels.target,
            output_tokens=labels.output,
            steps=read.steps_of(labels.output, probabilities, candidates),
            attentions=read.attentions_of(given, masks, labels, pad_token=pad_token, normalised=normalised),
            finished="given",
            alignment=read.alignment_of(alignment, len(labels.target), len(labels.source)),
            source_letters=(None,) * len(labels.source),
            made_by=read.made_by(made_by),
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that this run has."""
        return tuple(self.attentions)

    @property
    def encoder(self) -> Attention:
        """Self-attention of the encoder; an OptionError where the run has none."""
        return self.attentions["encoder"]

    @property
    def decoder(self) -> Attention:
        """Self-attention of the decoder; an OptionError where the run has none."""
        return self.attentions["decoder"]

    @property
    def cross(self) -> Attention:
        """Cross-attention; an OptionError where the run has none."""
        return self.attentions["cross"]

    def labels(self, kind: Kind) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Tokens of the rows and of the columns of a kind, also where the run does not have its attention."""
        queries = self.source_tokens if kind == "encoder" else self.target_tokens
        return queries, self.target_tokens if kind == "decoder" else self.source_tokens

    @property
    def n_steps(self) -> int:
        """How many query rows the decoder has: one for each token that it read."""
        return len(self.target_tokens)

    @property
    def precision(self) -> Precision:
        """Of the weights as they are kept."""
        is_half = any(attention.weights.dtype == np.float16 for attention in self.attentions.values())
        return "float16" if is_half else "float32"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: weights, scores, the masks' reasons, those of a search, and the groups."""
        search = () if self.search is None else self.search.arrays.values()
        arrays = (array for attention in self.attentions.values() for array in attention.arrays)
        return sum(part.nbytes for part in (*arrays, *search, *self.groups.values()))

    @property
    def model_kind(self) -> ModelKind:
        """What the model is made of, by what it read in this run."""
        if not self.target_tokens:
            return ModelKind.ENCODER
        return ModelKind.ENCODER_DECODER if self.source_tokens else ModelKind.DECODER

    @property
    def writes(self) -> bool:
        """Whether it has a decoder's rows; the run of an encoder alone reads and writes nothing."""
        return self.model_kind.writes

    @property
    def rows(self) -> tuple[str, ...]:
        """Tokens of the rows that one steps through: what the decoder reads, one a step; of an encoder alone, its source."""
        return self.target_tokens if self.writes else self.source_tokens

    def is_stepped(self, kind: Kind) -> bool:
        """Whether the rows of a kind are those that one steps through: an encoder has read everything before the first step."""
        return kind != "encoder" or not self.writes

    @property
    def is_right(self) -> bool | None:
        """Whether the whole output is the true answer; None where that is not known.

        Without a true answer one thing is known all the same: an output that ends at a step with a true key among the
        text's own tokens has left something out.
        """
        if self.expected is None:
            return False if self._end_too_early() is not None else None
        return self.finished == "end" and self.text == self.expected

    @property
    def first_wrong_step(self) -> int | None:
        """The first step that is not the true answer's; None where there is none, or nothing is known of it."""
        known = self.expected_tokens
        if self.is_right is not False or known is None:
            return self._end_too_early()
        own = self.output_tokens[: self._n_own()]
        first = next((t for t, (token, true) in enumerate(zip_longest(own, known)) if token != true), None)
        return None if first == len(own) and self.finished != "end" else first

    def _end_too_early(self) -> int | None:
        """The step of `<end>`, where the answer is not known but the alignment has the step read a token of the text."""
        if self.expected is not None or self.finished != "end" or END not in self.output_tokens:
            return None
        step = self.output_tokens.index(END)
        key = self.alignment[step]
        return None if key is None or self.source_letters[key] is None else step

    def _n_own(self) -> int:
        """How many output tokens there are without padding."""
        n = len(self.output_tokens)
        while n > 0 and self.output_tokens[n - 1] == PAD:
            n -= 1
        return n

    def true_token(self, step: int) -> str | None:
        """What should have been written at a step, by position; None where nothing is known or expected."""
        known = self.expected_tokens
        return known[step] if known is not None and step < len(known) else None

    def hypothesis(self, i: int) -> "Trace":
        """The i-th best hypothesis of a beam search (0 is this run), with its own attention."""
        from transformer_viz.trace.hypotheses import hypothesis

        return hypothesis(self, i)

    def at_node(self, number: int) -> "Trace":
        """The run up to a node of a beam search (a number in `trace.search.nodes`), with its own attention."""
        from transformer_viz.trace.hypotheses import at_node

        return at_node(self, number)

    def with_group(self, name: str, group: Group) -> "Trace":
        """This run with a group more, or with another one under this name.

        Raises:
            TraceError: a file cannot hold it: the name is no short lower-case word, or there are too many.
        """
        return replace(self, groups={**self.groups, name: group})

    def to_frame(self) -> "pd.DataFrame":
        """Every weight as a row: kind, layer, head, query, query_token, key, key_token, weight, masked.

        A run with ids has them behind the tokens, as query_id and key_id.
        """
        from transformer_viz.trace.frame import to_frame

        return to_frame(self)

    def with_attribution(self, result: Attribution) -> "Trace":
        """This run with what `tv.attribute` found; it is kept in its file. A result of the same name gives way.

        Raises:
            TraceError: the result is of a run with other tokens, or there are too many.
        """
        return attribution.kept(self, result)

    @property
    def attributions(self) -> Mapping[str, Attribution]:
        """What `with_attribution` added, by its names, such as `occlusion_word_cross`."""
        return attribution.read(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes an `.npz` file that `load_trace` reads; nothing in it can run."""
        from transformer_viz.trace.store import save_trace

        save_trace(self, path)

    def __repr__(self) -> str:
        """One line; the arrays of a run would fill pages."""
        sizes = ", ".join(f"{kind} {each.n_layers}×{each.n_heads}" for kind, each in self.attentions.items())
        sizes += ", float16" if self.precision == "float16" else ""
        by = self.made_by.get("checkpoint")
        made = "" if by is None else f", by {_short(str(by))}"
        return f"<Trace {_short(self.source)} → {_short(self.text)}: {self.n_steps} steps, {sizes or 'empty'}{made}>"

    def _repr_html_(self) -> str | None:
        """In a notebook: the step player, in a frame of its own. None leaves the line of `repr`."""
        return transformer_viz.show_in_notebook(self)


def _short(text: str, most: int = 40) -> str:
    """A text in quotes on one line, cut where it is long."""
    return repr(text if len(text) <= most else text[: most - 1] + "…")
