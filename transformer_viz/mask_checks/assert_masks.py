"""`assert_masks`: a test of a port's masks, by what it answers when a token is replaced.

Which key each query sees is found by replacing one token after the other; what it should see is known from the rule, or from
what transformers does for a configuration. Where attention can be seen, each layer's mask is compared too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.mask_checks.changes import Rows
from transformer_viz.mask_checks.port import Port
from transformer_viz.schema import whole_number
from transformer_viz.terms import Kind

PortRule = Literal[
    "causal",
    "window",
    "prefix",
    "encoder",
    "cross",
    "layers",
    "padding",
    "batch invariance",
    "left padding",
    "positions",
    "cache",
]
_EXACT, _COARSE = 1e-9, 1e-4
_ROWS, _TIMES = 3, 2
"""Texts of a batch, and how often each token is replaced."""
_SHORTEST, _LONGEST = 8, 64
_TARGET = 2
"""By how many tokens a target is shorter than its source, so that the two cannot be taken for one another."""


class MaskError(AssertionError):
    """A mask is wrong: what was broken is in `faults`."""

    def __init__(self, faults: "Sequence[MaskFault]") -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class MaskFault:
    """The first cell that is wrong by one rule. Positions count from 0.

    Attributes:
        rule: which rule.
        kind: which attention.
        query: the query; of a padded batch in the batch.
        key: the key; None where what is wrong is no one key's.
        is_seen: whether the query sees the key, which it must not; otherwise it does not see it and should.
        would_be: which keys the query should see, and which it sees.
        layer: where attention can be seen; from 0.
    """

    rule: PortRule
    kind: Kind
    query: int
    key: int | None
    is_seen: bool
    would_be: str
    layer: int | None = None

    def __str__(self) -> str:
        place = f"{self.kind}" + ("" if self.layer is None else f" layer {self.layer + 1}") + f", query {self.query + 1}"
        if self.key is None:
            return f"{self.rule}: {place}: {self.would_be}"
        does = "is seen and must not be" if self.is_seen else "is not seen and should be"
        return f"{self.rule}: {place}, key {self.key + 1} {does}; {self.would_be}"


@dataclass(frozen=True)
class MaskChecks:
    """The rules that `assert_masks` has checked and found kept, and those that it could not check."""

    checked: tuple[PortRule, ...]
    left_out: tuple[str, ...]


def assert_masks(
    model: Callable[..., Any],
    *,
    like: Any = None,
    causal: bool | None = None,
    window: int | None = None,
    prefix: int = 0,
    layers: int = 1,
    vocabulary_size: int | None = None,
    pad_id: int | None = 0,
    left_padding: bool | None = None,
    length: int | None = None,
    seed: int = 0,
) -> MaskChecks:
    """Raises a `MaskError`, an AssertionError, where a model's masks are not as they should be.

    Args:
        model: a module, a Hugging Face model, or a function, from ids (batch, length), or from source and target ids, to
            logits. By their names it is given an `attention_mask` (1 = a real token), `position_ids`, and a `past_key_values`
            or `cache` that it returns beside its logits.
        like: a configuration of transformers or a folder with one, whose masks it should have in each layer (see `masks`). By
            default that of a Hugging Face model itself.
        causal: without `like`: whether no token sees a later one; True unless this says otherwise. With a source it is of the
            target.
        window: without `like`: how many tokens a query sees in each layer, itself counted.
        prefix: without `like`: so many first tokens see each other.
        layers: without `like`, for a window: how many layers there are.
        vocabulary_size: ids are from 0 to this - 1; by default that of its configuration or its first embedding.
        pad_id: what padding is; None where it knows none, which is then not checked.
        left_padding: whether a batch may be padded on the left; by default for a decoder alone that takes an attention_mask.
        length: tokens of a text; by default as many as show the edge of the window.
        seed: another seed draws other texts.

    Returns:
        Which rules hold, `checked`, and what was `left_out`.

    Raises:
        MaskError: the first wrong query and key of each broken rule, and what it would be.
        OptionError: an impossible option, or the model fails.

    Example:
        >>> import torch
        >>> import transformer_viz as tv
        >>> embedding, output = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 9)
        >>> def sound(ids):  # each row adds up the tokens so far
        ...     return output(embedding(ids).cumsum(1))
        ...
        >>> checks = tv.assert_masks(sound, vocabulary_size=9, pad_id=None)
        >>> checks.checked, checks.left_out
        (('batch invariance', 'causal'), ('padding: pad_id is None',))
        >>> def leaky(ids):  # each row adds up all tokens
        ...     return output(embedding(ids).sum(1, keepdim=True).expand(-1, ids.shape[1], -1))
        ...
        >>> try:
        ...     tv.assert_masks(leaky, vocabulary_size=9, pad_id=None)
        ... except AssertionError:
        ...     print("a token sees a later one")
        a token sees a later one
    """
    __tracebackhide__ = True
    check = _PortCheck(model, like, causal, window, prefix, layers, vocabulary_size, pad_id, left_padding, length, seed)
    faults = check.faults()
    if faults:
        raise MaskError(faults)
    return MaskChecks(tuple(dict.fromkeys(check.checked)), tuple(check.left_out))


class _PortCheck:
    """One test of one model."""

    def __init__(
        self,
        model: Callable[..., Any],
        like: Any,
        causal: bool | None,
        window: int | None,
        prefix: int,
        layers: int,
        vocabulary_size: int | None,
        pad_id: int | None,
        left_padding: bool | None,
        length: int | None,
        seed: int,
    ) -> None:
        if not callable(model):
            raise OptionError(
                f"a module or a function is needed, not {type(model).__name__}; "
                "what wrap or load_model returns is for check_masks"
            )
        self._port, self._generator = Port(model), torch.Generator().manual_seed(seed)
        self.checked, self.left_out = list[PortRule](), list[str]()
        config = getattr(model, "config", None)
        self._like = config if like is None and hasattr(config, "model_type") else like
        if self._like is not None and (causal is not None or window is not None or prefix):
            raise OptionError("like and a configuration say what the masks are; leave out causal, window and prefix")
        self._causal, self._prefix = causal is not False, whole_number("prefix", prefix, 0, _LONGEST)
        self._window = None if window is None else whole_number("window", window, 1, 10_000_000)
        self._layers = whole_number("layers", layers, 1, 1000)
        if config is not None and isinstance(getattr(config, "pad_token_id", None), int) and pad_id == 0:
            pad_id = config.pad_token_id
        self._pad = pad_id
        self._real = self._real_ids(model, config, vocabulary_size)
        self._n = self._length(length)
        self._left = left_padding
        self._own: Kind = "decoder"
        self._is_apart = True

    def _real_ids(self, model: Any, config: Any, vocabulary_size: int | None) -> Tensor:
        if vocabulary_size is None and config is not None and hasattr(config, "get_text_config"):
            vocabulary_size = config.get_text_config().vocab_size
        if vocabulary_size is None and isinstance(model, nn.Module):
            tables = (one.num_embeddings for one in model.modules() if isinstance(one, nn.Embedding))
            vocabulary_size = next(tables, None)
        if vocabulary_size is None:
            raise OptionError("vocabulary_size is needed: the model does not say how many tokens it knows")
        whole_number("vocabulary_size", vocabulary_size, 3, 10_000_000)
        settings = config.to_dict() if hasattr(config, "to_dict") else {}
        special = {value for name, value in settings.items() if name.endswith("token_id") and type(value) is int}
        real = [i for i in range(min(vocabulary_size, 10_000)) if i not in {*special, self._pad}]
        if len(real) < 2:
            raise OptionError(f"of {vocabulary_size} ids only {len(real)} are no special ones; at least 2 are needed")
        return torch.tensor(real)

    def _length(self, length: int | None) -> int:
        if length is not None:
            return whole_number("length", length, 4, 512)
        reach = 0 if self._window is None else self._layers * (self._window - 1) + 3
        if self._like is not None:
            reach = 12
        return min(max(_SHORTEST, reach, self._prefix + 4), _LONGEST)

    # ---- what should be

    def _expected(self, n: int, n_target: int) -> dict[Kind, list[np.ndarray]]:
        """The keys that each layer should let each query see, bool (query, key), by kind."""
        if self._like is not None:
            from transformer_viz.config_masks.masks import masks

            expected = masks(self._like, lengths=n, target_lengths=n_target if self._port.two else None)
            return {kind: [~one.masked[0] for one in expected.layers if one.kind == kind] for kind in expected.kinds}
        m = n_target if self._port.two else n
        query, key = np.arange(m)[:, None], np.arange(m)[None, :]
        seen = key <= query if self._causal else np.ones((m, m), dtype=bool)
        if self._window is not None:
            seen &= (key > query - self._window) & (key < query + self._window)
        seen |= (key < self._prefix) & (query < self._prefix)
        own: list[np.ndarray] = [seen] * self._layers
        if not self._port.two:
            return {"decoder" if self._causal else "encoder": own}
        return {"encoder": [np.ones((n, n), dtype=bool)], "decoder": own, "cross": [np.ones((m, n), dtype=bool)]}

    # ---- the rules

    def faults(self) -> list[MaskFault]:
        """The first fault of each rule."""
        port, n = self._port, self._n
        n_target = n - _TARGET
        expected = self._expected(n, n_target)
        self._own = "decoder" if port.two or "decoder" in expected else "encoder"
        try:
            source, target = self._drawn(_ROWS, n), self._drawn(_ROWS, n_target) if port.two else None
            base = port(source, target=target)
        except OptionError:
            if n <= _SHORTEST:
                raise
            self._n = n = _SHORTEST
            n_target = n - _TARGET
            expected = self._expected(n, n_target)
            source, target = self._drawn(_ROWS, n), self._drawn(_ROWS, n_target) if port.two else None
            base = port(source, target=target)
        self._check_deterministic(base, source, target)
        faults = list[MaskFault | None]()
        faults += self._of_layers(expected, source[:1], None if target is None else target[:1])
        of_batches = list(self._of_batches(source, target, base))
        self._is_apart = not of_batches
        own = self._own
        if port.two:
            assert target is not None
            faults.append(self._reached(own, base, "target", source, target, expected[own]))
            faults.append(self._sees_source(base, source, target, expected))
        else:
            faults.append(self._reached(own, base, "source", source, None, expected[own]))
        faults += of_batches
        if self._pad is None:
            self.left_out.append("padding: pad_id is None")
        else:
            faults += self._of_padding(own, source, target)
        if port.cache is not None and own == "decoder":
            faults.append(self._of_cache(base, source))
        return [fault for fault in faults if fault is not None]

    def _check_deterministic(self, base: Tensor, source: Tensor, target: Tensor | None) -> None:
        if bool((self._port(source, target=target) != base).any()):
            raise OptionError("the model gave two answers to the same ids, so nothing can be said of its masks; call .eval()")

    def _of_layers(self, expected: dict[Kind, list[np.ndarray]], source: Tensor, target: Tensor | None) -> Iterator[MaskFault]:
        """Finds, where attention can be seen, the first cell of the first layer that is another one."""
        model = self._port.model
        if not isinstance(model, nn.Module):
            return
        from transformer_viz.tracing.adapters import trace_module

        try:
            ids = (source[0], target[0]) if target is not None else (None, source[0])
            if target is None and "encoder" in expected:
                ids = (source[0], None)
            trace = trace_module(model, *ids, pad_id=self._pad)
        except (TransformerVizError, RuntimeError):
            self.left_out.append("layers: its attention cannot be seen, so that no layer is named")
            return
        self.checked.append("layers")
        for kind in trace.kinds:
            attention, layers = trace.attentions[kind], expected.get(kind, [])
            for number, layer in enumerate(attention.layers):
                seen = attention.head_reasons(layer, 0) == 0
                should = layers[number] if len(layers) == len(attention.layers) else layers[0] if len(layers) == 1 else None
                if should is not None and should.shape == seen.shape and (cell := _first(seen != should)) is not None:
                    yield self._fault("layers", kind, cell, seen, should, layer)
                    return

    def _reached(
        self, kind: Kind, base: Tensor, side: Literal["source", "target"], source: Tensor, target: Tensor | None, layers: Any
    ) -> MaskFault | None:
        """The first key whose token changes a query's output though no layer lets it through, or does not though one does."""
        leaks, seen = self._influence(base, side, source, target)
        should = _reach(layers)
        rule: PortRule = "causal" if kind == "decoder" else "encoder"
        is_near = any(not np.array_equal(one, np.tril(np.ones_like(one))) for one in layers) if kind == "decoder" else False
        future = np.triu(np.ones_like(should), 1)
        self.checked.append(rule)
        if is_near and not should[-1, 0]:
            self.checked.append("window")
        elif self._window is not None:
            self.left_out.append(f"window: its edge is not within {len(should)} tokens; give a greater length")
        cell, found = _first(leaks & ~should), leaks
        if cell is None:
            cell, found = _first(should & ~seen), seen
        if cell is None:
            return None
        if should[0, : max(self._prefix, 1)].sum() > 1 and cell[0] < self._prefix and cell[1] < self._prefix:
            rule = "prefix"
        elif is_near and not future[cell]:
            rule = "window"
        return self._fault(rule, kind, cell, found, should)

    def _influence(
        self, base: Tensor, side: Literal["source", "target"], source: Tensor, target: Tensor | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Measures which queries change with which key: by more than rounding, and at all. bool (query, key) both."""
        ids = source if side == "source" else target
        assert ids is not None
        leaks, seen = (np.zeros((base.shape[1], ids.shape[1]), dtype=bool) for _ in range(2))

        def answer(changed: Tensor, repeats: int) -> Tensor:
            beside = None if target is None else target.repeat(repeats, 1)
            if side == "source":
                return self._port(changed, target=beside)
            return self._port(source.repeat(repeats, 1), target=changed)

        for _ in range(_TIMES):
            changed = self._each_replaced(ids)
            if self._is_apart:
                # All at once, beside the texts in a batch of the same shape: the same bit for bit where nothing changed.
                n = len(changed)
                before, after = (answer(one, n) for one in (ids.repeat(n, 1), changed.flatten(0, 1)))
                parts = list(zip(before.split(len(ids)), after.split(len(ids)), strict=True))
            else:
                parts = [(base, answer(one, 1)) for one in changed]
            for key, (before, after) in enumerate(parts):
                leaks[:, key] |= (Rows.of(before).change(after) > self._tolerance).any(0).numpy()
                seen[:, key] |= (after != before).any(-1).any(0).numpy()
        return leaks, seen

    def _each_replaced(self, ids: Tensor) -> Tensor:
        """(key, batch, length): in each the token of another key is another one."""
        changed = ids.repeat(ids.shape[1], 1, 1)
        for key in range(ids.shape[1]):
            changed[key, :, key] = self._others(ids[:, key])
        return changed

    def _sees_source(
        self, base: Tensor, source: Tensor, target: Tensor, expected: dict[Kind, list[np.ndarray]]
    ) -> MaskFault | None:
        """The source through the encoder and cross-attention."""
        _, seen = self._influence(base, "source", source, target)
        reach = expected["cross"][0] @ _reach(expected["encoder"])
        self.checked.append("cross")
        cell = _first(reach & ~seen)
        return None if cell is None else self._fault("cross", "cross", cell, seen, reach)

    def _of_batches(self, source: Tensor, target: Tensor | None, base: Tensor) -> Iterator[MaskFault]:
        """Each text alone is what it is in a batch of texts of its own length."""
        self.checked.append("batch invariance")
        rows = Rows.of(base)
        for i in range(len(source)):
            alone = self._port(source[i : i + 1], target=None if target is None else target[i : i + 1])
            change = rows[i : i + 1].change(alone)[0] > self._coarse
            if bool(change.any()):
                query = int(change.nonzero()[0])
                words = f"text {i + 1} of a batch gets another answer than alone: it sees another text"
                yield MaskFault("batch invariance", self._own, query, None, True, words)
                return

    def _of_padding(self, kind: Kind, source: Tensor, target: Tensor | None) -> Iterator[MaskFault]:
        """Padding behind and before: what it says changes nothing, and each text is what it is alone."""
        port, n = self._port, source.shape[1]
        can_left = port.masks is not None and kind == "decoder" and not port.two
        sides = [False, *([True] if (can_left if self._left is None else self._left) else [])]
        lengths = [n, max(2, n // 2), max(2, n - 1)][: len(source)]
        for on_left in sides:
            real = torch.zeros_like(source, dtype=torch.bool)
            for row, count in enumerate(lengths):
                real[row, n - count :] = on_left
                real[row, :count] |= not on_left
            filled = torch.where(real, source, torch.full_like(source, self._pad or 0))
            self.checked.append("left padding" if on_left else "padding")
            yield from self._padded("left padding" if on_left else "padding", kind, filled, real, target, on_left)

    def _padded(
        self, rule: PortRule, kind: Kind, source: Tensor, real: Tensor, target: Tensor | None, on_left: bool
    ) -> Iterator[MaskFault]:
        port, given = self._port, dict[str, Any]()
        if port.masks is not None:
            given["real"] = real
        together = port(source, target=target, **given)
        of_source = target is not None
        if port.masks is not None:
            # With a mask beside, any token may stand there.
            rows = Rows.of(together)
            for key in range(source.shape[1]):
                where = ~real[:, key]
                if not bool(where.any()):
                    continue
                other = source.clone()
                other[where, key] = self._others(source[where, key])
                change = rows.change(port(other, target=target, **given)) > self._tolerance
                change &= where[:, None] & (torch.ones_like(change) if of_source else real)
                if bool(change.any()):
                    row, query = (int(i) for i in change.nonzero()[0])
                    yield self._padding_fault(rule, "cross" if of_source else kind, row, query, key, real)
                    return
        for row in range(len(source)):
            own = source[row : row + 1, real[row]]
            alone = port(own, target=None if target is None else target[row : row + 1])
            kept = together[row : row + 1] if of_source else together[row : row + 1, real[row]]
            change = Rows.of(alone).change(kept)[0] > self._coarse
            if not bool(change.any()):
                continue
            step = int(change.nonzero()[0])
            query = step if of_source else int(real[row].nonzero()[step])
            padded = (~real[row]).nonzero().flatten()
            if on_left and port.masks is not None:
                # The padding itself changes nothing: what is another is where the text stands.
                words = (
                    f"text {row + 1} begins {len(padded)} places later than alone and gets another answer, though no padding "
                    "is seen: its positions, or its mask, count padding"
                )
                yield MaskFault("positions", kind, query, None, True, words)
            elif len(padded) and not (port.masks is None and not self._sees_more(source, target, together, row, query)):
                yield self._padding_fault(rule, "cross" if of_source else kind, row, query, int(padded[0]), real)
            elif len(padded):
                words = f"text {row + 1} gets another answer in a padded batch than alone"
                yield MaskFault(rule, "cross" if of_source else kind, query, None, True, words)
            else:
                words = f"text {row + 1}, which has no padding, gets another answer beside padded ones than alone"
                yield MaskFault("batch invariance", kind, query, None, True, words)
            return
        if of_source and target is not None:
            yield from self._padded_target(kind, source[:, :], target)

    def _sees_more(self, source: Tensor, target: Tensor | None, together: Tensor, row: int, query: int) -> bool:
        """Tells whether still more padding behind all texts changes this query's answer: then it sees padding."""
        longer = torch.cat([source, torch.full((len(source), 1), self._pad or 0)], 1)
        try:
            after = self._port(longer, target=target)[:, : together.shape[1]]
        except OptionError:
            return False
        return bool(Rows.of(together).change(after)[row, query] > self._coarse)

    def _padded_target(self, kind: Kind, source: Tensor, target: Tensor) -> Iterator[MaskFault]:
        """Padding behind a target changes no step before it."""
        port, full = self._port, self._drawn(*source.shape)
        base = port(full, target=target)
        pads = torch.full((len(target), 2), self._pad or 0)
        longer = torch.cat([target, pads], 1)
        real = torch.cat([torch.ones_like(target), torch.zeros_like(pads)], 1).bool()
        after = port(full, target=longer, target_real=real)[:, : target.shape[1]]
        change = Rows.of(base).change(after) > self._coarse
        if bool(change.any()):
            row, query = (int(i) for i in change.nonzero()[0])
            yield self._padding_fault("padding", kind, row, query, target.shape[1], real)

    def _padding_fault(self, rule: PortRule, kind: Kind, row: int, query: int, key: int, real: Tensor) -> MaskFault:
        keys = np.flatnonzero(real[row].numpy())
        words = f"of text {row + 1} only keys {keys[0] + 1} to {keys[-1] + 1} are real, and this one is padding"
        return MaskFault(rule, kind, query, key, True, words)

    def _of_cache(self, base: Tensor, source: Tensor) -> MaskFault | None:
        """Step by step with a cache as in one pass."""
        first = max(2, source.shape[1] // 2)
        self.checked.append("cache")
        written = self._port.written(source, first)
        change = (Rows.of(base).change(written) > self._coarse).any(0)
        if not bool(change.any()):
            return None
        query = int(change.nonzero()[0])
        whole, cached = (np.zeros((source.shape[1],) * 2, dtype=bool) for _ in range(2))
        for key, other in enumerate(self._each_replaced(source)):
            whole[:, key] = (self._port(other) != base).any(-1).any(0).numpy()
            cached[:, key] = (self._port.written(other, first) != written).any(-1).any(0).numpy()
        cell = _first((whole != cached) & change.numpy()[:, None])
        if cell is None:
            words = (
                "step by step with a cache it gets another answer than in one pass, though the same keys reach it: its "
                "position is another, or the mask of one of several layers"
            )
            return MaskFault("cache", "decoder", query, None, True, words)
        query, key = cell
        words = f"with a cache it sees {_keys(cached[query])}, and in one pass {_keys(whole[query])}"
        return MaskFault("cache", "decoder", query, key, bool(cached[query, key]), words)

    # ---- small parts

    @property
    def _tolerance(self) -> float:
        return _EXACT if self._port.is_exact else _COARSE

    @property
    def _coarse(self) -> float:
        """The tolerance where the shape is another: kernels add in another order."""
        return _EXACT if self._port.is_exact else 10 * _COARSE

    def _drawn(self, *shape: int) -> Tensor:
        return self._real[torch.randint(len(self._real), shape, generator=self._generator)]

    def _others(self, ids: Tensor) -> Tensor:
        drawn = torch.randint(len(self._real), ids.shape, generator=self._generator)
        return torch.where(self._real[drawn] == ids, self._real[(drawn + 1) % len(self._real)], self._real[drawn])

    def _fault(
        self, rule: PortRule, kind: Kind, cell: tuple[int, int], seen: np.ndarray, should: np.ndarray, layer: int | None = None
    ) -> MaskFault:
        query, key = cell
        words = f"it should see {_keys(should[query])}, and sees {_keys(seen[query])}"
        return MaskFault(rule, kind, query, key, bool(seen[cell]), words, layer)


def _reach(layers: Sequence[np.ndarray]) -> np.ndarray:
    """Computes the keys that reach each query through all layers, one after the other: bool (query, key)."""
    reach = np.eye(len(layers[0]), dtype=bool)
    for seen in layers:
        reach = (seen | np.eye(len(seen), dtype=bool)) @ reach
    return reach


def _first(cells: np.ndarray) -> tuple[int, int] | None:
    """The first True cell, row by row."""
    at = np.argwhere(cells)
    return (int(at[0, 0]), int(at[0, 1])) if len(at) else None


def _keys(row: np.ndarray) -> str:
    """`keys 1 to 3 and 5`: people count from 1."""
    at = [int(i) + 1 for i in np.flatnonzero(row)]
    if not at:
        return "no key"
    runs = list[list[int]]()
    for i in at:
        if runs and i == runs[-1][-1] + 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:6]]
    return f"{'key' if len(at) == 1 else 'keys'} {' and '.join(words)}{' …' if len(runs) > len(words) else ''}"
