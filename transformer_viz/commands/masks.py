"""The command `masks`."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from transformer_viz.atomic_files import check_target, write_export
from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import Force, Json, print_json, print_lines, terminal_text
from transformer_viz.errors import OptionError, join_names
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.schema import Range

_LENGTH = Range(1, 512)


def _read_types(text: str) -> list[int]:
    if not text.replace(",", "").isdecimal() or set(text) - set("012,"):
        raise OptionError("kinds of tokens are 0, 1 and 2, as in 0,1,1,1,0")
    return [int(kind) for kind in text.split(",") if kind]


@contextmanager
def _uncollected() -> Generator[None]:
    """Looks for no garbage meanwhile: most of what torch and transformers make as they start stays, and looking takes a
    quarter of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run(
    config: Annotated[Path, "the folder of a Hugging Face model, of which only config.json is needed", Option("--config")],
    text: Annotated[list[str] | None, "a text, for the folder's tokenizer; may be repeated: a padded batch"] = None,
    length: Annotated[list[int] | None, "a text of N tokens instead; may be repeated (8 and 5)", _LENGTH] = None,
    target: Annotated[list[str] | None, "of an encoder-decoder: what its decoder reads; one for each text"] = None,
    target_length: Annotated[list[int] | None, "the same as a number of tokens (those of the source)", _LENGTH] = None,
    padding: Annotated[Literal["left", "right"], "the side of padding (left for a decoder alone)"] | None = None,
    pad_to: Annotated[int | None, "pad all texts to N tokens", _LENGTH] = None,
    token_types: Annotated[
        list[int] | None,
        "of a model of pictures: the kind of each token as its processor gives it, as in 0,1,1,1,0",
        Option(),
        _read_types,
    ] = None,
    output: Annotated[
        Path | None, "write a page (.html), a picture (.png, .svg, .pdf), a table (.csv) or .json instead", Option("-o")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw the masks of a Hugging Face model from its configuration alone: no weights, no network.

    Each kind of layer has its mask, encoder, decoder and cross, with the reason of each cell and how many keys each query sees.
    """
    format = "" if output is None else output.suffix.lower().removeprefix(".")
    if output is not None:
        from transformer_viz.export.masks_page import FORMATS

        if format not in FORMATS:
            raise OptionError(f"{output.name} does not end in .{', .'.join(FORMATS)}; the ending says what to make.")
        check_target(output, force=force)
    if text and length:
        raise OptionError(f"{join_names(['--text', '--length'])} cannot be given together; give one of them.")

    read: dict[str, Any] = {"lengths": length, "targets": target, "target_lengths": target_length}
    with _uncollected():
        from transformer_viz.config_masks.masks import masks

        result = masks(config, text, **read, padding=padding, pad_to=pad_to, token_types=token_types)
    if output is not None:
        from transformer_viz.export.masks_page import masks_bytes

        write_export(output, masks_bytes(result, format))
        print(terminal_text(f"{output}: {bytes_words(output.stat().st_size)}"))
    elif json:
        print_json(result.to_json())
    else:
        print_lines(str(result))
