"""Tiny random models saved into a folder with their tokenizer, as their authors save theirs."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.readers import families

KINDS = ("gpt2", "bert", "marian")
"""A decoder, an encoder, and both."""


def save(folder: Path, family: str = "gpt2", part: str | None = None, **how: Any) -> Path:
    """Config, weights and tokenizer, of the whole or of a part such as `base_model`; `how` goes to `save_pretrained`."""
    model = families.untapped(family)
    with without_bars():
        (getattr(model, part) if part else model).save_pretrained(folder, **how)
    families.tokenizer(ends=family not in families.DECODERS).save_pretrained(folder)
    return folder


@contextmanager
def without_bars() -> Generator[None]:
    """Saving draws a progress bar, which standard error of a test should not have."""
    from transformers import logging

    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
