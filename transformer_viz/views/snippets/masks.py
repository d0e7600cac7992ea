"""The Masks page, a program for each of its tabs."""

from dataclasses import dataclass

from transformer_viz.analysis.heads import Head
from transformer_viz.terms import Kind
from transformer_viz.views.snippets.explore import DisplayOptions
from transformer_viz.views.snippets.lines import Code, assigned, call, literal, looks
from transformer_viz.views.snippets.runs import Batch, program

_CHECKPOINT = Code("checkpoint")


@dataclass(frozen=True)
class Focus:
    """What a tab looks at; all numbers from 0."""

    sentence: int
    kind: Kind
    layer: int
    head: Head


def masks(
    batch: Batch, sentence: int | None, place: tuple[int, int], columns: int, given: DisplayOptions, only: Kind | None = None
) -> str:
    """Every mask of the batch, or of one sentence, by its reasons; of `only` one kind, the mask in force."""
    parts = call("tv.analysis.mask_parts", Code("trace"), *place)
    shown = "traces" if sentence is None else f"traces[{sentence}:{sentence + 1}]"
    first = 1 if sentence is None else sentence + 1
    drawn = {**({} if columns == 5 else {"columns": columns}), **looks(given, "theme", "large")}
    return program(
        *batch.lines(),
        batch.read("traces"),
        f"shown = {shown}",
        f"parts = [{parts} for trace in shown]",
        *(
            []
            if only is None
            else [f"parts = [[part for part in each if part.kind == {literal(only)}][-1:] for each in parts]"]
        ),
        f'names = [f"{{number}}: {{trace.source}}" for number, trace in enumerate(shown, start={first})]',
        assigned("figure", "tv.figures.mask_grid", Code("parts"), Code("names"), **drawn),
        "figure.show()",
    )


def scores(batch: Batch, at: Focus, row: int, fill: str, precision: str, columns: int, given: DisplayOptions) -> str:
    """One head's scores, masked scores and weights."""
    place = {"kind": at.kind, "layer": at.layer, "head": at.head}
    drawn = {**looks(given, "theme", "large"), **({} if columns == 3 else {"columns": columns})}
    return program(
        *batch.lines(),
        batch.read("traces"),
        f"trace = traces[{at.sentence}]",
        assigned("computed", "tv.analysis.head_softmax", Code("trace"), **place, fill=fill, precision=precision),
        assigned("figure", "tv.figures.softmax_maps", Code("trace"), **place, computed=Code("computed"), row=row, **drawn),
        "figure.show()",
        f"print(computed.weights[{row}])",
    )


def change(batch: Batch, at: Focus, height: int, given: DisplayOptions, *, with_effect: bool) -> str:
    """The mask that is clicked, what that changes, both runs, and the effect over many strings where it is shown."""
    one = at.head if isinstance(at.head, int) else 0
    drawn = {**looks(given, "theme"), "height": height}
    place = {"layer": at.layer, "head": at.head}
    maps = {**place, **looks(given, "theme", "large")}
    runs = Code("before"), Code("after")
    masked = Code(f"before.masks[{literal(at.kind)}]")
    return program(
        *batch.lines(),
        batch.decode("before", changed=False),
        batch.decode("after", changed=True),
        f"before, after = before[{at.sentence}], after[{at.sentence}]",
        "print(before.text, after.text, tv.compare(after, before).largest)",
        assigned("mask", "tv.figures.mask", runs[1], at.kind, layer=at.layer, head=one, **drawn, before=masked),
        "mask.show()",
        assigned("change", "tv.figures.change", *runs, at.kind, **place, **drawn),
        "change.show()",
        "for run in (before, after):",
        f"    {call('tv.figures.attention', Code('run'), at.kind, **maps)}.show()",
        *([f"print({call('tv.effect', _CHECKPOINT, **batch.effect, **batch.change)})"] if with_effect else []),
    )


def mistakes(batch: Batch, *, with_effect: bool) -> str:
    """What each mistake does to the batch."""
    targets = ", targets" if any(batch.targets) else ""
    return program(
        *batch.lines(),
        batch.decode("written", changed=False),
        batch.read("read", changed=False),
        "found = {}",
        "for name in tv.MISTAKES:",
        "    wrong = tv.decode_batch(checkpoint, sources, mistake=name)",
        f"    wrong_read = tv.read_batch(checkpoint, sources{targets}, mistake=name)",
        "    found[name] = {",
        '        "changed": sum(a.output_tokens != b.output_tokens for a, b in zip(written, wrong)),',
        '        "forbidden": tv.analysis.forbidden_weight(read, wrong_read),',
        '        "loss": (tv.analysis.losses(read).loss, tv.analysis.losses(wrong_read).loss),',
        *(['        "over 500 strings": tv.effect(checkpoint, mistake=name),'] if with_effect else []),
        "    }",
        "    print(tv.MISTAKES[name].title, found[name])",
    )


def certificate(batch: Batch) -> str:
    """The check of the checkpoint, as it is changed."""
    texts = {} if batch.texts is None else {"texts": list(batch.texts)}
    return program(
        *batch.loaded(),
        assigned("report", "tv.check_masks", _CHECKPOINT, **texts, **batch.change),
        "print(report)",
    )


def loss(batch: Batch, given: DisplayOptions) -> str:
    """The loss of every token, and what it would wrongly be."""
    drawn = looks(given, "theme", "large", "narrow")
    return program(
        *batch.lines(),
        batch.read("traces"),
        assigned("found", "tv.analysis.losses", Code("traces")),
        assigned("figure", "tv.figures.token_losses", Code("traces"), Code("found"), **drawn),
        "figure.show()",
        "print(found.loss, found.loss_with_padding)",
    )
