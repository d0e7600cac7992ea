"""Carrying out `train` in a terminal: progress, stopping in good order, TensorBoard, the Train page's requests."""

import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer_viz.commands._shared import terminal_text
from transformer_viz.commands.evaluate import print_evaluation
from transformer_viz.errors import ConfigError
from transformer_viz.numbers_in_words import number_words
from transformer_viz.training import estimate
from transformer_viz.training.embeddings import SIDES, read_matrix
from transformer_viz.training.make_checkpoint import ControlSignal, make_checkpoint
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.reporter import Reporter
from transformer_viz.training.result import Event

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def carry_out(
    recipe: Recipe,
    folder: Path,
    options: Mapping[str, Any],
    embeddings: tuple[Path | None, Path | None],
    tensorboard: Path | None,
    job: Reporter | None,
) -> int:
    """Trains, and prints the evaluation.

    Args:
        recipe: what is trained.
        folder: where the checkpoint goes.
        options: keywords of `make_checkpoint`.
        embeddings: files with pretrained matrices, of the source and the target.
        tensorboard: a folder for TensorBoard's events.
        job: the one that it reports to, where another program started it, as the page Train does.

    Returns:
        128 + N where signal N stopped it before its end, as Ctrl-C does; 130 where the page did.
    """
    estimate.check_memory(estimate.estimate(recipe))
    _tell(f"training {recipe.task}, {recipe.variant}, {recipe.steps} steps, into {folder}")
    with _stoppable() as signals, _progress(recipe) as show, _tensorboard(tensorboard) as log:

        def on_event(event: Event) -> None:
            show(event)
            log(event)
            if job:
                job.report(event)

        def control() -> ControlSignal:
            return "pause" if signals else job.control() if job else "go on"

        with job.running(folder) if job else nullcontext():
            matrices = {side: read_matrix(file) for side, file in zip(SIDES, embeddings, strict=True) if file}
            metrics = make_checkpoint(recipe, folder, embeddings=matrices, on_event=on_event, control=control, **options)
    if metrics is None:
        _tell(f"stopped; {folder} holds what there is. Go on with --resume.")
        return 128 + (signals or [signal.SIGINT])[0]
    print_evaluation(metrics)
    print(terminal_text(f"written: {folder}"))
    return 0


@contextmanager
def _stoppable() -> Generator[list[int]]:
    """The signals that came. The first Ctrl-C (or polite kill, or closed terminal) lets the step end and keeps what there
    is; the second one ends at once."""
    signals: list[int] = []

    def handle(number: int, _: Any) -> None:
        if signals:
            raise SystemExit(128 + number)
        signals.append(number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handle)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(recipe: Recipe) -> Generator[Callable[[Event], None]]:
    """A bar for whoever watches. Nobody watching any more, or no room for the log, is no reason to end a training."""
    try:
        bar = tqdm(total=recipe.steps, unit="step", file=sys.stderr)
    except OSError:
        bar = tqdm(disable=True)
    held_out: dict[str, str] = {}

    def show(event: Event) -> None:
        if "held_out" in event.checks:
            held_out["held_out"] = number_words(event.checks["held_out"], 3)
        try:
            bar.update(event.step - bar.n)
            bar.set_postfix(loss=number_words(event.loss, 4), exact=number_words(event.sequence_accuracy, 3), **held_out)
        except OSError:
            bar.disable = True

    try:
        yield show
    finally:
        with suppress(OSError):
            bar.close()


def _tell(words: str) -> None:
    with suppress(OSError):
        print(terminal_text(words), file=sys.stderr)


@contextmanager
def _tensorboard(folder: Path | None) -> Generator[Callable[[Event], None]]:
    if folder is None:
        yield lambda event: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise ConfigError("--tensorboard needs the package tensorboard. Install it with: pip install tensorboard") from error
    with SummaryWriter(str(folder)) as writer:

        def log(event: Event) -> None:
            for name, value in event.row().items():
                if name != "step" and value is not None:
                    writer.add_scalar(name, value, event.step)

        yield log
