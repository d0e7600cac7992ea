"""Carrying out `train` in a terminal: progress, stopping in good order, TensorBoard, the Train screen's wishes."""

import argparse
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer_viz.commands import _shared
from transformer_viz.commands.evaluate import print_table
from transformer_viz.errors import ConfigError
from transformer_viz.runs import estimate, jobs
from transformer_viz.runs.embeddings import load_embeddings
from transformer_viz.runs.make_checkpoint import Making, Wish, make_checkpoint
from transformer_viz.training.loop import Event
from transformer_viz.training.processes import processes
from transformer_viz.training.recipe import Recipe

STOPPED = 130


def carry_out(recipe: Recipe, folder: Path, arguments: argparse.Namespace) -> int:
    """Trains, and prints the evaluation; 130 when it was stopped before."""
    is_first = processes().is_first
    estimate.check_memory(estimate.estimate(recipe))
    if is_first:
        words = f"training {recipe.task}, {recipe.variant}, {recipe.steps} steps, into {folder}"
        print(_shared.visible(words), file=sys.stderr)
    job = jobs.Reporter(arguments.job) if arguments.job else None
    with _stoppable() as wish, _progress(recipe, is_first) as show, _tensorboard(arguments.tensorboard, is_first) as log:

        def on_event(event: Event) -> None:
            show(event)
            log(event)
            if job:
                job.report(event)

        making = Making(
            device=arguments.device,
            replace=arguments.force,
            resume=arguments.resume,
            samples=arguments.samples,
            snapshots=arguments.snapshots,
            on_event=on_event,
            wish=(lambda: job.wish() if wish() == "go on" else wish()) if job else wish,
        )
        with job.alive() if job else nullcontext():
            embeddings = load_embeddings(arguments.source_embedding, arguments.target_embedding)
            metrics = make_checkpoint(recipe, folder, making, prepare=embeddings)
    if metrics is None:
        if is_first:
            print(_shared.visible(f"stopped; {folder} holds what there is. Go on with --resume."), file=sys.stderr)
        return STOPPED
    if is_first:
        print_table(metrics)
        print(_shared.visible(f"written: {folder}"))
    return 0


@contextmanager
def _stoppable() -> Generator[Callable[[], Wish]]:
    """The first Ctrl-C (or a polite kill) lets the step end and keeps what there is; the second one ends at once."""
    asked: list[int] = []

    def heard(number: int, _: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: "pause" if asked else "go on"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(recipe: Recipe, is_first: bool) -> Generator[Callable[[Event], None]]:
    with tqdm(total=recipe.steps, unit="step", file=sys.stderr, disable=not is_first) as bar:
        held_out: dict[str, str] = {}

        def show(event: Event) -> None:
            bar.update(event.step - bar.n)
            if "held_out" in event.checks:
                held_out["held_out"] = f"{event.checks['held_out']:.3f}"
            bar.set_postfix(loss=f"{event.loss:.4f}", exact=f"{event.sequence_accuracy:.3f}", **held_out)

        yield show


@contextmanager
def _tensorboard(folder: Path | None, is_first: bool) -> Generator[Callable[[Event], None]]:
    if folder is None or not is_first:
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
