"""Replay: one source through the snapshots of a training, so that one sees attention form."""

from collections.abc import Iterable, Sequence

from transformer_viz import checkpoints
from transformer_viz.checkpoints import Checkpoint, Entry
from transformer_viz.errors import CheckpointError, listed
from transformer_viz.schema import whole_number
from transformer_viz.trace.snapshots import Target, TrainingSnapshot
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.decode_request import DecodeKeywords, DecodeRequest
from transformer_viz.tracing.framing import LONGEST
from transformer_viz.tracing.trace_size import check, checked_limit, predicted
from transformer_viz.vocabulary import END, UNKNOWN

MOST_MOMENTS = 60
MAX_REPLAY_BYTES = 256_000_000


def replay(
    checkpoint: Checkpoint,
    text: str,
    *,
    moments: int = MOST_MOMENTS,
    candidates: int = 10,
    max_trace_bytes: int = MAX_REPLAY_BYTES,
    kinds: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    precision: str = "float32",
) -> tuple[TrainingSnapshot, ...]:
    """The checkpoint's snapshots, oldest first, each decoding `text` by itself and reading one fixed target.

    The target is the true answer, or where nobody knows it what the finished model writes
    (`TrainingSnapshot.target` says which).
    A model that does not know yet when to stop is stopped after twice the target's length.

    Args:
        checkpoint: one with snapshots (`train … --snapshots 12`).
        text: one source text.
        moments: at most so many, evenly among the snapshots, the first and the last included; fewer where long texts
            and many heads would take too much memory.
        candidates: how many of the most probable tokens each step keeps.
        max_trace_bytes: the most bytes that all moments may take together.
        kinds: as in `decode`, which kinds of attention are kept of each moment.
        layers: likewise.
        precision: likewise.

    Raises:
        CheckpointError: no snapshots, or a damaged one.
        InputError: a text that the task cannot read.
        OptionError: an impossible keyword.
        TraceTooLarge: not even two moments are allowed.
    """
    wanted = whole_number("moments", moments, 2, MOST_MOMENTS)
    steps = list(checkpoints.snapshots(checkpoint.folder))
    if not steps:
        raise CheckpointError(
            f"{checkpoint.name} has no snapshots of its training, so there is nothing to replay. "
            f"With snapshots there are: {listed(replayable(checkpoints.entries()))}. "
            "A training keeps them with: train … --snapshots 12"
        )
    target, origin = _target(checkpoint, text)
    longest = min(2 * len(target) + 8, checkpoint.task.max_target_length + 1, checkpoint.model.config.max_positions, LONGEST)
    forced: DecodeKeywords = {"candidates": candidates, "kinds": kinds, "layers": layers, "precision": precision}
    written: DecodeKeywords = {**forced, "max_length": longest}
    requests = DecodeRequest.of(checkpoint, text, None, **written), DecodeRequest.of(checkpoint, text, target, **forced)
    plans = [request.plan() for request in requests]
    most = checked_limit(max_trace_bytes)
    check(plans * 2, most)
    shown = _evenly(steps, min(wanted, most // predicted(*plans).total))
    return tuple(_moment(checkpoint, step, text, target, origin, written, forced) for step in shown)


def replayable(entries: Iterable[Entry]) -> list[str]:
    """Names of the usable checkpoints that have snapshots."""
    return [entry.name for entry in entries if entry.error is None and checkpoints.snapshots(entry.folder)]


def _moment(
    checkpoint: Checkpoint,
    step: int,
    text: str,
    target: tuple[str, ...],
    origin: Target,
    written: DecodeKeywords,
    forced: DecodeKeywords,
) -> TrainingSnapshot:
    then = checkpoints.load_snapshot(checkpoint, step)
    return TrainingSnapshot(
        step=step,
        written=decode(then, text, **written),
        forced=decode(then, text, target=target, **forced),
        target=origin,
    )


def _target(checkpoint: Checkpoint, text: str) -> tuple[tuple[str, ...], Target]:
    """Tokens without `<end>`; a word of the answer that the model does not know is what it was in training, `<unk>`."""
    task = checkpoint.task
    answer = task.answer(task.read(text))
    if answer is not None:
        return tuple(token if token in task.target_vocabulary else UNKNOWN for token in answer), "answer"
    final: Trace = decode(checkpoint, text, kinds=("cross",), precision="float16")  # its words alone are wanted
    # The target's own `<end>` must still fit.
    most = min(LONGEST, checkpoint.model.config.max_positions) - 1
    return tuple(token for token in final.output_tokens if token != END)[:most], "final output"


def _evenly(steps: Sequence[int], count: int) -> list[int]:
    """`count` of `steps`, the first and the last included; all of them where there are no more."""
    if len(steps) <= count:
        return list(steps)
    return [steps[round(place * (len(steps) - 1) / (count - 1))] for place in range(count)]
