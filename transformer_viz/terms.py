"""Names and codes that all modules share: kinds of attention, reasons of masks, and how heads and places are written.

Code counts from 0, people from 1, special tokens included. A token's place has the same number in sentences, tables, axes and
hovers, and each way of writing it is defined here only.
Plain Python, since a saved trace is read and drawn where torch is not installed.
"""

from collections.abc import Iterable, Sequence
from enum import IntFlag, StrEnum
from typing import Literal, get_args

from transformer_viz.language import later, say
from transformer_viz.text_display import display_token
from transformer_viz.vocabulary import PAD

Kind = Literal["encoder", "decoder", "cross"]
"""The kind of attention: encoder self-, decoder self- (masked) or cross-attention."""

KINDS: tuple[Kind, ...] = get_args(Kind)

KIND_TITLES: dict[Kind, str] = {
    "encoder": later("encoder self-attention"),
    "decoder": later("decoder self-attention"),
    "cross": later("cross-attention"),
}


def kind_words(kind: Kind) -> str:
    """The title of a kind of attention in the language of now."""
    return say(KIND_TITLES[kind])


DEVICES = ("auto", "cpu", "cuda", "mps")
STRATEGIES = ("greedy", "beam", "sample")
"""The ways to choose tokens."""
STOPS = ("bound", "first", "never")
"""When a beam search stops."""
MODES = (later("word"), later("position"), later("deleted"))
"""The ways to occlude a token."""
INSTEAD = (later("zero"), later("mean"), later("uniform"))
"""Replacements of an ablated head's output: zeros; its mean output over all texts; uniform attention over its allowed keys."""
MISTAKE_TITLES = {
    "no-causal": later("No causal mask"),
    "causal-off-by-one": later("Causal mask off by one"),
    "invalid-by-invalid": later("Padding as invalid ⊗ invalid"),
    "source-mask-forgotten": later("Source mask forgotten in decoding"),
    "padded-queries-nan": later("Padded queries give NaN"),
    "wrong-sign": later("Additive mask with the wrong sign"),
    "wrong-axis": later("Mask broadcast over the wrong axis"),
}
"""Deliberate mask mistakes, which `model/mistakes.py` makes, and what people read."""
MISTAKES = tuple(MISTAKE_TITLES)


class ModelKind(StrEnum):
    """The parts that a model has. An encoder alone is asked what may stand in the place of mask tokens."""

    ENCODER_DECODER = "encoder-decoder"
    DECODER = "decoder"
    ENCODER = "encoder"

    @property
    def has_encoder(self) -> bool:
        """Tells whether a source is read, apart from what is written."""
        return self is not ModelKind.DECODER

    @property
    def writes(self) -> bool:
        """Tells whether it has a decoder; an encoder alone reads and writes nothing."""
        return self is not ModelKind.ENCODER

    @property
    def has_prompt(self) -> bool:
        """Tells whether it reads a prompt, which the decoder goes on from; shorter prompts of a batch stand behind padding."""
        return self is ModelKind.DECODER


class Reason(IntFlag):
    """Why a query may not look at a key; 0 means that it may.

    Bit flags, so that combining two masks is a bitwise or: `PADDING | FUTURE == BOTH`. `UNKNOWN` is for a
    mask that came from elsewhere, where it is neither in the future nor known to be padding. `WINDOW` is for a key that is
    neither, and too far from the query for a layer that looks at its neighbourhood only.
    """

    ALLOWED = 0
    PADDING = 1
    FUTURE = 2
    BOTH = 3
    EDITED = 4
    UNKNOWN = 8
    WINDOW = 16


REASON_WORDS: dict[int, str] = {
    Reason.ALLOWED: later("allowed"),
    Reason.PADDING: later("padding"),
    Reason.FUTURE: later("in the future"),
    Reason.BOTH: later("padding, and in the future"),
    Reason.EDITED: later("masked by an edit or a mistake"),
    Reason.UNKNOWN: later("masked, the reason was not recorded"),
    Reason.WINDOW: later("outside the window"),
}

Head = int | Literal["mean", "max"]
"""A head of a layer, from 0; or all heads of the layer as one."""

COMBINED: tuple[Literal["mean", "max"], ...] = ("mean", "max")
"""The ways to see all heads of a layer as one."""


def head_title(layer: int, head: Head) -> str:
    """`layer 2 head 3`, in a sentence."""
    if head == "mean":
        return say("layer {layer}, mean of the heads", layer=layer + 1)
    if head == "max":
        return say("layer {layer}, strongest head", layer=layer + 1)
    return say("layer {layer} head {head}", layer=layer + 1, head=head + 1)


def layer_label(layer: int) -> str:
    """`L2`."""
    return f"L{layer + 1}"


def head_label(layer: int, head: int) -> str:
    """`L2 H3`, where there is little room."""
    return f"{layer_label(layer)} H{head + 1}"


def place_words(place: int, noun: str = "token") -> str:
    """`token 3`: the place of a token, or of a word, among all that are read or written, in a sentence."""
    return say("{noun} {place}", noun=say(noun), place=place + 1)


def cell_words(query: int, key: int) -> str:
    """`row 3, column 5`: a cell of a map, in a sentence."""
    return say("row {row}, column {column}", row=query + 1, column=key + 1)


def place_label(place: int, words: str) -> str:
    """`3·l`: the same number before the token, as on the axes. No two labels are equal, which Plotly would merge."""
    return f"{place + 1}·{words}"


def place_labels(tokens: Iterable[str]) -> list[str]:
    """The label of each token."""
    return [place_label(place, display_token(token)) for place, token in enumerate(tokens)]


def row_labels(read: Sequence[str], written: Sequence[str] | None) -> list[str]:
    """`3·l→o` for a decoder row that read `l` and wrote `o`; `3·l` for an encoder row, and for padding.

    `written` is None, or empty, where nothing was written or what was is not recorded.
    """
    labels = place_labels(read)
    if not written:
        return labels
    pairs = zip(labels, written, strict=True)
    # Some models begin with the symbol that pads.
    is_padding = [token == PAD and (place > 0 or written[0] == PAD) for place, token in enumerate(read)]
    return [
        label if is_pad else f"{label}→{display_token(out)}" for is_pad, (label, out) in zip(is_padding, pairs, strict=True)
    ]
