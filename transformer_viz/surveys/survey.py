"""`survey`: workers run blocks of lines, each block's result is kept, and all are merged in the order of the lines.

A block's result depends on its lines, the model and the options alone. So the survey is the same to the last bit, whichever
workers ran it, how many there were, and how often it was interrupted.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from transformer_viz.analysis.head_names import ROLES
from transformer_viz.errors import InputError, OptionError, SurveyError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.block_results import read_description, read_verdicts
from transformer_viz.surveys.corpus import Block, Lines, blocks_of, held_out_corpus, read_corpus
from transformer_viz.surveys.folder import opened_folder
from transformer_viz.surveys.merge import merge
from transformer_viz.surveys.options import SurveyOptions
from transformer_viz.surveys.result import NAME, Survey, SurveyedKind, SurveyedModel
from transformer_viz.surveys.statistics import NAMES, check_by
from transformer_viz.surveys.workers import Stage, Unit, Workers, memory_of_worker

FORMAT = 4
"""The version of a block's result; a block with another version is run again."""
_VERDICT_BLOCK = 8
"""Sampled lines in one unit of work; few, since a verdict takes as long as many lines of a block."""


@dataclass(frozen=True)
class Progress:
    """How far a survey is.

    Attributes:
        stage: texts, then the verdicts of the sampled ones.
        n_done: lines of this stage, those of an earlier run included.
        n_total: how many there are.
        n_workers: how many workers run; None where Ray decides.
        worker_bytes: about how much memory each of them takes.
    """

    stage: Stage
    n_done: int
    n_total: int
    n_workers: int | None
    worker_bytes: int


OnProgress = Callable[[Progress], object]
"""A callback at the beginning of a stage and after each unit. An exception in it ends the survey, which can be resumed."""


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
    """Measures what every head of a model does over many texts, and how good and how sure the outputs are.

    Args:
        model: a name or a folder as in `load_model`, which each worker loads; or a loaded model, which runs in this process.
        texts: the path of a UTF-8 file with a text a line, `-` for standard input, or the texts themselves in a list.
        targets: the known answers in the same form, one for each text; an empty one is not known. None = those that the
            model's task knows.
        held_out: instead of `texts`: how many of the texts by which models of this task are judged.
        output: a folder for all files, from which an interrupted survey is resumed; None = nothing is kept.
        workers: processes of this machine, or tasks of Ray at a time; None = one for each processor that may be used.
        ray: a Ray cluster's address; or `auto` for the one that the environment names, else one on this machine alone.
        gpus_per_worker: the share of a GPU for each task of Ray; 0 = tasks compute on the CPU.
        device: where the model runs, as in `load_model`.
        k: how many typical and unusual texts are kept of each head, and how many of the worst outputs.
        by: the statistic that makes texts typical or unusual; None = `mass` where there is a true key, else `entropy_share`.
        max_length: the most tokens to write, as in `decode`.
        seed: of held-out texts, of the sample for verdicts, and of their intervals.
        verdict_texts: the number of sampled texts on which `verdict` judges attention; 0 = none.
        mode: how these verdicts occlude a token, as in `attribute`.
        on_progress: is called with a `Progress`; what it raises ends the survey.

    Raises:
        InputError: texts that are not there, or none that can be read.
        OptionError: an impossible option, or a folder that is in use for something else.
        SurveyError: the disk is full, a worker was killed, or Ray is not there.
        TransformerVizError: as `load_model`.
    """
    options = SurveyOptions(k=k, by=by, max_length=max_length, seed=seed, verdict_texts=verdict_texts, mode=mode)
    check_by(by)
    if find_spec("pyarrow") is None:
        raise SurveyError("survey.parquet is written by pyarrow, which is not installed: pip install pyarrow")
    pool = Workers(model, device, workers, ray, gpus_per_worker)
    if (texts is None) == (held_out is None):
        raise OptionError("give either texts, or held_out=N for N texts that training did not see")
    if texts is None and targets is not None:
        raise OptionError("targets need texts; of held-out ones the task knows the answers")
    corpus = None if texts is None else read_corpus(texts, targets)
    loaded = pool.load()
    corpus = corpus or held_out_corpus(loaded, held_out or 0, seed)
    job = pool.job(loaded, options)
    identity = {"format": FORMAT, "model": job.fingerprint, **options.of_blocks()}

    def unit_of(stage: Stage, block: Block) -> Unit:
        about = json.dumps([identity, NAMES, tuple(ROLES), block.number], sort_keys=True)
        return Unit(stage, block, hashlib.sha256(about.encode() + block.content).hexdigest())

    # The lines whose numbers have the lowest hashes: the same ones whatever lines are added.
    most = verdict_texts if loaded.model.kind.writes else 0
    readable = [line for line in corpus.lines if line.fault is None] if most else []
    sample = sorted(readable, key=lambda line: hashlib.sha256(f"{seed} {line.number}".encode()).digest())[:most]
    in_order = blocks_of(sorted(sample, key=lambda line: line.number), _VERDICT_BLOCK)
    units: dict[Stage, list[Unit]] = {
        "texts": [unit_of("texts", block) for block in corpus.blocks],
        "verdicts": [unit_of("verdicts", block) for block in in_order],
    }
    with ExitStack() as stack:
        path = Path(stack.enter_context(TemporaryDirectory()) if output is None else output)
        folder = stack.enter_context(opened_folder(path))
        folder.begin({**identity, "texts": hashlib.sha256(corpus.blocks[0].content).hexdigest()})
        n_done, left = dict.fromkeys(units, 0), []
        for unit in (*units["texts"], *units["verdicts"]):
            if _is_done(unit, path):
                n_done[unit.stage] += len(unit.block.lines)
            else:
                left.append(unit)

        def report(stage: Stage) -> None:
            if on_progress is not None:
                n_total = sum(len(unit.block.lines) for unit in units[stage])
                on_progress(Progress(stage, n_done[stage], n_total, pool.n, memory_of_worker(loaded)))

        for stage in units:
            report(stage)
        with closing(pool.run(loaded, job, left)) as results:
            for unit, result in results:
                folder.write(_file_of(unit), result)
                n_done[unit.stage] += len(unit.block.lines)
                report(unit.stage)
        sizes = loaded.model.sizes
        result = merge(
            [line.text for line in corpus.lines],
            *([path / _file_of(unit) for unit in units[stage]] for stage in ("texts", "verdicts")),
            model=SurveyedModel(
                name=loaded.name, variant=loaded.variant, parameters=loaded.n_parameters, fingerprint=job.fingerprint
            ),
            kinds={kind: SurveyedKind(layers=tuple(sizes.layers[kind]), n_heads=sizes.heads[kind]) for kind in sizes.layers},
            source=corpus.source,
            digest=corpus.digest,
            options=asdict(options),
        )
        if not result.texts.n_read:
            (first, *_) = result.texts.failed
            raise InputError(f"None of {result.texts.n} texts can be read; line {first.line}: {first.why}.")
        folder.write(NAME, result.to_json())
        folder.write("survey.parquet", parquet(result))
        return result


def parquet(survey: Survey) -> bytes:
    """A survey as a Parquet file with the columns of `Survey.to_frame`, the same bytes for the same survey."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.Table.from_pandas(survey.to_frame(), preserve_index=False)
    file = io.BytesIO()
    # What pandas would add says the versions of programs.
    parquet.write_table(rows.replace_schema_metadata(None), file)
    return file.getvalue()


def _file_of(unit: Unit) -> str:
    number = f"{unit.block.number:06}"
    return f"blocks/{number}.safetensors" if unit.stage == "texts" else f"verdicts/{number}.json"


def _is_done(unit: Unit, folder: Path) -> bool:
    """Whether the unit's file is there, undamaged, and from the same lines, model and options; otherwise it is made again."""
    read = read_description if unit.stage == "texts" else read_verdicts
    try:
        return read(folder / _file_of(unit)).digest == unit.digest
    except SurveyError:
        return False
