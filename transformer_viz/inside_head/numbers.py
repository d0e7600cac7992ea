"""The numbers inside a head by their addresses: the label and the value of each.

An address is a short text that can stand in a link: `query.3`, `key.5.3` (place 3 of key 5), `dot.5`, `score.5`, `exp.5`,
`sum`, `weight.5`, `output.3` … Keys and places count from 1 in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.language import later, say
from transformer_viz.terms import place_label
from transformer_viz.text_display import display_token, shorten
from transformer_viz.trace.inside import Inside

MOST_KEYS, LARGEST_KEYS = 16, 12
"""Up to so many keys stand in a sum one by one; of more the largest, and the rest as one."""


def exact(array: np.ndarray) -> np.ndarray:
    """The array in double precision, in which everything here is computed."""
    return array.astype(np.float64)


def label(inside: Inside, key: int) -> str:
    """`5·l`, a key as it stands on the axes."""
    return place_label(key, display_token(inside.key_tokens[key]))


def shown_keys(inside: Inside, also: int | None = None) -> list[int]:
    """Lists all keys in their order; of many those with the largest weights, and one more that is asked for."""
    n = len(inside.key_tokens)
    if n <= MOST_KEYS:
        return [*range(n)]
    largest_first = [int(key) for key in np.argsort(-inside.weights, kind="stable")[:LARGEST_KEYS]]
    return largest_first if also is None or also in largest_first else [*largest_first[:-1], also]


def dots(inside: Inside) -> np.ndarray:
    """q · k of every key, (key,)."""
    return exact(inside.keys) @ exact(inside.query)


def largest(inside: Inside) -> float:
    """The largest score that is not masked; −∞ where all are."""
    return float(exact(inside.require("scores"))[~inside.masked].max(initial=-np.inf))


def exps(inside: Inside) -> np.ndarray:
    """e^(score − largest) of every key, (key,); 0 where it is masked."""
    scores = np.where(inside.masked, -np.inf, exact(inside.require("scores")))
    return np.exp(scores - largest(inside)) if not inside.masked.all() else np.zeros(len(scores))


def parts(inside: Inside) -> np.ndarray:
    """Every value times its weight, (key, d_v)."""
    return exact(inside.weights)[:, None] * exact(inside.values)


def value_of(inside: Inside, address: str) -> float:
    """The number at an address; raises as `parsed`."""
    name, places = parsed(inside, address)
    array = NUMBERS[name].make(inside)
    assert array is not None
    return float(array[places])


@dataclass(frozen=True)
class Number:
    """Looks up the number of a name in an address: None where this row has no such number."""

    said: str
    words: str
    make: Callable[[Inside], "np.ndarray | None"]
    axes: Literal["", "key", "place", "key place", "place place"] = "place"


def _of(name: str) -> Callable[[Inside], "np.ndarray | None"]:
    """An array of the row as it is."""
    return lambda inside: None if (array := getattr(inside, name)) is None else exact(array)


def scaled(inside: Inside) -> np.ndarray | None:
    """q · k × scale, where that is not the score itself."""
    is_changed_after = inside.softcap is not None or inside.bias is not None
    return None if inside.scale in (None, 1) or not is_changed_after else dots(inside) * inside.scale


def _capped(inside: Inside) -> np.ndarray | None:
    if inside.softcap is None or inside.bias is None or inside.scale is None:
        return None
    return inside.softcap * np.tanh(dots(inside) * inside.scale / inside.softcap)


def _of_softmax(make: Callable[[Inside], "np.ndarray | float"]) -> Callable[[Inside], "np.ndarray | None"]:
    return lambda inside: None if inside.scores is None else np.asarray(make(inside))


def _norm_mean(inside: Inside) -> np.ndarray | None:
    given = inside.norm_input
    return None if given is None or inside.norm_kind != "layer" else np.asarray(exact(given).mean())


def _norm_deviation(inside: Inside) -> np.ndarray | None:
    """√(variance + ε), or of RMSNorm √(mean square + ε)."""
    given = inside.norm_input
    if given is None or inside.norm_kind is None or inside.norm_epsilon is None:
        return None
    mean = _norm_mean(inside)
    centred = exact(given) - (0 if mean is None else mean)
    return np.asarray(np.sqrt((centred**2).mean() + inside.norm_epsilon))


def normed(inside: Inside) -> np.ndarray | None:
    """The norm's output."""
    given, mean, deviation = inside.norm_input, _norm_mean(inside), _norm_deviation(inside)
    if given is None or deviation is None:
        return None
    made = (exact(given) - (0 if mean is None else mean)) / deviation
    made = made if inside.norm_weight is None else made * exact(inside.norm_weight)
    return made if inside.norm_bias is None else made + exact(inside.norm_bias)


def others(inside: Inside) -> np.ndarray | None:
    """The sum that the other heads of the layer add to the residual stream."""
    if inside.added is None or inside.projected is None:
        return None
    rest = exact(inside.added) - exact(inside.projected)
    return rest if inside.out_bias is None else rest - exact(inside.out_bias)


def _rest(inside: Inside) -> np.ndarray:
    return np.asarray(np.delete(exact(inside.weights), shown_keys(inside)).sum())


NUMBERS: Mapping[str, Number] = {
    "residual_before": Number(
        later("before"), later("The residual stream as this attention finds it."), _of("residual_before")
    ),
    "entered": Number(later("entered"), later("What enters the row: the vector that its query is made of."), _of("entered")),
    "query": Number(
        later("query"), later("One place of what this row looks for: what enters, through the learned W_Q."), _of("query")
    ),
    "key": Number(
        later("key"), later("One place of what this key shows: its vector, through the learned W_K."), _of("keys"), "key place"
    ),
    "value": Number(
        later("value"), later("One place of what this key hands on, through the learned W_V."), _of("values"), "key place"
    ),
    "product": Number(later("product"), "", lambda inside: exact(inside.keys) * exact(inside.query), "key place"),
    "dot": Number(later("q · k"), "", dots, "key"),
    "scaled": Number(later("scaled q · k"), "", scaled, "key"),
    "capped": Number(later("capped q · k"), "", _capped, "key"),
    "bias": Number(
        later("position bias"), later("Learned, for how far the key is from the row, whatever they hold."), _of("bias"), "key"
    ),
    "score": Number(later("score"), later("The score before the mask."), _of("scores"), "key"),
    "mask": Number(later("mask"), "", lambda inside: np.where(inside.masked, -np.inf, 0.0), "key"),
    "largest": Number(later("the largest score"), "", _of_softmax(largest), ""),
    "exp": Number(later("exp"), "", _of_softmax(exps), "key"),
    "sum": Number(later("sum of the row"), "", _of_softmax(lambda inside: exps(inside).sum()), ""),
    "weight": Number(later("weight"), later("How much of this key's value goes into the output."), _of("weights"), "key"),
    "rest": Number(
        later("all other keys"), later("The weights of the keys that are not shown one by one, together."), _rest, ""
    ),
    "part": Number(later("weight × value"), "", parts, "key place"),
    "output": Number(later("output"), later("What this head has found."), _of("output")),
    "out": Number(later("W_O"), later("Learned: what a place of the head's output becomes."), _of("out"), "place place"),
    "projected": Number(
        later("share"), later("This head's share of what attention adds: its output times W_O."), _of("projected")
    ),
    "others": Number(later("other heads"), later("What the other heads of the layer add."), others),
    "out_bias": Number(later("bias of W_O"), later("Learned, added whatever the heads have found."), _of("out_bias")),
    "added": Number(later("added"), later("What all heads add together."), _of("added")),
    "norm_input": Number(later("norm's input"), "", _of("norm_input")),
    "norm_mean": Number(later("mean"), later("The mean of all places of the norm's input."), _norm_mean, ""),
    "norm_deviation": Number(
        later("σ"), later("The standard deviation of the places of the norm's input."), _norm_deviation, ""
    ),
    "norm_weight": Number(later("γ"), later("Learned, of the norm."), _of("norm_weight")),
    "norm_bias": Number(later("β"), later("Learned, of the norm."), _of("norm_bias")),
    "normed": Number(later("norm"), "", normed),
    "residual_after": Number(later("after"), later("The residual stream as this attention leaves it."), _of("residual_after")),
}


def parsed(inside: Inside, address: str) -> tuple[str, tuple[int, ...]]:
    """The name in an address, and the places in it from 0.

    Raises:
        OptionError: this row has no such number.
    """
    name, *numbers = address.split(".")
    places = tuple(int(number) - 1 for number in numbers if number.isascii() and number.isdigit() and len(number) < 6)
    array = NUMBERS[name].make(inside) if name in NUMBERS else None
    is_there = array is not None and len(places) == len(numbers) == array.ndim
    if array is None or not is_there or not all(0 <= at < n for at, n in zip(places, array.shape, strict=True)):
        words = "is no number of this row; numbers are called like weight.1, dot.1 or query.1"
        raise OptionError(f"{shorten(address)!r} {words}")
    return name, places


def label_of(inside: Inside, address: str) -> str:
    """Names a number, as `weight of 5·l`; raises as `parsed`."""
    name, places = parsed(inside, address)
    number = NUMBERS[name]
    match number.axes:
        case "":
            return say(number.said)
        case "key":
            return say("{number} of {key}", number=say(number.said), key=label(inside, places[0]))
        case "key place":
            key = label(inside, places[0])
            return say("{number} {place} of {key}", number=say(number.said), place=places[1] + 1, key=key)
    return say("{number} {places}", number=say(number.said), places=", ".join(str(place + 1) for place in places))
