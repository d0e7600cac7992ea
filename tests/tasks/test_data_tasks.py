"""The tasks on real data: the answers of dates and numbers by a second way, readings, what happens without the package."""

from datetime import date, timedelta

import numpy as np
import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from benchmarks.models import most_frequent_readings
from transformer_viz import tasks
from transformer_viz.errors import ConfigError, InputError
from transformer_viz.tasks import corpus, dates, pinyin
from transformer_viz.tasks.dates import LANGUAGES, Dates, possible_dates
from transformer_viz.tasks.numbers import Numbers, digits_of
from transformer_viz.tasks.pinyin import Pinyin

DATES, NUMBERS = Dates(), Numbers()
DAYS = st.dates(date(1900, 1, 1), date(2099, 12, 31))


# Dates


@given(DAYS, st.sampled_from(sorted(LANGUAGES.values())), st.sampled_from(["medium", "long", "full"]))
def test_what_babel_writes_is_read_back(day, locale, width):
    """Guards a month or weekday that is matched by another language's name."""
    text = format_date(day, width, locale=locale).replace("\u00a0", " ").replace("\u202f", " ")
    found = {reading.day for reading in possible_dates(text)}
    assert day in found
    if width != "medium" or locale not in ("ja_JP",):
        assert len(found) == 1 or text.count("/") == 2


@given(DAYS)
def test_figures_that_could_be_two_days_have_no_answer(day):
    """Guards an answer that picks one of two readings: day before month, or after it."""
    text = f"{day.day}/{day.month}/{day.year}"
    answer = DATES.answer(list(text))
    could_be_either = day.day <= 12 and day.day != day.month
    assert answer == (None if could_be_either else list(day.isoformat()))


@given(DAYS, st.sampled_from(sorted(LANGUAGES)), st.integers(0, 10_000))
def test_the_true_keys_hold_the_figures_that_are_written(day, language, seed):
    text = DATES.sample(language, None, 1, np.random.default_rng(seed))[0]
    framed, answer = DATES.frame(list(text)), DATES.answer(list(text))
    assert answer is not None
    keys = DATES.alignment(list(text), 11)
    assert all(key is None or framed[key] == answer[t] for t, key in enumerate(keys[:10]))
    assert keys[:4] == sorted(key for key in keys[:4] if key is not None)
    assert keys[9] is not None, "the last figure of the day stands in every text"


def test_a_wrong_weekday_is_no_date():
    day = date(2024, 2, 29)
    for offset in range(7):
        text = f"{format_date(day + timedelta(offset), 'EEEE', locale='fr')} 29 février 2024"
        assert (DATES.answer(list(text)) is None) == (offset != 0)
    assert DATES.answer(list("30 février 2024")) is None
    assert DATES.answer(list("29 février 2023")) is None


def test_a_held_out_day_is_held_out_in_every_language():
    texts = [format_date(date(1986, 3, 5), "long", locale=locale) for locale in LANGUAGES.values()]
    assert len({DATES.is_held_out(text) for text in texts}) == 1


# Numbers

SAID = {num2words(n, lang="de").removesuffix("s"): n for n in reversed(range(100))}


@pytest.mark.parametrize("source", NUMBERS.sources)
def test_numbers_are_written_as_another_program_writes_them(source):
    """Guards what a checkpoint was trained on: its texts must not change."""
    for text in NUMBERS.sample(source, None, 500, np.random.default_rng(7)):
        assert text == num2words(int("".join(NUMBERS.answer(NUMBERS.read(text)) or "")), lang="de")


@given(st.integers(0, 999_999))
def test_digits_are_those_of_the_number(number):
    symbols = NUMBERS.read(num2words(number, lang="de"))
    assert NUMBERS.answer(symbols) == list(str(number))


@given(st.integers(0, 999_999))
def test_each_digit_points_at_the_morpheme_that_says_it(number):
    symbols = NUMBERS.read(num2words(number, lang="de"))
    for digit, place in digits_of(symbols) or []:
        if place is None:
            assert digit == "0"
        elif symbols[place] not in ("hundert", "tausend"):
            assert digit in str(SAID[symbols[place].removesuffix("s")])


@pytest.mark.parametrize(
    "text",
    ["hundertzwanzigdrei", "undzwanzig", "tausendtausend", "hunderthundert", "nullzwanzig", "zweinull", "zwanzigund", "ein"],
)
def test_words_that_are_no_number_have_no_answer(text):
    assert NUMBERS.answer(NUMBERS.read(text)) is None


def test_other_spellings_of_a_number_are_read():
    assert NUMBERS.answer(NUMBERS.read(" Dreissig ")) == list("30")
    assert NUMBERS.answer(NUMBERS.read("tausend eins")) == list("1001")
    assert NUMBERS.answer(NUMBERS.read("hundert")) == list("100")
    with pytest.raises(InputError, match="'vierzehnx'"):
        NUMBERS.read("vierzehnx")


# Pinyin


def test_readings_depend_on_the_neighbours():
    task = Pinyin()
    assert task.answer(list("重庆")) == ["chóng", "qìng"]
    assert task.answer(list("重量")) == ["zhòng", "liàng"]
    assert task.alignment(list("重庆"), 3) == [1, 2, None]
    assert task.answer(["庆", "重"]) is None


class ThreePhrases(Pinyin):
    """甲 is a in one of them, which alone is trained with where anything is held out."""

    def pairs(self):
        return {"甲乙": (("甲", "乙"), ("a", "b")), "甲丙": (("甲", "丙"), ("x", "c")), "甲丁": (("甲", "丁"), ("x", "d"))}

    def is_in(self, text, split):
        return (text == "甲乙" or not self.held_out_share) == (split == "train")


def test_the_baseline_counts_training_phrases_only():
    assert most_frequent_readings(ThreePhrases(held_out_share=0.0)) == {"甲": "x", "乙": "b", "丙": "c", "丁": "d"}
    assert most_frequent_readings(ThreePhrases(held_out_share=0.5)) == {"甲": "a", "乙": "b"}


# Without the package


@pytest.mark.parametrize(
    ("name", "package", "module", "text"),
    [
        ("pinyin", "pypinyin", pinyin, "重庆"),
        ("dates", "babel", dates, "5. März 1986"),
    ],
)
def test_without_its_package_a_task_says_so_and_a_checkpoint_still_reads(monkeypatch, name, package, module, text):
    whole = tasks.make_task(name)
    vocabularies = (whole.source_vocabulary, whole.target_vocabulary)
    real = corpus.import_module

    def blocked(module_name):
        if module_name.split(".")[0] == package:
            raise ModuleNotFoundError(module_name, name=package)
        return real(module_name)

    monkeypatch.setattr(corpus, "import_module", blocked)
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
    task = tasks.make_task(name, None, vocabularies)
    assert task.symbols(text) == task.read(text)
    assert task.answer(task.read(text)) is None
    with pytest.raises(ConfigError, match=rf"pip install {package}"):
        task.sample(task.sources[0], None, 3, np.random.default_rng(0))
