"""How text of a run, or of a person, is shown: cut where it is long, and nothing in it invisible."""

import unicodedata

LONGEST_LABEL = 40
"""Signs of a token as a label: every picture repeats every label many times, and a longer one leaves no room for the map."""


def shorten(text: str, most: int = 40) -> str:
    """At most so many characters of a text, the last one … where more were left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def display_token(token: str, most: int = LONGEST_LABEL) -> str:
    """A token whose blanks are something to see; what is longer than `most` is cut."""
    return display_text(shorten(token, most))


def display_text(text: str) -> str:
    """A text of a run, its spaces, tabs, line breaks and control characters something to see: wherever a person reads one,
    and in no data."""
    return text.translate(_BLANKS)


def character_words(sign: str) -> str:
    """A character by sight where that is safe, by its name and code point; one that people have a word for, by that word."""
    if sign in _PLAIN_WORDS:
        return f"a {_PLAIN_WORDS[sign]}"
    code = f"U+{ord(sign):04X}"
    if unicodedata.category(sign) == "Cc":
        return f"a control character ({code})"
    name = unicodedata.name(sign, "a character without a name")
    if unicodedata.combining(sign):
        return f"the combining mark {name} ({code})"
    # A direction mark would act on the message instead of showing in it.
    return f"“{sign}” ({name}, {code})" if sign.isprintable() else f"{name} ({code})"


def quote_text(text: str, most: int = 40) -> str:
    """A text that cannot be read, in quotes, cut after `most` characters; what cannot be seen in it stands by its name."""
    cut = text[:most].replace(" ", display_text(" "))
    if cut.isprintable():
        return repr(cut)
    named = (sign if sign.isprintable() else f"[{_PLAIN_WORDS.get(sign, character_words(sign))}]" for sign in cut)
    return f"'{''.join(named)}'"


_BLANKS = str.maketrans(
    {chr(code): f"<U+{code:04X}>" for code in (*range(0x20), *range(0x7F, 0xA0))} | {"\n": "↵", "\t": "⇥", " ": "␣"}
)
_PLAIN_WORDS = {" ": "space", "\t": "tab", "\n": "line break", "\r": "line break"}
