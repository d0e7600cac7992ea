"""A beam search as a tree: from left to right the steps, from top to bottom the ranks."""

import math
from typing import Any

from transformer_viz.errors import OptionError
from transformer_viz.figures.figure_data import Plain, PlainFigure, plotly_figure, scatter
from transformer_viz.figures.parts import HOVER, axis, legend, text_width
from transformer_viz.figures.theme import Style, Theme, base_layout, escape, token_label
from transformer_viz.language import say
from transformer_viz.numbers_in_words import probability_words
from transformer_viz.text_display import display_token, shorten
from transformer_viz.trace.search import STATE_WORDS, Search, SearchNode, State
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END

_LONGEST_TEXT = 600
"""The most characters of a hypothesis in a hover; a pruned node's hover also names the one that was kept instead."""

_WIDTHS = ((0.5, 4.0), (0.1, 2.4), (0.01, 1.4), (0.0, 0.7))
"""Widths of lines in pixels, by the least probability of a token that has them."""
_LABELLED_UP_TO = 300
"""With more nodes than this only those on the chosen path have labels; the hover has them all."""
_LEAST_WIDE, _LEAST_NARROW = 620, 320
"""Pixels between the first and the last step of a figure that is as small as it gets."""
_LEAST_LABEL, _LONGEST_UPRIGHT = 4, 16
"""Characters of a token for which there is room between two steps, and the most of an upright one."""
_WIDEST_LABEL = 0.75
"""Share of the way from one step to the next that a label may take; the lines change their height in the rest."""
_MARKS: dict[State, tuple[str, str]] = {
    "kept": ("circle", "chosen"),
    "pruned": ("circle", "paper"),
    "end": ("square", "accent"),
    "length": ("diamond", "accent"),
    "stopped": ("circle-open", "muted"),
}
"""The symbols of nodes, and by their names in the theme their colours."""


@plotly_figure
def search_tree(trace: Trace, chosen: int | None = None, *, greedy: Trace | None = None, style: Style = Style()) -> PlainFigure:
    """Draws the tree of a beam search: every continuation that was considered, whether kept, pruned or finished.

    Args:
        trace: a beam search.
        chosen: the node whose path is drawn strong; the best hypothesis by default.
        greedy: the greedy run of the same source, written above the tree.
        style: theme and size; in a narrow figure only the chosen path has labels.

    Each point's `customdata` is its node's number.

    Raises:
        OptionError: the run was no beam search, or has no such node.
    """
    search = trace.search
    if search is None:
        raise OptionError('this run was no beam search; decode with strategy="beam"')
    colours, size, narrow = style.colours, style.size, style.narrow
    path = search.path(search.best[0] if chosen is None else chosen)
    depth = 1 + max(node.step for node in search.nodes)
    n_ranks = 1 + max(node.rank for node in search.nodes)
    texts, reach, step = _labels(search, path, size, narrow)
    if reach == 0:
        greedy = None
    top = -0.8 if greedy is None else -2.1
    row_height = max(9, min(34 if style.large else 28, 640 // n_ranks))
    # Steps are counted as everywhere, from the first token of a prompt. Where nodes stand too close for labels, the tokens of
    # the chosen path are here, upright.
    places = range(1, depth + 1, max(1, math.ceil(1.2 * size / step)) if reach == 0 else max(1, depth // 32))
    steps: dict[str, Any] = {"tickvals": [*places], "ticktext": [str(place + len(search.opening) - 1) for place in places]}
    if reach == 0:
        tokens = [_cut(path[place - 1].token, _LONGEST_UPRIGHT) if place <= len(path) else "" for place in places]
        steps["ticktext"] = [f"{token} {name}" for token, name in zip(tokens, steps["ticktext"], strict=True)]
        steps["tickangle"] = -90
    compared: list[Plain] = []
    if greedy is not None:  # its tokens in a line of their own; the first one that differs has a mark
        best, written = (run.output_tokens[run.written] for run in (trace, greedy))
        parted = next((t for t, (a, b) in enumerate(zip(best, written, strict=False)) if a != b), None)
        most = max(1, int(_WIDEST_LABEL * step / (0.6 * size)))
        names = [f"<b>{_cut(token, most)}</b>" if t == parted else _cut(token, most) for t, token in enumerate(written)]
        shades = [colours.accent if t == parted else colours.muted for t in range(len(names))]
        line = scatter(
            x=[0.4, *range(1, len(names) + 1)],
            y=[-1.5] * (len(names) + 1),
            mode="text",
            text=[say("greedy"), *names],
            textposition=["middle left", *["middle center"] * len(names)],
            textfont={"size": size, "color": [colours.muted, *shades]},
            hoverinfo="skip",
            showlegend=False,
        )
        compared.append(line)
    # The best, which is 1, and every fifth.
    ranks = [0, *range(4, n_ranks, 5)]
    return PlainFigure(
        [
            *_lines(search, path, colours, reach),
            *_points(search, path, colours, size, texts, narrow),
            *compared,
        ],
        {
            **base_layout(colours, size),
            "height": int(90 + row_height * (n_ranks - top)),
            "showlegend": True,
            "legend": legend(size, yref="paper", yanchor="bottom", itemclick=False, itemdoubleclick=False),
            "margin": {"l": 8, "r": 8, "t": 34, "b": 44},
            "hovermode": "closest",
            "xaxis": axis(colours, size, (-1.9 if narrow else -0.9, depth + 0.9), say("step"), **steps),
            "yaxis": axis(
                colours, size, (n_ranks - 0.4, top), say("rank"), tickvals=ranks, ticktext=[str(rank + 1) for rank in ranks]
            ),
        },
    )


def _labels(search: Search, path: tuple[SearchNode, ...], size: int, narrow: bool) -> tuple[list[str], float, float]:
    """The token above each node, empty where it has none; how far these labels extend to either side of a node, in steps, 0
    where nodes are too close for them; and the pixels from one step to the next."""
    labelled = len(search.nodes) <= _LABELLED_UP_TO and not narrow
    on_path = set(map(id, path))
    step = (_LEAST_NARROW if narrow else _LEAST_WIDE) / (2 + max(node.step for node in search.nodes))
    room = _WIDEST_LABEL * step
    most = int(room / (0.6 * size))
    longest = max((len(display_token(node.token)) for node in search.nodes if node.token != END), default=1)
    if most < min(_LEAST_LABEL, longest):
        return [""] * len(search.nodes), 0, step
    texts = []
    for node in search.nodes:
        is_named = labelled or id(node) in on_path
        # Half of `<end>` says nothing, and its node is a square.
        fits = node.token != END or text_width(token_label(node.token), size) <= room
        texts.append(_cut(node.token, max(1, most)) if is_named and fits else "")
    return texts, min(room, max(text_width(text, size) for text in texts)) / step / 2, step


def _cut(token: str, most: int) -> str:
    """A label of at most so many signs, as they are drawn."""
    return escape(shorten(display_token(token), most))


def _lines(search: Search, path: tuple[SearchNode, ...], colours: Theme, reach: float) -> list[Plain]:
    """One trace for each width, the pruned ones apart, the chosen path on top; level as far as labels reach, so that none is
    struck through."""
    on_path = set(map(id, path))
    others = [node for node in search.nodes if node.state != "pruned" and id(node) not in on_path]
    groups: list[tuple[list[SearchNode], str, float, str]] = []
    most = math.inf
    for least, width in _WIDTHS:
        groups.append(
            ([node for node in others if least <= math.exp(node.log_probability) < most], colours.other, width, "solid")
        )
        most = least
    groups.append(([node for node in search.nodes if node.state == "pruned"], colours.grid, 1, "dot"))
    groups.append((list(path), colours.accent, 3.2, "solid"))
    drawn = []
    for nodes, colour, width, dash in groups:
        x: list[float | None] = []
        y: list[float | None] = []
        for node in nodes:
            above = 0 if node.parent is None else search.nodes[node.parent].rank
            x += [node.step, node.step + reach, node.step + 1 - reach, node.step + 1, None]
            y += [above, above, node.rank, node.rank, None]
        line = {"color": colour, "width": width, "dash": dash}
        drawn += [scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)] if nodes else []
    return drawn


def _points(
    search: Search, path: tuple[SearchNode, ...], colours: Theme, size: int, texts: list[str], narrow: bool
) -> list[Plain]:
    on_path = set(map(id, path))
    # The last token that was read before the first was written.
    start = scatter(
        x=[0],
        y=[0],
        mode="markers" if narrow else "markers+text",
        text=[token_label(search.opening[-1])],
        textposition="top center",
        textfont={"size": size - 1},
        marker={"size": 9, "color": colours.chosen},
        hoverinfo="skip",
        showlegend=False,
    )
    drawn = [start]
    for state, words in STATE_WORDS.items():
        members = [(number, node) for number, node in enumerate(search.nodes) if node.state == state]
        if not members:
            continue
        symbol, colour = _MARKS[state]
        is_strong = [id(node) in on_path for _, node in members]
        names = [texts[number] for number, _ in members]
        points = scatter(
            x=[node.step + 1 for _, node in members],
            y=[node.rank for _, node in members],
            mode="markers+text",
            name=say(words),
            customdata=[number for number, _ in members],
            text=[f"<b>{name}</b>" if strong and name else name for name, strong in zip(names, is_strong, strict=True)],
            textposition="top center",
            textfont={"size": size, "color": colours.muted if state == "pruned" else colours.ink},
            hovertext=[_words(search, node) for _, node in members],
            hovertemplate=HOVER,
            marker={
                "symbol": symbol,
                "size": [12 if strong else 6 if state == "pruned" else 9 for strong in is_strong],
                "color": getattr(colours, colour),
                "line": {"width": 1.5, "color": [colours.accent if strong else colours.other for strong in is_strong]},
            },
        )
        drawn.append(points)
    return drawn


def _words(search: Search, node: SearchNode) -> str:
    lines = [
        f"<b>{token_label(node.text, _LONGEST_TEXT) or say('(empty)')}</b>",
        say(
            "writes {token}, probability {p}",
            token=token_label(node.token),
            p=probability_words(math.exp(node.log_probability), 2),
        ),
        say(
            "log p {log_probability:.4f}, sum {total:.4f}, score {score:.4f}",
            log_probability=node.log_probability,
            total=node.total,
            score=node.score,
        ),
        say(
            "rank {rank} at step {n_given}: {state_words}",
            rank=node.rank + 1,
            n_given=search.n_given + node.step + 1,
            state_words=say(STATE_WORDS[node.state]),
        ),
    ]
    if node.pruned_by is not None:
        winner = search.nodes[node.pruned_by]
        text = token_label(winner.text, _LONGEST_TEXT) or say("(empty)")
        lines.append(say("the last one kept: {text}, sum {sum:.4f}", text=text, sum=winner.total))
    return "<br>".join(lines)
