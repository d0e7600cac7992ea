"""The kinds of question in lessons: a function for each, from a Trace to the question, its options and the right ones.

A run that cannot be asked fairly says why. Tokens in sentences stand in backquotes, and options are labels as on the axes.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal, TypeVar

import numpy as np

from transformer_viz.addresses import parse
from transformer_viz.analysis.grading import alignment
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.query_rows import head_mass, padding
from transformer_viz.errors import LessonError, join_names
from transformer_viz.inside_head.numbers import exps, largest
from transformer_viz.language import known as translated
from transformer_viz.learn.lesson import Ask
from transformer_viz.learn.words import Words, speaking, words
from transformer_viz.numbers_in_words import number_words, percent_words, probability_words
from transformer_viz.terms import MISTAKE_TITLES, Head, Kind, Reason, head_label, kind_words, place_label
from transformer_viz.text_display import display_text, display_token
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.hidden_answer import HIDDEN
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS

T = TypeVar("T")
WITHIN, BLURRED = 0.05, 0.1
"""A value within `WITHIN` of the largest is right too; if one lies between `WITHIN` and `BLURRED`, nothing is asked."""
MOST_KEYS, MOST_OPTIONS, FEWEST_NATS, FEWEST_ROWS = 14, 4, 0.1, 3
CAUSE = "occlusion_word_cross"
"""The measure that `matters-most` reads from the run."""
COVERS: dict[str, Literal["row", "mask", "cause", "grades", "search", "mistake"]] = {
    **dict.fromkeys(("looks-most", "writes", "number"), "row"),
    "masked": "mask",
    "matters-most": "cause",
    **dict.fromkeys(("heads-by", "aligns"), "grades"),
    "greedy-or-beam": "search",
    "mistake": "mistake",
}
"""The part of a run that a page hides until the answer: the run from the question's row on, as `hide_answer` covers it; the
masked cells; the causes; the numbers and names of heads; the result of a search; the mistake's name."""


@dataclass(frozen=True)
class Spot:
    """The focus of a page; numbers count from 0."""

    kind: Kind
    layer: int
    head: Head
    row: int

    @property
    def label(self) -> str:
        """`L2 H1`."""
        return head_label(self.layer, self.head) if isinstance(self.head, int) else f"L{self.layer + 1} {self.head}"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a run.

    Attributes:
        kind: of question.
        spot: the head and the row that it is about.
        text: the question.
        options: the possible answers; empty where a number is typed.
        unlisted: more answers, numbered after these, which a list has no room for and a picture has.
        columns: for each column of the row that it is about, or for each source token, the answer that it stands for, or None;
            empty where the picture cannot be answered in.
        right: the indices of the right options.
        is_several: whether all right options must be named, not just one of them.
        number: the right number, where one is typed.
        tolerance: how far from it an answer may be.
        is_percent: whether the number is a share that is asked for in per cent: `52` and `0.52` are `52 %` then.
        it: what the model does, in words: what is right.
        why: the explanation that follows an answer.
    """

    kind: str
    spot: Spot
    text: str
    options: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    columns: tuple[int | None, ...] = ()
    right: frozenset[int] = frozenset()
    is_several: bool = False
    number: float | None = None
    tolerance: float = 0.0
    is_percent: bool = False
    it: str
    why: str

    @property
    def answers(self) -> tuple[str, ...]:
        """The possible answers, listed or not."""
        return (*self.options, *self.unlisted)

    @property
    def is_of_row(self) -> bool:
        """Tells whether it is answered in the cells of a row; else, where it has columns, in the source tokens."""
        return self.kind in ("looks-most", "masked")

    def meant(self, typed: float) -> float:
        """The number that somebody means who types this one."""
        return typed / 100 if self.is_percent and abs(typed) > 1 else typed

    def figure(self, number: float) -> str:
        """A number that answers it, in words."""
        if self.is_percent:
            return probability_words(self.meant(number))
        return _figure(number, 3 if abs(number) < 0.1 else 2)

    def is_right(self, answer: Iterable[int] | float) -> bool:
        """Tells whether an answer is right: numbers of options, or the number that was typed."""
        if isinstance(answer, int | float):
            # Weights are float32: at the very edge their rounding must not decide.
            return self.number is not None and abs(self.meant(answer) - self.number) <= self.tolerance + 1e-6
        chosen = frozenset(answer)
        return chosen == self.right if self.is_several else len(chosen) == 1 and chosen <= self.right


@dataclass(frozen=True)
class NotAsked:
    """Why a run cannot be asked a question: there is no such row, or no answer that is clearly right."""

    why: str


@dataclass(frozen=True)
class Asked:
    """The data for making a question: the run, the lesson's `ask`, the head and the row, and the words of a language."""

    trace: Trace
    ask: Ask
    spot: Spot
    say: Words

    @property
    def attention(self) -> Attention:
        """The attention of the kind that it is about."""
        return self.trace.attentions[self.spot.kind]

    @property
    def weights(self) -> np.ndarray:
        """The weights of its row, float32 (key,)."""
        return self.attention.row(self.spot.layer, self.spot.head, self.spot.row)

    def labels(self, keys: Iterable[int]) -> list[str]:
        """`5·l`, as on the axes; what the decoder has not read yet is `5·?`, as where the answer is hidden."""
        read = self.spot.row if self.spot.kind == "decoder" else math.inf
        tokens = self.attention.keys
        return [place_label(key, display_token(tokens[key]) if key <= read else HIDDEN) for key in keys]

    def shuffled(self, options: Iterable[T]) -> list[T]:
        """The options in an order that gives nothing away and depends on the run alone."""
        seed = f"{self.trace.source}\0{self.spot.row}\0"
        return sorted(options, key=lambda option: hashlib.sha256(f"{seed}{option}".encode()).digest())

    def made(
        self, text: str, why: str, options: Iterable[str] = (), right: Iterable[int] = (), *, it: str = "", **more: Any
    ) -> Question:
        """The question; what is right is the right options, unless `it` says more of them."""
        options, right = tuple(options), frozenset(right)
        it = it or self.say.list([f"`{options[place].rstrip('.。')}`" for place in sorted(right)])
        text = self.ask.words or text
        return Question(kind=self.ask.kind, spot=self.spot, text=text, options=options, right=right, it=it, why=why, **more)

    def none(self, why: str, **fields: object) -> NotAsked:
        """No question, for a reason among the words that all kinds share."""
        return NotAsked(self.say(f"common.{why}", **fields))


def question(trace: Trace, ask: Ask, focus: Spot, language: str = "en") -> Question | NotAsked:
    """A question about a run.

    Args:
        trace: the run; `matters-most` needs the result of `CAUSE` in it, `number` what happens inside the head where it is
            about scores or outputs, `greedy-or-beam` a beam search, `mistake` a mistake.
        ask: what a lesson says.
        focus: what the page has in focus, for what the lesson does not say.
        language: of the words.

    Raises:
        LessonError: the lesson asks for what no run can have, or there are no words in this language.
    """
    asked = Asked(trace, ask, spot := spot_of(ask, focus), words(language))
    attention = trace.attentions.get(spot.kind)
    if attention is None:
        with speaking(language):
            return asked.none("no-kind", kind=kind_words(spot.kind))
    if spot.layer not in attention.layers or (isinstance(spot.head, int) and spot.head >= attention.n_heads):
        return asked.none("no-head", head=spot.label)
    if spot.row >= len(attention.queries):
        return asked.none("no-row", row=spot.row + 1, n=len(attention.queries))
    with speaking(language):
        return KINDS_OF_QUESTION[ask.kind](asked)


def spot_of(ask: Ask, focus: Spot) -> Spot:
    """The head and the row that a question is about: those that the lesson names, or what is in focus."""
    kind, layer, head = focus.kind, focus.layer, focus.head
    if ask.head:
        place, _ = parse(ask.head)
        assert place.layer is not None and place.head is not None
        kind, layer, head = place.kind, place.layer, place.head
    return Spot(kind, layer, head, focus.row if ask.row is None else ask.row - 1)


# ---- the kinds


def looks_most(asked: Asked) -> Question | NotAsked:
    """Asks which key a row looks at most."""
    weights, row = asked.weights, asked.spot.row
    if not np.isfinite(weights).all() or not weights.any() or (right := _near_largest(weights)) is None:
        return asked.none("too-close")
    if len(right) > len(weights) / 2:
        return asked.none("all-alike")
    largest_first = _largest_first(weights)
    keys = sorted({*right, *largest_first[:MOST_KEYS]})
    n_listed = len(keys)
    top = [f"{_key(asked.attention.keys, key)} {_share(weights[key])}" for key in largest_first[:3]]
    why = asked.say("looks-most.why", row=row + 1, list=asked.say.list(top))
    if asked.spot.kind != "encoder" and row < len(asked.trace.output_tokens):
        why += asked.say("looks-most.writes", token=code(asked.trace.output_tokens[row]))
    keys += [key for key in range(len(weights)) if key not in keys]
    labels = asked.labels(keys)
    return asked.made(
        asked.say("looks-most.question", about=_about_row(asked), head=asked.spot.label),
        why,
        labels[:n_listed],
        (keys.index(key) for key in right),
        unlisted=tuple(labels[n_listed:]),
        columns=tuple(map(keys.index, range(len(keys)))),
        it=asked.say.list([f"{_key(asked.attention.keys, key)} {_share(weights[key])}" for key in sorted(right)]),
    )


def masked(asked: Asked) -> Question | NotAsked:
    """Asks which keys a row may not look at."""
    say, row = asked.say, asked.spot.row
    reasons = asked.attention.head_reasons(asked.spot.layer, asked.spot.head)[row]
    # Of a long row those around the border, where it is decided.
    border = next((key for key in range(1, len(reasons)) if bool(reasons[key]) != bool(reasons[key - 1])), 0)
    first = max(0, min(border - MOST_KEYS // 2, len(reasons) - MOST_KEYS))
    keys = range(first, min(first + MOST_KEYS, len(reasons)))
    right = [key - first for key in keys if reasons[key]]
    why = say("masked.why-none")
    if reasons.any():
        names = [(Reason(int(code)).name or "unknown").lower() for code in np.unique(reasons[reasons > 0])]
        parts = "; ".join(say(f"masked.reasons.{name}") for name in names)
        why = say("masked.why", n=int((reasons > 0).sum()), all=len(reasons), reasons=parts)
    return asked.made(
        say("masked.question", about=_about_row(asked)),
        why,
        (*asked.labels(keys), say("masked.none")),
        right or [len(keys)],
        is_several=True,
        columns=tuple(keys) if len(keys) == len(reasons) else (),
    )


def writes(asked: Asked) -> Question | NotAsked:
    """Asks what the model writes next."""
    trace, step = asked.trace, asked.spot.row
    if trace.is_given(step) or step >= min(len(trace.output_tokens), len(trace.steps)):
        return asked.none("nothing-written")
    token, own = trace.output_tokens[step], [token for token in trace.source_tokens if token not in SPECIAL_TOKENS]
    right = trace.expected_tokens[step] if trace.expected_tokens and step < len(trace.expected_tokens) else token
    # Answers of somebody who has not understood: the source's first token, the one at the same place, the token read last.
    tempting = [right, *own[:1], *own[step : step + 1], *own[-1:], trace.target_tokens[step], *own]
    tempting += [candidate for candidate, _ in trace.steps[step].candidates]
    others = [other for other in dict.fromkeys(tempting) if other not in (token, trace.target_tokens[0])]
    options = asked.shuffled([token, *others[:MOST_OPTIONS]])
    more = [one for one in dict.fromkeys(own) if one not in options]
    answers = [*options, *more]
    # Where what is written are the source's own tokens, one answers by pressing them.
    is_copied = not {*own}.isdisjoint((*trace.output_tokens, *(trace.expected_tokens or ())))
    fields = {"token": code(token), "share": probability_words(trace.steps[step].probability), "right": code(right)}
    return asked.made(
        asked.say("writes.question", step=step + 1, read=code(*trace.target_tokens[: step + 1])),
        asked.say("writes.why" if token == right else "writes.why-wrong", **fields),
        map(display_token, options),
        [options.index(token)],
        unlisted=tuple(map(display_token, more)),
        columns=tuple(answers.index(one) if one in answers else None for one in trace.source_tokens) if is_copied else (),
        it=f"{code(token)} {probability_words(trace.steps[step].probability)}",
    )


def number(asked: Asked) -> Question | NotAsked:
    """A number within a tolerance."""
    trace, ask, spot, weights = asked.trace, asked.ask, asked.spot, asked.weights
    key = int(weights.argmax()) if ask.column is None else ask.column - 1
    if key >= len(weights):
        raise LessonError(f"column={ask.column} is not possible; this map has {len(weights)} columns")
    fields: dict[str, Any] = {"row": spot.row + 1, "key": _key(asked.attention.keys, key)}
    value = float(weights[key])
    if ask.number == "probability":
        if spot.row >= len(trace.steps):
            return asked.none("nothing-written")
        value = trace.steps[spot.row].probability
        fields |= {"step": spot.row + 1, "token": code(trace.steps[spot.row].token)}
    elif ask.number != "weight":
        place = (spot.kind, spot.layer, spot.head, spot.row)
        inside = next((one for one in trace.insides if (one.kind, one.layer, one.head, one.row) == place), None)
        computed = None if inside is None else _by_hand(inside, ask.number, key, asked.say)
        if computed is None:
            return asked.none("not-measured")
        value, fields = computed[0], fields | computed[1]
    is_percent = ask.number == "probability"
    shown = probability_words(value) if is_percent else _figure(value, 3 if abs(value) < 0.1 else 2)
    return asked.made(
        asked.say(f"number.{ask.number}", **fields),
        asked.say(f"number.{ask.number}-why", **fields, value=shown),
        number=value,
        tolerance=ask.tolerance,
        is_percent=is_percent,
        it=f"`{shown}`",
    )


def _by_hand(inside: Inside, what: str, key: int, say: Words) -> tuple[float, dict[str, object]] | None:
    """A number, and what it is computed from; None where this head computes it otherwise."""
    if what == "output":
        shown = _largest_first(inside.weights)[:3]
        terms = {one: f"{_figure(inside.values[one, 0])} × {_figure(inside.weights[one])}" for one in shown}
        return float(inside.output[0]), {
            "values": say.list([f"{_key(inside.key_tokens, one)} {term}" for one, term in terms.items()]),
            "sum": " + ".join(terms.values()),
            "rest": _figure(np.delete(inside.weights.astype(np.float64) * inside.values[:, 0], shown).sum()),
        }
    if inside.scores is None:
        return None
    if what == "score":
        value, width = float(inside.scores[key]), len(inside.query)
        is_plain = inside.bias is None and inside.softcap is None
        is_plain = is_plain and math.isclose(inside.scale or 0, width**-0.5, rel_tol=1e-6)
        return (value, {"dot": _figure(value * width**0.5), "width": width}) if is_plain else None
    powers = exps(inside)
    shown = _largest_first(powers)[:3]
    shown = shown if key in shown else [*shown[:2], key]
    return float(inside.weights[key]), {
        "scores": say.list([f"{_key(inside.key_tokens, one)} {_figure(inside.scores[one])}" for one in shown]),
        "largest": _figure(largest(inside)),
        "rest": _figure(np.delete(powers, shown).sum()),
        "score": _figure(inside.scores[key]),
        "exp": _figure(powers[key]),
        "sum": _figure(powers.sum()),
    }


def matters_most(asked: Asked) -> Question | NotAsked:
    """Asks which source token matters most for what was written; the best wrong answer is where the head looks."""
    trace, spot = asked.trace, asked.spot
    if CAUSE not in trace.attributions or spot.kind != "cross":
        return asked.none("not-measured")
    if spot.row >= len(trace.output_tokens):
        return asked.none("nothing-written")
    losses = np.nan_to_num(trace.attributions[CAUSE].values[..., spot.row, :].reshape(-1).astype(np.float64))
    if losses.max() < FEWEST_NATS:
        return asked.none("all-alike")
    if (right := _near_largest(losses / losses.max())) is None:
        return asked.none("too-close")
    weights = asked.weights
    looked, best, token = int(weights.argmax()), int(losses.argmax()), code(trace.output_tokens[spot.row])
    others = dict.fromkeys([*_largest_first(weights), *_largest_first(losses)])
    keys = sorted({*right, *[key for key in others if key not in right][:MOST_OPTIONS]})
    n_listed = len(keys)
    keys += [key for key in range(len(losses)) if key not in keys]
    labels = asked.labels(keys)
    fields = {"key": _key(trace.cross.keys, best), "token": token, "loss": _figure(losses[best]), "head": spot.label}
    fields |= {"looked": _key(trace.cross.keys, looked), "share": _share(weights[looked]), "change": _figure(losses[looked])}
    return asked.made(
        asked.say("matters-most.question", step=spot.row + 1, token=token),
        asked.say(f"matters-most.why-{'same' if looked in right else 'other'}", **fields),
        labels[:n_listed],
        (keys.index(key) for key in right),
        unlisted=tuple(labels[n_listed:]),
        columns=tuple(map(keys.index, range(len(keys)))),
    )


def heads_by(asked: Asked) -> Question | NotAsked:
    """The order of three heads by a measure."""
    if (measure := MEASURES.get(asked.ask.by)) is None:
        raise LessonError(f"by={asked.ask.by!r} is not a measure of heads; choose one of {join_names(MEASURES)}")
    grades = [grade for grade in alignment(asked.trace) if grade.kind == asked.spot.kind]
    known = [(value, head_label(one.layer, one.head)) for one in grades if (value := getattr(one, asked.ask.by)) is not None]
    if len(known) < 3:
        return asked.none("not-measured")
    highest, *between, lowest = sorted(known, reverse=True)
    middle = min(between, key=lambda one: abs(one[0] - (highest[0] + lowest[0]) / 2))
    gap = min(highest[0] - middle[0], middle[0] - lowest[0])
    if gap < max(WITHIN, BLURRED * (highest[0] - lowest[0])):
        return asked.none("too-close")
    right = tuple(label for _, label in (highest, middle, lowest))
    orders = asked.shuffled(permutations(right))
    fields = {"kind": kind_words(asked.spot.kind), "measure": translated(measure.title)}
    figures = [f"{label} {_figure(value)}" for value, label in (highest, middle, lowest)]
    return asked.made(
        asked.say("heads-by.question", **fields),
        asked.say("heads-by.why", **fields, list=asked.say.list(figures)),
        map(" > ".join, orders),
        [orders.index(right)],
    )


def greedy_or_beam(asked: Asked) -> Question | NotAsked:
    """Tells whether greedy or beam search finds the more probable text, and why."""
    search = asked.trace.search
    if search is None or all(node.place or node.step for node in search.nodes):
        return asked.none("not-measured")
    best = search.path(search.best[0])
    # The greedy way, as far as the beam kept it.
    way, parent = [], None
    while (place := next((i for i, n in enumerate(search.nodes) if n.parent == parent and n.place == 0), None)) is not None:
        way.append(search.nodes[place])
        parent = place
    parts = next((t for t, (a, b) in enumerate(zip(way, best, strict=False)) if a is not b), None)
    greedy, beam = way[-1], best[-1]
    if parts is None:
        name = "same"
    elif greedy.total < beam.total:
        name = "beam"  # where the greedy way was left, going on could only lose more
    elif greedy.state in ("end", "length"):
        name = "length" if beam.score >= greedy.score else "greedy"
    else:
        return asked.none("too-close")
    names, at = ("same", "beam", "greedy", "length"), parts or 0
    fields = {"source": code(asked.trace.source), "size": search.settings.get("beam_size", "?"), "n": len(best)}
    fields |= {"greedy": code(greedy.text), "beam": code(beam.text), "step": at + 1}
    fields |= {"token": code(way[at].token), "other": code(best[at].token)}
    fields |= {"greedy_total": _figure(greedy.total), "beam_total": _figure(beam.total)}
    return asked.made(
        asked.say("greedy-or-beam.question", **fields),
        asked.say(f"greedy-or-beam.why-{name}", **fields),
        (asked.say(f"greedy-or-beam.{option}") for option in names),
        [names.index(name)],
    )


def aligns(asked: Asked) -> Question | NotAsked:
    """Asks which head of the cross-attention looks at the right token."""
    mass = head_mass(asked.trace)
    if mass is None or not np.isfinite(mass).all():
        return asked.none("not-measured")
    values, layers, n_heads = mass.ravel(), asked.trace.cross.layers, mass.shape[1]
    largest_first = _largest_first(values)
    # Heads that are neither right nor clearly wrong are not offered.
    wrong = [place for place in largest_first if values[place] < values.max() - BLURRED]
    if not wrong:
        return asked.none("all-alike")
    every = max(1, len(wrong) // (MOST_OPTIONS - 1))
    options = sorted([largest_first[0], *wrong[::-every][: MOST_OPTIONS - 1]])
    labels = [head_label(layers[place // n_heads], place % n_heads) for place in options]
    figures = [f"{label} {_share(values[place])}" for label, place in zip(labels, options, strict=True)]
    why = asked.say("aligns.why", list=asked.say.list(figures))
    best = options.index(largest_first[0])
    it = f"`{labels[best]}` {_share(values[options[best]])}"
    return asked.made(asked.say("aligns.question"), why, labels, [best], it=it)


def mistake(asked: Asked) -> Question | NotAsked:
    """Asks which mistake made the mask."""
    trace, made = asked.trace, asked.trace.mistake
    is_seen = any((one.mask != _sound_mask(trace, kind)).any() for kind, one in trace.attentions.items())
    if made not in MISTAKE_TITLES or not is_seen or trace.n_steps < FEWEST_ROWS:
        return NotAsked(asked.say("mistake.unseen"))
    others = asked.shuffled(name for name in MISTAKE_TITLES if name != made)[: MOST_OPTIONS - 1]
    names = [name for name in MISTAKE_TITLES if name in (made, *others)]
    why = asked.say(f"mistake.{made}")
    return asked.made(
        asked.say("mistake.question"), why, [translated(MISTAKE_TITLES[name]) for name in names], [names.index(made)]
    )


_KINDS = (looks_most, masked, writes, number, matters_most, heads_by, greedy_or_beam, aligns, mistake)
KINDS_OF_QUESTION = {kind.__name__.replace("_", "-"): kind for kind in _KINDS}
"""By the names that lessons use: those of the functions."""


# ---- what several kinds need


def _about_row(asked: Asked) -> str:
    """Describes a row: in the encoder a token, else what was written last, or read where nothing of it was written."""
    trace, spot = asked.trace, asked.spot
    is_first = spot.row == 0 and trace.writes and not trace.is_given(0)
    if spot.kind == "encoder":
        which = "encoder"
    else:
        which = "first" if is_first else "written" if spot.row > trace.written.start else "read"
    return asked.say(f"row.{which}", row=spot.row + 1, token=code(asked.attention.queries[spot.row]))


def _near_largest(values: np.ndarray) -> list[int] | None:
    """The places of all values that count as the largest; None where another one is neither near to it nor clearly below."""
    below = float(values.max()) - values
    if ((below > WITHIN) & (below <= BLURRED)).any():
        return None
    return [int(place) for place in np.flatnonzero(below <= WITHIN)]


def _largest_first(values: np.ndarray) -> list[int]:
    return [int(place) for place in np.argsort(-values, kind="stable")]


def _sound_mask(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (query, key): what is padding, and in the decoder what comes later."""
    mask = np.broadcast_to(padding(trace, "target" if kind == "decoder" else "source"), trace.attentions[kind].mask.shape)
    return mask | np.triu(np.ones(mask.shape[-2:], dtype=bool), 1) if kind == "decoder" else mask


def _key(tokens: Sequence[str], key: int) -> str:
    return f"`{place_label(key, display_token(tokens[key]))}`"


def code(*tokens: str) -> str:
    """Tokens or a text in a sentence: in backquotes, its blanks to be seen."""
    return f"`{' '.join(display_text(token) for token in tokens)}`"


def _share(share: float) -> str:
    """`96 %`, in the language of the page; `over 99 %` and `under 1 %` where it would round to everything or nothing."""
    return percent_words(float(share))


def _figure(value: float, places: int = 2) -> str:
    return number_words(float(value), places)
