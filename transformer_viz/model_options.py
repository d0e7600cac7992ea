"""Options of reading and writing, as far as a person may choose. Needs no torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options that a model offers, or those that are chosen: None = the model has no such choice, or it is left as it is.

    Attributes:
        generation: whether the rules of its generation config are in force.
        chat: whether a text is a user's message, framed as its chat template says.
        source_language: the code of the language that it reads.
        target_language: the code of the language that it writes, where that is not the one that its generation config names.
        shortlist: whether only what its lexical shortlist allows of a source is written.
    """

    generation: bool | None = None
    chat: bool | None = None
    source_language: str | None = None
    target_language: str | None = None
    shortlist: bool | None = None

    def calls(self) -> Iterator[tuple[str, Mapping[str, str | bool]]]:
        """The methods of a model that set these options, in the order of the calls, with their keywords."""
        languages = {"source": self.source_language, "target": self.target_language}
        if named := {name: code for name, code in languages.items() if code is not None}:
            yield "with_languages", named
        for name in ("chat", "generation", "shortlist"):
            if (is_on := getattr(self, name)) is not None:
                yield f"with_{name}", {"is_on": is_on}
