"""The languages that a model translates between, where its tokenizer knows them: mBART, M2M100, NLLB.

The source language stands in what is read. The target's is the token that is forced first, or, for the first mBART, the token
that the decoder begins with: where the tokenizer puts it in a target tells which.
"""

import copy
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


def reading(tokenizer: Any, code: str) -> Any:
    """Another tokenizer, for sources in this language."""
    _check(tokenizer, code)
    changed = copy.deepcopy(tokenizer)
    changed.src_lang = code
    return changed


def writing(tokenizer: Any, code: str) -> tuple[Any, str, int]:
    """Another tokenizer, for targets in this language, and the setting of a generation config that it takes, with its value."""
    _check(tokenizer, code)
    changed = copy.deepcopy(tokenizer)
    changed.tgt_lang = code
    number = languages(tokenizer)[code]
    is_first = list(changed(text_target="").input_ids)[:1] == [number]
    return changed, "forced_bos_token_id" if is_first else "decoder_start_token_id", number


def _check(tokenizer: Any, code: str) -> None:
    known = languages(tokenizer)
    if not known:
        raise OptionError(f"language {shortened(code)!r} is not possible: this model's tokenizer knows no languages")
    if code not in known:
        raise OptionError(f"language {shortened(code)!r} is not known; choose one of {listed(known)}")
