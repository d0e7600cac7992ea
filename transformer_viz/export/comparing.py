"""The lines of Python that make again what Compare shows: two runs, and `difference`, A − B of the head in focus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_viz.analysis.heads import Head
from transformer_viz.terms import Kind

_DEFAULTS = {"theme": "light", "large": False, "limit": 1.0, "columns": 3}


@dataclass(frozen=True)
class Run:
    """How one side comes about.

    Attributes:
        file: name of a trace file; then nothing else counts.
        text: the source.
        checkpoint: a name that `load_checkpoint` knows.
        device: as it was asked for.
        snapshot: a step of the training, or None.
        decode: keywords of `decode`.
        reads_the_other: whether it reads the output of the other side, which must not do the same.
    """

    file: str | None = None
    text: str = ""
    checkpoint: str = ""
    device: str = "auto"
    snapshot: int | None = None
    decode: Mapping[str, Any] = field(default_factory=dict)
    reads_the_other: bool = False


def lines(
    a: Run,
    b: Run,
    kind: Kind,
    layer: int,
    head: Head,
    b_layer: int | None = None,
    b_head: Head | None = None,
    *,
    looks: Mapping[str, Any] | None = None,
) -> str:
    """A program that ends with `difference`, float32 (query, key), and `figure`, the three maps.

    Args:
        a: how the first run comes about.
        b: the second.
        kind: of attention.
        layer: of A, from 0.
        head: of A.
        b_layer: of B; None is A's.
        b_head: likewise.
        looks: keywords of `figures.difference`; what is as by default is left out.
    """
    ordered = [("a", a, "b"), ("b", b, "a")]
    if a.reads_the_other:
        ordered.reverse()
    names: dict[tuple[str, str, int | None], str] = {}
    made = [line for name, run, other in ordered for line in _run(name, run, other, names)]
    if any(snapshot is not None for *_, snapshot in names):
        head_lines = ["import transformer_viz as tv", "from transformer_viz.checkpoints import load_snapshot"]
    else:
        head_lines = ["import transformer_viz as tv"]
    place: dict[str, Any] = {"layer": layer, "head": head, "b_layer": b_layer, "b_head": b_head}
    where = _keywords({name: value for name, value in place.items() if value is not None})
    drawn = _keywords({name: value for name, value in (looks or {}).items() if _DEFAULTS.get(name) != value})
    return "\n".join(
        [
            *head_lines,
            "",
            *made,
            f"difference = tv.compare(a, b).difference({kind!r}{where})",
            f"figure = tv.figures.difference(a, b, {kind!r}{where}{drawn})",
            "figure.show()",
        ]
    )


def _run(name: str, run: Run, other: str, names: dict[tuple[str, str, int | None], str]) -> list[str]:
    """The lines that make one run; a model that both use is loaded once."""
    if run.file is not None:
        return [f"{name} = tv.load_trace({run.file!r})"]
    made = []
    finished, wanted = (run.checkpoint, run.device, None), (run.checkpoint, run.device, run.snapshot)
    if finished not in names:
        names[finished] = f"model_{len(names) + 1}"
        made.append(f"{names[finished]} = tv.load_checkpoint({run.checkpoint!r}, device={run.device!r})")
    if wanted not in names:
        names[wanted] = f"model_{len(names) + 1}"
        made.append(f"{names[wanted]} = load_snapshot({names[finished]}, {run.snapshot})")
    keywords = _keywords(run.decode)
    if run.reads_the_other:
        made.append(f'target = tuple(token for token in {other}.output_tokens if token != "<end>")')
        keywords += ", target=target"
    return [*made, f"{name} = tv.decode({names[wanted]}, {run.text!r}{keywords})"]


def _keywords(values: Mapping[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in values.items())
