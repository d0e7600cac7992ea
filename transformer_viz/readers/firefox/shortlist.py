"""The lexical shortlist of a folder: which target tokens a source allows, from a table of source token to target tokens.

As bergamot-translator's `shortlist.bin`: six u64 (magic number, checksum, first, best, n, m), n offsets as u64, m ids as u32. A
source allows the `first` most frequent tokens, and of each of its own the ids from its offset to the next one.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer_viz import untrusted_files
from transformer_viz.decoding.reader import DecodingState
from transformer_viz.errors import FileError
from transformer_viz.readers.firefox.folder import LARGEST_LEXICON

_MAGIC = 0xF11A48D5013417F5
_HEAD = 6 * 8
_MOST_PLACES = 2**24
"""The most entries of the table: tokens times the most that one of them allows."""


@dataclass(frozen=True)
class Shortlist:
    """Tokens that may be written.

    Attributes:
        first: so many of the first ids are always allowed.
        table: int (token, place), the ids that a token of the source allows; where it has fewer, an id stands there again.
    """

    first: int
    table: Tensor

    def allowed(self, source: Tensor, source_padding: Tensor | None, n_tokens: int) -> Tensor:
        """bool (batch, vocabulary) of sources (batch, source); padding allows nothing."""
        real = source if source_padding is None else source.masked_fill(source_padding, 0)
        is_allowed = torch.zeros(len(source), n_tokens, dtype=torch.bool, device=source.device)
        is_allowed[:, : self.first] = True
        return is_allowed.scatter_(1, self.table[real].flatten(1), True)

    def __call__(self, so_far: DecodingState, scores: Tensor) -> Tensor:
        """Keeps a shortlist's tokens, as `decoding.reader.Rules` do."""
        allowed = self.allowed(so_far.source, so_far.source_padding, scores.shape[-1])
        return torch.where(allowed, scores, float("-inf"))


def read(path: Path, n_tokens: int, device: torch.device) -> Shortlist:
    """The shortlist of a vocabulary of so many tokens, on a device.

    Raises:
        FileNotFoundError: there is none.
        FileError: it is in another format, or not of this vocabulary.
    """
    data = untrusted_files.read_bytes(path, LARGEST_LEXICON)
    head = [int(number) for number in np.frombuffer(data, "<u8", 6)] if len(data) >= _HEAD else [0] * 6
    magic, _, first, _, n, m = head
    if magic != _MAGIC:
        raise FileError("it is not a binary shortlist")
    if len(data) != _HEAD + 8 * n + 4 * m:
        raise FileError(f"it has {len(data):,} bytes, but its header promises {_HEAD + 8 * n + 4 * m:,}; download it again")
    offsets = np.frombuffer(data, "<u8", n, _HEAD)
    ids = np.frombuffer(data, "<u4", m, _HEAD + 8 * n)
    if n != n_tokens + 1 or not 0 < first <= n_tokens or (m and int(ids.max()) >= n_tokens):
        raise FileError(f"it was made for another vocabulary than this model's {n_tokens:,} tokens")
    if offsets[0] != 0 or offsets[-1] != m or (offsets[1:] < offsets[:-1]).any():
        raise FileError(f"its offsets should rise from 0 to its {m:,} ids; download it again")
    # The ids of each token, (token, place), filled up with the first id of all, which is always allowed.
    lengths = np.diff(offsets.astype(np.int64))
    if n_tokens * int(lengths.max()) > _MOST_PLACES:
        most = _MOST_PLACES // n_tokens
        raise FileError(f"it allows {lengths.max():,} tokens for one of a source; at most {most:,} are read")
    table = np.zeros((n_tokens, int(lengths.max())), np.int64)
    rows = np.repeat(np.arange(n_tokens), lengths)
    table[rows, np.arange(m) - np.repeat(offsets[:-1].astype(np.int64), lengths)] = ids
    return Shortlist(first, torch.from_numpy(table).to(device))
