"""Scores before their mask: followed back from a softmax through the operators that made them, to their product."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor

from transformer_viz.model.masks import HIDDEN
from transformer_viz.readers.modules.operator_roles import MOVES, VIEWS, aten


class Made(NamedTuple):
    """The operator that made a tensor; `before` is what an operator that works in place was given."""

    tensor: Tensor
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    before: Tensor | None


class BeforeMask(NamedTuple):
    """Scores under a mask, as far as they are known. Where nothing hides anything, the scores themselves and None.

    Attributes:
        scores: before the mask, None where they are not known.
        hidden: what it hides, or None.
        is_traced: whether they were followed back to their product.
    """

    scores: Tensor | None
    hidden: Tensor | None
    is_traced: bool


UNTRACED = BeforeMask(None, None, is_traced=False)


class MadeTensors:
    """Remembers how the tensors of a pass were made since its last softmax, as far as they may be scores.

    Most come from a product and were only moved: nothing more is known of them and none is held, or the hidden states of a
    layer would be. What may have been masked is held with what made it, so that its id is used by no other.
    """

    def __init__(self) -> None:
        self._begun: dict[int, ref[Tensor]] = {}
        self._made: dict[int, tuple[Any, ...]] = {}
        self._is_traced = False

    def clear(self) -> None:
        """Forgets all."""
        self._begun.clear()
        self._made.clear()

    def begun(self, made: Tensor) -> None:
        """Scores come from here: a product of matrices, or what is taken of whole rows."""
        self._begun[id(made)] = ref(made)

    def carried(self, made: Tensor, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remembers a tensor that an operator moved or scaled; a factor that is a tensor may be a mask."""
        given = args[0]
        if len(args) > 1 and isinstance(args[1], Tensor):
            self._made[id(made)] = made, func, args, kwargs, None
        elif (begun := self._begun.get(id(given))) is not None and begun() is given:
            self._begun[id(made)] = ref(made)
        elif id(given) in self._made or (type(given) is list and any(map(self._is_known, given))):
            self._made[id(made)] = made, func, args, kwargs, None

    def laid_out(self, made: Tensor, given: Tensor) -> None:
        """Remembers a tensor that has the elements of another, which nothing masked."""
        if self._is_begun(given):
            self.begun(made)

    def changed(self, made: Tensor, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], before: Tensor | None) -> None:
        """Remembers a tensor that may mask scores; `before` is what one that works in place was given."""
        self._begun.pop(id(made), None)
        self._made[id(made)] = made, func, args, kwargs, before

    def copied(self, given: Tensor) -> Tensor:
        """Remembers a tensor before it changes in place, known to be made as that was."""
        before = given.clone()
        if self._is_begun(given):
            self.begun(before)
        elif (earlier := self._made.get(id(given))) is not None:
            self._made[id(before)] = before, *earlier[1:]
        return before

    def is_changed(self, given: Any) -> bool:
        """Tells whether a tensor may be scores that were masked."""
        return id(given) in self._made

    def _is_begun(self, given: Any) -> bool:
        begun = self._begun.get(id(given))
        return begun is not None and begun() is given

    def _is_known(self, given: Any) -> bool:
        return id(given) in self._made or self._is_begun(given)

    def _how(self, tensor: Any) -> Made | None:
        """Looks up how a tensor was made; whole numbers are no scores."""
        made = self._made.get(id(tensor))
        return None if made is None or not made[0].is_floating_point() else Made._make(made)

    def before_mask(self, scores: Tensor) -> BeforeMask:
        """Follows scores back to where no mask hid anything of them."""
        self._is_traced = True
        before, hidden = self._before(scores)
        return BeforeMask(before, hidden, self._is_traced)

    def _before(self, scores: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The scores before a mask, and what it hides; where nothing hides anything, the scores and None."""
        if self._is_begun(scores):
            return scores, None
        made = self._how(scores)
        if made is None:
            self._is_traced = False
            return scores, None
        packet, args = made.func.overloadpacket, made.args
        first = args[0] if made.before is None else made.before
        if packet in (aten.masked_fill, aten.masked_fill_):
            before, hidden = self._before(first)
            if not _is_low(args[2]):
                return before if before is None else made.func(before.clone(), *args[1:]), hidden
            return before, _either(hidden, args[1].expand(scores.shape))
        if packet in (aten.index_put, aten.index_put_):
            before, hidden = self._before(first)
            if before is None or not _is_low(args[2]):
                return None, None
            filled = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
            # The method takes no gaps between indices, as in scores[..., rows, columns] = -inf.
            aten.index_put_(filled, args[1], torch.tensor(True, device=scores.device))
            return before, _either(hidden, filled)
        if packet is aten.where and len(args) == 3:
            for i in (1, 2):
                if _is_low(args[i]):
                    before, hidden = self._before(args[3 - i])
                    condition = args[0] if i == 1 else ~args[0]
                    own = None if before is None else before.expand(scores.shape)
                    return own, _either(hidden, condition.expand(scores.shape))
            return scores, None
        if packet in (aten.add, aten.add_, aten.sub, aten.sub_, aten.baddbmm):
            return self._before_added(made, first, scores)
        return self._before_carried(made, scores)

    def _before_added(self, made: Made, first: Any, scores: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Before an addition: a mask is what has numbers that are as low."""
        args = list(made.args)
        args[0] = first
        for i in (0, 1):
            if made.func.overloadpacket is aten.baddbmm and i == 1:
                break
            added = args[i]
            if not isinstance(added, Tensor) or not added.is_floating_point():
                continue
            sign = -1 if made.func.overloadpacket in (aten.sub, aten.sub_) and i == 1 else 1
            if self._is_of_product(added):
                continue
            low = (-added if sign < 0 else added).le(HIDDEN)
            if bool(low.any()):
                hidden = low.expand(scores.shape)
                clean = [*args]
                clean[i] = added.masked_fill(low, 0.0)
                inner = None
                if made.func.overloadpacket is not aten.baddbmm and isinstance(args[1 - i], Tensor):
                    before, inner = self._before(self._unmultiplied(args[1 - i], low))
                    if before is None:
                        return None, _either(hidden, inner)
                    clean[1 - i] = before
                clean[0] = clean[0].expand(scores.shape).clone()
                return made.func(*clean, **made.kwargs), _either(hidden, inner)
        if made.func.overloadpacket is aten.baddbmm:
            return scores, None
        # A bias; what was masked before it stays so.
        before, hidden = self._before(first)
        if hidden is None or before is None:
            return scores, None
        return made.func(before.clone(), *made.args[1:], **made.kwargs), hidden

    def _unmultiplied(self, scores: Tensor, low: Tensor) -> Tensor:
        """The scores before they were multiplied with 0 where a mask is added, as in `s * m - 1e9 * (1 - m)`."""
        made = self._how(scores)
        if made is None or made.func.overloadpacket is not aten.mul or not isinstance(made.args[1], Tensor):
            return scores
        for i in (0, 1):
            factor = made.args[i]
            if factor.numel() > 1 and bool(((factor == 0) | (factor == 1)).all()) and bool((low | (factor != 0)).all()):
                return made.args[1 - i]
        return scores

    def _is_of_product(self, tensor: Tensor) -> bool:
        """Tells whether a tensor is scores, and no mask: it was made of a product."""
        if self._is_begun(tensor):
            return tensor.is_floating_point()
        made = self._how(tensor)
        if made is None:
            return False
        given = [part for _, part in _tensors(made.args)] if made.before is None else [made.before, *made.args[1:]]
        return made.func.overloadpacket is aten.baddbmm or any(
            self._is_of_product(part) for part in given if isinstance(part, Tensor)
        )

    def _before_carried(self, made: Made, scores: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Before a factor, a cast or a view of scores that were masked before it."""
        packet, args = made.func.overloadpacket, list(made.args)
        args[0] = args[0] if made.before is None else made.before
        place = next((i for i, given in enumerate(args) if self._how(given) is not None or self._is_begun(given)), None)
        if place is None:
            self._is_traced = False
            return scores, None
        before, hidden = self._before(args[place])
        if hidden is None or before is None:
            return scores, hidden
        is_view = packet in VIEWS or packet in MOVES
        if is_view:
            args[place] = hidden
            hidden = made.func(*args, **made.kwargs)
        args[place] = before if is_view or place else before.clone()
        before = made.func(*args, **made.kwargs)
        if isinstance(before, list | tuple):
            return None, None
        return before, hidden.expand(scores.shape)


def _either(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a | b


def _is_low(value: Any) -> bool:
    """Tells whether a number, or every number of a tensor, is as low as that of a mask."""
    return bool((value <= HIDDEN).all()) if isinstance(value, Tensor) else isinstance(value, int | float) and value <= HIDDEN


def _tensors(args: tuple[Any, ...]) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    for i, given in enumerate(args):
        if isinstance(given, Tensor):
            yield (i,), given
        elif isinstance(given, list | tuple):
            yield from (((i, j), part) for j, part in enumerate(given) if isinstance(part, Tensor))
