"""A survey of a corpus: reads lines, hands out blocks of them, keeps what each leaves, and merges that in order.

A block's result follows from its lines, the model and the options alone, and blocks are merged in order: so the survey is the
same to the last bit, whichever workers ran it, however many, and however often they were ended on the way.
"""

import hashlib
import heapq
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from transformer_viz.analysis.survey.file import NAME
from transformer_viz.analysis.survey.merge import merge
from transformer_viz.analysis.survey.partial import load_partial
from transformer_viz.analysis.survey.result import Survey, SurveyedModel
from transformer_viz.analysis.survey.statistic import check_by
from transformer_viz.analysis.survey.verdicts import load_verdicts
from transformer_viz.errors import InputError, OptionError, SurveyError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying import table
from transformer_viz.surveying.block import FORMAT, Block, Line
from transformer_viz.surveying.fingerprint import fingerprint
from transformer_viz.surveying.folder import Folder, opened
from transformer_viz.surveying.options import SurveyOptions
from transformer_viz.surveying.reading import Corpus, Lines, corpus_of, held_out_of
from transformer_viz.surveying.work import Engine, Job, Stage, Unit
from transformer_viz.surveying.workers import Workers, memory_of_worker

_VERDICT_BLOCK = 8
"""Sampled lines of one unit: each takes as long as many of a block."""
_CHECKS = {"texts": load_partial, "verdicts": load_verdicts}


@dataclass(frozen=True)
class Progress:
    """How far a survey is.

    Attributes:
        stage: texts, then the verdicts of the sampled ones.
        n_done: lines of this stage, those of an earlier run included.
        n_total: how many there are, or at most; None where only the end tells.
        n_workers: who run them; None where Ray decides.
        worker_bytes: memory that each takes, about.
    """

    stage: Stage
    n_done: int
    n_total: int | None
    n_workers: int | None
    worker_bytes: int


OnProgress = Callable[[Progress], object]
"""Is told at the beginning of a stage and after each unit. What it raises ends the survey, which can go on later."""


def survey(
    model: str | LoadedModel,
    texts: Lines | None = None,
    *,
    targets: Lines | None = None,
    held_out: int | None = None,
    output: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    ray: str | None = None,
    gpus_per_worker: float = 0.0,
    device: str = "auto",
    k: int = 5,
    by: str | None = None,
    max_length: int | None = None,
    seed: int = 0,
    verdict_texts: int = 300,
    mode: str = "word",
    on_progress: OnProgress | None = None,
) -> Survey:
    """What every head does over a corpus, and how good and how sure the outputs are.

    Args:
        model: a name or a folder as in `load_model`, which each worker loads; or a loaded model, which runs in this process.
        texts: the path of a UTF-8 file with a text a line, `-` for standard input, or the texts themselves in a list.
        targets: likewise the known answers, one for each text; an empty one is not known. None = as the model's task knows.
        held_out: instead of `texts` so many of those by which models of this task are judged.
        output: a folder for all files, so that the survey can go on where it ended; None = nothing is kept.
        workers: processes of this machine, or actors of Ray; None = one for each processor that may be used.
        ray: `auto` for a Ray cluster that the environment names, else one of this machine alone; or a cluster's address.
        gpus_per_worker: how much of a GPU an actor of Ray has; 0 = it computes on the CPU.
        device: where the model runs, as in `load_model`.
        k: how many typical and unusual texts are kept of each head, and how many of the worst outputs.
        by: the statistic by which texts are so; None = `mass` where there is a true key, else `entropy_share`.
        max_length: the most tokens to write, as in `decode`.
        seed: of held-out texts, of the sample for verdicts, and of their intervals.
        verdict_texts: of how many texts it is asked whether attention points at the cause; 0 = of none.
        mode: how a token is taken away for that, as in `attribute`.
        on_progress: is told how far it is.

    Raises:
        InputError: texts that are not there, or none that can be read.
        OptionError: an impossible option, or a folder that is in use for something else.
        SurveyError: a disk that is full, a worker that ends again and again, Ray that is not there.
        TransformerVizError: as `load_model`.
    """
    options = SurveyOptions(k=k, by=by, max_length=max_length, seed=seed, verdict_texts=verdict_texts, mode=mode)
    check_by(by)
    table.check_can_write()
    crew = Workers(model, device, workers, ray, gpus_per_worker)
    corpus = _corpus(texts, targets, held_out)
    loaded = crew.load()
    corpus = held_out_of(loaded, held_out or 0, seed) if corpus is None else corpus

    def tell(stage: Stage, n_done: int, n_total: int | None) -> None:
        if on_progress is not None:
            on_progress(Progress(stage, n_done, n_total, crew.n, memory_of_worker(loaded)))

    job = Job(crew.name, crew.their_device, fingerprint(loaded), options)
    with ExitStack() as stack:
        path = Path(stack.enter_context(TemporaryDirectory()) if output is None else output)
        run = _Run(loaded, job, corpus, stack.enter_context(opened(path)), tell)
        return run.carried_out(crew.engine(loaded))


def _corpus(texts: Lines | None, targets: Lines | None, held_out: int | None) -> Corpus | None:
    """Of the texts given; None where held-out ones are asked for."""
    if (texts is None) == (held_out is None):
        raise OptionError("give either texts, or held_out for so many of those by which the model's task is judged")
    if texts is None and targets is not None:
        raise OptionError("targets go with texts; of held-out ones the task knows the answers")
    return None if texts is None else corpus_of(texts, targets)


class _Run:
    """What was read of a corpus so far, and what of it is done."""

    def __init__(
        self, model: LoadedModel, job: Job, corpus: Corpus, folder: Folder, tell: Callable[[Stage, int, int | None], object]
    ) -> None:
        self._model, self._job, self._corpus, self._folder, self._tell = model, job, corpus, folder, tell
        self._digest = hashlib.sha256()
        self._sample: list[tuple[int, Line]] = []
        self._files: dict[Stage, list[Path]] = {"texts": [], "verdicts": []}
        self._n_done: dict[Stage, int] = {"texts": 0, "verdicts": 0}

    def carried_out(self, engine: Engine) -> Survey:
        """Runs what is not done yet, and merges all."""
        blocks = self._blocks()
        first = next(blocks)
        self._folder.begin(
            {"format": FORMAT, "model": self._job.fingerprint, **self._job.options.of_blocks(), "texts": self._so_far}
        )
        work = chain(self._units("texts", chain([first], blocks)), self._units("verdicts", self._sampled()))
        with closing(engine(self._job, work)) as done:
            for unit, found in done:
                self._folder.write(self._folder.place(unit), found)
                self._count(unit.stage, len(unit.block.lines))
        found = self._merged()
        self._folder.write(self._folder.path / NAME, found.to_json())
        self._folder.write(self._folder.path / table.NAME, table.parquet(found))
        return found

    def _blocks(self) -> Iterator[Block]:
        """Of the corpus; on the way each line is counted in."""
        for block in self._corpus.blocks():
            self._digest.update(block.content)
            for line in block.lines:
                self._draw(line)
            yield block

    @property
    def _so_far(self) -> str:
        return self._digest.hexdigest()

    def _draw(self, line: Line) -> None:
        """Keeps the lines whose numbers have the lowest hashes: the same ones in whatever order they would come."""
        most = self._job.options.verdict_texts if self._model.model.kind.writes else 0
        if line.fault is not None or not most:
            return
        drawn = hashlib.sha256(f"{self._job.options.seed} {line.number}".encode()).digest()
        heapq.heappush(self._sample, (-int.from_bytes(drawn), line))
        if len(self._sample) > most:
            heapq.heappop(self._sample)

    def _sampled(self) -> Iterator[Block]:
        """The sample in order, when all lines were read."""
        lines = sorted((line for _, line in self._sample), key=lambda line: line.number)
        for number, first in enumerate(range(0, len(lines), _VERDICT_BLOCK)):
            yield Block(number, tuple(lines[first : first + _VERDICT_BLOCK]))

    def _units(self, stage: Stage, blocks: Iterator[Block]) -> Iterator[Unit]:
        """What of a stage is not done."""
        self._count(stage, 0)
        for block in blocks:
            unit = Unit(stage, block, block.digest(self._job.fingerprint, self._job.options))
            path = self._folder.place(unit)
            self._files[stage].append(path)
            if _is_done(unit, path):
                self._count(stage, len(block.lines))
            else:
                yield unit

    def _count(self, stage: Stage, n_lines: int) -> None:
        self._n_done[stage] += n_lines
        self._tell(stage, self._n_done[stage], self._corpus.n_lines if stage == "texts" else len(self._sample))

    def _merged(self) -> Survey:
        model = self._model
        found = merge(
            self._files["texts"],
            self._files["verdicts"],
            model=SurveyedModel(
                name=model.name, variant=model.variant, parameters=model.n_parameters, fingerprint=self._job.fingerprint
            ),
            source=self._corpus.source,
            digest=self._so_far,
            options=asdict(self._job.options),
            k=self._job.options.k,
            by=self._job.options.by,
        )
        if not found.texts.n_read:
            (first, *_) = found.texts.failed
            raise InputError(f"None of {found.texts.n} texts can be read; line {first.line}: {first.why}.")
        return found


def _is_done(unit: Unit, path: Path) -> bool:
    """Whether the file is there, whole, and of this very work; anything else is made again."""
    try:
        _CHECKS[unit.stage](path, unit.digest)
    except (SurveyError, FileNotFoundError):
        return False
    return True
