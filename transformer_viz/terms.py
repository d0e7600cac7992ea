"""The words and codes that every layer shares: attention kinds and mask reasons.

Plain Python on purpose: a saved trace is read and drawn where torch is not installed.
"""

from enum import IntFlag
from typing import Literal, get_args

Kind = Literal["encoder", "decoder", "cross"]
"""Which attention: encoder self-, decoder self- (masked) or cross-attention."""

KINDS: tuple[Kind, ...] = get_args(Kind)

KIND_TITLES: dict[Kind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


class Reason(IntFlag):
    """Why a query may not look at a key; 0 means that it may.

    Bit flags, so that combining two masks is a bitwise or: `PADDING | FUTURE == BOTH`. `UNKNOWN` is for a
    mask that came from elsewhere, where it is neither in the future nor known to be padding.
    """

    ALLOWED = 0
    PADDING = 1
    FUTURE = 2
    BOTH = 3
    EDITED = 4
    UNKNOWN = 8


REASON_WORDS: dict[int, str] = {
    Reason.ALLOWED: "allowed",
    Reason.PADDING: "padding",
    Reason.FUTURE: "in the future",
    Reason.BOTH: "padding, and in the future",
    Reason.EDITED: "masked by an edit or a mistake",
    Reason.UNKNOWN: "masked, the reason was not recorded",
}
