"""The tokens that one can choose or type in What if: by their labels where these are unique, else by ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_viz.text_display import display_token
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

MOST_FOUND = 50
Token = str | int


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that a model can write, to choose from."""

    model: "LoadedModel"

    @property
    def is_searched(self) -> bool:
        """Whether there are too many tokens for a box: they are looked for here, and a few are sent."""
        return self.model.task is None

    @property
    def tokens(self) -> Sequence[Token]:
        """All that may be asked for."""
        if self.model.task is not None:
            return self.model.task.target_vocabulary.symbols
        return range(self.model.model.sizes.vocabulary)

    def label(self, token: Token) -> str:
        """What a person reads; an id stands beside, since labels of other ids may be the same."""
        if isinstance(token, str):
            return display_token(token)
        return f"{display_token(self.model.tokenizer.target_labels([token])[0])} (id {token})"

    def written(self, trace: Trace) -> list[Token]:
        """What a run has written after what was given."""
        tokens = trace.output_tokens if trace.output_ids is None else trace.output_ids
        return [*tokens[trace.n_given :]]

    def own(self, step: Step) -> Token:
        """What a step wrote."""
        return step.token if step.token_id is None else step.token_id

    def candidates(self, step: Step) -> dict[Token, float]:
        """What a step could have written, most probable first, and how probable it was."""
        tokens: Iterable[Token] = step.candidate_ids or (token for token, _ in step.candidates)
        return {token: p for token, (_, p) in zip(tokens, step.candidates, strict=True)}

    def others(self, step: Step, before: Token, typed: str = "") -> list[Token]:
        """What may be written instead of `before`: the candidates first, then all; or what was found, where one searches."""
        never = {before, *SPECIAL_TOKENS, *(self.model.model.end_ids if self.is_searched else ())}
        if typed:
            return [token for token in self.found(typed) if token not in never]
        candidates = self.candidates(step)
        rest = () if self.is_searched else (token for token in self.tokens if token not in candidates)
        return [token for token in (*candidates, *rest) if token not in never]

    def found(self, typed: str) -> list[int]:
        """At most `MOST_FOUND` tokens whose labels have what was typed, where a space may be typed as it is drawn: first those
        that are it, then those that begin with it."""
        sought, found = typed.replace("␣", " ").casefold(), []
        for number, label in enumerate(map(str.casefold, self.model.tokenizer.target_labels(range(len(self.tokens))))):
            if sought in label:
                bare = label.removeprefix(" ")
                is_it, begins = sought in (label, bare), label.startswith(sought) or bare.startswith(sought)
                found.append((0 if is_it else 1 if begins else 2, len(label), number))
        return [number for *_, number in sorted(found)[:MOST_FOUND]]
