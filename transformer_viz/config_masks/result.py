"""The masks of a configuration: which layers have which, each cell with its reason. Nothing here needs torch."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from transformer_viz.addresses import AttentionAddress
from transformer_viz.analysis.mask_parts import MaskPart
from transformer_viz.errors import OptionError, join_names
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import REASON_WORDS, Kind, Reason
from transformer_viz.text_display import display_token, shorten

Padding = Literal["right", "left"]
_SIGNS: dict[int, str] = {
    Reason.ALLOWED: "■",
    Reason.PADDING: "p",
    Reason.FUTURE: "·",
    Reason.BOTH: "p",
    Reason.WINDOW: "w",
    Reason.UNKNOWN: "x",
}
_CHUNK, _WINDOW = "outside the chunk", "outside the window"
_LONGEST_TOKEN = 12


@dataclass(frozen=True)
class LayerMask:
    """The mask of one layer.

    Attributes:
        kind: which attention.
        layer: from 0.
        pattern: what it is called: `causal, a window of 4`.
        reasons: `terms.Reason` by text, uint8 (batch, query, key).
    """

    kind: Kind
    layer: int
    pattern: str
    reasons: np.ndarray

    @property
    def masked(self) -> np.ndarray:
        """bool (batch, query, key), True = masked."""
        return self.reasons > 0


@dataclass(frozen=True)
class MaskGroup:
    """Layers of one kind that have the same mask."""

    kind: Kind
    pattern: str
    layers: tuple[int, ...]
    reasons: np.ndarray

    @property
    def title(self) -> str:
        """`decoder, layers 1 to 5 and 7: causal, a window of 4`."""
        return f"{self.kind}, {_layers_words(self.layers)}: {self.pattern}"


@dataclass(frozen=True)
class ConfigMasks:
    """The masks of a configuration, for a padded batch of texts.

    Attributes:
        name: the folder's, or the family's.
        family: its `model_type`.
        model_class: the class of transformers that applies these masks.
        padding: the side on which shorter texts are padded.
        tokens: of each text, padding included: of an encoder what it reads, and of a decoder alone its text.
        targets: of each text what a decoder with an encoder reads; empty without one.
        layers: the mask of each layer that has attention, encoder, decoder and cross in this order.
        notes: what else there is to know.
    """

    name: str
    family: str
    model_class: str
    padding: Padding
    tokens: tuple[tuple[str, ...], ...]
    targets: tuple[tuple[str, ...], ...]
    layers: tuple[LayerMask, ...]
    notes: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that it has."""
        return tuple(dict.fromkeys(one.kind for one in self.layers))

    @cached_property
    def groups(self) -> tuple[MaskGroup, ...]:
        """Groups of layers that have one mask."""
        groups: dict[tuple[Kind, str, bytes], list[LayerMask]] = {}
        for one in self.layers:
            groups.setdefault((one.kind, one.pattern, one.reasons.tobytes()), []).append(one)
        return tuple(
            MaskGroup(kind, pattern, tuple(one.layer for one in same), same[0].reasons)
            for (kind, pattern, _), same in groups.items()
        )

    def of(self, layer: str | AttentionAddress) -> LayerMask:
        """The mask of one layer, such as `decoder.1`.

        Raises:
            OptionError: it has no such attention.
        """
        place = AttentionAddress.read(layer)
        for one in self.layers:
            if AttentionAddress(one.kind, one.layer) == place:
                return one
        has = join_names(AttentionAddress(one.kind, one.layer) for one in self.layers)
        raise OptionError(f"this model has no layer {place}; there are {has}")

    def parts(self, text: int = 0) -> tuple[MaskPart, ...]:
        """The masks of one text, one for each group of layers, to be drawn with `figures.mask_grid`."""
        return tuple(
            MaskPart(group.title, group.kind, group.reasons[text], *self.labels(group.kind, text)) for group in self.groups
        )

    def labels(self, kind: Kind, text: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tokens of the queries and of the keys."""
        read = self.tokens[text]
        written = self.targets[text] if self.targets else read
        return {"encoder": (read, read), "decoder": (written, written), "cross": (written, read)}[kind]

    @property
    def names(self) -> list[str]:
        """The name of each text."""
        counted = [sum(token != PAD for token in tokens) for tokens in self.tokens]
        return [f"text {number}: {count_words(n, 'token')}" for number, n in enumerate(counted, start=1)]

    def rows(self) -> list[dict[str, Any]]:
        """One entry for each text, layer and query: how many keys it sees, and why it does not see the others."""
        rows = []
        for one in self.layers:
            for text in range(len(self.tokens)):
                queries, _ = self.labels(one.kind, text)
                for query, token in enumerate(queries):
                    codes = one.reasons[text, query]
                    row = {"kind": one.kind, "layer": one.layer, "text": text, "query": query, "token": token}
                    row |= {"sees": int((codes == 0).sum()), "of": len(codes)}
                    row |= {name: int((codes == code).sum()) for code, name in _COLUMNS.items()}
                    rows.append(row)
        return rows

    def __str__(self) -> str:
        """The whole for a terminal."""
        lines = [f"{self.name}: {self.model_class} of the family {self.family}, padded on the {self.padding}"]
        lines += [f"  {group.title}" for group in self.groups]
        lines += self.notes
        for text, name in enumerate(self.names):
            for group in self.groups:
                lines += ["", f"{name} · {group.title}", *self._drawn(group, text)]
        is_chunk = any("chunk" in group.pattern for group in self.groups)
        codes = sorted({int(code) for group in self.groups for code in np.unique(group.reasons)} - {Reason.BOTH})
        words = {**REASON_WORDS, Reason.WINDOW: _CHUNK if is_chunk else _WINDOW, Reason.UNKNOWN: "masked otherwise"}
        lines += ["", ", ".join(f"{_SIGNS[code]} {'may look' if code == 0 else words[code]}" for code in codes)]
        return "\n".join(
            [*lines, "A row is a query, which looks; a column is a key. The number is how many keys a query sees."]
        )

    def _drawn(self, group: MaskGroup, text: int) -> list[str]:
        queries, keys = self.labels(group.kind, text)
        labels = [shorten(display_token(token), _LONGEST_TOKEN) for token in queries]
        width = max(map(len, labels))
        return [
            f"  {label.rjust(width)} {' '.join(_SIGNS[int(code)] for code in codes)}  {int((codes == 0).sum())} of {len(keys)}"
            for label, codes in zip(labels, group.reasons[text], strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain data; layers count from 0, and a mask's numbers are reasons."""
        return {
            "name": self.name,
            "family": self.family,
            "class": self.model_class,
            "padding": self.padding,
            "tokens": [list(tokens) for tokens in self.tokens],
            "targets": [list(tokens) for tokens in self.targets],
            "masks": [
                {
                    "kind": group.kind,
                    "pattern": group.pattern,
                    "layers": list(group.layers),
                    "sees": (group.reasons == 0).sum(-1).tolist(),
                    "reasons": group.reasons.tolist(),
                }
                for group in self.groups
            ],
            "reasons": {str(int(code)): words for code, words in REASON_WORDS.items()},
            "notes": list(self.notes),
        }


PAD = "<pad>"
"""The label of padding, whatever a tokenizer calls it."""
_COLUMNS: dict[int, str] = {
    Reason.PADDING: "padding",
    Reason.FUTURE: "future",
    Reason.BOTH: "padding_and_future",
    Reason.WINDOW: "outside_window",
    Reason.UNKNOWN: "other",
}


def _layers_words(layers: tuple[int, ...]) -> str:
    """`layer 3`, `layers 1 to 3 and 5`; people count from 1."""
    numbers = [layer + 1 for layer in layers]
    runs = list[list[int]]()
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} {'to' if len(run) > 2 else 'and'} {run[-1]}" for run in runs]
    joined = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"{'layer' if len(numbers) == 1 else 'layers'} {joined}"
