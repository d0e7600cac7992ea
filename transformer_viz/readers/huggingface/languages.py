"""The languages that a model translates between, where its tokenizer knows them: mBART, M2M100, NLLB.

The source language stands in what is read. The target's is the token that is forced first, or, for the first mBART, the token
that the decoder begins with: where the tokenizer puts it in a target tells which.
"""

import re
from typing import Any

from transformer_viz.errors import OptionError, listed, shortened

_NLLB = re.compile("[a-z]{3}_[A-Z][a-z]{3}")


def languages(tokenizer: Any) -> dict[str, int]:
    """The id of each language by its code, in their order; none where the tokenizer knows no languages."""
    if getattr(tokenizer, "src_lang", None) is None:
        return {}
    codes = getattr(tokenizer, "lang_code_to_id", None)
    if codes is None:
        named = filter(_NLLB.fullmatch, tokenizer.all_special_tokens)
        codes = {code: tokenizer.convert_tokens_to_ids(code) for code in named}
    return dict(sorted(codes.items()))


def language(tokenizer: Any, code: str) -> int:
    """The id of one.

    Raises:
        OptionError: it is not known; the message names those that are.
    """
    known = languages(tokenizer)
    if not known:
        raise OptionError(f"language {shortened(code)!r} is not possible: this model's tokenizer knows no languages")
    if code not in known:
        raise OptionError(f"language {shortened(code)!r} is not known; choose one of {listed(known)}")
    return known[code]
