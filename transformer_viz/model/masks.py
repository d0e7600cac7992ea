"""Attention masks, and why each cell is masked (Vaswani et al. 2017, section 3.2.3).

Everywhere in this package True means *masked*. torch's `scaled_dot_product_attention`
and Hugging Face read the opposite; the one place that translates is `attention.py`.

`*_reasons` return uint8 matrices of `terms.Reason` codes; they are the definition.
A padded *key* is masked for every query, whatever the query is: a padded query is
left alone, because its row is never read and masking it would only leave an empty row.
"""

import torch
from torch import Tensor

from transformer_viz.terms import Reason

HIDDEN = -1e4
"""An additive mask up to this hides a key: half precision goes to −65504, older code wrote −10⁴ or −10⁹."""


def future(n_queries: int, n_keys: int, first_query: int = 0, device: torch.device | str = "cpu") -> Tensor:
    """The causal mask, bool (query, key), True = the key comes after the query; query row i stands at `first_query + i`."""
    queries = torch.arange(first_query, first_query + n_queries, device=device)
    return torch.arange(n_keys, device=device) > queries[:, None]


def padding_reasons(key_padding: Tensor, n_queries: int) -> Tensor:
    """Encoder and cross masks: (batch, key) bool -> uint8 (batch, query, key)."""
    codes = key_padding.to(torch.uint8) * int(Reason.PADDING)
    return codes[:, None, :].repeat(1, n_queries, 1)


def decoder_reasons(key_padding: Tensor) -> Tensor:
    """The combined mask of decoder self-attention: (batch, key) bool -> uint8 (batch, query, key)."""
    n_keys = key_padding.shape[1]
    causal = future(n_keys, n_keys, 0, key_padding.device).to(torch.uint8) * int(Reason.FUTURE)
    return padding_reasons(key_padding, n_keys) | causal


def hidden_by(added: Tensor) -> Tensor:
    """True = masked, from a mask that is added to the scores."""
    return added <= HIDDEN


def hides_future(masked: Tensor) -> bool:
    """Tells whether no query may see a later key: `masked` is (…, query, key). One query alone has no future."""
    n_queries, n_keys = masked.shape[-2:]
    return n_queries > 1 and bool((masked | ~future(n_queries, n_keys, device=masked.device)).all())
