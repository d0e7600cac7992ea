"""One block of a survey: its lines read, written and measured on one thread. The same block gives the same bytes anywhere."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.verdict import CAUSE, judge_run
from transformer_viz.batches import Text, answer_of, compare_with_answer, run_texts
from transformer_viz.errors import TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.block_results import CUT, N_BLEU, BlockResult, VerdictResults
from transformer_viz.surveys.corpus import Block
from transformer_viz.surveys.head_values import Heads, Labels, is_special
from transformer_viz.surveys.options import SurveyOptions
from transformer_viz.surveys.statistics import bleu_metric
from transformer_viz.text_display import shorten
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.decode_request import most_written
from transformer_viz.tracing.tokenize_batch import framed_sources
from transformer_viz.tracing.trace_builder import not_finite


class Outputs:
    """What the texts of one block wrote, the known answers, and `arrays` as in `BlockResult`."""

    def __init__(self, model: LoadedModel, n_texts: int) -> None:
        self._model = model
        self._bleu = bleu_metric() if model.task is None else None
        self.has_bleu = self._bleu is not None
        self.texts, self.expected = [""] * n_texts, list[str | None]([None] * n_texts)
        numbers = ("length", "n_tokens", "n_right", "n_written", "n_judged", "n_judged_right")
        self._of: dict[str, np.ndarray] = {name: np.zeros(n_texts, np.int64) for name in numbers}
        self._of |= {"is_known": np.zeros(n_texts, bool), "is_exact": np.zeros(n_texts, bool)}
        self._of |= {"confidence": np.zeros(n_texts), "bleu": np.zeros((n_texts, N_BLEU), np.int64)}
        self._p = [np.empty(0)] * n_texts

    def add(self, text: Text, length: int, ids: Sequence[int], p: np.ndarray) -> None:
        """One text: the length of its source, what was written and how probable each token was."""
        model, i, answer, n_tokens = self._model, text.index, text.answer.text, len(text.answer.tokens or ())
        output, correct = model.tokenizer.text(ids), compare_with_answer(model, text.answer, ids)
        # The token after a right prefix is judged too; where only the prefix was written, nothing is wrong but what is missing.
        n_judged = min(correct.n_right_before_wrong + 1, len(ids)) if n_tokens else 0
        confidence = 0.0
        if not correct.is_exact and n_tokens:
            confidence = float(p[n_judged - 1])
        elif not correct.is_exact and len(p):
            with np.errstate(divide="ignore"):
                confidence = float(np.exp(np.log(p).mean()))
        self.texts[i], self.expected[i] = shorten(output, CUT), None if answer is None else shorten(answer, CUT)
        values = {"length": length, "n_tokens": n_tokens, "n_right": correct.n_right, "n_written": len(p)}
        values |= {"n_judged": n_judged, "n_judged_right": min(correct.n_right_before_wrong, n_judged)}
        values |= {"is_known": answer is not None, "is_exact": correct.is_exact}
        for name, value in {**values, "confidence": confidence}.items():
            self._of[name][i] = value
        self._p[i] = p
        if self._bleu is not None and answer is not None:
            score = self._bleu.sentence_score(output, [answer])
            self._of["bleu"][i] = [*score.counts, *score.totals, score.sys_len, score.ref_len]

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of `BlockResult`."""
        return {f"outputs.{name}": array for name, array in self._of.items()} | {"outputs.p": np.concatenate(self._p)}


def survey_block(model: LoadedModel, block: Block, options: SurveyOptions, digest: str = "") -> BlockResult:
    """Runs the lines of a block, and measures every head and every output.

    A line that cannot be read, or for which the model computes NaN, gets a reason instead, and does not affect the others.
    """
    sizes, n, has_prompt = model.model.sizes, len(block.lines), model.model.kind.has_prompt
    faults = [line.fault for line in block.lines]
    heads = {kind: Heads(numbers, sizes.heads[kind], n) for kind, numbers in sizes.layers.items()}
    outputs = Outputs(model, n) if model.model.kind.writes else None
    texts = []
    for place, line in enumerate(block.lines):
        if line.fault is not None:
            continue
        try:
            (ids,) = framed_sources(model, [line.text])
            limit = most_written(model, options.max_length, len(ids) - 1 if has_prompt else 0)
        except TransformerVizError as error:
            faults[place] = str(error)
            continue
        known = model.tokenizer.task_answer(line.text, limit + (len(ids) if has_prompt else 0))
        texts.append(Text(place, ids, limit, answer_of(model, known, line.target), known.alignment))

    def fail(text: Text, error: TransformerVizError) -> None:
        faults[text.index] = str(error)

    with one_thread():
        for batch in run_texts(model, texts, record=("weights", "mask", "probabilities"), on_failure=fail):
            labels = Labels(model, batch)
            for kind, of in heads.items():
                of.add(batch, kind, labels)
            for i, text in enumerate(batch.texts):
                own = (labels.target if batch.has_prompts else labels.source)[i][: len(text.ids)]
                if not batch.is_finite(i):
                    faults[text.index] = str(not_finite(model))
                elif outputs is not None:
                    length = sum(not is_special(label) for label in own)
                    outputs.add(text, length, batch.written[i], batch.probabilities[i])
    read = np.array([fault is None for fault in faults])
    arrays = {name: array for kind, of in heads.items() for name, array in of.arrays(kind, read).items()}
    return BlockResult(
        digest=digest,
        faults=tuple(None if fault is None else shorten(fault, CUT) for fault in faults),
        outputs=() if outputs is None else tuple(outputs.texts),
        expected=() if outputs is None else tuple(outputs.expected),
        has_bleu=outputs is not None and outputs.has_bleu,
        arrays=arrays | ({} if outputs is None else outputs.arrays()),
    )


def survey_verdicts(model: LoadedModel, block: Block, options: SurveyOptions, digest: str = "") -> VerdictResults:
    """Verdicts on some sampled lines; a line that cannot be read or judged has none."""
    others, missing, verdicts = [name for name in METHODS if name != CAUSE], dict[str, str](), []
    with one_thread():
        for line in block.lines:
            try:
                trace = None if line.fault else decode(model, line.text, max_length=options.max_length)
            except TransformerVizError:
                continue  # its block says why
            try:
                if trace is not None:
                    verdicts.append(judge_run(model, trace, others, missing, mode=options.mode))
            except TransformerVizError as error:
                missing.setdefault(CAUSE, str(error))
    return VerdictResults(digest=digest, verdicts=tuple(verdicts), missing=missing)


@contextmanager
def one_thread() -> Generator[None]:
    """Computes on one thread, since several would add numbers in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
