"""Tells the encoder's, the decoder's and cross-attention apart, by asking the module again.

Names and shapes do not tell it: source and target may be equally long, and one module may be used three times. So the module is
asked once more with a target that is one token shorter, and once with such a source. Rows that change their number with the
target are of the target, and so are columns. What does not come out clean is no attention between tokens, or is refused.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal

import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import count_words
from transformer_viz.readers.modules.operators import Seen, Softmax, is_parameter
from transformer_viz.readers.modules.passes import Pass, Passes
from transformer_viz.readers.modules.running import Place
from transformer_viz.terms import KINDS, Kind

Side = Literal["source", "target"]


@dataclass(frozen=True)
class KnownAttention:
    """One call of attention whose kind is known.

    Attributes:
        softmax: the number of its softmax in the pass.
        module: the name of the module that computes it.
        kind: which attention.
        query_axis: the axis of its queries, of the rows of its softmax.
        group: calls with the same number are heads of one layer.
    """

    softmax: int
    module: str
    kind: Kind
    query_axis: int
    group: int


@dataclass(frozen=True)
class Unseen:
    """Attention that cannot be shown.

    Attributes:
        module: the name of the module; empty for the model itself.
        why: the reason.
        kind: which attention, where that can be told.
    """

    module: str
    why: str
    kind: Kind | None = None


@dataclass(frozen=True)
class Found:
    """The attention of a module: what is known, and what cannot be shown."""

    attentions: tuple[KnownAttention, ...]
    unseen: tuple[Unseen, ...]


@dataclass(frozen=True)
class _Change:
    """The change of a softmax's shape when one side had one token less: rows by axis, and columns."""

    rows: tuple[int, ...]
    columns: int


def find_attention(passes: Passes, first: Pass, source: Tensor | None, target: Tensor | None, pad_id: int | None) -> Found:
    """Finds out what each softmax of a pass is, by up to three passes more.

    Args:
        passes: of the module.
        first: the pass over the ids as they are.
        source: ids (1, length) or (length, 1), or None.
        target: the same.
        pad_id: of padding, if there is any.

    Raises:
        OptionError: the module cannot be asked, or does not answer cleanly.
    """
    sides: dict[Side, Tensor] = {}
    if source is not None:
        sides["source"] = source
    if target is not None:
        sides["target"] = target
    # It ran once, so what fails from here on is no question of how it is called.
    passes = replace(passes, has_run=True)
    changes: dict[Side, list[_Change]] = {}
    others: dict[Side, Seen] = {}
    for side in sides:
        others[side], factor = _asked(passes, sides, side, first.seen)
        pairs = zip(first.seen.softmaxes, others[side].softmaxes, strict=True)
        changes[side] = [_change(one, other, factor) for one, other in pairs]
    lengths = {side: ids.numel() for side, ids in sides.items()}
    known, unseen = [], [Unseen(module, why) for module, why in first.seen.unseen.items()]
    for softmax in first.seen.softmaxes:
        own = {side: of_side[softmax.number] for side, of_side in changes.items()}
        tables = [others[side].softmaxes[softmax.number] for side in sides]
        answer = _answer(softmax, own, lengths, tables)
        if isinstance(answer, KnownAttention):
            known.append(answer)
        elif answer is not None:
            unseen.append(answer)
    if len(sides) == 1 and known:
        known = [replace(one, kind=_stack(passes, first, known, sides, pad_id)) for one in known]
    attentions, beside = _without_second_stacks(passes, first, _with_groups(passes, first, known, [*sides.values()]), sides)
    return Found(tuple(attentions), (*unseen, *beside))


def _asked(passes: Passes, sides: dict[Side, Tensor], side: Side, seen: Seen) -> tuple[Seen, int]:
    """The softmaxes of a pass with one token less on one side, and 1; or with one more, and −1, where less is not possible."""
    ids, why = sides[side], ""
    axis = 1 if ids.shape[0] == 1 else 0
    shorter, longer = ids.narrow(axis, 0, ids.numel() - 1), torch.cat([ids, ids.narrow(axis, ids.numel() - 1, 1)], axis)
    for other, factor in ((shorter, 1), (longer, -1)):
        if not other.numel():
            continue
        try:
            asked = passes.run(*({**sides, side: other}.values()), is_searching=True).seen
        except OptionError as error:
            why = why or str(error)
            continue
        names, others = ([softmax.module for softmax in each.softmaxes] for each in (seen, asked))
        if names == others:
            return asked, factor
        words = "less" if factor == 1 else "more"
        why = why or (
            f"with one token {words} in its {side} it computes {count_words(len(others), 'softmax', 'softmaxes')} where it "
            f"computed {len(names)}"
        )
    raise OptionError(
        f"which attention of {type(passes.model).__name__} is which cannot be told: asked again with another length of its "
        f"{side}, it does not answer alike: {why.removesuffix('.')}. Give its arrays to Trace.from_arrays."
    )


def _change(one: Softmax, other: Softmax, factor: int) -> _Change:
    if len(one.shape) != len(other.shape):
        return _Change((0,) * (len(one.shape) - 1), 0)
    apart = [factor * (a - b) for a, b in zip(one.shape, other.shape, strict=True)]
    return _Change(tuple(apart[:-1]), apart[-1])


def _answer(
    softmax: Softmax, changes: dict[Side, _Change], lengths: dict[Side, int], others: Sequence[Softmax]
) -> KnownAttention | Unseen | None:
    """Names the kind of a softmax; None where it is no attention between tokens."""
    rows = {side: [axis for axis, n in enumerate(change.rows) if n] for side, change in changes.items()}
    has_rows, has_columns = any(rows.values()), any(change.columns for change in changes.values())
    n_rows = softmax.weights.numel() // softmax.shape[-1]
    if not has_columns:
        # Logits, gates, a mixture of experts or of the rows of a table.
        n_free = max(each.n_free for each in (softmax, *others))
        if softmax.applied is None or softmax.fault or n_free < 2 or softmax.value is None or is_parameter(softmax.value):
            return None
        if not has_rows:
            return Unseen(softmax.module, f"its rows and columns, {softmax.shape}, do not change with source or target")
        if all(_is_same(softmax.value, other.value) for other in others):
            return Unseen(softmax.module, f"it attends to {softmax.shape[-1]} rows of a table, which are no tokens")
        words = f"it attends from {n_rows} rows to {softmax.shape[-1]} columns that are no tokens of source or target"
        return Unseen(softmax.module, words)
    shape = f"a softmax {softmax.shape}"
    if not has_rows:
        return Unseen(softmax.module, f"{n_rows} rows that are no tokens attend to tokens, in {shape}")
    axes = {axis for of_side in rows.values() for axis in of_side}
    if len(axes) > 1 or any(abs(n) > 1 for change in changes.values() for n in (*change.rows, change.columns)):
        return Unseen(softmax.module, f"its rows or columns are not one for each token, in {shape}")
    (axis,) = axes
    n_queries, n_keys = softmax.shape[axis], softmax.shape[-1]
    of_rows = [side for side, change in changes.items() if change.rows[axis]]
    of_columns = [side for side, change in changes.items() if change.columns]
    if len(of_rows) > 1 or len(of_columns) > 1:
        return Unseen(
            softmax.module,
            f"its {n_queries} rows and {n_keys} columns are of source and target together; give all of it as target_ids, with "
            "call= a function of those alone",
        )
    from_, to = of_rows[0], of_columns[0]
    kind: Kind | None = "encoder" if from_ == to == "source" else "decoder" if from_ == to else None
    kind = "cross" if (from_, to) == ("target", "source") else kind
    if kind is None:
        return Unseen(softmax.module, f"its rows are of the {from_} and its columns of the {to}, which no Trace holds")
    if (n_queries, n_keys) != (lengths[from_], lengths[to]):
        expected = f"{count_words(lengths[from_], 'token')} of the {from_}"
        expected += "" if from_ == to else f" and {lengths[to]} of the {to}"
        why = f"it has {n_queries} rows and {n_keys} columns for {expected}"
        n_more = n_keys - lengths[to]
        more = f"; it adds {'a key that is' if n_more == 1 else f'{n_more} keys that are'} no token" if n_more > 0 else ""
        return Unseen(softmax.module, why + more + ("s" if n_more > 1 else ""), kind)
    if softmax.fault:
        return Unseen(softmax.module, softmax.fault, kind)
    if softmax.applied is None:
        return Unseen(softmax.module, f"no product of {shape} with values was seen", kind)
    return KnownAttention(softmax.number, softmax.module, kind, axis, 0)


def _is_same(a: Tensor, b: Tensor | None) -> bool:
    return b is not None and a.shape == b.shape and torch.equal(a, b)


def _stack(passes: Passes, first: Pass, known: Sequence[KnownAttention], sides: dict[Side, Tensor], pad_id: int | None) -> Kind:
    """Tells whether a model of one stack is a decoder, whose rows see nothing later; without a sign, what it was given as."""
    ((side, ids),) = sides.items()
    given: Kind = "decoder" if side == "target" else "encoder"
    is_causal = _is_causal(first.seen, known)
    if is_causal is None:
        real = [number for number in ids.flatten().tolist() if number != pad_id]
        if real:
            try:
                # The same token three times, none of which is padding.
                axis = 1 if ids.shape[0] == 1 else 0
                again = passes.run(torch.full_like(ids.narrow(axis, 0, 1), real[0]).repeat_interleave(3, axis)).seen
                if len(again.softmaxes) == len(first.seen.softmaxes):
                    is_causal = _is_causal(again, known)
            except OptionError:
                pass
    if is_causal is None:
        return given
    return "decoder" if is_causal or side == "target" else "encoder"


def _is_causal(seen: Seen, known: Sequence[KnownAttention]) -> bool | None:
    """Tells whether no row sees a later key, in any call; None where no key is seen after the first row."""
    has_sign = False
    for one in known:
        softmax = seen.softmaxes[one.softmax]
        masked = softmax.masked.movedim(one.query_axis, -2).reshape(-1, softmax.shape[one.query_axis], softmax.shape[-1])
        if masked.shape[-1] != masked.shape[-2]:
            return None
        own = ~masked.diagonal(dim1=-2, dim2=-1)
        earlier = torch.ones(masked.shape[-2:], dtype=torch.bool, device=masked.device).triu(1)
        if bool((earlier & own[:, None, :] & ~masked).any()):
            return False
        has_sign = has_sign or bool((earlier & own[:, None, :] & masked).any())
    return True if has_sign else None


class _OtherHeads:
    """Changes that make some calls write something else, by the numbers of their softmaxes: nothing, or where they write
    nothing, since all is padding, the mean of their values. Or NaN, which is seen even behind a factor of 0."""

    def __init__(self, *numbers: int, is_nan: bool = False) -> None:
        self._numbers, self._is_nan = numbers, is_nan

    def weights(self, softmax: Softmax) -> Tensor:
        applied = softmax.applied
        assert applied is not None
        if softmax.number not in self._numbers:
            return applied
        if self._is_nan:
            return torch.full_like(applied, math.nan)
        return torch.zeros_like(applied) if bool(applied.any()) else torch.full_like(applied, 1 / applied.shape[-1])

    def heads(self, softmax: Softmax, heads: Tensor) -> Tensor:
        return heads


def _with_groups(passes: Passes, first: Pass, known: Sequence[KnownAttention], ids: Sequence[Tensor]) -> list[KnownAttention]:
    """The calls, those in one group that are heads of one layer, each computed by itself.

    They read the same tensor, and what one of them writes changes nothing in the others.
    """
    softmaxes = first.seen.softmaxes

    def may_be_one(a: KnownAttention, b: KnownAttention) -> bool:
        one, other = softmaxes[a.softmax], softmaxes[b.softmax]
        n_heads = one.weights.numel() // (one.shape[a.query_axis] * one.shape[-1])
        return a.kind == b.kind and one.shape == other.shape and n_heads == 1 and one.given is other.given

    same = [False, *(may_be_one(a, b) for a, b in pairwise(known))]
    groups, start, after = [0] * len(known), 0, None
    for i in range(1, len(known)):
        if same[i] and after is None:
            after = passes.run(*ids, changes=_OtherHeads(known[start].softmax)).seen
        is_one = same[i] and after is not None and _is_untouched(softmaxes, after, known[i])
        groups[i] = groups[i - 1] + (not is_one)
        if not is_one:
            start, after = i, None
    return [replace(one, group=group) for one, group in zip(known, groups, strict=True)]


def _without_second_stacks(
    passes: Passes, first: Pass, known: Sequence[KnownAttention], sides: dict[Side, Tensor]
) -> tuple[list[KnownAttention], list[Unseen]]:
    """The calls of one encoder and one decoder, layer after layer, and those of others beside them.

    What the first layer of a stack writes is read by all the later ones. Layers that do not depend on it are of another stack,
    and so is one that stands beside another in their layer: they would be shown as if they followed.
    """
    beside: dict[int, Unseen] = {}

    def leave_out(before: Sequence[KnownAttention], later: Sequence[KnownAttention]) -> None:
        for one in _unread(passes, first, before, later, sides):
            other = before[0].module or "the model itself"
            why = f"it is of another {one.kind} than {other}: neither reads what the other writes"
            beside[one.softmax] = Unseen(one.module, why, one.kind)

    for kind in ("encoder", "decoder"):
        layers = _layers(known, kind)
        if len(layers) > 1:
            leave_out(layers[0], [one for layer in layers[1:] for one in layer])
    for kind in KINDS:
        layers = [layer for layer in _layers(known, kind) if layer[0].softmax not in beside]
        places = [first.seen.softmaxes[layer[0].softmax].place for layer in layers]
        last = 0
        for i in range(1, len(layers)):
            if _is_of_one_layer(places[last], places[i], places):
                leave_out(layers[last], layers[i])
            last = last if layers[i][0].softmax in beside else i
    return [one for one in known if one.softmax not in beside], [*beside.values()]


def _layers(known: Sequence[KnownAttention], kind: Kind) -> list[list[KnownAttention]]:
    return [[*layer] for _, layer in groupby((one for one in known if one.kind == kind), key=lambda one: one.group)]


def _is_of_one_layer(a: Place, b: Place, places: Sequence[Place]) -> bool:
    """Tells whether two calls stand in one entry of the list that tells these places apart."""
    n = next((n for n in range(1, len(a) + 1) if len({place[:n] for place in places}) > 1), 0)
    return n > 0 and a[:n] == b[:n]


def _unread(
    passes: Passes,
    first: Pass,
    before: Sequence[KnownAttention],
    later: Sequence[KnownAttention],
    sides: dict[Side, Tensor],
) -> list[KnownAttention]:
    """Those of the later calls that do not depend on what the calls before write."""
    softmaxes, begin = first.seen.softmaxes, [one.softmax for one in before]
    after = passes.run(*sides.values(), changes=_OtherHeads(*begin)).seen
    apart = [one for one in later if _is_untouched(softmaxes, after, one)]
    if apart:
        # In a new model what a layer writes may be multiplied with zeros. Not every module takes NaN.
        with suppress(OptionError):
            after = passes.run(*sides.values(), changes=_OtherHeads(*begin, is_nan=True)).seen
    return [one for one in apart if _is_untouched(softmaxes, after, one)]


def _is_untouched(softmaxes: Sequence[Softmax], after: Seen, one: KnownAttention) -> bool:
    if len(after.softmaxes) <= one.softmax:
        return False
    before, now = softmaxes[one.softmax], after.softmaxes[one.softmax]
    # Where a mask hides every key the scores are alike whatever was read, and the values are not.
    if before.value is not None and not _is_same(before.value, now.value):
        return False
    if before.scores is not None and now.scores is not None:
        return torch.equal(before.scores, now.scores)
    return torch.equal(before.weights, now.weights)
