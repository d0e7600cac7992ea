"""One block of a survey: its lines read, written and measured on one thread. The same block gives the same bytes anywhere."""

from collections.abc import Generator
from contextlib import contextmanager

import torch

from transformer_viz.analysis.survey.partial import CUT, Partial
from transformer_viz.analysis.survey.result import Failed
from transformer_viz.analysis.survey.statistic import preferred
from transformer_viz.batches import Batch, Recorded, Text, answer_of, run_texts
from transformer_viz.errors import TransformerVizError, shortened
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying.block import Block, Line
from transformer_viz.surveying.on_heads import Heads, Labels, is_special
from transformer_viz.surveying.on_outputs import Outputs
from transformer_viz.surveying.options import SurveyOptions
from transformer_viz.tracing.decode_request import most_written
from transformer_viz.tracing.framing import framed_sources
from transformer_viz.tracing.trace_builder import not_finite

_RECORD: tuple[Recorded, ...] = ("weights", "mask", "probabilities")


def survey_block(model: LoadedModel, block: Block, options: SurveyOptions) -> Partial:
    """What the heads of a model do with the lines of a block, and what it writes.

    A line that cannot be read, or of which the model computes no numbers, is counted among the failed; the others are as if it
    were not there.
    """
    with one_thread():
        return _Surveyed(model, block, options).partial()


@contextmanager
def one_thread() -> Generator[None]:
    """Several threads add in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Surveyed:
    """A block that is being read."""

    def __init__(self, model: LoadedModel, block: Block, options: SurveyOptions) -> None:
        self._model, self._options = model, options
        self._lines = sorted(block.lines, key=lambda line: line.number)
        self._why = {place: line.fault for place, line in enumerate(self._lines) if line.fault is not None}
        sizes, n = model.model.sizes, len(self._lines)
        self._heads = {kind: Heads(numbers, sizes.heads[kind], n) for kind, numbers in sizes.layers.items()}
        self._outputs = Outputs(model, n) if model.model.kind.writes else None

    def partial(self) -> Partial:
        """Runs it."""
        texts = [text for place, line in enumerate(self._lines) if (text := self._text(place, line)) is not None]
        for batch in run_texts(self._model, texts, record=_RECORD, on_failure=self._fail):
            self._add(batch)
        read = [place for place in range(len(self._lines)) if place not in self._why]
        values_of = preferred(self._options.by)
        return Partial(
            lines=tuple(self._lines[place].number for place in read),
            texts=tuple(shortened(self._lines[place].text, CUT) for place in read),
            failed=tuple(self._failed(place) for place in sorted(self._why)),
            kinds={kind: heads.partial(read, values_of) for kind, heads in self._heads.items()},
            outputs=None if self._outputs is None else self._outputs.partial(read),
        )

    def _failed(self, place: int) -> Failed:
        line = self._lines[place]
        return Failed(line=line.number, text=shortened(line.text, CUT), why=shortened(self._why[place] or "", CUT))

    def _text(self, place: int, line: Line) -> Text | None:
        if place in self._why:
            return None
        model, has_prompt = self._model, self._model.model.kind.has_prompt
        try:
            (ids,) = framed_sources(model, [line.text], None).rows
            limit = most_written(model, self._options.max_length, len(ids) - 1 if has_prompt else 0)
        except TransformerVizError as error:
            self._why[place] = str(error)
            return None
        known = model.tokenizer.known(line.text, limit + (len(ids) if has_prompt else 0))
        return Text(place, ids, limit, answer_of(model, known, line.target), known.alignment)

    def _fail(self, text: Text, error: TransformerVizError) -> None:
        self._why[text.index] = str(error)

    def _add(self, batch: Batch) -> None:
        labels = Labels(self._model, batch)
        for kind, heads in self._heads.items():
            heads.add(batch, kind, labels)
        for i, text in enumerate(batch.texts):
            read = (labels.target if batch.has_prompts else labels.source)[i][: len(text.ids)]
            if not batch.is_finite(i):
                self._why[text.index] = str(not_finite(self._model))
            elif self._outputs is not None:
                length = sum(not is_special(label) for label in read)
                self._outputs.add(text, self._lines[text.index], length, batch.written[i], batch.probabilities[i])
