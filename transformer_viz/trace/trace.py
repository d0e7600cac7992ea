"""The Trace: the complete, unchanging record of one run of one sentence.

Numpy and plain Python only. Everything that runs a model makes a Trace, and everything that looks at a run (analysis,
figures, views, files, notebooks) reads the Trace alone.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

import transformer_viz
from transformer_viz.addresses import AttentionAddress, Grid, check_kind, find
from transformer_viz.errors import OptionError, TraceError, join_names
from transformer_viz.schema import Count, Range, whole_number
from transformer_viz.terms import KINDS, Kind, ModelKind
from transformer_viz.trace import arrays
from transformer_viz.trace.attention import Attention, Attentions, Precision, check_codes
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.groups import MOST_ARRAYS, MOST_GROUPS, Group, check_name
from transformer_viz.trace.hypotheses import hypothesis_parts
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.search import Search
from transformer_viz.trace.steps import Fill, Step, Text
from transformer_viz.vocabulary import END, PAD

if TYPE_CHECKING:
    import pandas as pd

Finished = Literal["end", "length", "given"]
MOST_INSIDES, MOST_ATTRIBUTIONS = 8, 64
"""The most `Inside`s and attributions that a run can hold, since each adds members to its file."""


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
        finished: `end` when the model wrote `<end>`, `length` when the limit stopped it, `given` when the tokens came from
            elsewhere.
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
        insides: what happened inside heads, in the order in which they were recorded, at most 8; see `with_inside`.
        groups: further arrays about this run, by name; names that this program does not know are kept.
        attributions: what measures found, by names such as `occlusion_word_cross`, at most 64; see `with_attribution`.

    Raises:
        TraceError: the parts do not fit together; the message names them.
    """

    source: Text
    text: Text
    source_tokens: tuple[Text, ...]
    target_tokens: tuple[Text, ...]
    output_tokens: tuple[Text, ...]
    steps: tuple[Step, ...]
    attentions: Mapping[Kind, Attention]
    finished: Finished
    alignment: tuple[Count | None, ...]
    source_letters: tuple[Count | None, ...]
    expected: Text | None = None
    expected_tokens: tuple[Text, ...] | None = None
    made_by: Mapping[str, Any] = field(default_factory=dict)
    mistake: Text | None = None
    edits: tuple[Text, ...] = ()
    search: Search | None = None
    n_given: Count = 0
    source_ids: tuple[Count, ...] | None = None
    target_ids: tuple[Count, ...] | None = None
    output_ids: tuple[Count, ...] | None = None
    fills: tuple[Fill, ...] = ()
    groups: Annotated[Mapping[str, Group], Range(0, MOST_GROUPS)] = field(default_factory=dict)
    insides: Annotated[tuple[Inside, ...], Range(0, MOST_INSIDES)] = ()
    attributions: Annotated[Mapping[str, Attribution], Range(0, MOST_ATTRIBUTIONS)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in self.attentions:
            check_kind(kind, what="attentions", error=TraceError)
        source, target = self.source_ids, self.target_ids
        ids = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        kinds = [kind for kind in KINDS if kind in self.attentions]
        labelled = {kind: self.attentions[kind].labelled(*self.labels(kind), *ids[kind]) for kind in kinds}
        object.__setattr__(self, "attentions", Attentions(labelled))
        self._check_tokens()
        for kind, attention in self.attentions.items():
            attention.check(kind, may_be_nan=self.mistake is not None)
        precisions = {attention.weights.dtype for attention in self.attentions.values()}
        if len(precisions) > 1:
            words = join_names(sorted(map(str, precisions)))
            raise TraceError(f"the kinds of attention are {words}; one precision is needed for all")
        if self.search is not None:
            self._check_search(self.search)
        for name in self.groups:
            check_name("group", name)
        n_arrays = sum(len(group.arrays) for group in self.groups.values())
        if len(self.groups) > MOST_GROUPS or n_arrays > MOST_ARRAYS:
            raise TraceError(
                f"a run has {len(self.groups)} groups with {n_arrays} arrays; "
                f"at most {MOST_GROUPS} and {MOST_ARRAYS} are possible"
            )
        if len(self.attributions) > MOST_ATTRIBUTIONS:
            raise TraceError(f"a run holds at most {MOST_ATTRIBUTIONS} results of measures, not {len(self.attributions)}")
        for name, result in self.attributions.items():
            if name != result.name:
                raise TraceError(f"attribution: {name[:80]!r} is the name of {result.name}")
            result.check(*self.labels(result.kind))
        if len(self.insides) > MOST_INSIDES:
            raise TraceError(f"a run holds the inside of at most {MOST_INSIDES} heads and rows; make another file for more")
        if len({inside.address for inside in self.insides}) < len(self.insides):
            raise TraceError("inside: a head and row stands in it twice")
        for inside in self.insides:
            self._check_inside(inside)

    def _check_tokens(self) -> None:
        """Tokens, ids, steps and fills."""
        n_source, n_steps = len(self.source_tokens), len(self.steps) or self.n_steps
        for name in ("target_tokens", "output_tokens", "alignment"):
            n = len(getattr(self, name))
            is_unknown = name == "output_tokens" and n == 0 and not self.steps
            if n != n_steps and not is_unknown:
                raise TraceError(f"{name} has {n} entries for {n_steps} steps")
        if len(self.source_letters) != n_source:
            raise TraceError(f"source_letters has {len(self.source_letters)} entries for {n_source} source tokens")
        for name in ("alignment", "source_letters"):
            for t, key in enumerate(getattr(self, name)):
                if key is not None and not 0 <= key < n_source:
                    raise TraceError(f"{name}[{t}] is {key}; it is None, or a position below {n_source}")
        if not 0 <= self.n_given <= len(self.output_tokens):
            raise TraceError(
                f"n_given is {self.n_given}; it is from 0 to the number of output_tokens, {len(self.output_tokens)}"
            )
        for side in ("source", "target", "output"):
            ids, n = getattr(self, f"{side}_ids"), len(getattr(self, f"{side}_tokens"))
            if ids is not None and (len(ids) != n or any(number < 0 for number in ids)):
                raise TraceError(f"{side}_ids has {len(ids)} entries for {n} {side}_tokens, or a negative one")
        for t, (step, token) in enumerate(zip(self.steps, self.output_tokens, strict=False)):
            if step.token != token:
                raise TraceError(f"steps[{t}] says {step.token[:40]!r} where output_tokens has {token[:40]!r}")
            if self.output_ids is not None and step.token_id not in (None, self.output_ids[t]):
                raise TraceError(f"steps[{t}] says id {step.token_id} where output_ids has {self.output_ids[t]}")
        places = [fill.place for fill in self.fills]
        if places != sorted(set(places)) or not set(places) <= set(range(n_source)):
            raise TraceError(f"fills are at {join_names(places[:100])}; ascending places below {n_source} are needed")
        if self.mistake is None:
            numbers = [number for step in self.steps for number in (step.probability, step.log_probability)]
            numbers += [p for part in (*self.steps, *self.fills) for _, p in part.candidates]
            if any(map(math.isnan, numbers)):
                raise TraceError("a probability is no number; only a mask mistake can make it so, and this run has none")

    def _check_search(self, search: Search) -> None:
        """Any hypothesis must make a Trace of its own; what all of them share stands in this run, at its beginning."""
        n, n_source = search.n_given, len(self.source_tokens)
        if search.cross_rows is not None and search.cross_rows.shape[-1] != n_source:
            raise TraceError(f"search: cross-attention over {search.cross_rows.shape[-1]} keys for {n_source} source tokens")
        if any(key is not None and key >= n_source for key in search.alignment):
            raise TraceError(f"search: alignment names a position that is not below {n_source}")
        alike = [one for kind, one in self.attentions.items() if kind != "decoder" or search.decoder_reasons is None]
        if any(attention.reasons.ndim != 2 for attention in alike):
            raise TraceError("search: a mask is not (query, key) for all heads alike")
        ids = None if self.output_ids is None else self.output_ids[:n]
        is_alike = self.n_given == n and self.output_tokens[:n] == search.opening[1:] and (not n or len(self.steps) >= n)
        if not is_alike or (n and ids != (search.opening_ids and search.opening_ids[1:])):
            raise TraceError(
                f"search: its opening has {n + 1} tokens; a run with n_given {n} is needed whose output_tokens, output_ids and "
                "steps begin with the others of them"
            )
        if {"decoder", "cross"} & set(self.kinds) != set(search.rows):
            raise TraceError(
                f"search: it has rows of {join_names(search.rows) or 'nothing'} in a run with {join_names(self.kinds)}"
            )
        for kind, rows in search.rows.items():
            weights = self.attentions[kind].weights
            if rows.dtype != weights.dtype or rows.shape[1:3] != weights.shape[:2]:
                raise TraceError(
                    f"search: rows of {kind} are {rows.dtype} with {rows.shape[1]} layers and {rows.shape[2]} heads; "
                    f"{weights.dtype} with {weights.shape[0]} and {weights.shape[1]} is needed"
                )
            if not np.isfinite(rows).all() or (rows < 0).any():
                raise TraceError(f"search: {kind}_rows holds numbers that are not finite, or negative")
        if search.decoder_reasons is not None:
            check_codes("search: decoder_reasons", search.decoder_reasons)

    def _check_inside(self, inside: Inside) -> None:
        where, attention = inside.address, self.attentions.get(inside.kind)
        if attention is None or inside.layer not in attention.layers or inside.head >= attention.n_heads:
            raise TraceError(f"inside: {where} is not in this run")
        if inside.row >= len(attention.queries) or not inside.is_of(attention):
            raise TraceError(f"inside: the weights of {where} are not those of the run")
        labels = self.inside_labels(inside.kind, inside.row)
        if wrong := [name for name, value in labels.items() if getattr(inside, name) != value]:
            raise TraceError(f"inside: {wrong[0]} of {where} is not that of the run")

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
        beam_indices: Any = None,
    ) -> "Trace":
        """Makes a Trace of attention that another program computed. One of the three kinds is enough.

        Args:
            encoder: weights (layer, head, query, key), (head, query, key) or (query, key); numpy, lists, a tensor on any
                device, or a list with one array a layer, with or without a batch axis of 1, as `output_attentions=True` returns
                it. Any real dtype. Of `decoder` and `cross` also what `generate` returns: for each step one array a layer.
            decoder: the decoder's self-attention in any of these forms; all that a decoder-only model has.
            cross: cross-attention in any of these forms; rows are target tokens, columns source tokens.
            source_tokens: labels of the source; `encoder` and `cross` need them.
            target_tokens: what the decoder read; `decoder` and `cross` need them.
            output_tokens: what was written from each target row, if it is known.
            masks: per kind bool that broadcasts to the weights, True = masked; `"causal"` for the decoder.
            probabilities: of each output token.
            candidates: per output token [(token, probability), …], best first.
            alignment: per target token the true source position, or None.
            source: the text that was read; the source tokens with spaces between by default.
            text: the text that was written; the output tokens with spaces between by default.
            pad_token: a masked key with this label is masked because it is padding.
            normalised: whether every row must sum to 1; False accepts weights after dropout.
            made_by: what else should be known of the run; plain data.
            beam_indices: of a beam search by `generate`, its `beam_indices`: in which row each step stands.

        Raises:
            TraceError: the parts do not fit together; the message names the array, its shape and what is needed.

        Returns:
            A Trace, for every function that needs no model.

        Example:
            >>> import numpy as np
            >>> import transformer_viz as tv
            >>> causal = np.tril(np.ones((3, 3))) / [[1], [2], [3]]  # (query, key), rows that sum to 1
            >>> trace = tv.Trace.from_arrays(
            ...     decoder=causal,
            ...     cross=np.full((2, 4, 3, 2), 0.5),  # (layer, head, query, key)
            ...     source_tokens=["a", "b"],
            ...     target_tokens=["<s>", "x", "y"],
            ...     output_tokens=["x", "y", "</s>"],
            ...     masks={"decoder": "causal"},
            ... )
            >>> trace.cross.weights.shape, trace.attentions["decoder"].weights.shape
            ((2, 4, 3, 2), (1, 1, 3, 3))
            >>> figure = tv.figures.attention(trace, "cross.2.3")
        """
        kinds: dict[Kind, Any] = {"encoder": encoder, "decoder": decoder, "cross": cross}
        given = {kind: array for kind, array in kinds.items() if array is not None}
        if not given:
            raise TraceError("no attention is given; give encoder=, decoder= or cross=")
        masks = masks if masks is None or not isinstance(masks, Mapping) else dict(masks)
        for kind in ("decoder", "cross"):
            if arrays.are_steps(given.get(kind)):
                given[kind] = arrays.join_steps(kind, given[kind], beam_indices)
                if kind == "decoder" and isinstance(masks, dict | None) and "decoder" not in (masks or ()):
                    # What comes later did not exist yet.
                    masks = {**(masks or {}), "decoder": "causal"}
        sources = arrays.read_tokens("source_tokens", source_tokens, [kind for kind in given if kind != "decoder"])
        targets = arrays.read_tokens("target_tokens", target_tokens, [kind for kind in given if kind != "encoder"])
        outputs = arrays.read_tokens("output_tokens", output_tokens)
        if outputs and len(outputs) != len(targets):
            raise TraceError(
                f"output_tokens has {len(outputs)} tokens for {len(targets)} target tokens; one is needed for each"
            )
        if not isinstance(masks, Mapping | None):
            raise TraceError(f"masks is {type(masks).__name__}; a dict is needed, for example {{'decoder': 'causal'}}")
        if unknown := [name for name in masks or () if name not in given]:
            raise TraceError(f"masks names {str(unknown[0])[:40]!r}; there is attention of {join_names(given)}")
        attentions: dict[Kind, Attention] = {}
        for kind, array in given.items():
            queries, keys = sources if kind == "encoder" else targets, targets if kind == "decoder" else sources
            weights = arrays.read_weights(kind, array, len(queries), len(keys))
            masked = arrays.read_mask(kind, (masks or {}).get(kind), weights)
            if normalised:
                arrays.check_rows(kind, masked, weights)
            is_padding = np.array([token == pad_token for token in keys])
            attentions[kind] = Attention(weights=weights, reasons=arrays.explained(kind, masked, is_padding))
        try:
            about = json.loads(json.dumps({"strategy": "from arrays", **(made_by or {})}, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            words = "plain text, numbers, lists and dicts are needed"
            raise TraceError(f"made_by holds what JSON cannot ({error}); {words}") from None
        return cls(
            source=" ".join(sources) if source is None else arrays.read_text("source", source),
            text=" ".join(outputs) if text is None else arrays.read_text("text", text),
            source_tokens=sources,
            target_tokens=targets,
            output_tokens=outputs,
            steps=arrays.read_steps(outputs, probabilities, candidates),
            attentions=attentions,
            finished="given",
            alignment=arrays.read_alignment(alignment, len(targets), len(sources)),
            source_letters=(None,) * len(sources),
            made_by=about,
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that this run has."""
        return tuple(self.attentions)

    @property
    def grid(self) -> Grid:
        """The layers and the number of heads of each kind that was recorded."""
        return {kind: (attention.layers, attention.n_heads) for kind, attention in self.attentions.items()}

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
        """The number of the decoder's query rows: one for each token that it read."""
        return len(self.target_tokens)

    @property
    def precision(self) -> Precision:
        """The precision of the weights as they are kept."""
        is_half = any(attention.weights.dtype == np.float16 for attention in self.attentions.values())
        return "float16" if is_half else "float32"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: weights, scores and masks, and those of a search, groups, insides and attributions."""
        parts = (*self.attentions.values(), *([] if self.search is None else [self.search]))
        arrays = [array for part in parts for array in part.arrays]
        arrays += [array for inside in self.insides for array in (*inside.arrays.values(), inside.reasons)]
        arrays += [array for group in self.groups.values() for array in group.arrays.values()]
        return sum(array.nbytes for array in (*arrays, *(result.values for result in self.attributions.values())))

    @property
    def model_kind(self) -> ModelKind:
        """The parts that the model has (encoder, decoder or both), told from what it read in this run."""
        if not self.target_tokens:
            return ModelKind.ENCODER
        return ModelKind.ENCODER_DECODER if self.source_tokens else ModelKind.DECODER

    @property
    def writes(self) -> bool:
        """Tells whether the run has a decoder's rows; False for an encoder alone, which writes nothing."""
        return self.model_kind.writes

    @property
    def rows(self) -> tuple[str, ...]:
        """The tokens of the rows that a player steps through: what the decoder reads; for an encoder alone its source."""
        return self.target_tokens if self.writes else self.source_tokens

    @property
    def written(self) -> slice:
        """The steps at which the model wrote, of `steps`, `output_tokens` and the decoder's rows: behind what was given."""
        return slice(self.n_given, None)

    def is_given(self, step: int) -> bool:
        """Tells whether the token of a step was given and not written."""
        return step < self.n_given

    @property
    def prompt(self) -> tuple[str, ...]:
        """The tokens of the prompt that a decoder alone goes on from; empty where an encoder read a source."""
        return self.target_tokens[: self.n_given + 1] if self.model_kind.has_prompt else ()

    @property
    def read_tokens(self) -> tuple[str, ...]:
        """The tokens of the text that was read: of the source, or of the prompt."""
        return self.source_tokens or self.prompt

    def is_stepped(self, kind: Kind) -> bool:
        """Tells whether a player steps through the rows of this kind; not an encoder's, which are all read before step 1."""
        return kind != "encoder" or not self.writes

    @property
    def is_right(self) -> bool | None:
        """Tells whether the whole output is the true answer; None where that is not known.

        Without a true answer an output can still be known to be wrong: when it ends at a step whose true key is one of the
        text's own tokens, it has left something out.
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
        n = len(self.output_tokens)
        while n > 0 and self.output_tokens[n - 1] == PAD:
            n -= 1
        own = self.output_tokens[:n]
        first = next((t for t, (token, true) in enumerate(zip_longest(own, known)) if token != true), None)
        return None if first == len(own) and self.finished != "end" else first

    def _end_too_early(self) -> int | None:
        """The step that wrote `<end>` although by the alignment it should read a token of the text; None without such a one."""
        if self.expected is not None or self.finished != "end" or END not in self.output_tokens:
            return None
        step = self.output_tokens.index(END)
        key = self.alignment[step]
        return None if key is None or self.source_letters[key] is None else step

    def true_token(self, step: int) -> str | None:
        """The right token of a step, by position; None where nothing is known or expected."""
        known = self.expected_tokens
        return known[step] if known is not None and step < len(known) else None

    def hypothesis(self, i: int) -> "Trace":
        """The i-th best hypothesis of a beam search (0 is this run), with its own attention.

        Raises:
            OptionError: the run was no beam search, or has fewer hypotheses.
        """
        search = self._recorded_search()
        whole_number("hypothesis", i, 0, len(search.best) - 1)
        return self.at_node(search.best[i])

    def at_node(self, number: int) -> "Trace":
        """The run up to a node of a beam search (a number in `trace.search.nodes`), with its own attention.

        The node may be a pruned one. Results that belong to the best hypothesis alone are left out.

        Raises:
            OptionError: the run was no beam search, or has no such node.
        """
        search, n = self._recorded_search(), self.n_given
        decoder, cross = self.attentions.get("decoder"), self.attentions.get("cross")
        parts = hypothesis_parts(
            search,
            number,
            {kind: attention.layers for kind, attention in self.attentions.items()},
            None if cross is None else cross.reasons[0],
            given_steps=self.steps[:n],
            given_decoder=None if decoder is None else decoder.weights[:, :, :n, :n],
            given_cross=None if cross is None else cross.weights[:, :, :n],
        )
        if "encoder" in self.attentions:
            parts["attentions"]["encoder"] = self.encoder
        return replace(self, search=None, groups={}, insides=(), attributions={}, **parts)

    def _recorded_search(self) -> Search:
        if self.search is None:
            raise OptionError('this run was no beam search; decode with strategy="beam"')
        return self.search

    def with_group(self, name: str, group: Group) -> "Trace":
        """This run with one more group; it replaces a group of the same name.

        Raises:
            TraceError: a file cannot hold it: the name is no short lower-case word, or there are too many.
        """
        return replace(self, groups={**self.groups, name: group})

    def with_attribution(self, result: Attribution) -> "Trace":
        """This run with a result of `tv.attribute`, which its file keeps; it replaces a result of the same name.

        Raises:
            TraceError: the result is of a run with other tokens, or there are too many.
        """
        return replace(self, attributions={**self.attributions, result.name: result})

    def with_inside(self, inside: Inside) -> "Trace":
        """This run with a result of `tv.inspect_head`, which its file keeps; it replaces one of the same head and row.

        Raises:
            TraceError: the numbers are of another run, or there are too many.
        """
        return replace(self, insides=(*(one for one in self.insides if one.address != inside.address), inside))

    def inside_labels(self, kind: Kind, row: int) -> dict[str, Any]:
        """The fields of an `Inside` that say what stands in the row and at the keys, and whose numbers they are."""
        attention = self.attentions[kind]
        is_written = self.is_stepped(kind) and self.writes and bool(self.output_tokens)
        by = {name: self.made_by[name] for name in ("checkpoint", "variant") if name in self.made_by}
        return {
            "row_token": attention.queries[row],
            "row_id": None if attention.query_ids is None else attention.query_ids[row],
            "key_tokens": attention.keys,
            "key_ids": attention.key_ids,
            "written": self.output_tokens[row] if is_written else None,
            "run": {**by, "source": self.source, "text": self.text, "edits": list(self.edits), "mistake": self.mistake},
        }

    def to_frame(self, where: str | AttentionAddress | None = None) -> "pd.DataFrame":
        """A data frame with a row for each weight: kind, layer, head, query, query_token, key, key_token, weight, masked.

        Layers, heads and positions count from 0. A run with ids has the columns query_id and key_id too.

        Args:
            where: a kind (`cross`), a layer (`cross.2`) or a head (`cross.2.3`) alone.

        Raises:
            OptionError: the run has no such kind, layer or head.
        """
        import pandas as pd

        places = [AttentionAddress(kind) for kind in self.kinds] if where is None else [find(where, self.grid)]
        frames = {place.kind: self.attentions[place.kind].to_frame(place.layer, place.head) for place in places}
        for one, frame in frames.items():
            frame.insert(0, "kind", one)
        return pd.concat(frames.values(), ignore_index=True) if frames else pd.DataFrame()

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


def _short(text: str) -> str:
    """A text in quotes on one line, cut where it is long."""
    return repr(text if len(text) <= 40 else text[:39] + "…")
