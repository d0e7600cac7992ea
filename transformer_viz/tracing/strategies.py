"""How tokens are chosen: the keywords of `decode` about it, checked and in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack, get_args

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.beam import Beam, Stop
from transformer_viz.decoding.sampling import Sampling
from transformer_viz.errors import InputError, OptionError, listed
from transformer_viz.tracing.options import decimal, whole
from transformer_viz.vocabulary import END, END_ID

STRATEGIES = ("greedy", "beam", "sample")
WIDEST_BEAM = 512
_STOPS: tuple[Stop, ...] = get_args(Stop)
_LARGEST_SEED = 2**63 - 1


class StrategyOptions(TypedDict, total=False):
    """Keywords of `decode`; None, and no tokens, are as if a keyword was not given."""

    prefix: Sequence[str]
    ban: Sequence[str]
    beam_size: int | None
    length_penalty: float | None
    n_best: int | None
    stop: str | None
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


def strategy_of(checkpoint: Checkpoint, name: str, max_length: int, **options: Unpack[StrategyOptions]) -> Strategy:
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
    own = {"greedy": set(), "beam": {"beam_size", "length_penalty", "n_best", "stop"}}.get(
        name, {"temperature", "top_k", "top_p", "seed"}
    )
    if others := sorted(set(given) - own - {"prefix", "ban"}):
        raise OptionError(f"{others[0]} means nothing to strategy {name!r}; leave it out or choose another strategy")
    prefix = _ids(checkpoint, "prefix", given.get("prefix", ()))
    ban = _ids(checkpoint, "ban", given.get("ban", ()))
    tokens = checkpoint.task.target_vocabulary.tokens
    if END_ID in prefix:
        raise OptionError(f"prefix holds {END}, after which nothing comes; leave it out, or limit max_length")
    if both := [tokens[i] for i in prefix if i in ban]:
        raise OptionError(f"{both[0]!r} is forced by prefix and forbidden by ban; take it out of one of them")
    if len(prefix) > max_length:
        raise OptionError(f"prefix has {len(prefix)} tokens; at most max_length={max_length} are written")
    if len(set(ban)) >= len(tokens):
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
    size = whole("beam_size", options.get("beam_size", 5), 1, WIDEST_BEAM)
    penalty = decimal("length_penalty", options.get("length_penalty", 0.6), -10, 10)
    n_best = whole("n_best", options.get("n_best"), 1, WIDEST_BEAM, default=size)
    stop = next((stop for stop in _STOPS if stop == options.get("stop", "bound")), None)
    if stop is None:
        raise OptionError(f"stop={options.get('stop')!r} is not known; choose one of {listed(_STOPS)}")
    return Beam(size, penalty, n_best, stop)


def _sampling(options: Mapping[str, Any]) -> Sampling:
    top_k = options.get("top_k")
    top_p = decimal("top_p", options.get("top_p", 1.0), 0, 1)
    if top_p == 0:
        raise OptionError("top_p=0 is not possible; it is above 0 and at most 1")
    return Sampling(
        temperature=decimal("temperature", options.get("temperature", 1.0), 0, 1000),
        top_k=None if top_k is None else whole("top_k", top_k, 1, 1_000_000),
        top_p=top_p,
        seed=whole("seed", options.get("seed", 0), 0, _LARGEST_SEED),
    )


def _ids(checkpoint: Checkpoint, name: str, tokens: Sequence[str]) -> tuple[int, ...]:
    vocabulary = checkpoint.task.target_vocabulary
    if unknown := [token for token in tokens if token not in vocabulary]:
        raise InputError(f"{name}: token {str(unknown[0])[:40]!r} is not in the vocabulary of this model.")
    ids = tuple(vocabulary.encode(tokens))
    return ids
