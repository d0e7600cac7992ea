"""A module as a reader: it reads source and target, all rows anew at each step, and its attention is seen and changed by a tap.

Padding is hidden here, whatever the module itself does about it: no query may look at it, and a prompt begins at the first
position.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from transformer_viz.decoding.reader import Rules
from transformer_viz.errors import ModelError, OptionError
from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Site, Tap, TapName
from transformer_viz.readers.modules.layout import Layout
from transformer_viz.readers.modules.operators import NotChangeable, Softmax
from transformer_viz.readers.modules.passes import Passes, prepared
from transformer_viz.terms import KIND_TITLES, Kind, ModelKind

_SAME = 1e-3
"""The tolerance between applied weights and those of the softmax, where a mask is changed."""


@dataclass(frozen=True)
class AttentionPlace:
    """The place of one softmax of a pass.

    Attributes:
        site: its kind and layer.
        layout: of its axes.
        head: the first head that it has of its layer.
        module: the name of its module.
    """

    site: Site
    layout: Layout
    head: int
    module: str


@dataclass(frozen=True)
class _Memory:
    """The sources' memory: nothing yet, since the module reads all at once.

    Attributes:
        source: int (batch, source).
        padding: bool of the same shape, or None.
        tap: sees and changes the encoder's attention.
    """

    source: Tensor
    padding: Tensor | None
    tap: Tap | None


@dataclass(frozen=True)
class ModuleReader:
    """See `decoding.reader.Reader`.

    Attributes:
        passes: of the module.
        kind: what it is made of.
        start_id: what the decoder reads first; None where there is no encoder beside it.
        end_ids: tokens that end a sentence.
        pad_id: fills the rows of shorter sentences.
        sizes: of the model.
        places: of each softmax of a pass, or None where it is no attention between tokens.
        batch_first: whether ids are given as (batch, length).
        knows_padding: whether `pad_id` is the module's own padding, and not only what is hidden from it here.
    """

    passes: Passes
    kind: ModelKind
    start_id: int | None
    end_ids: tuple[int, ...]
    pad_id: int
    sizes: Sizes
    places: tuple[AttentionPlace | None, ...]
    batch_first: bool = True
    knows_padding: bool = True

    rules: Rules | None = None
    training = False

    @property
    def model(self) -> nn.Module:
        """The module."""
        return self.passes.model

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Any:
        """Shows the tap the encoder's attention. Of an encoder alone, the logits at each place."""
        if self.kind is ModelKind.ENCODER:
            return self._read(source, source_padding, None, None, tap, tap)
        memory = _Memory(source, source_padding, tap)
        if self.kind.has_encoder and tap is not None:
            start = torch.full_like(source[:, :1], self.start_id or 0)
            self._read(source, source_padding, start, None, tap, None)
        return memory

    def start_decoding(self, memory: Any, source_padding: Tensor | None = None) -> "ModuleDecoder":
        """Begins to write; nothing is cached."""
        return ModuleDecoder(self, memory, source_padding)

    def decode(
        self,
        target: Tensor,
        memory: Any,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
        first_query: int = 0,
    ) -> Tensor:
        """Runs all rows at once; the tap sees those from `first_query` on."""
        if not self.kind.has_encoder:
            return self._read(None, None, target, target_padding, tap, tap, first_query)
        return self._read(memory.source, source_padding, target, target_padding, memory.tap, tap, first_query)

    def answer(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits that the module itself gives for a batch, (batch, step, vocabulary), with nothing hidden from it."""
        both = (source, target) if self.kind.has_encoder else (target,)
        ids = [each.to(self.passes.device) for each in both]
        with prepared(self.model, has_run=True):
            returned = self.passes.call(*(each if self.batch_first else each.T for each in ids))
        return logits_of(returned, *target.shape, self.batch_first)

    def attention_block(self, kind: Kind, layer: int) -> AttentionBlock:
        """An empty block: what stands around an attention is not known."""
        return AttentionBlock()

    def _read(
        self,
        source: Tensor | None,
        source_padding: Tensor | None,
        target: Tensor | None,
        target_padding: Tensor | None,
        encoder_tap: Tap | None,
        tap: Tap | None,
        first_query: int = 0,
    ) -> Tensor:
        if torch.is_grad_enabled():
            raise OptionError(
                f"Gradients are not available for {type(self.model).__name__}: its attention is seen at the level of torch's "
                "operators, below autograd. Occlusion works for every model that writes."
            )
        shift = None
        if target is not None and target_padding is not None and self.kind.has_prompt and bool(target_padding[:, 0].any()):
            # A prompt stands behind its padding, and its first token is at the first position for the module.
            shift = target_padding.int().cumprod(1).sum(1)
            target, target_padding = (_rolled(each, -shift) for each in (target, target_padding))
        hidden: dict[Kind, Tensor] = {}
        if source_padding is not None:
            hidden |= {"encoder": source_padding, "cross": source_padding}
        if target_padding is not None:
            hidden["decoder"] = target_padding
        ids = [each if self.batch_first else each.T for each in (source, target) if each is not None]
        n, reads = len(cast(Tensor, source if target is None else target)), source if target is None else target
        changes = _Tapped(self, {"encoder": encoder_tap, "decoder": tap, "cross": tap}, hidden, shift, first_query)
        is_plain = encoder_tap is None and tap is None and not hidden
        try:
            done = self.passes.run(*ids, changes=None if is_plain else changes)
            changes.check_heads()
        except NotChangeable as error:
            raise OptionError(str(error)) from None
        names = [softmax.module for softmax in done.seen.softmaxes]
        expected = [None if place is None else place.module for place in self.places]
        if len(names) != len(expected) or any(b not in (None, a) for a, b in zip(names, expected, strict=False)):
            raise ModelError(
                f"{type(self.model).__name__} attends otherwise than when it was wrapped: with {len(names)} softmaxes, "
                f"and before with {len(expected)}. It cannot be shown here."
            )
        logits = logits_of(done.returned, n, cast(Tensor, reads).shape[1], self.batch_first)
        return logits if shift is None else _rolled(logits, shift)


class ModuleDecoder:
    """See `decoding.reader.IncrementalDecoder`. Each step computes all rows anew."""

    def __init__(self, reader: ModuleReader, memory: Any, source_padding: Tensor | None) -> None:
        self._reader, self._memory, self._padding = reader, memory, source_padding
        self._ids: Tensor | None = None

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """Logits of the new tokens; the tap sees all rows."""
        self._ids = tokens if self._ids is None else torch.cat([self._ids, tokens], 1)
        target_padding = None
        if self._reader.kind.has_prompt and self._padding is not None:
            target_padding = nn.functional.pad(self._padding, (0, self._ids.shape[1] - self._padding.shape[1]))
        # A tap that changes nothing sees the new rows alone, as of a cache; any other has to change earlier rows each time.
        first = self._ids.shape[1] - tokens.shape[1] if getattr(tap, "changes_nothing", False) else 0
        logits = self._reader.decode(self._ids, self._memory, self._padding, target_padding, tap=tap, first_query=first)
        return logits[:, -tokens.shape[1] :]

    def reorder(self, rows: Tensor) -> None:
        """Sentences and their sources."""
        choose = lambda each: None if each is None else each.index_select(0, rows)  # noqa: E731
        self._ids, self._padding = choose(self._ids), choose(self._padding)
        if self._memory is not None:
            memory = self._memory
            self._memory = replace(memory, source=choose(memory.source), padding=choose(memory.padding))


def logits_of(returned: Any, n_texts: int, n_steps: int, batch_first: bool) -> Tensor:
    """The logits in what a module returned, float (batch, step, vocabulary): `.logits`, or the first tensor. Probabilities
    become their logarithms.

    Raises:
        OptionError: there is nothing of that shape.
    """
    first = getattr(returned, "logits", None)
    if first is None:
        first = returned[0] if isinstance(returned, tuple | list) and returned else returned
    if isinstance(returned, dict):
        first = returned.get("logits")
    if isinstance(first, Tensor) and first.is_floating_point():
        if first.dim() == 2 and first.shape[0] == n_texts * n_steps:
            first = first.unflatten(0, (n_texts, n_steps) if batch_first else (n_steps, n_texts))
        if first.dim() == 3:
            logits = first if batch_first else first.transpose(0, 1)
            if logits.shape[:2] == (n_texts, n_steps):
                logits = logits if logits.dtype == torch.double else logits.float()
                if bool((logits >= 0).all()) and bool(((logits.sum(-1) - 1).abs() < _SAME).all()):
                    return logits.log()
                return logits
    given = f"a tensor {tuple(first.shape)}" if isinstance(first, Tensor) else type(returned).__name__
    is_turned = batch_first and isinstance(first, Tensor) and first.dim() == 3 and first.shape[:2] == (n_steps, n_texts)
    way = ", and of what it returns .transpose(0, 1)" if is_turned else ""
    raise OptionError(
        f"the module returns {given} for {n_texts} sentences of {n_steps} tokens; logits of the shape ({n_texts}, {n_steps}, "
        f"vocabulary) are needed, alone, first in a tuple, or as logits. Say with call= how it is run{way}."
    )


class _Tapped:
    """Shows a tap the attention of a pass, and applies what it changes (`operators.Changes`).

    Args:
        reader: of the module.
        taps: of each kind.
        hidden: of each kind bool (batch, key), padding that no query may see.
        shift: how many positions of padding stand before each prompt, for the tap, or None.
        first_query: the first of the decoder's rows that the tap sees; above 0 only for one that changes nothing.
    """

    def __init__(
        self,
        reader: ModuleReader,
        taps: dict[Kind, Tap | None],
        hidden: dict[Kind, Tensor],
        shift: Tensor | None,
        first_query: int,
    ) -> None:
        self._reader, self._taps, self._hidden = reader, taps, hidden
        self._shift, self._first_query = shift, first_query
        self._whole: dict[tuple[Site, TapName], Tensor] = {}
        self._met: set[int] = set()

    def weights(self, softmax: Softmax) -> Tensor:
        """The weights that are applied, with what padding and the tap change of them."""
        place = self._place(softmax)
        applied = softmax.applied
        assert applied is not None
        if place is None:
            return applied
        tap, layout = self._taps[place.site.kind], place.layout
        before, given = layout.standard(softmax.masked), layout.standard(applied)
        masked = before
        if (padding := self._hidden.get(place.site.kind)) is not None:
            masked = masked | padding[:, None, None, :]
        if tap is not None and "scores" in tap.names:
            scores = softmax.before_mask if softmax.before_mask is not None else softmax.scores
            if scores is not None:
                scores = layout.standard(scores)
                # What a mask has put there is no score; of weights that were multiplied with it only their logarithm is known.
                unknown = scores == -math.inf if softmax.before_mask is not None else before | (scores == -math.inf)
                self._call(tap, place, "scores", scores.masked_fill(unknown, math.nan))
        if tap is not None and "mask" in tap.names:
            masked = self._call(tap, place, "mask", masked)
        if masked is not before and not torch.equal(masked, before):
            given = self._masked_anew(place, softmax, before, masked, given)
        seen = given.masked_fill(masked.all(-1, keepdim=True) & masked, 0.0) if masked is not before else given
        if tap is not None and "weights" in tap.names:
            seen = self._call(tap, place, "weights", seen)
        return applied if seen is given and masked is before else layout.own(seen, softmax.weights)

    def heads(self, softmax: Softmax, heads: Tensor) -> Tensor:
        """The product of each head, with what the tap changes of it."""
        place, tap = self._place(softmax), self._heads_tap(softmax.number)
        if place is None or tap is None:
            return heads
        self._met.add(softmax.number)
        given = place.layout.standard(heads)
        changed = self._call(tap, place, "heads", given)
        return heads if changed is given else place.layout.own(changed, softmax.weights)

    def check_heads(self) -> None:
        """After the pass.

        Raises:
            NotChangeable: a tap was to see the product of a head, and it was not met.
        """
        for number, place in enumerate(self._reader.places):
            if place is not None and self._heads_tap(number) is not None and number not in self._met:
                raise NotChangeable(
                    f"What the heads of {self._where(place)} cannot be seen or changed: how their weights meet their "
                    "values is not known."
                )

    def _heads_tap(self, number: int) -> Tap | None:
        place = self._reader.places[number] if number < len(self._reader.places) else None
        tap = None if place is None else self._taps[place.site.kind]
        return tap if tap is not None and "heads" in tap.names else None

    def _where(self, place: AttentionPlace) -> str:
        return f"the {KIND_TITLES[place.site.kind]} of {place.module or type(self._reader.model).__name__}"

    def _place(self, softmax: Softmax) -> AttentionPlace | None:
        places = self._reader.places
        return places[softmax.number] if softmax.number < len(places) else None

    def _call(self, tap: Tap, place: AttentionPlace, name: TapName, value: Tensor) -> Tensor:
        """Lets a tap change one intermediate, (batch, head, query, last).

        Where the heads of a layer are computed one by one, it sees all of them so far, and zeros in the place of the others.
        Of a module in half precision it sees single: numpy has no bfloat16.
        """
        site, n_heads = place.site, self._reader.sizes.heads[place.site.kind]
        own = value
        if value.dtype in (torch.bfloat16, torch.half):
            value = value.float()
        if self._shift is not None:
            value = _rolled(value, self._shift, 2)
            value = value if name == "heads" else _rolled(value, self._shift, 3)
        given = value
        if value.shape[1] < n_heads:
            if place.head == 0:
                self._whole[site, name] = value.new_zeros(value.shape[0], n_heads, *value.shape[2:])
            given = self._whole[site, name].clone()
            given[:, place.head : place.head + value.shape[1]] = value
            self._whole[site, name] = given
        elif name == "mask" and bool((value == value[:, :1]).all()):
            given = value[:, :1]
        if self._first_query and site.kind != "encoder":
            tap(site._replace(first_query=self._first_query), name, given[:, :, self._first_query :])
            return own
        changed = tap(site, name, given)
        if changed is given and self._shift is None:
            return own
        if value.shape[1] < n_heads:
            if changed.shape[1] > 1:
                changed = changed[:, place.head : place.head + value.shape[1]]
            self._whole[site, name][:, place.head : place.head + value.shape[1]] = changed
        changed = changed.expand_as(value)
        if self._shift is not None:
            changed = _rolled(changed, -self._shift, 2)
            changed = changed if name == "heads" else _rolled(changed, -self._shift, 3)
        return changed.to(own.dtype)

    def _masked_anew(self, place: AttentionPlace, softmax: Softmax, before: Tensor, masked: Tensor, given: Tensor) -> Tensor:
        """The weights under another mask. Rows whose mask stays as it was keep theirs."""
        layout, where = place.layout, self._where(place)
        weights = layout.standard(softmax.weights)
        kept = torch.where(before, 0.0, weights)
        if not torch.allclose(torch.where(before, 0.0, given), kept, atol=_SAME, equal_nan=True):
            raise NotChangeable(
                f"The mask of {where} cannot be changed: what it does with its weights after the softmax is unknown."
            )
        scores = softmax.before_mask
        if scores is None:
            scores = softmax.scores
            if scores is None or bool((before & ~masked).any()):
                raise NotChangeable(
                    f"The mask of {where} cannot be opened: the scores under it are unknown. Close keys, or force weights."
                )
        scores = layout.standard(scores)
        anew = scores.masked_fill(masked, -math.inf).softmax(-1).masked_fill(masked, 0.0).to(given.dtype)
        is_same = (masked == before).all(-1, keepdim=True)
        return torch.where(is_same, given, anew)


def _rolled(values: Tensor, shift: Tensor, axis: int = 1) -> Tensor:
    """Each sentence rolled by its own shift along an axis."""
    n = values.shape[axis]
    index = (torch.arange(n, device=values.device)[None] - shift[:, None]) % n
    shape = [1] * values.dim()
    shape[0], shape[axis] = index.shape
    return values.gather(axis, index.view(shape).expand(values.shape))
