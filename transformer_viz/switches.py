"""How a model reads and writes, as far as a person may choose. It needs no torch."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Switches:
    """None = a model has no such choice, or nothing is asked for.

    Attributes:
        generation: whether the rules of its generation config are in force.
        chat: whether a text is a user's message, framed as its chat template says.
        source_language: the code of the language that it reads.
        target_language: likewise that it writes, where that is not the one that its generation config names.
        shortlist: whether only what its lexical shortlist allows of a source is written.
    """

    generation: bool | None = None
    chat: bool | None = None
    source_language: str | None = None
    target_language: str | None = None
    shortlist: bool | None = None

    def calls(self) -> tuple[str, ...]:
        """The methods of a model that switch it so, called one after the other, as Python has them."""
        languages = {"source": self.source_language, "target": self.target_language}
        named = ", ".join(f"{name}={code!r}" for name, code in languages.items() if code is not None)
        return (
            *([f"with_languages({named})"] if named else []),
            *([] if self.chat is None else ["with_chat()" if self.chat else "with_chat(False)"]),
            *([] if self.generation is None else [f"with_generation({self.generation})"]),
            *([] if self.shortlist is None else [f"with_shortlist({self.shortlist})"]),
        )
