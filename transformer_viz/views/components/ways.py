"""Buttons below an error about a text that a model cannot read: take the part that it can read, or another model."""

from collections.abc import Iterable, Sequence

from transformer_viz.errors import TransformerVizError
from transformer_viz.language import say
from transformer_viz.tasks import Task


def readable_parts(task: Task, text: str) -> dict[str, str]:
    """Texts that the task reads, made of this one, by what each is called; none where it is of something else altogether."""
    # A tab may be between words, which a space is too.
    known = "".join(symbol if _reads(task, symbol) else " " if symbol.isspace() else "" for symbol in text).strip()
    parts = {}
    if known and known != text and _reads(task, known):
        parts[say("Leave out what it does not know")] = known
    elif known:
        # How many characters are read, by halving: what is too long stays too long with more.
        least, most = 0, len(known)
        while least < most:
            middle = (least + most + 1) // 2
            least, most = (middle, most) if _reads(task, known[:middle]) else (least, middle - 1)
        if 0 < least < len(known):
            parts[say("Use the first {n}", n=least)] = known[:least]
    return parts


def readers(text: str, others: Iterable[tuple[str, Task]], most: int = 2) -> Sequence[str]:
    """The names of other models that read the text as it is."""
    return [name for name, task in others if _reads(task, text)][:most]


def _reads(task: Task, text: str) -> bool:
    try:
        return bool(task.read(text))
    except TransformerVizError:
        return False
