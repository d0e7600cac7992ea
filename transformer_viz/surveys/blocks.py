"""One block of a survey: its lines read, written and measured on one thread, and the numbers of each line as a file.

A file's bytes depend on the lines, the model and the options alone. `merge.py` computes all else from these files.
"""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer_viz import untrusted_files
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.verdict import Verdict
from transformer_viz.attribution.verdict import CAUSE, judge_run
from transformer_viz.batches import Text, answer_of, compare_with_answer, run_texts
from transformer_viz.decoding.token_batch import n_rows_of
from transformer_viz.errors import FileError, SurveyError, TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import read_value, to_plain
from transformer_viz.surveys.corpus import Block
from transformer_viz.surveys.head_values import Heads, Labels
from transformer_viz.surveys.result import CUT, SurveyOptions
from transformer_viz.text_display import shorten
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.tokenize_batch import framed_sources, most_written
from transformer_viz.tracing.trace_builder import not_finite

_LARGEST, _LARGEST_DESCRIPTION = 2**30, 2**24
"""Bytes."""
_KEY = "survey"


@dataclass(frozen=True, kw_only=True)
class BlockResult:
    """The numbers of each line of a block, in their order; a line that was not read has NaN, −1 or 0.

    Attributes:
        digest: a hash of the lines, the model and the options.
        faults: for each line why it was not read; None where it was.
        outputs: what was written, cut where it is long; of an encoder alone nothing.
        expected: the known answers, cut to the same length, or None.
        has_bleu: whether there are counts for BLEU.
        arrays: by name, for each kind of attention those of `Heads.arrays`, and of a model that writes, for its outputs:

            - `outputs.NAME`, (text,): the numbers of `Output`, and `n_written`, the number of tokens.
            - `outputs.p`: float64 (token,), the probability of each written token, text after text.
    """

    digest: str
    faults: tuple[str | None, ...]
    outputs: tuple[str, ...]
    expected: tuple[str | None, ...]
    has_bleu: bool
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The file; the same bytes for the same content."""
        from safetensors.numpy import save

        about = {name: value for name, value in vars(self).items() if name != "arrays"}
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        return save(arrays, {_KEY: json.dumps(about, ensure_ascii=False)})


class Output(NamedTuple):
    """The output of one line, beside the known answer."""

    text: str = ""
    expected: str | None = None
    length: int = 0
    """Source tokens without special ones."""
    n_tokens: int = 0
    """Tokens of the known answer with its end; `n_right` of them were written at their place."""
    n_right: int = 0
    n_judged: int = 0
    """The first so many written tokens follow a right prefix of a known answer; the first `n_judged_right` are right."""
    n_judged_right: int = 0
    is_known: bool = False
    is_exact: bool = False
    confidence: float = 0.0
    """Probability of the first wrong token; of a token on average where no answer is known; 0 of a right output."""
    bleu: Sequence[int] = (0,) * 10
    """Matching n-grams of 1 to 4 tokens, all of the output, and the lengths of output and answer."""
    p: np.ndarray = np.empty(0)


def bleu_metric() -> Any:
    """BLEU of sacrebleu (Post 2018), of which surveys keep the counts; None where it is not installed."""
    try:
        from sacrebleu.metrics import BLEU
    except ModuleNotFoundError:
        return None
    # With effective order it does not warn of a sentence's score, which nobody takes.
    return BLEU(effective_order=True)


def survey_block(model: LoadedModel, block: Block, options: SurveyOptions, digest: str = "") -> BlockResult:
    """Runs the lines of a block, and measures every head and every output.

    A line that cannot be read, or for which the model computes NaN, gets a reason instead, and does not affect the others.
    """
    sizes, n = model.network.sizes, len(block.lines)
    faults = [line.fault for line in block.lines]
    heads = {kind: Heads(numbers, sizes.heads[kind], n) for kind, numbers in sizes.layers.items()}
    outputs = [Output()] * n if model.network.kind.writes else []
    bleu = bleu_metric() if outputs and model.task is None else None
    texts = []
    for place, line in enumerate(block.lines):
        if line.fault is not None:
            continue
        try:
            (ids,) = framed_sources(model, [line.text])
            limit = most_written(model, options.max_length, len(ids))
        except TransformerVizError as error:
            faults[place] = str(error)
            continue
        known = model.tokenizer.task_answer(line.text, n_rows_of(model.network.kind, len(ids), limit))
        texts.append(Text(place, ids, limit, answer_of(model, known, line.target), known.alignment))

    def fail(text: Text, error: TransformerVizError) -> None:
        faults[text.index] = str(error)

    with one_thread():
        for batch in run_texts(model, texts, record=("weights", "mask", "probabilities"), on_failure=fail):
            labels = Labels(model, batch)
            for kind, of in heads.items():
                of.add(batch, kind, labels)
            for i, text in enumerate(batch.texts):
                if not batch.is_finite(i):
                    faults[text.index] = str(not_finite(model))
                elif outputs:
                    outputs[text.index] = _output(
                        model, text, labels.n_content(i), batch.written[i], batch.probabilities[i], bleu
                    )
    read = np.array([fault is None for fault in faults])
    arrays = {f"{kind}.{name}": array for kind, of in heads.items() for name, array in of.arrays(read).items()}
    columns = dict[str, tuple[Any, ...]](zip(Output._fields, zip(*outputs, strict=True), strict=False))
    if outputs:
        arrays |= {f"outputs.{name}": np.array(columns[name]) for name in Output._fields[2:-1]}
        arrays["outputs.n_written"] = np.array([*map(len, columns["p"])])
        arrays["outputs.p"] = np.concatenate(columns["p"])
    return BlockResult(
        digest=digest,
        faults=tuple(None if fault is None else shorten(fault, CUT) for fault in faults),
        outputs=columns.get("text", ()),
        expected=columns.get("expected", ()),
        has_bleu=bleu is not None,
        arrays=arrays,
    )


def _output(model: LoadedModel, text: Text, length: int, ids: Sequence[int], p: np.ndarray, bleu: Any) -> Output:
    """The output of a text whose source has this length: the written ids, and how probable each was."""
    answer, n_tokens = text.answer.text, len(text.answer.tokens or ())
    written, correct = model.tokenizer.text(ids), compare_with_answer(model, text.answer, ids)
    # The token after a right prefix is judged too; where only the prefix was written, nothing is wrong but what is missing.
    n_judged = min(correct.n_right_before_wrong + 1, len(ids)) if n_tokens else 0
    confidence = 0.0
    if not correct.is_exact and n_tokens:
        confidence = float(p[n_judged - 1])
    elif not correct.is_exact and len(p):
        with np.errstate(divide="ignore"):
            confidence = float(np.exp(np.log(p).mean()))
    counts = Output().bleu
    if bleu is not None and answer is not None:
        score = bleu.sentence_score(written, [answer])
        counts = (*score.counts, *score.totals, score.sys_len, score.ref_len)
    return Output(
        text=shorten(written, CUT),
        expected=None if answer is None else shorten(answer, CUT),
        length=length,
        n_tokens=n_tokens,
        n_right=correct.n_right,
        n_judged=n_judged,
        n_judged_right=min(correct.n_right_before_wrong, n_judged),
        is_known=answer is not None,
        is_exact=correct.is_exact,
        confidence=confidence,
        bleu=counts,
        p=p,
    )


@contextmanager
def one_thread() -> Generator[None]:
    """Computes on one thread, since several would add numbers in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def read_description(path: str | PathLike[str]) -> BlockResult:
    """A block's file without its arrays.

    Raises:
        SurveyError: there is none, or it is not what `BlockResult.to_bytes` gave.
    """
    try:
        with untrusted_files.open_tensors(path, _LARGEST, _LARGEST_DESCRIPTION, framework="numpy") as file:
            about = untrusted_files.parse_json((file.metadata() or {}).get(_KEY, ""))
    except (FileNotFoundError, FileError) as error:
        raise SurveyError(f"{Path(path).name} is no block of a survey ({error})") from error
    return read_value(BlockResult, about, "the block", SurveyError)


def read_arrays(paths: Sequence[str | PathLike[str]], name: str, statistic: int | None = None) -> Iterator[np.ndarray]:
    """One array of each block, in their order; of `KIND.values` one statistic, with the texts first: (text, 2, layer, head).

    Raises:
        SurveyError: a file that lacks it.
    """
    for path in paths:
        try:
            with untrusted_files.open_tensors(path, _LARGEST, _LARGEST_DESCRIPTION, framework="numpy") as file:
                array = file.get_tensor(name) if statistic is None else file.get_slice(name)[statistic].swapaxes(0, 1)
            if array.dtype == np.float64 and np.isinf(array).any():
                raise FileError(f"{name} has an infinite number")
        except (FileNotFoundError, FileError) as error:
            raise SurveyError(f"{path} is damaged: {error}. Remove it, and the same survey goes on.") from error
        yield array


@dataclass(frozen=True, kw_only=True)
class VerdictResults:
    """The result of some sampled lines.

    Attributes:
        digest: a hash of the lines, the model and the options.
        verdicts: of each line that could be judged, in their order.
        missing: by the measure that the model lacks, why it is not there.
    """

    digest: str
    verdicts: tuple[Verdict, ...]
    missing: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """The file."""
        return json.dumps(to_plain(self), ensure_ascii=False).encode()


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


def read_verdicts(path: str | PathLike[str]) -> VerdictResults:
    """Reads what `VerdictResults.to_bytes` gave.

    Raises:
        SurveyError: there is none, or it is something else.
    """
    try:
        return read_value(VerdictResults, untrusted_files.read_json(Path(path), _LARGEST), "the verdicts", SurveyError)
    except (FileNotFoundError, FileError) as error:
        raise SurveyError(f"{Path(path).name} has no verdicts of a survey ({error})") from error
