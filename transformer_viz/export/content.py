"""The data of an exported page: every number of the run once, and every sentence about it.

Sentences are made here and not by the page's script, so that only one place words them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypedDict

import numpy as np

from transformer_viz.addresses import AttentionAddress, HeadAddress, find_map, map_address
from transformer_viz.analysis.alignment_head import AlignmentHead
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.analysis.word_pooling import kind_title
from transformer_viz.errors import OptionError, join_names
from transformer_viz.export.strips import answer_mark, legend, output_strip, prompt_token, source_strip, strip_labels
from transformer_viz.figures import page_templates
from transformer_viz.figures.colour_scale import SCALES, Scale
from transformer_viz.figures.figure_data import typed
from transformer_viz.language import say
from transformer_viz.schema import whole_number
from transformer_viz.sentences import attribution_maps
from transformer_viz.sentences.run_sentences import Sentence, best_head_words, step_sentences
from transformer_viz.terms import COMBINED, Head, Kind, head_title, kind_words, place_labels, row_labels
from transformer_viz.text_display import display_token, shorten
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.version import __version__

PageTheme = Literal["auto", "light", "dark"]
_LONGEST_TEXT, _MOST_EDITS = 600, 100
"""The most characters of a source or an output in the page's title, and the most changes that it names."""
PlotlyJs = bool | Literal["cdn", "packed"] | str | PathLike[str]
WIDTH, SCALE = 1200, 2.0
"""Pixels of a picture, and what is expected of a page; and the pixels of a PNG for each."""


class ShownOptions(TypedDict, total=False):
    """The keywords about what is shown of a run and how; see `html`."""

    head: str | AttentionAddress | None
    step: int | None
    theme: PageTheme
    large: bool
    with_answer: bool
    colours: Scale
    language: str | None


class FileOptions(ShownOptions, total=False):
    """The keywords of `ShownOptions`, and those that belong to pages or to pictures alone."""

    plotlyjs: PlotlyJs
    aligner: str | HeadAddress | None
    width: int
    height: int | None
    scale: float
    paper: float | None


DEFAULTS: dict[str, Any] = {
    **{"theme": "auto", "large": False, "with_answer": True, "colours": "fixed"},
    **{"plotlyjs": True, "width": WIDTH, "scale": SCALE},
}
"""Defaults of these keywords; a keyword that is missing here is None by default."""


@dataclass(frozen=True)
class View:
    """The kind, layer, head and step with which a page opens; numbers count from 0."""

    kind: Kind
    layer: int
    head: Head
    step: int

    @property
    def address(self) -> str:
        """The head, such as `cross.2.3` or `cross.2.mean`."""
        return map_address(self.kind, self.layer, self.head)


def view(trace: Trace, head: str | AttentionAddress | None = None, step: int | None = None) -> View:
    """The view that was asked for; by default the best head of cross-attention at the last letter.

    Raises:
        OptionError: the run has no such head or step.
    """
    if not trace.kinds:
        raise OptionError("this run has no attention to show")
    asked = ("cross" if "cross" in trace.kinds else trace.kinds[-1]) if head is None else head
    kind, layer, number = find_map(asked, trace.grid)
    if str(asked) == "cross" and (best := best_head(trace)) is not None:
        layer, number = best[:2]
    return View(
        kind, layer, number, default_step(trace) if step is None else whole_number("step", step, 0, len(trace.rows) - 1)
    )


def check_colours(colours: str) -> None:
    """Raises an OptionError where there is no such choice of colours."""
    if colours not in SCALES:
        raise OptionError(f"colours={colours!r} is not possible; choose one of {join_names(SCALES)}")


def default_step(trace: Trace) -> int:
    """The step of the last letter, at which all rows are drawn and the sentence still speaks of a letter. After a prompt it is
    the first written token, for an encoder alone the first mask token."""
    if trace.is_given(0):
        return min(trace.written.start, trace.n_steps - 1)
    if not trace.writes:
        return trace.fills[0].place if trace.fills else 0
    return max(0, trace.n_steps - (2 if trace.finished == "end" else 1))


def content(
    trace: Trace,
    *,
    theme: PageTheme,
    large: bool,
    with_answer: bool,
    colours: Scale = "fixed",
    codes: Sequence[int] | None = None,
    mark: Callable[[Sentence], Sequence[tuple[str, str]]] = tuple,
    in_parts: bool = False,
    measures: Mapping[Kind, Attribution] = {},
    measure: str = "",
    said: Callable[[Trace, Kind, int, Head, int], Sentence] | None = None,
    maps: Mapping[Kind, Any] | None = None,
    with_candidates: bool = True,
) -> dict[str, Any]:
    """The data of a page or a viewer, with arrays.

    Args:
        trace: the run.
        theme: as in `html`.
        large: as in `html`.
        with_answer: as in `html`.
        colours: as in `html`.
        codes: reasons of masks that may occur; by default those that do.
        mark: marks the terms in a sentence.
        in_parts: leave out the numbers and sentences of heads, which come one head at a time (`packed_heads.exact_part`).
        measures: what the maps of a kind show beside the weights or instead.
        measure: what the viewer calls them.
        said: what a measure says of a step: run, kind, layer, head, step.
        maps: the figures of small maps, for a run with too many heads for one; by default all heads of every kind.
        with_candidates: show beside the large map what was probable at a step.
    """
    pieces: dict[tuple[str, str], int] = {}
    """Pieces of sentences by their numbers, each stored once: the sentences of all heads share most of theirs."""
    kinds = {}
    for kind, attention in trace.attentions.items():
        heads: list[Head] = [*range(attention.n_heads), *COMBINED]
        # Beside a decoder the encoder's sentences speak of no head and are one for all.
        is_one = not trace.is_stepped(kind)
        sentences = [
            [
                [[pieces.setdefault(piece, len(pieces)) for piece in mark(sentence)] for sentence in of_head]
                for of_head in step_sentences(
                    trace, kind, [(layer, head) for head in (heads[:1] if is_one else heads)], with_answer=with_answer
                )
            ]
            for layer in ([] if in_parts and not is_one else attention.layers[: 1 if is_one else None])
        ]
        seen = page_templates.seen_reasons(attention)
        numbers = (
            {"shape": attention.weights.shape, **({"reasons": seen} if seen.ndim == 2 else {})}
            if in_parts
            # Browsers know no half precision yet.
            else {
                "weights": attention.weights.astype(np.float32, copy=False),
                "reasons": seen,
            }
        )
        small = page_templates.mosaic_template(trace, kind, scale=colours, large=large) if maps is None else maps.get(kind)
        kinds[kind] = {
            "title": kind_title(trace, kind),
            "colouring": colours,
            "legend": legend(trace, kind),
            "layers": attention.n_layers,
            "numbers": list(attention.layers),
            "heads": attention.n_heads,
            "names": [[head_title(layer, head) for head in heads] for layer in attention.layers],
            **numbers,
            "sentences": sentences,
            "picture": page_templates.player_template(
                trace,
                kind,
                scale=colours,
                large=large,
                with_answer=with_answer,
                codes=codes,
                with_candidates=with_candidates,
            ),
            "mosaic": small,
            "mask": page_templates.mask_template(trace, kind, codes, large=large),
            "linked": linked(trace, kind),
            "covered": [attention.covered.start, attention.covered.stop],
        }
        if measures:
            looks: dict[str, Any] = {"scale": colours, "large": large}
            kinds[kind]["measures"] = {measure: _measured(trace, kind, measures, mark, pieces, said, looks, maps)}
    by = trace.made_by
    made = [str(by[key]) for key in ("checkpoint", "variant", "strategy", "device") if by.get(key)]
    made += [say("part of its attention not seen")] if by.get("not_seen") else []
    made += [say("edit {edit}", edit=edit) for edit in trace.edits[:_MOST_EDITS]] + ["…"] * (len(trace.edits) > _MOST_EDITS)
    made += [say("with the mistake {mistake}", mistake=trace.mistake)] if trace.mistake else []
    return {
        "version": __version__,
        "title": page_title(trace),
        "made": [shorten(words, _LONGEST_TEXT) for words in made],
        "theme": theme,
        "large": large,
        "best": best_head_words(trace) if with_answer else None,
        "source": source_strip(trace),
        "output": output_strip(trace, with_answer=with_answer),
        "labels": strip_labels(trace),
        "grows": trace.writes,
        "prompt": prompt_token(trace),
        "first": trace.written.start,
        "answer": answer_mark(trace, with_answer=with_answer),
        "candidates": page_templates.candidate_steps(trace) if with_candidates else [],
        "true": trace.alignment if with_answer else (None,) * len(trace.alignment),
        "kinds": kinds,
        "pieces": list(pieces),
        "colours": page_templates.PAGE_COLOURS,
        "dark": page_templates.dark_colours(colours),
    }


def focus_of(trace: Trace, now: View) -> dict[str, Any]:
    """The view as the script of a page reads it: layers by their place, since each kind has their numbers."""
    return {**vars(now), "layer": trace.attentions[now.kind].layer_index(now.layer)}


def _measured(
    trace: Trace,
    kind: Kind,
    measures: Mapping[Kind, Attribution],
    mark: Callable[[Sentence], Sequence[tuple[str, str]]],
    pieces: dict[tuple[str, str], int],
    said: Callable[[Trace, Kind, int, Head, int], Sentence] | None,
    looks: dict[str, Any],
    maps: Mapping[Kind, Any] | None,
) -> dict[str, Any]:
    """The map of a kind while a measure is chosen: numbers in the place of the weights, or a second map beside them."""
    # The small maps of another kind say that they are of weights.
    result, other = measures.get(kind), next(iter(measures.values()))
    small = page_templates.mosaic_template(trace, kind, measure=result or other, **looks) if maps is None else maps.get(kind)
    own: dict[str, Any] = {"mosaic": small}
    if result is not None:
        own["picture"] = page_templates.player_template(trace, kind, measure=result, **looks)
    if result is not None and attribution_maps.is_of_heads(trace, result):
        own |= {
            "weights": attribution_maps.heads_of(trace, result),
            "full": attribution_maps.full(result),
            "word": say(result.title),
        }
    elif result is not None:
        values = result.values if result.values.ndim == 2 else attribution_maps.heads_of(trace, result)
        by_row = say("of the row's largest") if result.method == "gradient" else say(result.unit)
        own["second"] = {"values": values.astype(np.float32), "words": say(result.title), "unit": by_row}
    if said is not None:
        # A kind without numbers of its own may still have words: what the source has written, and what was written before.
        attention, n_steps = trace.attentions[kind], len(trace.rows)
        is_of_layers = result is not None and result.values.ndim == 4
        heads: list[Head] = [*range(attention.n_heads), *COMBINED] if is_of_layers else [0]
        layers = attention.layers if is_of_layers else attention.layers[:1]
        sentences = (
            (mark(said(trace, kind, layer, head, step)) for step in range(n_steps)) for layer in layers for head in heads
        )
        numbers = [[[pieces.setdefault(piece, len(pieces)) for piece in one] for one in of_head] for of_head in sentences]
        own["measured"] = [numbers[place * len(heads) : (place + 1) * len(heads)] for place in range(len(layers))]
    return own


def aligned(trace: Trace, aligner: AlignmentHead | None) -> dict[str, Any] | None:
    """The label and the map of the aligning head, for aligned.js; None without one."""
    return None if aligner is None else {"label": str(aligner), "weights": typed(aligner.map_of(trace))}


def linked(
    trace: Trace, kind: Kind, pin: tuple[int | None, ...] = (), lines: str = "none", aligner: AlignmentHead | None = None
) -> dict[str, Any]:
    """The data with which the page marks a token, its row and its column together.

    Args:
        trace: the run.
        kind: of the large map.
        pin: the row and the column that are pinned, or nothing.
        lines: `step`, `all`, `none` or `auto`, as `lines.js` has them.
        aligner: the head that says which source words a written word comes from; None where none is chosen.

    Returns:
        Among others `strips`, which strip has the rows and columns of each kind, and `read`, the place in the output strip of
        each token that is a column; None where it is not there.
    """
    written = trace.output_tokens
    stepped = trace.is_stepped(kind)
    attention = trace.attentions[kind]
    encoder = "source" if trace.writes else "output"
    return {
        "kind": kind,
        "strips": {"encoder": [encoder, encoder], "decoder": ["output", "output"], "cross": ["output", "source"]},
        "isStepped": stepped,
        "isPrompt": bool(trace.prompt),
        "pin": list(pin),
        "lines": lines,
        "aligner": aligned(trace, aligner),
        "rows": row_labels(attention.queries, None if kind == "encoder" else written),
        "keys": place_labels(attention.keys),
        "first": display_token(trace.target_tokens[0]) if trace.target_tokens else "",
        # In a forced run it may have read another token than was written before. Without an output the strip has what was read.
        "read": [(t - 1 if t and written[t - 1] == token else None) if written else t for t, token in enumerate(trace.rows)],
    }


def picture_title(trace: Trace, kind: Kind | None = None, layer: int = 0, head: Head = 0) -> str:
    """The caption of a picture: the source, the model and, in a picture of one head, the head."""
    model = str(trace.made_by.get("checkpoint") or "")
    place = "" if kind is None else say("{attention}, {head}", attention=kind_words(kind), head=head_title(layer, head))
    return " · ".join(filter(None, [display_token(trace.source), shorten(model), place]))


def page_title(trace: Trace) -> str:
    """The title of a page of this run."""
    read = display_token(trace.source, _LONGEST_TEXT)
    return f"{read} → {display_token(trace.text, _LONGEST_TEXT)}" if trace.writes else read
