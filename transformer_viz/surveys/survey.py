"""`survey`: workers run blocks of lines, each block's result is kept, and all are merged in the order of the lines.

A block's result depends on its lines, the model and the options alone. So the survey is the same to the last bit, whichever
workers ran it, how many there were, and how often it was interrupted.

Its folder has a file for each finished block, and belongs to one survey, which `survey.json` names. Other files in it are left
alone; a block's file that is damaged, or was made from other lines, is computed again.
"""

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformer_viz import locks, untrusted_files
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.atomic_files import PARTIAL, write_bytes
from transformer_viz.errors import FileError, InputError, OptionError, SurveyError, join_names
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.blocks import read_description, read_verdicts
from transformer_viz.surveys.corpus import Block, Lines, blocks_of, held_out_corpus, read_corpus
from transformer_viz.surveys.merge import merge
from transformer_viz.surveys.result import NAME, NAMES, Survey, SurveyedKind, SurveyedModel, SurveyOptions
from transformer_viz.surveys.workers import Stage, Unit, Workers, memory_of_worker

FORMAT = 4
"""The version of a block's result; a block with another version is run again."""
IDENTITY = "survey.json"
PARTS = ("blocks", "verdicts")
_LOCK = ".lock"
_LARGEST_IDENTITY = 2**16
_VERDICT_BLOCK = 8
"""Sampled lines in one unit of work; few, since a verdict takes as long as many lines of a block."""


@dataclass(frozen=True)
class Progress:
    """The progress of a survey.

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

    Returns:
        The statistics of each head: `at("cross.1.1", "mass")`, None where no text has it, and `to_frame()` as a tidy table.
        `statistics` has the names: `mass`, `hit_rate`, `entropy_share` and others of docs/grading.md.

    Raises:
        InputError: texts that are not there, or none that can be read.
        OptionError: an impossible option, or a folder that is in use for something else.
        SurveyError: the disk is full, a worker was killed, or Ray is not there.
        TransformerVizError: as `load_model`.

    Example:
        >>> import transformer_viz as tv
        >>> found = tv.survey("reverse-small", ["hello", "planet"], workers=1, verdict_texts=0)
        >>> found.texts.n
        2
        >>> 0 <= found.at("cross.1.1", "mass").mean <= 1
        True
        >>> table = found.to_frame()  # a row for each head and statistic

    References:
        Clark et al. (2019), "What Does BERT Look At?": https://arxiv.org/abs/1906.04341
    """
    options = SurveyOptions(k=k, by=by, max_length=max_length, seed=seed, verdict_texts=verdict_texts, mode=mode)
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
    # Not those about the lists that are made when blocks are merged.
    of_blocks = {name: value for name, value in asdict(options).items() if name not in ("k", "by")}
    identity = {"format": FORMAT, "model": job.fingerprint, **of_blocks}

    def unit_of(stage: Stage, block: Block) -> Unit:
        about = json.dumps([identity, NAMES, tuple(ROLES), block.number], sort_keys=True)
        return Unit(stage, block, hashlib.sha256(about.encode() + block.content).hexdigest())

    # The lines whose numbers have the lowest hashes: the same ones whatever lines are added.
    most = verdict_texts if loaded.network.kind.writes else 0
    readable = [line for line in corpus.lines if line.fault is None] if most else []
    sample = sorted(readable, key=lambda line: hashlib.sha256(f"{seed} {line.number}".encode()).digest())[:most]
    in_order = blocks_of(sorted(sample, key=lambda line: line.number), _VERDICT_BLOCK)
    units: dict[Stage, list[Unit]] = {
        "texts": [unit_of("texts", block) for block in corpus.blocks],
        "verdicts": [unit_of("verdicts", block) for block in in_order],
    }
    with ExitStack() as stack:
        path = Path(stack.enter_context(TemporaryDirectory()) if output is None else output)
        stack.enter_context(_opened_folder(path))
        _begin(path, {**identity, "texts": hashlib.sha256(corpus.blocks[0].content).hexdigest()})
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
                _write(path, _file_of(unit), result)
                n_done[unit.stage] += len(unit.block.lines)
                report(unit.stage)
        sizes = loaded.network.sizes
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
        _write(path, NAME, result.to_json().encode())
        _write(path, "survey.parquet", parquet(result))
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
    """Tells whether the unit's file is there, undamaged, and from the same lines, model and options; else it is made again."""
    read = read_description if unit.stage == "texts" else read_verdicts
    try:
        return read(folder / _file_of(unit)).digest == unit.digest
    except SurveyError:
        return False


@contextmanager
def _opened_folder(path: Path) -> Generator[None]:
    """A survey's folder, which is made, and in which nobody else writes meanwhile.

    Raises:
        OptionError: something else has the name, or another survey writes there.
        SurveyError: nothing can be written there.
    """
    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise OptionError(f"{path} is no folder. Give another name.")
    with ExitStack() as stack:
        try:
            with _disk_errors(path):
                path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locks.hold_lock(path / _LOCK, removes=True))
        except locks.LockHeld:
            raise OptionError(f"Another survey is writing to {path}. Wait until it ends, or give another folder.") from None
        yield


def _begin(path: Path, identity: Mapping[str, Any]) -> None:
    """Makes a folder that of one survey, by what decides its numbers: the names that people know, and plain data.

    Raises:
        OptionError: it is the folder of another survey, or of something else.
        SurveyError: nothing can be written there.
    """
    try:
        begun = untrusted_files.read_json(path / IDENTITY, _LARGEST_IDENTITY)
    except FileNotFoundError:
        if others := [file.name for file in untrusted_files.list_folder(path) if file.name != _LOCK]:
            raise OptionError(f"{path} is in use for {others[0][:40]!r}; give an empty folder, or a new one.") from None
        _write(path, IDENTITY, (json.dumps(identity, indent=1) + "\n").encode())
        begun = identity
    except FileError as error:
        raise OptionError(f"{path / IDENTITY} is not read: {error}. Give another folder.") from error
    begun = begun if isinstance(begun, Mapping) else {}
    if different := [name for name in {**identity, **begun} if identity.get(name) != begun.get(name)]:
        raise OptionError(
            f"{path} holds a survey that was begun with another {join_names(different)}. "
            "Give the same again to go on, or another folder."
        )
    for folder in (path / name for name in PARTS):
        if folder.is_symlink():
            raise OptionError(
                f"{folder} is a link; a survey writes into folders of its own. Take it away, or give another folder."
            )
        with _disk_errors(path):
            folder.mkdir(exist_ok=True)
        for left in folder.glob(f".*{PARTIAL}"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)


def _write(folder: Path, name: str, content: bytes) -> None:
    """A file of a survey, whole or not at all; a SurveyError where the disk is full, or takes nothing."""
    with _disk_errors(folder):
        write_bytes(content, folder / name)


@contextmanager
def _disk_errors(path: Path) -> Generator[None]:
    """Turns an error of a full or read-only disk into a SurveyError that says what it means for the survey."""
    try:
        yield
    except OSError as error:
        raise SurveyError(
            f"{path} cannot be written: {error.filename or 'a file'}: {error.strerror or error}. What is done is kept: make "
            "room, or let it be written to, and the same survey goes on."
        ) from error
