"""The command `align-heads`."""

import sys
from pathlib import Path
from typing import Annotated

from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import SEED, Json, ModelChoice, existing_file, print_result, terminal_text
from transformer_viz.errors import FileError, InputError, OptionError
from transformer_viz.schema import Range

_LARGEST_FILE = 10_000_000


def run(
    model: ModelChoice,
    texts: Annotated[
        Path | None, "a file with one text a line (texts drawn from the task)", existing_file, Option(either="texts")
    ] = None,
    gold: Annotated[str | None, "use the 40 pairs that were aligned by hand: pt-en or en-pt", Option(either="texts")] = None,
    targets: Annotated[
        Path | None, "a file with the translations, one a line (the right answer, or what the model writes)", existing_file
    ] = None,
    links: Annotated[
        Path | None,
        "a file with word alignments, one line a text, as in 0-0 1-2; each punctuation mark is a word",
        existing_file,
    ] = None,
    reference: Annotated[str | None, "compare all heads with this one, as in cross.2.1 (the best)"] = None,
    no_effect: Annotated[bool, "do not measure what is lost without a head, which takes most of the time"] = False,
    samples: Annotated[int, "without --texts: how many texts to draw", Range(1, 1000)] = 40,
    seed: Annotated[int, "draw other texts", SEED] = 0,
    json: Json = False,
) -> None:
    """Find the heads of cross-attention that align a text with its translation."""
    from transformer_viz.analysis.word_links import gold as gold_pairs

    if (targets or links) and not texts:
        raise OptionError("--targets and --links need --texts; give that too")
    lines, target_lines, link_lines = (_lines(*file) for file in (("texts", texts), ("targets", targets), ("links", links)))
    pairs = None if gold is None else gold_pairs(gold)
    model.check()

    from tqdm import tqdm

    from transformer_viz.attribution.alignment_heads import alignment_heads
    from transformer_viz.evaluation.evaluate import sample_texts

    loaded = model.load()
    if lines is None:
        if pairs is None and loaded.task is None:
            raise OptionError(f"{loaded.name} has no task that texts could be drawn from; give --texts or --gold")
        lines, target_lines, link_lines = pairs or (sample_texts(loaded, samples, seed), None, None)
    with tqdm(total=1.0, file=sys.stderr, bar_format="{percentage:3.0f} % |{bar}|", disable=None) as bar:
        result = alignment_heads(
            loaded,
            lines,
            targets=target_lines,
            links=link_lines,
            reference=reference,
            effect=not no_effect,
            on_progress=lambda share: bar.update(share - bar.n),
        )
    print_result(result, json, checkpoint=loaded.name, alignment_heads=result.alignment_heads)


def _lines(option: str, path: Path | None) -> list[str] | None:
    from transformer_viz.untrusted_files import read_text

    if path is None:
        return None
    try:
        return read_text(path, _LARGEST_FILE).splitlines()
    except FileError as error:
        raise InputError(f"--{option}: {terminal_text(str(path))} is not read: {error}.") from error
