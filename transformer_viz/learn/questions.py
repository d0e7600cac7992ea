"""Questions that a run answers: a function for each kind, from a Trace to the question, its options and what is right.

A run that cannot be asked fairly says why. Tokens in sentences stand in backquotes, and options are labels as on the axes.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from transformer_viz.addresses import parse
from transformer_viz.analysis.grading import alignment
from transformer_viz.analysis.measures import MEASURES
from transformer_viz.analysis.query_rows import padding
from transformer_viz.analysis.true_key import head_mass
from transformer_viz.errors import LessonError, listed
from transformer_viz.inside_head.numbers import exps, largest
from transformer_viz.learn.lesson import Ask
from transformer_viz.learn.words import Words, words
from transformer_viz.numbers_in_words import number_words, percent_words
from transformer_viz.terms import KIND_TITLES, MISTAKE_TITLES, Head, Kind, Reason, head_label, place_label
from transformer_viz.text_display import display_text, display_token
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS

WITHIN, BLURRED = 0.05, 0.1
"""What is within the first of the largest is right too; where another lies between the two, the question is not asked."""
MOST_KEYS, MOST_OPTIONS, FEWEST_NATS, FEWEST_ROWS = 14, 4, 0.1, 3
CAUSE = "occlusion_word_cross"
"""The measure that `matters-most` reads from the run."""


@dataclass(frozen=True)
class Spot:
    """What a page has in focus; numbers from 0."""

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
        options: what may be answered; none where a number is typed.
        right: numbers of the options that are right.
        is_several: whether all right options are to be named, and not one of them.
        number: the right number, where one is typed.
        tolerance: how far from it an answer may be.
        why: what is to be said once it has been answered.
    """

    kind: str
    spot: Spot
    text: str
    options: tuple[str, ...] = ()
    right: frozenset[int] = frozenset()
    is_several: bool = False
    number: float | None = None
    tolerance: float = 0.0
    why: str

    def is_right(self, answer: Iterable[int] | float) -> bool:
        """Whether an answer is right: numbers of options, or the number that was typed."""
        if isinstance(answer, int | float):
            # Weights are float32: at the very edge their rounding must not decide.
            return self.number is not None and abs(answer - self.number) <= self.tolerance + 1e-6
        chosen = frozenset(answer)
        return chosen == self.right if self.is_several else len(chosen) == 1 and chosen <= self.right


@dataclass(frozen=True)
class NotAsked:
    """Why a run cannot be asked a question: there is no such row, or no answer that is clearly right."""

    why: str


Maker = Callable[[Trace, Ask, Spot, Words], Question | NotAsked]


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
    say, spot = words(language), spot_of(ask, focus)
    attention = trace.attentions.get(spot.kind)
    if attention is None:
        return NotAsked(say("common.no-kind", kind=KIND_TITLES[spot.kind]))
    if spot.layer not in attention.layers or (isinstance(spot.head, int) and spot.head >= attention.n_heads):
        return NotAsked(say("common.no-head", head=spot.label))
    if spot.row >= len(attention.queries):
        return NotAsked(say("common.no-row", row=spot.row + 1, n=len(attention.queries)))
    made = KINDS_OF_QUESTION[ask.kind](trace, ask, spot, say)
    return replace(made, text=ask.words) if ask.words and isinstance(made, Question) else made


def spot_of(ask: Ask, focus: Spot) -> Spot:
    """The head and the row that a question is about: those that the lesson names, or what is in focus."""
    kind, layer, head = focus.kind, focus.layer, focus.head
    if ask.head:
        place, _ = parse(ask.head)
        assert place.layer is not None and place.head is not None
        kind, layer, head = place.kind, place.layer, place.head
    return Spot(kind, layer, head, focus.row if ask.row is None else ask.row - 1)


# ---- the kinds


def looks_most(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """Which key a row looks at most."""
    attention = trace.attentions[spot.kind]
    weights = attention.row(spot.layer, spot.head, spot.row)
    if not np.isfinite(weights).all() or not weights.any():
        return NotAsked(say("common.too-close"))
    right = _near_largest(weights)
    if right is None:
        return NotAsked(say("common.too-close"))
    if len(right) > len(weights) / 2:
        return NotAsked(say("common.all-alike"))
    largest_first = [int(key) for key in np.argsort(-weights, kind="stable")]
    keys = sorted({*right, *largest_first[:MOST_KEYS]}) if len(weights) > MOST_KEYS else [*range(len(weights))]
    top = [f"{_key(attention, key)} {_share(float(weights[key]))}" for key in largest_first[:3]]
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("looks-most.question", row=spot.row + 1, token=_code(attention.queries[spot.row]), head=spot.label),
        options=_labels(attention, keys),
        right=frozenset(place for place, key in enumerate(keys) if key in right),
        why=say("looks-most.why", row=spot.row + 1, list=say.list(top)),
    )


def masked(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """Which keys a row may not look at."""
    attention = trace.attentions[spot.kind]
    reasons = attention.head_reasons(spot.layer, spot.head)[spot.row]
    keys = [*range(len(reasons))]
    if len(keys) > MOST_KEYS:
        # Those around the border, where it is decided.
        border = next((key for key in keys[1:] if (reasons[key] > 0) != (reasons[key - 1] > 0)), 0)
        first = min(max(0, border - MOST_KEYS // 2), len(keys) - MOST_KEYS)
        keys = keys[first : first + MOST_KEYS]
    right = frozenset(place for place, key in enumerate(keys) if reasons[key])
    names = {int(code): Reason(int(code)).name for code in np.unique(reasons[reasons > 0])}
    why = say("masked.why-none")
    if names:
        parts = [say(f"masked.reasons.{(name or 'unknown').lower()}") for name in names.values()]
        why = say("masked.why", n=int((reasons > 0).sum()), all=len(reasons), reasons="; ".join(parts))
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("masked.question", row=spot.row + 1, token=_code(attention.queries[spot.row])),
        options=(*_labels(attention, keys), say("masked.none")),
        right=right or frozenset({len(keys)}),
        is_several=True,
        why=why,
    )


def writes(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """What the model writes next."""
    step = spot.row
    if not trace.writes or step < trace.n_given or step >= len(trace.output_tokens) or step >= len(trace.steps):
        return NotAsked(say("common.nothing-written"))
    token, own = trace.output_tokens[step], [token for token in trace.source_tokens if token not in SPECIAL_TOKENS]
    right_token = trace.expected_tokens[step] if trace.expected_tokens and step < len(trace.expected_tokens) else token
    # What somebody who has not understood would say: the first of the source, the one in the same place, what was read last.
    tempting = [right_token, *own[:1], *own[step : step + 1], *own[-1:], trace.target_tokens[step], *own]
    tempting += [candidate for candidate, _ in trace.steps[step].candidates]
    others = [other for other in dict.fromkeys(tempting) if other != token and other != trace.target_tokens[0]]
    options = sorted([token, *others[:MOST_OPTIONS]], key=_shuffled(trace.source, step))
    share = _share(trace.steps[step].probability)
    why = "writes.why" if token == right_token else "writes.why-wrong"
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("writes.question", step=step + 1, read=_code(*trace.target_tokens[: step + 1])),
        options=tuple(display_token(option) for option in options),
        right=frozenset({options.index(token)}),
        why=say(why, token=_code(token), share=share, right=_code(right_token)),
    )


def number(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """A number within a tolerance."""
    attention, row = trace.attentions[spot.kind], spot.row + 1
    place = (spot.kind, spot.layer, spot.head, spot.row)
    inside = next((one for one in trace.insides if one.place == place), None)
    weights = attention.row(spot.layer, spot.head, spot.row)
    key = int(weights.argmax()) if ask.column is None else ask.column - 1
    if key >= len(weights):
        raise LessonError(f"column={ask.column} is not possible; this map has {len(weights)} columns")
    name, fields = ask.number, {"row": row, "key": _key(attention, key)}
    if name == "probability":
        if spot.row >= len(trace.steps):
            return NotAsked(say("common.nothing-written"))
        value = trace.steps[spot.row].probability
        fields |= {"step": row, "token": _code(trace.steps[spot.row].token)}
    elif name == "weight":
        value = float(weights[key])
    elif inside is None or inside.scores is None:
        return NotAsked(say("common.not-measured"))
    elif name == "softmax":
        value = float(weights[key])
        fields |= _softmax_by_hand(inside, key, say)
    elif name == "score":
        value, width = float(inside.scores[key]), len(inside.query)
        is_plain = inside.bias is None and inside.softcap is None and math.isclose(inside.scale or 0, width**-0.5, rel_tol=1e-6)
        if not is_plain:
            return NotAsked(say("common.not-measured"))
        fields |= {"dot": _figure(value * width**0.5), "width": width}
    else:
        value = float(inside.output[0])
        fields |= _output_by_hand(inside, say)
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say(f"number.{name}", **fields),
        number=value,
        tolerance=ask.tolerance,
        why=say(f"number.{name}-why", **fields, value=_figure(value, 3 if abs(value) < 0.1 else 2)),
    )


def _softmax_by_hand(inside: Inside, key: int, say: Words) -> dict[str, str]:
    assert inside.scores is not None
    powers = exps(inside)
    shown = [int(one) for one in np.argsort(-powers, kind="stable")[:3]]
    shown = shown if key in shown else [*shown[:2], key]
    return {
        "scores": say.list([f"{_label(inside.key_tokens, one)} {_figure(float(inside.scores[one]))}" for one in shown]),
        "largest": _figure(largest(inside)),
        "rest": _figure(float(np.delete(powers, shown).sum())),
        "score": _figure(float(inside.scores[key])),
        "exp": _figure(float(powers[key])),
        "sum": _figure(float(powers.sum())),
    }


def _output_by_hand(inside: Inside, say: Words) -> dict[str, str]:
    terms = inside.weights.astype(np.float64) * inside.values[:, 0]
    shown = [int(one) for one in np.argsort(-inside.weights, kind="stable")[:3]]
    pairs = [(_figure(float(inside.weights[one])), _figure(float(inside.values[one, 0]))) for one in shown]
    labels = [_label(inside.key_tokens, one) for one in shown]
    return {
        "values": say.list([f"{label} {value} × {weight}" for label, (weight, value) in zip(labels, pairs, strict=True)]),
        "sum": " + ".join(f"{value} × {weight}" for weight, value in pairs),
        "rest": _figure(float(np.delete(terms, shown).sum())),
    }


def matters_most(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """Which source token matters most for what was written; the best wrong answer is where the head looks."""
    found = trace.attributions.get(CAUSE)
    if found is None or "cross" not in trace.attentions:
        return NotAsked(say("common.not-measured"))
    if spot.row >= len(trace.output_tokens):
        return NotAsked(say("common.nothing-written"))
    losses = found.values[..., spot.row, :].reshape(-1, len(trace.source_tokens))[0].astype(np.float64)
    losses = np.where(np.isfinite(losses), losses, 0.0)
    if losses.max() < FEWEST_NATS:
        return NotAsked(say("common.all-alike"))
    right = _near_largest(losses / losses.max())
    if right is None:
        return NotAsked(say("common.too-close"))
    weights = trace.cross.row(spot.layer if spot.kind == "cross" else trace.cross.layers[-1], spot.head, spot.row)
    looked, best = int(weights.argmax()), int(losses.argmax())
    others = [*map(int, np.argsort(-weights, kind="stable")), *map(int, np.argsort(-losses, kind="stable"))]
    keys = sorted({*right[:2], *[key for key in dict.fromkeys(others) if key not in right][:MOST_OPTIONS]})
    written = _code(trace.output_tokens[spot.row])
    fields = {"key": _key(trace.cross, best), "token": written, "loss": _figure(losses[best]), "head": spot.label}
    fields |= {"looked": _key(trace.cross, looked), "share": _share(float(weights[looked]))}
    name = "matters-most.why-same" if looked in right else "matters-most.why-other"
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("matters-most.question", step=spot.row + 1, token=written),
        options=_labels(trace.cross, keys),
        right=frozenset(place for place, key in enumerate(keys) if key in right),
        why=say(name, **fields, change=_figure(losses[looked])),
    )


def heads_by(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """The order of three heads by a measure."""
    measure = MEASURES.get(ask.by)
    if measure is None:
        raise LessonError(f"by={ask.by!r} is no measure of heads; there are {listed(MEASURES)}")
    grades = [grade for grade in alignment(trace) if grade.kind == spot.kind]
    values = [(value, (grade.layer, grade.head)) for grade in grades if (value := getattr(grade, ask.by)) is not None]
    values.sort(reverse=True)
    if len(values) < 3:
        return NotAsked(say("common.not-measured"))
    (highest, _), (lowest, _) = values[0], values[-1]
    middle = min(values[1:-1], key=lambda one: abs(one[0] - (highest + lowest) / 2))
    three, spread = [values[0], middle, values[-1]], highest - lowest
    gaps = [three[0][0] - three[1][0], three[1][0] - three[2][0]]
    if spread <= 0 or min(gaps) < max(WITHIN, BLURRED * spread):
        return NotAsked(say("common.too-close"))
    orders = sorted(permutations([head_label(*place) for _, place in three]), key=_shuffled(trace.source, spot.row))
    right = tuple(head_label(*place) for _, place in three)
    figures = [f"{head_label(*place)} {_figure(value)}" for value, place in three]
    fields = {"kind": KIND_TITLES[spot.kind], "measure": measure.title}
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("heads-by.question", **fields),
        options=tuple(" > ".join(order) for order in orders),
        right=frozenset({orders.index(right)}),
        why=say("heads-by.why", **fields, list=say.list(figures)),
    )


def greedy_or_beam(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """Whether greedy or beam search finds the more probable text, and why."""
    search = trace.search
    if search is None:
        return NotAsked(say("common.not-measured"))
    best = search.path(search.best[0])
    # The greedy way, as far as the beam kept it.
    way, parent = [], None
    while (node := next((i for i, n in enumerate(search.nodes) if n.parent == parent and n.place == 0), None)) is not None:
        way.append(search.nodes[node])
        parent = node
    if not way:
        return NotAsked(say("common.not-measured"))
    parts = next((t for t, (a, b) in enumerate(zip(way, best, strict=False)) if a is not b), None)
    is_whole, greedy, beam = way[-1].state in ("end", "length"), way[-1], best[-1]
    fields = {"source": _code(trace.source), "size": search.settings.get("beam_size", "?")}
    fields |= {"greedy": _code(greedy.text), "beam": _code(beam.text), "n": len(best)}
    fields |= {"greedy_total": _figure(greedy.total), "beam_total": _figure(beam.total)}
    names = ["same", "beam", "greedy", "length"]
    if parts is None:
        name = "same"
    elif is_whole and greedy.total >= beam.total:
        name = "length" if beam.score >= greedy.score else "greedy"
    elif greedy.total < beam.total:
        name = "beam"  # what goes on only loses
    else:
        return NotAsked(say("common.too-close"))
    if parts is not None:
        fields |= {"step": parts + 1, "token": _code(way[parts].token), "other": _code(best[parts].token)}
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("greedy-or-beam.question", **fields),
        options=tuple(say(f"greedy-or-beam.{option}") for option in names),
        right=frozenset({names.index(name)}),
        why=say(f"greedy-or-beam.why-{name}", **fields),
    )


def aligns(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """Which head of the cross-attention looks at the right token."""
    mass = head_mass(trace)
    if mass is None or not np.isfinite(mass).all():
        return NotAsked(say("common.not-measured"))
    largest_first = [int(place) for place in np.argsort(-mass.ravel(), kind="stable")]
    values = mass.ravel()[largest_first]
    right = [place for place, value in zip(largest_first, values, strict=True) if value >= values[0] - WITHIN]
    wrong = [place for place, value in zip(largest_first, values, strict=True) if value < values[0] - BLURRED]
    if not wrong:
        return NotAsked(say("common.all-alike"))
    step = max(1, len(wrong) // (MOST_OPTIONS - 1))
    options = sorted([right[0], *wrong[::-step][: MOST_OPTIONS - 1]])
    n_heads = mass.shape[1]
    labels = {place: head_label(trace.cross.layers[place // n_heads], place % n_heads) for place in options}
    figures = [f"{labels[place]} {_share(float(mass.ravel()[place]))}" for place in options]
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("aligns.question"),
        options=tuple(labels.values()),
        right=frozenset({options.index(right[0])}),
        why=say("aligns.why", list=say.list(figures)),
    )


def mistake(trace: Trace, ask: Ask, spot: Spot, say: Words) -> Question | NotAsked:
    """Which mistake made the mask."""
    made = trace.mistake
    is_seen = any((one.mask != _sound_mask(trace, kind)).any() for kind, one in trace.attentions.items())
    if made not in MISTAKE_TITLES or not is_seen or trace.n_steps < FEWEST_ROWS:
        return NotAsked(say("mistake.unseen"))
    shuffled = _shuffled(trace.source, spot.row)
    names = [made, *sorted((name for name in MISTAKE_TITLES if name != made), key=shuffled)[: MOST_OPTIONS - 1]]
    names.sort(key=list(MISTAKE_TITLES).index)
    return Question(
        kind=ask.kind,
        spot=spot,
        text=say("mistake.question"),
        options=tuple(MISTAKE_TITLES[name] for name in names),
        right=frozenset({names.index(made)}),
        why=f"{MISTAKE_TITLES[made]}. {say(f'mistake.{made}')}",
    )


KINDS_OF_QUESTION: dict[str, Maker] = {
    "looks-most": looks_most,
    "masked": masked,
    "writes": writes,
    "number": number,
    "matters-most": matters_most,
    "heads-by": heads_by,
    "greedy-or-beam": greedy_or_beam,
    "aligns": aligns,
    "mistake": mistake,
}


# ---- what several kinds need


def _near_largest(values: np.ndarray) -> list[int] | None:
    """The places of all values that count as the largest; None where another one is neither near to it nor clearly below."""
    below = float(values.max()) - values
    if ((below > WITHIN) & (below <= BLURRED)).any():
        return None
    return [int(place) for place in np.flatnonzero(below <= WITHIN)]


def _sound_mask(trace: Trace, kind: Kind) -> np.ndarray:
    """bool (query, key): what is padding, and in the decoder what comes later."""
    mask = np.broadcast_to(padding(trace, "target" if kind == "decoder" else "source"), trace.attentions[kind].mask.shape)
    return mask | np.triu(np.ones(mask.shape[-2:], dtype=bool), 1) if kind == "decoder" else mask


def _shuffled(text: str, row: int) -> Callable[[object], str]:
    """A key by which options stand in an order that tells nothing and is the same whenever the run is."""
    return lambda option: hashlib.sha256(f"{text}\0{row}\0{option}".encode()).hexdigest()


def _labels(attention: Attention, keys: Sequence[int]) -> tuple[str, ...]:
    """`5·l`, as on the axes."""
    return tuple(place_label(key, display_token(attention.keys[key])) for key in keys)


def _key(attention: Attention, key: int) -> str:
    return _label(attention.keys, key)


def _label(tokens: Sequence[str], key: int) -> str:
    return f"`{place_label(key, display_token(tokens[key]))}`"


def _code(*tokens: str) -> str:
    """Tokens or a text in a sentence."""
    return f"`{' '.join(display_text(token) for token in tokens)}`"


def _share(share: float) -> str:
    """`96 %`, in signs that every language reads: `> 99 %` and `< 1 %` where it would round to everything or nothing."""
    return percent_words(share).replace("over ", "> ").replace("under ", "< ")


def _figure(value: float, places: int = 2) -> str:
    return number_words(float(value), places)
