"""Makes text of a run or a person fit to be shown: cut where it is long, with invisible characters made visible."""

import unicodedata

LONGEST_LABEL = 40
"""The most characters of a token as a label; longer ones would leave no room for the map."""


def shorten(text: str, most: int = 40) -> str:
    """At most so many characters of a text, the last one … where more were left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def display_token(token: str, most: int = LONGEST_LABEL) -> str:
    """A token with its blanks made visible, cut after `most` characters."""
    return (token if len(token) <= most else token[: most - 1] + "…").translate(_BLANKS)


def display_text(text: str) -> str:
    """A text of a run with spaces, tabs, line breaks and control characters made visible. For people; data keep the text."""
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
