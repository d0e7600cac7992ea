"""`trace_training` runs one text through the snapshots of a training, to see attention form."""

from collections.abc import Iterable, Sequence

from transformer_viz import checkpoints
from transformer_viz.checkpoints import Checkpoint, Entry
from transformer_viz.errors import CheckpointError, join_names
from transformer_viz.schema import LARGEST, whole_number
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.decode_request import DecodeKeywords, DecodeRequest
from transformer_viz.tracing.tokenize_batch import LONGEST
from transformer_viz.tracing.trace_size import check, predicted
from transformer_viz.training.result import Target, TrainingSnapshot
from transformer_viz.vocabulary import END, UNKNOWN

MOST_MOMENTS = 60
MAX_REPLAY_BYTES = 256_000_000


def trace_training(
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
    """Runs each snapshot of a checkpoint, oldest first, on one text: it decodes by itself, and it reads one fixed target.

    The target is the true answer, or, where the task has none, what the finished model writes (`TrainingSnapshot.target`
    says which). A snapshot that does not stop by itself is stopped after twice the target's length.

    Args:
        checkpoint: one with snapshots (`train … --snapshots 12`).
        text: one source text.
        moments: the most snapshots to run, evenly chosen with the first and the last; fewer where long texts and many heads
            would take too much memory.
        candidates: how many of the most probable tokens each step keeps.
        max_trace_bytes: the most bytes that all moments may take together.
        kinds: as in `decode`, which kinds of attention are kept of each moment.
        layers: as in `decode`.
        precision: as in `decode`.

    Returns:
        For each snapshot what it writes by itself, and what it reads of the fixed target.

    Raises:
        CheckpointError: no snapshots, or a damaged one.
        InputError: a text that the task cannot read.
        OptionError: an impossible keyword.
        TraceTooLarge: not even two snapshots fit into `max_trace_bytes`.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse-small", device="cpu")
        >>> moments = tv.trace_training(model, "planet", moments=2)
        >>> [moment.step for moment in moments][0], moments[-1].forced.n_steps
        (0, 7)
    """
    wanted = whole_number("moments", moments, 2, MOST_MOMENTS)
    steps = list(checkpoints.snapshots(checkpoint.folder))
    if not steps:
        raise CheckpointError(
            f"{checkpoint.name} has no snapshots of its training, so there is nothing to replay. "
            f"With snapshots there are: {join_names(replayable(checkpoints.entries()))}. "
            "A training keeps them with: train … --snapshots 12"
        )
    task = checkpoint.task
    answer: list[str] | None = task.answer(task.read(text))
    origin: Target = "answer" if answer is not None else "final output"
    if answer is not None:
        # A word of the answer that the model does not know is what it was in training, `<unk>`.
        target = tuple(token if token in task.target_vocabulary else UNKNOWN for token in answer)
    else:
        # Its words alone are wanted. The target's own `<end>` must still fit.
        final = decode(checkpoint, text, kinds=("cross",), precision="float16")
        target = tuple(token for token in final.output_tokens if token != END)
        target = target[: min(LONGEST, checkpoint.network.config.max_positions) - 1]
    longest = min(2 * len(target) + 8, task.max_target_length + 1, checkpoint.network.config.max_positions, LONGEST)
    forced: DecodeKeywords = {"candidates": candidates, "kinds": kinds, "layers": layers, "precision": precision}
    written: DecodeKeywords = {**forced, "max_length": longest}
    most = whole_number("max_trace_bytes", max_trace_bytes, 1, LARGEST)
    requests = DecodeRequest.of(checkpoint, text, None, **written), DecodeRequest.of(checkpoint, text, target, **forced)
    check(requests * 2, most)
    count = min(wanted, most // predicted(*requests).total)
    if len(steps) > count:
        steps = [steps[round(place * (len(steps) - 1) / (count - 1))] for place in range(count)]
    moments_of_training = []
    for step in steps:
        then = checkpoints.load_snapshot(checkpoint, step)
        alone, read = decode(then, text, **written), decode(then, text, target=target, **forced)
        moments_of_training.append(TrainingSnapshot(step=step, written=alone, forced=read, target=origin))
    return tuple(moments_of_training)


def replayable(entries: Iterable[Entry]) -> list[str]:
    """Names of the usable checkpoints that have snapshots."""
    return [entry.name for entry in entries if entry.error is None and checkpoints.snapshots(entry.folder)]
