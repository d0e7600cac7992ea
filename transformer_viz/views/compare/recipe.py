"""What was asked of the two sides, as the lines of Python need it."""

from transformer_viz.views.cache import runs
from transformer_viz.views.compare.sides import Asked
from transformer_viz.views.open import opened
from transformer_viz.views.snippets.compare import Side
from transformer_viz.views.state import switches


def of_sides(a: Asked, b: Asked, device: str) -> tuple[Side, Side]:
    """How both come about; a file is called as it was when it was opened."""
    first, second = (_run(one, device) for one in (a, b))
    return first, second


def _run(asked: Asked, device: str) -> Side:
    if asked.file is not None:
        return Side(file=opened.get(asked.file).file_name)
    model = runs.load_any(asked.checkpoint, device)
    return Side(
        text=asked.text,
        checkpoint=asked.checkpoint,
        device=device,
        snapshot=asked.snapshot,
        decode=asked.keywords(),
        reads_the_other=asked.reads_the_other,
        has_task=model.task is not None,
        calls=switches.of(model).calls(),
    )
