"""The texts of a script, and their translations, which a page has with its data; see `language.js`."""

import json
import re
from collections.abc import Iterator
from functools import cache

from transformer_viz import language

# Of another object's method nothing is known; `...say(` is no such.
_SAID = re.compile(r'(?<![\w#$])(?<!(?<!\.\.)\.)(?:say|saySentence|later)\(\s*("(?:[^"\\\n]|\\.)*")')


def texts(code: str) -> Iterator[tuple[int, str]]:
    """The English texts that a script says, each with its line. Each stands in the call itself, in double quotes."""
    for found in _SAID.finditer(code):
        yield code.count("\n", 0, found.start()) + 1, json.loads(found[1])


def words(code: str) -> dict[str, str]:
    """The translations of a script's texts into the language of now, by the English text; none in English."""
    return _words(code, language.current())


def spoken(code: str) -> str:
    """A script that has `language.js` in it, and speaks the language of now from its beginning."""
    said = words(code)
    return f"{code}\nspeak({json.dumps(said, ensure_ascii=False)});\n" if said else code


@cache
def _words(code: str, now: str) -> dict[str, str]:
    said = {text: language.translation(text, now) for _, text in texts(code)}
    return {text: other for text, other in said.items() if other is not None}
