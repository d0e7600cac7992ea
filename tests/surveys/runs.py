"""Surveys as they are run: lines into blocks, blocks into files, files into one."""

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.blocks import BlockResult, SurveyOptions, survey_block
from transformer_viz.surveys.corpus import Block, read_corpus
from transformer_viz.surveys.corpus import blocks_of as blocks_of_lines
from transformer_viz.surveys.merge import merge
from transformer_viz.surveys.result import Survey, SurveyedKind, SurveyedModel

MODEL = SurveyedModel(name="tiny", variant="pre-norm", parameters=1, fingerprint="f")


def blocks_of(texts: Sequence[str], size: int = 64) -> list[Block]:
    """Lines from 1 on."""
    return blocks_of_lines(read_corpus(texts).lines, size)


def merged(folder: Path, parts: Sequence[BlockResult], texts: Sequence[str], kinds: Any, **changes: Any) -> Survey:
    """Parts written in any order, and merged in the order of their lines."""
    paths = [folder / f"{i}.safetensors" for i in range(len(parts))]
    for i in random.Random(0).sample(range(len(parts)), len(parts)):
        paths[i].write_bytes(parts[i].to_bytes())
    given: dict[str, Any] = {"verdicts": [], "options": {"seed": 0, "k": 3, "by": None}, **changes}
    return merge(
        texts, paths, given["verdicts"], model=MODEL, kinds=kinds, source="texts", digest="d", options=given["options"]
    )


def kinds_of(model: LoadedModel) -> dict[Any, SurveyedKind]:
    """Layers and heads of a model."""
    sizes = model.network.sizes
    return {kind: SurveyedKind(layers=tuple(sizes.layers[kind]), n_heads=sizes.heads[kind]) for kind in sizes.layers}


def surveyed(folder: Path, model: LoadedModel, texts: Sequence[str], size: int = 64, **options: Any) -> Survey:
    """Of all texts."""
    how = SurveyOptions(**options)
    parts = [survey_block(model, block, how) for block in blocks_of(texts, size)]
    return merged(folder, parts, texts, kinds_of(model), options=asdict(how))
