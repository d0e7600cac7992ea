"""What docs/models.md says beyond `evaluate`: `python -m benchmarks.models`.

Simple baselines on the held-out texts of the checkpoints on real data; and of `german` what it gets right that training never
saw, what its best head looks at, and how sure it is of words in no order.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

import transformer_viz as tv
from transformer_viz.analysis.intervals import wilson
from transformer_viz.evaluation.evaluate import evaluate_texts
from transformer_viz.tasks.dates import Dates
from transformer_viz.tasks.numbers import Numbers
from transformer_viz.tasks.pinyin import Pinyin
from transformer_viz.tasks.task import Task
from transformer_viz.tasks.translation import Translation

SAMPLES = 5_000
PER_CLAUSE, UNSEEN, SHUFFLED, CROSSING = 100, 2_000, 100, 300


def main() -> None:
    """Prints one line for each number."""
    pinyin = Pinyin()
    readings = most_frequent_readings(pinyin)
    _baseline("most frequent reading", pinyin, lambda text: " ".join(readings.get(c, "?") for c in text))
    _baseline("two-neighbour count", pinyin, _two_neighbours(pinyin))
    _baseline("figures as day, month, year", Dates(), _figures)
    _baseline("each word's digits, left to right", Numbers(), _digits)
    _german()


def most_frequent_readings(task: Pinyin) -> dict[str, str]:
    """A baseline: each character's most frequent reading in the training phrases."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in task.texts("train"):
        for character, syllable in zip(*task.pairs()[text], strict=True):
            counts[character][syllable] += 1
    return {character: count.most_common(1)[0][0] for character, count in counts.items()}


def _print(name: str, what: str, hits: int, n: int) -> None:
    """A share with its 95 % interval (Wilson 1927)."""
    low, high = wilson(hits, n)
    print(f"{name:9}{what:36}{hits / n:.4f}  [{low:.4f}, {high:.4f}]  of {n}", flush=True)


def _baseline(what: str, task: Task, guess: Callable[[str], str]) -> None:
    texts = [text for _, text in task.judged(SAMPLES, seed=0)]
    right = sum(guess(text) == task.join(task.answer(task.symbols(text)) or []) for text in texts)
    _print(task.name, what, right, len(texts))


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
    before, here, after = f"^{text}$"[i : i + 3]
    return [(here, before, after), (here, before, None), (here, None, after), (here,)]


def _figures(text: str) -> str:
    """The numbers in their order; the one of four figures is the year, the others day and month."""
    numbers = re.findall(r"\d+", text)
    years, others = [n for n in numbers if len(n) == 4], [n for n in numbers if len(n) < 4]
    return f"{years[0]}-{others[1]:0>2}-{others[0]:0>2}" if (len(years), len(others)) == (1, 2) else ""


_UNITS = "null ein zwei drei vier fünf sechs sieben acht neun".split()
_TEENS = "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split()
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_SAID = {word: i for i, word in enumerate([*_UNITS, *_TEENS])} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}


def _digits(text: str) -> str:
    values = [_SAID.get("ein" if word == "eins" else word) for word in Numbers().symbols(text)]
    return "".join(str(value // 10 if value >= 20 else value) for value in values if value is not None)


def _german() -> None:
    checkpoint = tv.load_checkpoint("german")
    task = checkpoint.task
    assert isinstance(task, Translation)
    rng = np.random.default_rng(20)
    texts = [text for kind in task.sources for text in task.sample(kind, None, PER_CLAUSE, rng, "held-out")]
    found = evaluate_texts(checkpoint, texts)
    hits: defaultdict[str, list[bool]] = defaultdict(list)
    for text, is_exact in zip(texts, found.is_exact, strict=True):
        hits[f"held out as {task.held_out_as(text)}"].append(is_exact)
    for unseen in task.unseen:
        hits[unseen] = evaluate_texts(checkpoint, task.sample(unseen, None, UNSEEN, rng)).is_exact
    for what, of_group in hits.items():
        _print("german", what, sum(of_group), len(of_group))
    pairs = [pair for text in texts if (pair := task.reading(task.symbols(text)))]
    uniform = [1 / (len(pair.source) + 2) for pair in pairs for place in pair.alignment if place is not None]
    assert found.head_mass is not None
    print(f"german   weight of the best head on the aligned word {found.head_mass.max():.3f}, uniform {np.mean(uniform):.3f}")
    aligned = [[place for place in pair.alignment if place is not None] for pair in pairs[:: len(pairs) // CROSSING]]
    _print("german", "the alignment crosses", sum(places != sorted(places) for places in aligned), len(aligned))
    # Words in no order are no sentence; of how many has every token a probability above 0.9?
    shuffled = [list(rng.permutation(task.symbols(text))) for text in texts[:: len(texts) // SHUFFLED]]
    traces = [tv.decode(checkpoint, task.join(words)) for words in shuffled if task.answer(words) is None]
    n_sure = sum(all(step.probability > 0.9 for step in trace.steps) for trace in traces)
    _print("german", "shuffled words, every token sure", n_sure, len(traces))


if __name__ == "__main__":
    main()
