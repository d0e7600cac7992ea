"""The command `survey`."""

import json as json_format
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import (
    SEED,
    Json,
    MaxLength,
    Mode,
    ModelChoice,
    existing_file,
    print_json,
    print_lines,
    terminal_text,
)
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import bytes_words, count_words, interval_words, number_words, percent_words
from transformer_viz.schema import Range
from transformer_viz.terms import head_label

if TYPE_CHECKING:
    from transformer_viz.surveys.result import Survey
    from transformer_viz.surveys.survey import Progress

REPORT = "report.html"
_FILES = f"summary.json, survey.parquet, {REPORT}; blocks/ and verdicts/ are for going on, and may be removed"
_SHOWN = 5


def _read_lines_of(text: str) -> str:
    return text if text == "-" else str(existing_file(text))


def run(
    model: ModelChoice,
    texts: Annotated[
        str | None, "a file with one text a line; - reads standard input", _read_lines_of, Option(either="corpus")
    ] = None,
    held_out: Annotated[
        int | None, "draw N texts of the task that training did not see", Range(1, 1_000_000), Option(either="corpus")
    ] = None,
    targets: Annotated[str | None, "a file with the right answers, one a line (those of the task)", _read_lines_of] = None,
    output: Annotated[
        Path | None, "folder for the results; an interrupted survey continues there (surveys/NAME)", Option("-o")
    ] = None,
    ray: Annotated[str | None, "run on a Ray cluster: its address, or auto for RAY_ADDRESS or this machine (needs ray)"] = None,
    workers: Annotated[
        int | None, "number of processes, or with --ray of tasks at a time (one for each processor)", Range(1, 1024)
    ] = None,
    gpus_per_worker: Annotated[float, "with --ray: GPUs for each worker, as in 1 or 0.25", Range(0)] = 0.0,
    verdict_texts: Annotated[
        int, "for N texts also test whether heads look at what the output depends on; slow; 0 skips it", Range(0, 100_000)
    ] = 300,
    mode: Mode = "word",
    by: Annotated[
        str | None, "statistic for choosing typical and unusual texts (mass if the right token is known, else entropy_share)"
    ] = None,
    k: Annotated[int, "how many typical and unusual texts to keep for each head", Range(1, 50)] = 5,
    max_length: MaxLength = None,
    seed: Annotated[int, "draw other texts", SEED] = 0,
    json: Json = False,
) -> None:
    """Measure what every head of a model does over many texts."""
    from transformer_viz.surveys.result import SurveyOptions

    if texts is None and held_out is None:
        raise OptionError("one of --texts FILE and --held-out N is needed")
    if gpus_per_worker and ray is None:
        raise OptionError("--gpus-per-worker is for workers of Ray; give --ray too, or choose a --device")
    if targets and texts is None:
        raise OptionError("--targets needs --texts; of --held-out texts the task knows the answers")
    SurveyOptions(by=by)
    task = model.check()
    if held_out is not None and task is not None:
        task.check_samples(held_out, "--held-out")

    from tqdm import tqdm

    from transformer_viz.atomic_files import write_text
    from transformer_viz.export import survey_html
    from transformer_viz.surveys.survey import survey

    name = model.module or model.model or model.checkpoint
    folder = output or Path("surveys", Path(name).name.replace(":", "-"))
    options: dict[str, Any] = {"k": k, "by": by, "max_length": max_length, "seed": seed, "verdict_texts": verdict_texts}
    engine: dict[str, Any] = {"workers": workers, "ray": ray, "gpus_per_worker": gpus_per_worker, "device": model.device}
    bars: dict[str, tqdm] = {}

    def show(progress: "Progress") -> None:
        """Shows how much memory a survey takes, then a bar for each stage where somebody watches: texts, then verdicts."""
        if not bars and not json:
            memory = f"about {bytes_words(progress.worker_bytes)}"
            words = f"each worker takes {memory} of memory"
            if progress.n_workers is not None:
                several = f"{progress.n_workers} workers, each {memory} of memory"
                words = several if progress.n_workers > 1 else f"it takes {memory} of memory"
            print(words, file=sys.stderr)
        if progress.stage not in bars:
            bar = tqdm(total=progress.n_total, desc=progress.stage, unit="text", file=sys.stderr, disable=None)
            bars[progress.stage] = at_end.enter_context(bar)
        bar = bars[progress.stage]
        bar.update(progress.n_done - bar.n)

    try:
        with ExitStack() as at_end:
            result = survey(
                name, texts, output=folder, targets=targets, held_out=held_out, mode=mode, on_progress=show, **engine, **options
            )
    except (KeyboardInterrupt, SystemExit):
        print(f"\nwhat is done is in {terminal_text(str(folder))}; the same command continues", file=sys.stderr)
        raise
    write_text(survey_html(result), folder / REPORT)
    if json:
        print_json(json_format.loads(result.to_json()))
    else:
        print_lines("\n".join(_lines(result, folder)))


def _lines(survey: "Survey", folder: Path) -> Iterator[str]:
    texts, outputs = survey.texts, survey.outputs
    yield f"{texts.n_read:,} of {count_words(texts.n, 'text was', 'texts were')} read ({texts.source})"
    yield from (f"line {failed.line} was not: {failed.why}" for failed in texts.failed[:_SHOWN])
    if outputs is not None and outputs.n_known:
        exact = number_words(outputs.n_exact / outputs.n_known, 4)
        yield f"exact match   {exact}   of {outputs.n_known} texts whose answer is known"
        if outputs.bleu is not None:
            yield f"BLEU          {number_words(outputs.bleu, 2)}"
    for kind in survey.kinds:
        # The head of a kind with the most of what its texts are chosen by.
        rows = [survey.at(texts.place, texts.by) for texts in survey.examples if texts.kind == kind]
        if best := max((row for row in rows if row is not None), key=lambda row: row.mean, default=None):
            (role, share), *_ = survey.roles(best.place)
            number = f"{number_words(best.mean, 3)} ({interval_words(best.interval, number_words, 3)})"
            place = head_label(best.layer, best.head)
            yield f"{kind:14}{place:8}{best.statistic} {number}, {role} in {percent_words(share)}"
    yield f"{folder}: {_FILES}"
