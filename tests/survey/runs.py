"""Surveys as they are run: lines into blocks, blocks into files, files into one."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_viz.analysis.survey.merge import merge
from transformer_viz.analysis.survey.partial import Partial
from transformer_viz.analysis.survey.result import Survey, SurveyedModel
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying.block import Block, Line
from transformer_viz.surveying.on_block import survey_block
from transformer_viz.surveying.options import SurveyOptions

MODEL = SurveyedModel(name="tiny", variant="pre-norm", parameters=1, fingerprint="f")


def blocks_of(texts: Sequence[str], size: int = 64) -> list[Block]:
    """Lines from 1 on."""
    lines = [Line(number, text) for number, text in enumerate(texts, 1)]
    return [Block(i // size, tuple(lines[i : i + size])) for i in range(0, len(lines), size)]


def merged(folder: Path, parts: Sequence[Partial], verdicts: Sequence[Path] = (), k: int = 3, by: str | None = None) -> Survey:
    """Parts written in any order, and merged in the order of their lines."""
    paths = [folder / f"{i}.safetensors" for i in range(len(parts))]
    for i in random.Random(0).sample(range(len(parts)), len(parts)):
        paths[i].write_bytes(parts[i].to_bytes("digest"))
    about: dict[str, Any] = {"model": MODEL, "source": "texts", "digest": "d", "options": {"seed": 0}}
    return merge(paths, verdicts, **about, k=k, by=by)


def surveyed(folder: Path, model: LoadedModel, texts: Sequence[str], size: int = 64, **options: Any) -> Survey:
    """Of all texts."""
    how = SurveyOptions(**options)
    return merged(folder, [survey_block(model, block, how) for block in blocks_of(texts, size)], k=how.k, by=how.by)
