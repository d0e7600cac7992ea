"""How tokens are chosen: the keywords of `decode` about it, checked and in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from transformer_viz.decoding.beam import Beam
from transformer_viz.decoding.sampling import Sampling
from transformer_viz.errors import OptionError, listed
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import check_keywords
from transformer_viz.terms import STRATEGIES
from transformer_viz.tracing.writing_keywords import OF_STRATEGY, BeamKeywords, SamplingKeywords, WritingKeywords


class StrategyOptions(BeamKeywords, SamplingKeywords, total=False):
    """Keywords of `decode`; None, and no tokens, are as if a keyword was not given."""

    prefix: Sequence[str | int]
    ban: Sequence[str | int]


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
    check_keywords(WritingKeywords, given)
    reader, tokenizer = checkpoint.model, checkpoint.tokenizer
    if others := sorted(set(given) - OF_STRATEGY[name] - {"prefix", "ban"}):
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
    beam, sampling = None, None
    if name == "beam":
        size = given.get("beam_size", 5)
        n_best, stop = given.get("n_best", size), given.get("stop", "bound")
        beam = Beam(size, float(given.get("length_penalty", 0.6)), n_best, stop, given.get("refill", False))
    elif name == "sample":
        temperature, top_p = float(given.get("temperature", 1)), float(given.get("top_p", 1))
        sampling = Sampling(temperature=temperature, top_k=given.get("top_k"), top_p=top_p, seed=given.get("seed", 0))
    return Strategy(name, prefix, ban, beam, sampling, given)


def _is_given(name: str, value: Any) -> bool:
    return value is not None and (name not in ("prefix", "ban") or len(value) > 0)
