"""Numbers as text for people, written alike everywhere; and a number that a person typed.

Rounding never changes what a number means: a share below 1 is never written as 100 %, one above 0 never as 0 %, and a number
that rounds to 0 has no sign. Negative numbers have a true minus sign; others are `∞`, `−∞` or `NaN`.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable

from transformer_viz.language import ENGLISH, current, later, later_count, say, say_count

_ALMOST_ONE = 1 - 2**-24
"""The largest float32 below 1: sums of float32 that are 1 but for rounding count as 1, one text of ten million does not."""
_BYTES = ((1e9, "GB"), (1e6, "MB"))
_LARGE = ((1e9, later("{number} billion")), (1e6, later("{number} million")))
_TYPED = re.compile(r"([+-]?)(\d*)(?:[.,](\d*))?\s*(%?)", re.ASCII)
_SIGNS = str.maketrans("−–。、", "--.,")
"""A minus sign and a dash, and the full stop and the comma of a Chinese keyboard, as the signs that they stand for."""
_COUNTED = (
    later_count("{count:,} text", "{count:,} texts"),
    later_count("{count:,} token", "{count:,} tokens"),
    later_count("{count:,} run", "{count:,} runs"),
    later_count("{count:,} head", "{count:,} heads"),
    later_count("{count:,} step", "{count:,} steps"),
    later_count("{count:,} map", "{count:,} maps"),
    later_count("{count:,} edit", "{count:,} edits"),
    later_count("{count:,} layer", "{count:,} layers"),
    later_count("{count:,} parameter", "{count:,} parameters"),
    later_count("{count:,} row", "{count:,} rows"),
    later_count("{count:,} place", "{count:,} places"),
    later_count("{count:,} string", "{count:,} strings"),
    later_count("{count:,} word", "{count:,} words"),
    later_count("{count:,} letter", "{count:,} letters"),
    later_count("{count:,} difference", "{count:,} differences"),
    later_count("{count:,} step is", "{count:,} steps are"),
    later_count("{count:,} judged step", "{count:,} judged steps"),
    later_count("{count:,} fresh text", "{count:,} fresh texts"),
    later_count("{count:,} guess", "{count:,} guesses"),
    later_count("{count:,} link", "{count:,} links"),
)
"""The things that `count_words` is asked to count."""
LONGEST_NUMBER = 30
"""Characters of a number that is typed."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_words(value: float, places: int | None = None) -> str:
    """`−0.021`, with so many places behind the point; by default three, and four digits of 10 and more: `12.34`, `1,234`."""
    if not math.isfinite(value):
        return _not_finite(value)
    if places is None:
        few = 3 if abs(value) < 10 else max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{few}f}"
    else:
        text = f"{value:.{places}f}"
    return (text if text.strip("-0.") else text.lstrip("-")).replace("-", "−")


def signed_words(value: float, places: int | None = None) -> str:
    """`+0.021`, `−0.021`; otherwise as `number_words`."""
    text = number_words(value, places)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def rounded_words(value: float, digits: int) -> str:
    """A number with so many significant digits: `0.0123`, `4.5e−05`."""
    return f"{value:.{digits}g}".replace("-", "−") if math.isfinite(value) else _not_finite(value)


def share_words(share: float) -> str:
    """`0.983`, three places; `> 0.999` and `< 0.001` where they would round to 1 or 0."""
    if 0.9995 <= share < 1:
        return "> 0.999"
    return "< 0.001" if 0 < share < 0.0005 else number_words(share, 3)


def probability_words(p: float, places: int = 0) -> str:
    """Says a probability as `percent_words` does; none was rounded, so all that is less than certain is `over 99 %`."""
    return percent_words(p, places, certain=1)


def percent_words(share: float, places: int = 0, *, certain: float = _ALMOST_ONE) -> str:
    """`96 %`; `over 99 %` and `under 1 %` where it would round to everything or nothing. `places` stand behind the point."""
    percent, least = 100 * share, 10.0**-places
    if percent >= 100 - least / 2 and share < certain:
        return say("over {number} %", number=f"{100 - least:.{places}f}")
    if 0 < percent <= least / 2:
        return say("under {number} %", number=f"{least:.{places}f}")
    return say("{number} %", number=number_words(percent, places))


def interval_words(ends: Iterable[float], words: Callable[..., str] = number_words, *places: int) -> str:
    """`0.981 to 0.985`, of the lower and the upper end; `words` of each, with so many places."""
    return say("{least} to {most}", **dict(zip(("least", "most"), (words(end, *places) for end in ends), strict=True)))


def count_words(n: int, noun: str, plural: str = "") -> str:
    """`1 text`, `2,000 texts`; the plural is the noun with an s unless it is given."""
    one, several = f"{{count:,}} {noun}", f"{{count:,}} {plural or f'{noun}s'}"
    return say_count(one, several, n)


def ordinal_words(n: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`, `21st`; in other languages the number alone, which their sentences know to count with."""
    if current() != ENGLISH:
        return f"{n:,}"
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def bytes_words(n: float) -> str:
    """`214 kB`, `1.25 GB`: three digits, of powers of 1000."""
    for size, unit in _BYTES:
        if n >= 0.9995 * size:
            return f"{n / size:,.0f} {unit}" if n >= 999.5 * size else f"{n / size:.3g} {unit}"
    return f"{n / 1e3:.3g} kB"


def compact_words(n: int) -> str:
    """`9,999`, `12.5 k`, `135 M`, `1.24 B`: three digits from ten thousand on."""
    if n < 10_000:
        return f"{n:,}"
    size, unit = next((size, unit) for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")) if n >= 0.9995 * size)
    return f"{n / size:,.0f} {unit}" if n >= 999.5 * size else f"{n / size:.3g} {unit}"


def duration_words(seconds: float) -> str:
    """`240 ms`, `85 s`, `12 min`, `2.5 h`."""
    if seconds < 0.9995:
        return say("{n:.0f} ms", n=1000 * seconds)
    if seconds < 90:
        return say("{n:.0f} s", n=seconds)
    return say("{n:.0f} min", n=seconds / 60) if seconds < 90 * 60 else say("{n:,.1f} h", n=seconds / 3600)


def times_words(gain: float) -> str:
    """`12,000 times as probable`, of a gain in log-probability above 0: two digits, and from 10¹² on the power of ten."""
    power = gain / math.log(10)
    if power >= 12:
        return say("10{power} times as probable", power=str(math.floor(power)).translate(_RAISED))
    times = float(f"{math.exp(gain):.2g}")
    if times == 1:
        return say("hardly more probable")
    size, name = next((each for each in _LARGE if times >= each[0]), (1, "{number}"))
    return say("{times} times as probable", times=say(name, number=f"{times / size:,.1f}".removesuffix(".0")))


def typed_number(text: str) -> float | None:
    """A number as people type it: `0.24`, `0,24`, `.24`, `24 %`, `−1.52`, in signs of full width too; None of anything else."""
    if len(text) > LONGEST_NUMBER:
        return None
    match = _TYPED.fullmatch(unicodedata.normalize("NFKC", text.translate(_SIGNS)).strip())
    if match is None or not (match[2] or match[3]):
        return None
    value = float(f"{match[1]}{match[2] or 0}.{match[3] or 0}")
    return value / 100 if match[4] else value


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
