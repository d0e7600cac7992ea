"""The first lines of every program: the checkpoint, and the run or the batch that the rest is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transformer_viz.views.snippets.lines import Code, assigned, literal

IMPORT = "import transformer_viz as tv"
_CHECKPOINT = Code("checkpoint")


def load(checkpoint: str, device: str, calls: Sequence[str] = ()) -> list[str]:
    """The import, and a checkpoint or another model by its name; `calls` are the methods that switch it."""
    asked = {} if device == "auto" else {"device": device}
    loaded = assigned("checkpoint", "tv.load_model", checkpoint, **asked)
    return [IMPORT, "", loaded, *(f"checkpoint = checkpoint.{each}" for each in calls)]


@dataclass(frozen=True)
class Run:
    """How a run was made.

    Attributes:
        text: the source text.
        checkpoint: a name that `load_model` knows.
        device: as it was asked for.
        decode: the other keywords of `decode`.
        node: of a beam search, the node whose path is shown.
        calls: methods of the model that switch how it reads and writes.
    """

    text: str
    checkpoint: str
    device: str = "auto"
    decode: Mapping[str, Any] = field(default_factory=dict)
    node: int | None = None
    calls: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Up to `trace`."""
        made = [*load(self.checkpoint, self.device, self.calls), self.made("trace")]
        return made if self.node is None else [*made, assigned("trace", "trace.at_node", self.node)]

    def made(self, name: str) -> str:
        """The line that decodes, into a variable of that name."""
        return assigned(name, "tv.decode", _CHECKPOINT, self.text, **self.decode)

    def whole(self) -> "Run":
        """Without a choice among the hypotheses."""
        return replace(self, node=None)


@dataclass(frozen=True)
class File:
    """A run that a trace file holds.

    Attributes:
        name: of the file.
        node: of a beam search, the node whose path is shown.
    """

    name: str
    node: int | None = None

    def lines(self) -> list[str]:
        """Up to `trace`."""
        made = [IMPORT, "", assigned("trace", "tv.load_trace", self.name)]
        return made if self.node is None else [*made, assigned("trace", "trace.at_node", self.node)]

    def whole(self) -> "File":
        """Without a choice among the hypotheses."""
        return replace(self, node=None)


AnyRun = Run | File


@dataclass(frozen=True)
class Batch:
    """How a padded batch was made.

    Attributes:
        checkpoint: a name that `load_model` knows.
        sources: the source texts.
        targets: one each; None is what the model writes.
        edits: as text.
        mistake: its name.
        device: as it was asked for.
        texts: what a check beyond this batch is made with, or None.
        calls: methods of the model that switch how it reads and writes.
    """

    checkpoint: str
    sources: tuple[str, ...]
    targets: tuple[str | None, ...]
    edits: tuple[str, ...] = ()
    mistake: str | None = None
    device: str = "auto"
    texts: tuple[str, ...] | None = None
    calls: tuple[str, ...] = ()

    def loaded(self) -> list[str]:
        """The import and the model."""
        return load(self.checkpoint, self.device, self.calls)

    def lines(self) -> list[str]:
        """Up to `sources`, and `targets` where there are any."""
        made = [*self.loaded(), f"sources = {literal(list(self.sources))}"]
        return [*made, f"targets = {literal(list(self.targets))}"] if any(self.targets) else made

    def read(self, name: str, *, changed: bool = True) -> str:
        """`name = tv.read_batch(…)`."""
        targets = [Code("targets")] if any(self.targets) else []
        return assigned(name, "tv.read_batch", _CHECKPOINT, Code("sources"), *targets, **(self.change if changed else {}))

    def decode(self, name: str, *, changed: bool) -> str:
        """`name = tv.decode_batch(…)`."""
        return assigned(name, "tv.decode_batch", _CHECKPOINT, Code("sources"), **(self.change if changed else {}))

    @property
    def change(self) -> dict[str, Any]:
        """The keywords that say what is changed."""
        edits = {"edits": list(self.edits)} if self.edits else {}
        return {**edits, "mistake": self.mistake} if self.mistake else edits


def program(*lines: str) -> str:
    """The lines as one text."""
    return "\n".join(lines)
