"""Tokens and their ids. The four special tokens come first, always in the same places."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformer_viz.errors import ConfigError
from transformer_viz.language import later

PAD, START, END, UNKNOWN = "<pad>", "<start>", "<end>", "<unk>"
SPECIAL_TOKENS = (PAD, START, END, UNKNOWN)
PAD_ID, START_ID, END_ID, UNKNOWN_ID = range(4)


def unit(tokens: Iterable[str]) -> str:
    """The word for one of these tokens: `letter` where all but the special ones have one character, else `token`.

    Digits alone, as in 2026-11-22, are tokens; among letters they count as letters.
    """
    own = [token for token in tokens if token not in SPECIAL_TOKENS]
    are_letters = all(len(token) == 1 for token in own) and any(map(str.isalpha, own))
    return later("letter") if are_letters else later("token")


@dataclass(frozen=True)
class Vocabulary:
    """An ordered set of distinct tokens; a token's id is its place.

    Raises:
        ConfigError: the four special tokens do not lead, or a token stands twice.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.tokens[:4] != SPECIAL_TOKENS:
            raise ConfigError(
                f"a vocabulary begins with {' '.join(SPECIAL_TOKENS)}; this one with {' '.join(map(repr, self.tokens[:4]))}"
            )
        if len(self.ids) != len(self.tokens):
            raise ConfigError(f"a vocabulary holds {len(self.tokens)} tokens, but only {len(self.ids)} different ones")

    @classmethod
    def of(cls, symbols: Iterable[str]) -> "Vocabulary":
        """The special tokens, then `symbols` in the order given."""
        return cls(SPECIAL_TOKENS + tuple(symbols))

    @cached_property
    def ids(self) -> dict[str, int]:
        """Token to id."""
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def longest(self) -> int:
        """Characters of the longest token."""
        return max(map(len, self.tokens))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The tokens but the special ones."""
        return self.tokens[len(SPECIAL_TOKENS) :]

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self.ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids of `tokens`; what is not in the vocabulary becomes `<unk>`."""
        return [self.ids.get(token, UNKNOWN_ID) for token in tokens]

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Tokens of `ids`."""
        return [self.tokens[number] for number in ids]
