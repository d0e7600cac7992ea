"""`TokenBatch`: texts as ids, padded to one length, as a model reads them.

On which side a batch is padded, which padding a text keeps, and which of its tokens were given is known here. Whoever runs
texts asks for the places of one of them (`span`, `ids`, `labels`), and for its part of an array (`crop`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reader
from transformer_viz.decoding.tokenizer import Tokenizer
from transformer_viz.terms import Kind, ModelKind
from transformer_viz.vocabulary import PAD

Side = Literal["source", "target"]
SIDES: dict[Kind, tuple[Side, Side]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}
"""The sides of an attention's queries and keys."""


class KeptPadding(NamedTuple):
    """The places where padding counts as a text's own: behind a source, before a prompt, and behind what the decoder reads."""

    source: bool = False
    before: bool = False
    behind: bool = False


NOT_KEPT, ALL_KEPT = KeptPadding(), KeptPadding(source=True, before=True, behind=True)


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Texts as ids, padded to one length.

    Attributes:
        source: int (text, place), what an encoder reads; no places where there is none.
        source_padding: bool (text, place), True = padding.
        target: int (text, place), what a decoder reads: the start token or a prompt, then what was written or given.
        target_padding: bool (text, place).
        written: int (text, place), what follows each place of the target. The last is missing where the model has yet to write.
        n_given: for each text how many leading ids of `written` were given: of a prompt all tokens but the first.
        keeps: which padding counts as a text's own.
    """

    source: Tensor
    source_padding: Tensor
    target: Tensor
    target_padding: Tensor
    written: Tensor
    n_given: tuple[int, ...]
    keeps: KeptPadding = NOT_KEPT

    @classmethod
    def of(
        cls,
        reader: Reader,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None = None,
        *,
        width: int = 0,
        n_steps: int = 0,
        keeps: KeptPadding = NOT_KEPT,
        device: torch.device | str = "cpu",
    ) -> "TokenBatch":
        """The batch of some texts for a model.

        Args:
            reader: the model.
            texts: the ids of each, framed: of a source, or of a prompt.
            targets: what counts as written, the end included, and is read (teacher forcing); None = nothing is given.
            width: texts are padded to so many tokens, or to the longest.
            n_steps: targets are padded to so many tokens, or to the longest.
            keeps: which padding counts as a text's own.
            device: where the ids are.
        """
        kind, pad = reader.kind, reader.pad_id
        width = max(width, *map(len, texts))
        start = [] if reader.start_id is None or not kind.writes else [reader.start_id]
        openings = texts if kind.has_prompt else [start] * len(texts)
        # Prompts end together where the model goes on from them; where all is read, they begin together.
        is_behind_padding = kind.has_prompt and (targets is None or keeps.before)
        before = [width - len(text) if is_behind_padding else 0 for text in texts]
        whole = [[*[pad] * n, *opening] for n, opening in zip(before, openings, strict=True)]
        n_given = [max(0, len(row) - 1 - (0 if keeps.before else n)) for row, n in zip(whole, before, strict=True)]
        n_places = max(map(len, whole))
        n_written = max(0, n_places - 1)
        read = whole
        if targets is not None:
            whole = [[*row, *target] for row, target in zip(whole, targets, strict=True)]
            read = [row[:-1] for row in whole]
            n_written = n_places = n_written + max(n_steps, *map(len, targets))
        sources = [[] for _ in texts] if kind.has_prompt else texts
        source, source_padding = padded_batch(sources, pad, 0 if kind.has_prompt else width, device=device)
        target, target_padding = padded_batch(read, pad, n_places, device=device)
        for row, n in zip(target_padding, before, strict=True):
            if n:
                row[:n] = True
        written, _ = padded_batch([row[1:] for row in whole], pad, n_written, device=device)
        return cls(source, source_padding, target, target_padding, written, tuple(n_given), keeps)

    @classmethod
    def padded(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        pad_id: int,
        widths: Sequence[int | None] = (None, None),
        *,
        written: Sequence[Sequence[int]] | None = None,
        on_left: bool = False,
    ) -> "TokenBatch":
        """Sources and targets as they are, to be read in one pass; a side that a model does not have has no ids.

        Args:
            sources: the ids of each.
            targets: the ids of each.
            pad_id: stands at padding.
            widths: places of a source and of a target; None = as many as the longest has.
            written: what follows each id of the targets; None = what they have there, and padding after the last.
            on_left: whether texts stand behind their padding.
        """
        source, source_padding = padded_batch(sources, pad_id, widths[0], on_left=on_left)
        target, target_padding = padded_batch(targets, pad_id, widths[1], on_left=on_left)
        following = [row[1:] for row in targets] if written is None else written
        after, _ = padded_batch(following, pad_id, target.shape[1])
        return cls(source, source_padding, target, target_padding, after, (0,) * len(sources))

    # ---- other batches

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, texts: slice) -> "TokenBatch":
        return replace(self, **{name: part[texts] for name, part in self._tensors.items()}, n_given=self.n_given[texts])

    def repeated(self, n: int) -> "TokenBatch":
        """One text n times."""
        return replace(self, **{name: part.expand(n, -1) for name, part in self._tensors.items()}, n_given=self.n_given * n)

    def until(self, n_steps: int) -> "TokenBatch":
        """The batch as it was before step `n_steps`."""
        names = ("target", "target_padding", "written")
        return replace(self, **{name: self._tensors[name][:, :n_steps] for name in names})

    def with_target(self, target: Tensor, target_padding: Tensor | None = None) -> "TokenBatch":
        """The batch with another target to read; None = nothing of it is padding."""
        padding = torch.zeros_like(target, dtype=torch.bool) if target_padding is None else target_padding
        return replace(self, target=target, target_padding=padding)

    def alone(self, i: int) -> "TokenBatch":
        """One text without its padding."""
        read, own = ~self.target_padding[i], ~self.source_padding[i]
        places = {"source": own, "source_padding": own, "target": read, "target_padding": read, "written": read}
        tensors = {name: self._tensors[name][i : i + 1, place] for name, place in places.items()}
        return replace(self, **tensors, n_given=self.n_given[i : i + 1])

    def after(self, ids: Tensor, lengths: Sequence[int]) -> "TokenBatch":
        """The batch when int (text, step) is written, of which each text has so many ids."""
        n_more = ids.shape[1] - 1
        ends = torch.tensor(lengths, device=ids.device)[:, None]
        is_over = torch.arange(1, n_more + 1, device=ids.device) >= ends
        return replace(
            self,
            target=torch.cat([self.target, ids[:, :-1]], 1),
            target_padding=torch.cat([self.target_padding, is_over], 1),
            written=torch.cat([self.written, ids], 1),
        )

    def to(self, device: torch.device) -> "TokenBatch":
        """The same batch on a device."""
        return replace(self, **{name: part.to(device) for name, part in self._tensors.items()})

    @property
    def _tensors(self) -> dict[str, Tensor]:
        names = ("source", "source_padding", "target", "target_padding", "written")
        return {name: getattr(self, name) for name in names}

    # ---- what a model is given

    @property
    def is_given(self) -> bool:
        """Tells whether all is there, so that it is read in one pass and nothing is written."""
        return self.written.shape[1] == self.target.shape[1]

    @property
    def is_uneven(self) -> bool:
        """Tells whether its prompts are of different lengths, so that shorter ones stand behind padding."""
        return len(set(self.n_given)) > 1

    def n_rows(self, i: int, n_written: int) -> int:
        """The number of target rows of text i, once so many tokens are written."""
        return self.n_given[i] + n_written

    @cached_property
    def paddings(self) -> tuple[Tensor | None, Tensor | None]:
        """The padding of sources and of targets; None where there is none, so that no mask is needed."""
        source, target = (each if bool(each.any()) else None for each in (self.source_padding, self.target_padding))
        return source, target

    @property
    def first_read(self) -> tuple[Tensor, Tensor | None]:
        """The ids and the padding of what each text gives: its source, or where there is none, its prompt."""
        return (self.source, self.paddings[0]) if self.source.shape[1] else (self.target, self.paddings[1])

    @property
    def output_kind(self) -> Kind:
        """The attention whose queries stand where the output does."""
        return "decoder" if self.target.shape[1] else "encoder"

    # ---- the places of one text

    @cached_property
    def _own(self) -> dict[Side, list[tuple[int, int]]]:
        """For each text the first of its own places, and the first behind them."""
        sides: dict[Side, list[list[bool]]] = {
            "source": self.source_padding.tolist(),
            "target": self.target_padding.tolist(),
        }
        return {
            side: [(row.index(False), len(row) - row[::-1].index(False)) if False in row else (0, 0) for row in rows]
            for side, rows in sides.items()
        }

    @cached_property
    def _ids(self) -> dict[str, list[list[int]]]:
        return {name: self._tensors[name].tolist() for name in ("source", "target", "written")}

    def span(self, side: Side, i: int) -> slice:
        """The places of text i: its own, and padding that counts as its own."""
        first, end = self._own[side][i]
        if side == "source":
            return slice(0, self.source.shape[1]) if self.keeps.source else slice(first, end)
        first = 0 if self.keeps.before else first
        if self.keeps.behind:
            end = first + self.n_given[i] + self.target.shape[1] - max(self.n_given)
        return slice(first, end)

    def kept_padding(self, side: Side, i: int) -> tuple[int, int]:
        """Counts the places of a text's span that are padding: before its own tokens, and behind them."""
        (first, end), span = self._own[side][i], self.span(side, i)
        return first - span.start, span.stop - end

    def own_padding(self, side: Side, i: int) -> Tensor:
        """bool (1, place), True = padding, of a text's span, on the CPU."""
        padding = self.source_padding if side == "source" else self.target_padding
        return padding[i : i + 1, self.span(side, i)].cpu()

    def lengths(self, side: Side) -> list[int]:
        """The number of places of each text."""
        return [span.stop - span.start for span in (self.span(side, i) for i in range(len(self)))]

    def ids(self, side: Side | Literal["written"], i: int) -> list[int]:
        """The ids of text i: what encoder or decoder read, or what followed each row of the decoder."""
        return self._ids[side][i][self.span("target" if side == "written" else side, i)]

    def output(self, i: int) -> list[int]:
        """The ids that text i has after those that were given, padding that counts as its own included."""
        return self.ids("written", i)[self.n_given[i] :]

    def output_rows(self, i: int) -> Tensor:
        """bool (place,), on the CPU: the rows of text i from which its output was written, or read as if it had been."""
        places = torch.arange(self.target.shape[1])
        return ~self.target_padding[i].cpu() & (places >= self.span("target", i).start + self.n_given[i])

    def given(self, i: int) -> list[int]:
        """The ids of text i that were read before anything was written: its source, or where there is none, its prompt."""
        return self.ids("source", i) if self.source.shape[1] else self.ids("target", i)[: self.n_given[i] + 1]

    def labels(self, tokenizer: Tokenizer, side: Side | Literal["written"], i: int) -> tuple[str, ...]:
        """The labels of these ids; `<pad>` for padding, whose ids may be those of other tokens, such as the end."""
        ids = self.ids(side, i)
        before, behind = self.kept_padding("target" if side == "written" else side, i)
        # The row before a prompt's first token is padding, and that token follows it.
        own = range(max(0, before - (side == "written")), len(ids) - behind)
        labels = tokenizer.source_labels(ids) if side == "source" else tokenizer.target_labels(ids)
        return tuple([label if place in own else PAD for place, label in enumerate(labels)])

    # ---- the parts of arrays

    @property
    def cropped_kinds(self) -> frozenset[Kind]:
        """The kinds of attention whose padded keys belong to no text."""
        keeps_target = self.keeps.behind if self.source.shape[1] else self.keeps.before
        return frozenset(kind for kind, sides in SIDES.items() if not (self.keeps.source, keeps_target)[sides[1] == "target"])

    def reads(self, kind: Kind) -> tuple[Tensor, Tensor]:
        """Finds the queries and keys of an attention that are padding: bool (text, query) and (text, key)."""
        queries, keys = (self.source_padding if side == "source" else self.target_padding for side in SIDES[kind])
        return queries, keys

    def crop(self, array: Any, kind: Kind, i: int) -> Any:
        """Text i of an array (text, …, query, key) whose first axis is 1 where all texts share it."""
        queries, keys = SIDES[kind]
        return array[i if len(array) > 1 else 0, ..., self.span(queries, i), self.span(keys, i)]

    def aligned(self, whole: np.ndarray, kind: Kind) -> np.ndarray:
        """(text, layer, head, query, key) from each text's first row and key on, as far as the longest goes."""
        spans = [[self.span(side, i) for i in range(len(self))] for side in SIDES[kind]]
        n_queries, n_keys = (max(span.stop - span.start for span in each) for each in spans)
        if not any(span.start for each in spans for span in each):
            return whole[..., :n_queries, :n_keys]
        aligned = np.zeros((*whole.shape[:3], n_queries, n_keys), whole.dtype)
        for i in range(len(self)):
            own = self.crop(whole, kind, i)
            aligned[i, ..., : own.shape[-2], : own.shape[-1]] = own
        return aligned


def sides_of(
    kind: ModelKind, texts: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]:
    """The ids that an encoder and a decoder read of texts with targets; none on a side that the model does not have."""
    nothing = [list[int]() for _ in texts]
    if kind is ModelKind.ENCODER:
        return texts, nothing
    return (nothing, texts) if kind.has_prompt else (texts, targets)


def n_given_of(kind: ModelKind, n_tokens: int) -> int:
    """Counts the tokens that a text of so many gives to the decoder after its first: those of a prompt."""
    return n_tokens - 1 if kind.has_prompt else 0


def n_rows_of(kind: ModelKind, n_tokens: int, n_steps: int) -> int:
    """Counts the decoder's rows of a text of so many tokens after so many steps."""
    return n_given_of(kind, n_tokens) + n_steps


def moves_behind_padding(reader: Reader) -> bool:
    """Tells whether padding stands before a text, so that its tokens move: a prompt's."""
    return reader.kind.has_prompt


def can_pad(reader: Reader, n_tokens: int, n_steps: int) -> bool:
    """Tells whether texts of other lengths may stand beside one of so many tokens that writes so many.

    Padding before a prompt needs places too, and a model's own rules may count from the end.
    """
    most = min(reader.sizes.longest_target, reader.sizes.longest_source)
    return not reader.kind.has_prompt or (reader.rules is None and n_tokens + n_steps <= most)


def padded_batch(
    rows: Sequence[Sequence[int]],
    pad_id: int,
    width: int | None = None,
    *,
    on_left: bool = False,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Rows of ids as one (batch, width) tensor, and where it is padding: pads are counted, not recognized by their id.

    `width` is that of the longest row unless it is given.
    """
    width = max(map(len, rows)) if width is None else width
    ids, is_padding = [], []
    for row in rows:
        pads, own = [pad_id] * (width - len(row)), [False] * len(row)
        ids.append([*pads, *row] if on_left else [*row, *pads])
        is_padding.append([*[True] * len(pads), *own] if on_left else [*own, *[True] * len(pads)])
    return torch.tensor(ids, dtype=torch.long, device=device), torch.tensor(is_padding, dtype=torch.bool, device=device)
