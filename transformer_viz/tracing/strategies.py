"""How tokens are chosen: the keywords of `decode` about it, checked and in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

from transformer_viz.decoding.beam import Beam
from transformer_viz.decoding.sampling import Sampling
from transformer_viz.errors import OptionError, listed
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import finite_number, whole_number
from transformer_viz.terms import STOPS, STRATEGIES

WIDEST_BEAM = 512
_LARGEST_SEED = 2**63 - 1


class StrategyOptions(TypedDict, total=False):
    """Keywords of `decode`; None, and no tokens, are as if a keyword was not given."""

    prefix: Sequence[str | int]
    ban: Sequence[str | int]
    beam_size: int | None
    length_penalty: float | None
    n_best: int | None
    stop: str | None
    refill: bool | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None


@dataclass(frozen=True)
class Strategy:
    """A strategy and what it needs to know; ids, not tokens. `given` are the keywords that were given, as they were."""

    name: str
    prefix: tuple[int, ...] = ()
    ban: tuple[int, ...] = ()
    beam: Beam | None = None
    sampling: Sampling | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def strategy_of(checkpoint: LoadedModel, name: str, max_length: int, **options: Unpack[StrategyOptions]) -> Strategy:
    """Checks the keywords; those of another strategy are refused, since they would do nothing.

    Raises:
        OptionError: an impossible value, or one that contradicts another.
        InputError: a token that the model does not know.
    """
    if name not in STRATEGIES:
        raise OptionError(f"strategy {name!r} is not known; choose one of {listed(STRATEGIES)}")
    given: dict[str, Any] = {key: value for key, value in options.items() if _is_given(key, value)}
    if name == "greedy" and not given:
        return Strategy(name)
    reader, tokenizer = checkpoint.model, checkpoint.tokenizer
    own = {"greedy": set(), "beam": {"beam_size", "length_penalty", "n_best", "stop", "refill"}}.get(
        name, {"temperature", "top_k", "top_p", "seed"}
    )
    if others := sorted(set(given) - own - {"prefix", "ban"}):
        raise OptionError(f"{others[0]} means nothing to strategy {name!r}; leave it out or choose another strategy")
    prefix, ban = (tuple(tokenizer.named(f"{what}: token", given.get(what, ()))) for what in ("prefix", "ban"))
    if ends := [token for token in prefix if token in reader.end_ids]:
        end = tokenizer.target_labels(ends)[0]
        raise OptionError(f"prefix holds {end}, after which nothing comes; leave it out, or limit max_length")
    if both := [token for token in prefix if token in ban]:
        name_of_both = tokenizer.target_labels(both)[0]
        raise OptionError(f"{name_of_both!r} is forced by prefix and forbidden by ban; take it out of one of them")
    if len(prefix) > max_length:
        raise OptionError(f"prefix has {len(prefix)} tokens; at most max_length={max_length} are written")
    if len(set(ban)) >= reader.sizes.vocabulary:
        raise OptionError("ban forbids every token; leave at least one")
    return Strategy(
        name,
        prefix,
        ban,
        _beam(given) if name == "beam" else None,
        _sampling(given) if name == "sample" else None,
        given,
    )


def _is_given(name: str, value: Any) -> bool:
    return value is not None and (name not in ("prefix", "ban") or len(value) > 0)


def _beam(options: Mapping[str, Any]) -> Beam:
    size = whole_number("beam_size", options.get("beam_size", 5), 1, WIDEST_BEAM)
    penalty = finite_number("length_penalty", options.get("length_penalty", 0.6), -10, 10)
    n_best = size if options.get("n_best") is None else whole_number("n_best", options["n_best"], 1, WIDEST_BEAM)
    stop = next((stop for stop in STOPS if stop == options.get("stop", "bound")), None)
    if stop is None:
        raise OptionError(f"stop={options.get('stop')!r} is not known; choose one of {listed(STOPS)}")
    if not isinstance(refill := options.get("refill", False), bool):
        raise OptionError(f"refill={refill!r} is not possible; it is True or False")
    return Beam(size, penalty, n_best, stop, refill)


def _sampling(options: Mapping[str, Any]) -> Sampling:
    top_k = options.get("top_k")
    top_p = finite_number("top_p", options.get("top_p", 1.0), 0, 1)
    if top_p == 0:
        raise OptionError("top_p=0 is not possible; it is above 0 and at most 1")
    return Sampling(
        temperature=finite_number("temperature", options.get("temperature", 1.0), 0, 1000),
        top_k=None if top_k is None else whole_number("top_k", top_k, 1, 1_000_000),
        top_p=top_p,
        seed=whole_number("seed", options.get("seed", 0), 0, _LARGEST_SEED),
    )
