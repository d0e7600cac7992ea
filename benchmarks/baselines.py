"""Simple baselines for the tasks on real data, on the held-out texts of the checkpoints: `python -m benchmarks.baselines`."""

import re
from collections import Counter
from collections.abc import Callable

from transformer_viz.tasks.dates import Dates
from transformer_viz.tasks.numbers import Numbers
from transformer_viz.tasks.pinyin import Pinyin, most_frequent_readings
from transformer_viz.tasks.task import Task

SAMPLES = 5_000


def main() -> None:
    """Prints the exact match of each."""
    pinyin = Pinyin()
    readings = most_frequent_readings(pinyin)
    _print("pinyin", "most frequent reading", pinyin, lambda text: " ".join(readings.get(c, "?") for c in text))
    neighbours = _two_neighbours(pinyin)
    _print("pinyin", "two-neighbour count", pinyin, neighbours)
    _print("dates", "figures as day, month, year", Dates(), _figures)
    _print("numbers", "each word's digits, left to right", Numbers(), _digits)


def _print(name: str, what: str, task: Task, guess: Callable[[str], str]) -> None:
    texts = [text for _, text in task.judged(SAMPLES, seed=0)]
    right = sum(guess(text) == task.join(task.answer(task.symbols(text)) or []) for text in texts)
    print(f"{name:9}{what:36}{right / len(texts):.4f} of {len(texts)}")


def _two_neighbours(task: Pinyin) -> Callable[[str], str]:
    """Each character's most frequent reading between the same two neighbours, else beside either one, else anywhere."""
    counts: dict[tuple[str | None, ...], Counter[str]] = {}
    for text in task.texts("train"):
        for i, reading in enumerate(task.pairs()[text][1]):
            for key in _contexts(text, i):
                counts.setdefault(key, Counter())[reading] += 1

    def guess(text: str) -> str:
        found = []
        for i in range(len(text)):
            both, left, right, alone = (counts.get(key, Counter()) for key in _contexts(text, i))
            best = both or left + right or alone
            found.append(best.most_common(1)[0][0] if best else "?")
        return " ".join(found)

    return guess


def _contexts(text: str, i: int) -> list[tuple[str | None, ...]]:
    framed = f"^{text}$"
    before, here, after = framed[i], framed[i + 1], framed[i + 2]
    return [(here, before, after), (here, before, None), (here, None, after), (here,)]


def _figures(text: str) -> str:
    """The numbers in their order; the one of four figures is the year, the others day and month."""
    numbers = re.findall(r"\d+", text)
    years, others = [n for n in numbers if len(n) == 4], [n for n in numbers if len(n) < 4]
    if len(years) != 1 or len(others) != 2:
        return ""
    day, month = others
    return f"{years[0]}-{month:0>2}-{day:0>2}"


_UNITS = "null ein zwei drei vier fünf sechs sieben acht neun".split()
_TEENS = "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_SAID = {word: i for i, word in enumerate([*_UNITS, *_TEENS])} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}


def _digits(text: str) -> str:
    values = [_SAID.get("ein" if word == "eins" else word) for word in Numbers().symbols(text)]
    return "".join(str(value // 10 if value >= 20 else value) for value in values if value is not None)


if __name__ == "__main__":
    main()
