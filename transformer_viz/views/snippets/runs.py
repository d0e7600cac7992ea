"""The first lines of every program: the checkpoint, and the run or the batch that the rest is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from transformer_viz.terms import Kind
from transformer_viz.views.snippets.lines import Code, assigned, call, literal

IMPORT = "import transformer_viz as tv"
_CHECKPOINT = Code("checkpoint")


def load(checkpoint: str, device: str, calls: Sequence[str] = ()) -> list[str]:
    """The import, and a checkpoint or another model by its name; `calls` are the methods that switch it."""
    asked = {} if device == "auto" else {"device": device}
    loaded = assigned("checkpoint", "tv.load_model", checkpoint, **asked)
    return [IMPORT, "", loaded, *(f"checkpoint = checkpoint.{each}" for each in calls)]


@dataclass(frozen=True)
class Measure:
    """What a measure of attribution says of a run.

    Attributes:
        method: its name.
        kinds: whose keys, the one in focus first.
        mode: how a token is taken away, where one is.
    """

    method: str
    kinds: tuple[Kind, ...]
    mode: str | None = None

    def lines(self) -> list[str]:
        """Up to `measure`, and `measures` by their kinds where there are several."""
        mode = {} if self.mode is None else {"mode": self.mode}
        if len(self.kinds) == 1:
            return [assigned("measure", "tv.attribute", _CHECKPOINT, Code("trace"), self.method, **mode, kind=self.kinds[0])]
        one = call("tv.attribute", _CHECKPOINT, Code("trace"), self.method, **mode, kind=Code("kind"))
        return [
            f"measures = {{kind: {one} for kind in {literal(self.kinds)}}}",
            f"measure = measures[{literal(self.kinds[0])}]",
        ]

    def of(self, kind: str) -> Code:
        """That of a kind, by the name of a variable."""
        return Code("measure" if len(self.kinds) == 1 else f"measures.get({kind}, measure)")

    def kept(self) -> list[str]:
        """The trace keeps it."""
        if len(self.kinds) == 1:
            return [*self.lines(), "trace = trace.with_attribution(measure)"]
        return [*self.lines(), "for measure in measures.values():", "    trace = trace.with_attribution(measure)"]


@dataclass(frozen=True)
class Kept:
    """Measures that a trace file holds: kind and name of each, the kind in focus first."""

    names: tuple[tuple[Kind, str], ...]

    def lines(self) -> list[str]:
        """As those of `Measure`."""
        if len(self.names) == 1:
            return [f"measure = trace.attributions[{literal(self.names[0][1])}]"]
        each = ", ".join(f"{literal(kind)}: trace.attributions[{literal(name)}]" for kind, name in self.names)
        return [
            f"measures = {{{each}}}",
            f"measure = measures[{literal(self.names[0][0])}]",
        ]

    def of(self, kind: str) -> Code:
        """That of a kind, by the name of a variable."""
        return Code("measure" if len(self.names) == 1 else f"measures.get({kind}, measure)")


@dataclass(frozen=True, kw_only=True)
class _Part:
    """What of a run is shown.

    Attributes:
        node: of a beam search, the node whose path is shown.
        by_words: pieces are pooled to words.
    """

    node: int | None = None
    by_words: bool = False

    def chosen(self) -> list[str]:
        """From `trace` to the `trace` that is shown."""
        picked = [] if self.node is None else [assigned("trace", "trace.at_node", self.node)]
        pooled = [assigned("trace", "tv.by_words", Code("trace"))] if self.by_words else []
        return [*picked, *pooled]

    def whole(self) -> Self:
        """All hypotheses, by tokens."""
        return replace(self, node=None, by_words=False)


@dataclass(frozen=True)
class Run(_Part):
    """How a run was made.

    Attributes:
        text: the source text.
        checkpoint: a name that `load_model` knows.
        device: as it was asked for.
        decode: the other keywords of `decode`.
        calls: methods of the model that switch how it reads and writes.
        measure: what is shown of it beside its weights or instead.
    """

    text: str
    checkpoint: str
    device: str = "auto"
    decode: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    measure: Measure | None = None

    def lines(self) -> list[str]:
        """Up to `trace`."""
        return [*load(self.checkpoint, self.device, self.calls), self.made("trace"), *self.chosen()]

    def made(self, name: str) -> str:
        """The line that decodes, into a variable of that name."""
        return assigned(name, "tv.decode", _CHECKPOINT, self.text, **self.decode)


@dataclass(frozen=True)
class File(_Part):
    """A run that a trace file holds.

    Attributes:
        name: of the file.
        measure: that is shown of it beside its weights or instead.
    """

    name: str
    measure: Kept | None = None

    def lines(self) -> list[str]:
        """Up to `trace`."""
        return [IMPORT, "", assigned("trace", "tv.load_trace", self.name), *self.chosen()]


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
        texts: what the certificate is made with, or None.
        effect: what a change over many texts is made with, beside the change, as keywords of `effect`.
        calls: methods of the model that switch how it reads and writes.
    """

    checkpoint: str
    sources: tuple[str, ...]
    targets: tuple[str | None, ...]
    edits: tuple[str, ...] = ()
    mistake: str | None = None
    device: str = "auto"
    texts: tuple[str, ...] | None = None
    effect: Mapping[str, Any] = field(default_factory=dict)
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
