"""What every head of a model does over a corpus, on as many processes and machines as there are."""

import argparse
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import bytes_words, count_words, percent_words
from transformer_viz.terms import head_label

if TYPE_CHECKING:
    from tqdm import tqdm

    from transformer_viz.analysis.survey.result import Survey
    from transformer_viz.surveying.survey import Progress

HELP = "what every head does over a corpus, and how good and how sure the outputs are"
REPORT = "report.html"
_FILES = f"summary.json, survey.parquet, {REPORT}; blocks/ and verdicts/ are for going on, and may be removed"
_SHOWN = 5
_MOST_WORKERS, _MOST_GPUS = 1024, 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, the corpus, who does the work, what is kept."""
    _shared.add_model(parser)
    _add_corpus(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="where to write; the same survey goes on there (surveys/NAME)"
    )
    _add_workers(parser)
    parser.add_argument(
        "--verdict-texts",
        type=_shared.whole(0, 100_000),
        default=300,
        metavar="N",
        help="of how many texts it is asked whether attention points at the cause; 0 asks of none (300)",
    )
    _shared.add_mode(parser, "for that: ")
    parser.add_argument(
        "--by",
        metavar="NAME",
        help="the statistic by which texts are typical (mass where a true key is known, else entropy_share)",
    )
    parser.add_argument("--k", type=_shared.whole(1, 50), default=5, metavar="N", help="texts that are kept of each head (5)")
    _shared.add_max_length(parser)
    _shared.add_seed(parser, "another seed draws other held-out texts, and another sample for verdicts")
    _shared.add_json(parser)


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--texts", type=_lines, metavar="FILE", help="what it reads, a text a line; - reads standard input")
    either.add_argument(
        "--held-out", type=_shared.whole(1, 1_000_000), metavar="N", help="texts of the task that training did not see"
    )
    parser.add_argument("--targets", type=_lines, metavar="FILE", help="the known answers, line by line (as the task knows)")


def _lines(text: str) -> str:
    return text if text == "-" else str(_shared.existing_file(text))


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="on a Ray cluster; auto is the environment's, else one on this machine (needs ray)"
    )
    parser.add_argument(
        "--workers",
        type=_shared.whole(1, _MOST_WORKERS),
        metavar="N",
        help="processes, with --ray actors (one for each processor)",
    )
    parser.add_argument(
        "--gpus-per-worker",
        type=_shared.decimal(0, or_equal=True),
        default=0.0,
        metavar="X",
        help="with --ray: how much of a GPU each has (0)",
    )


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    _check(arguments)

    from transformer_viz.export import survey_html
    from transformer_viz.surveying.survey import survey
    from transformer_viz.writing import write_text

    model = arguments.model or arguments.checkpoint
    folder: Path = arguments.output or Path("surveys", Path(model).name.replace(":", "-"))
    names = ("targets", "held_out", "workers", "ray", "gpus_per_worker", "device")
    options = ("k", "by", "max_length", "seed", "verdict_texts", "mode")
    given = {name: getattr(arguments, name) for name in (*names, *options)}
    with _Bars(arguments.json) as bars, _says_how_to_go_on(folder):
        found = survey(model, arguments.texts, output=folder, on_progress=bars.show, **given)
    write_text(survey_html(found), folder / REPORT)
    if arguments.json:
        _shared.print_json(json.loads(found.to_json()))
    else:
        _print(found, folder)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuses what can be refused without torch."""
    from transformer_viz.analysis.survey.statistic import check_by

    if arguments.gpus_per_worker and arguments.ray is None:
        raise OptionError("--gpus-per-worker is for actors of Ray; give --ray too, or choose a --device")
    if arguments.targets and arguments.texts is None:
        raise OptionError("--targets go with --texts; of held-out ones the task knows the answers")
    check_by(arguments.by)
    task = _shared.look_up(arguments)
    if arguments.held_out is not None and task is not None:
        task.check_samples(arguments.held_out, "--held-out ")


@contextmanager
def _says_how_to_go_on(folder: Path) -> Generator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        print(f"\nwhat is done is in {_shared.visible(str(folder))}; the same command goes on", file=sys.stderr)
        raise


class _Bars:
    """How far it is, on standard error: what it takes, then a bar for each stage where somebody watches."""

    def __init__(self, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._bars: dict[str, tqdm] = {}

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *error: object) -> None:
        for bar in self._bars.values():
            bar.close()

    def show(self, progress: "Progress") -> None:
        """A stage begins, or a unit of it is done; the last texts are, when verdicts have begun."""
        from tqdm import tqdm

        if not self._bars and not self._is_quiet:
            print(_memory_words(progress), file=sys.stderr)
        if progress.stage not in self._bars:
            bar = tqdm(total=progress.n_total, desc=progress.stage, unit="text", file=sys.stderr, disable=None)
            self._bars[progress.stage] = bar
        bar = self._bars[progress.stage]
        bar.update(progress.n_done - bar.n)


def _memory_words(progress: "Progress") -> str:
    each = f"about {bytes_words(progress.worker_bytes)}"
    if progress.n_workers is None:
        return f"each worker takes {each} of memory"
    return f"{progress.n_workers} workers, each {each} of memory" if progress.n_workers > 1 else f"it takes {each} of memory"


def _print(found: "Survey", folder: Path) -> None:
    texts, outputs = found.texts, found.outputs
    of_all = count_words(texts.n, "text was", "texts were")
    print(f"{texts.n_read:,} of {of_all} read ({_shared.visible(texts.source)})")
    for each in texts.failed[:_SHOWN]:
        print(f"line {each.line} was not: {_shared.visible(each.why)}")
    if outputs is not None and outputs.n_known:
        print(f"exact match   {outputs.n_exact / outputs.n_known:.4f}   of {outputs.n_known} texts whose answer is known")
        if outputs.bleu is not None:
            print(f"BLEU          {outputs.bleu:.2f}")
    for kind in found.kinds:
        _print_best(kind, found)
    print(f"{_shared.visible(str(folder))}: {_FILES}")


def _print_best(kind: str, found: "Survey") -> None:
    """The head of a kind with the most of what its texts are chosen by."""
    heads = [(each.statistics[each.by], each) for each in found.heads if each.kind == kind and each.by is not None]
    if not (known := [(of, head) for of, head in heads if of is not None]):
        return
    most, best = max(known, key=lambda each: each[0].mean)
    role, n = max(best.roles.items(), key=lambda item: item[1])
    place, interval = head_label(best.layer, best.head), f"({most.low:.3f} to {most.high:.3f})"
    print(f"{kind:14}{place:8}{best.by} {most.mean:.3f} {interval}, {role} in {percent_words(n / best.n_texts)}")
