"""Every number on the screen comes from here, so the rules are checked against the number itself."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.numbers_in_words import (
    bytes_words,
    compact_words,
    count_words,
    duration_words,
    interval_words,
    number_words,
    ordinal_words,
    percent_words,
    probability_words,
    rounded_words,
    share_words,
    signed_words,
    times_words,
    typed_number,
)


@given(st.floats(0, 1))
def test_no_probability_is_rounded_to_certainty(p: float) -> None:
    words = probability_words(p)
    assert (words == "100 %") == (p == 1)
    assert (words == "0 %") == (p == 0)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (1.04, "hardly more probable"),
        (1.5, "1.5 times as probable"),
        (9.96, "10 times as probable"),
        (11_873, "12,000 times as probable"),
        (999_900, "1 million times as probable"),
        (3.21e10, "32 billion times as probable"),
        (4e30, "10³⁰ times as probable"),
    ],
)
def test_how_much_more_probable_is_said_as_people_read_numbers(times: float, words: str) -> None:
    assert times_words(math.log(times)) == words
    assert times_words(2000.0) == "10⁸⁶⁸ times as probable", "more than a float holds"


@given(st.integers(0, 10_000_000), st.integers(1, 10_000_000), st.sampled_from((0, 1, 2)))
def test_no_share_of_texts_is_called_all_or_none_that_is_not(some: int, of: int, places: int) -> None:
    """Exact counts; a survey reads ten million texts at most."""
    n = min(some, of)
    words = percent_words(n / of, places)
    assert (words == percent_words(1, places)) == (n == of)
    assert (words == percent_words(0, places)) == (n == 0)
    if words[0].isdigit():
        assert abs(Decimal(words.removesuffix(" %")) - Decimal(100 * n) / of) <= Decimal(10) ** -places / 2 + Decimal("1e-9")


def test_ten_million_texts_of_which_one_is_wrong() -> None:
    assert percent_words(1 - 1e-7, 1) == "over 99.9 %"
    assert percent_words(1e-9) == "under 1 %"
    assert percent_words(1 - 2**-24) == percent_words(1 + 1e-7) == "100 %", "what is 1 but for rounding in float32"
    assert percent_words(-1e-9) == "0 %"


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_a_number_is_rounded_correctly_and_nothing_has_no_sign(value: float, places: int) -> None:
    words = number_words(value, places)
    shown = Decimal(words.replace("−", "-"))
    assert abs(shown - Decimal(value)) <= Decimal(10) ** -places / 2
    assert words.startswith("−") == (shown < 0) and "-" not in words
    signed = signed_words(value, places)
    assert signed.lstrip("+−") == words.lstrip("−") and (signed[0] in "+−") == (shown != 0)


def test_numbers_of_every_size() -> None:
    numbers = (-0.0, -0.0004, 0.0006, -0.25, -12.34, 1234.5, 99999.9, math.inf, -math.inf, math.nan)
    words = ["0.000", "0.000", "0.001", "−0.250", "−12.34", "1,234", "100,000", "∞", "−∞", "NaN"]
    assert [number_words(number) for number in numbers] == words
    assert [signed_words(number) for number in (-0.0004, 0.0004, -0.0206, 0.0206, 12.34)] == [
        "0.000",
        "0.000",
        "−0.021",
        "+0.021",
        "+12.34",
    ]
    assert [rounded_words(number, 2) for number in (0.01234, -4.5e-5, math.nan, -math.inf)] == [
        "0.012",
        "−4.5e−05",
        "NaN",
        "−∞",
    ]
    assert [share_words(share) for share in (0, 0.0004, 0.9832, 0.9996, 1)] == ["0.000", "< 0.001", "0.983", "> 0.999", "1.000"]


def test_intervals() -> None:
    assert interval_words((-0.0001, 0.98512)) == "0.000 to 0.985"
    assert interval_words((0.931, 1), percent_words) == "93 % to 100 %"
    assert interval_words((0.931, 0.99999), percent_words, 1) == "93.1 % to over 99.9 %"


def test_counts_and_ordinals() -> None:
    assert [count_words(n, "text") for n in (0, 1, 2000)] == ["0 texts", "1 text", "2,000 texts"]
    assert [count_words(n, "guess", "guesses") for n in (1, 2)] == ["1 guess", "2 guesses"]
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111, 1001)
    words = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 101st 111th 1,001st"
    assert " ".join(map(ordinal_words, numbers)) == words


def test_bytes_parameters_and_durations() -> None:
    sizes = (1, 999, 21_400, 999_499, 999_500, 214_000_000, 1_000_000_000, 51.5e9, 3e15)
    words = ["0.001 kB", "0.999 kB", "21.4 kB", "999 kB", "1 MB", "214 MB", "1 GB", "51.5 GB", "3,000,000 GB"]
    assert list(map(bytes_words, sizes)) == words
    numbers = (0, 9_999, 12_500, 270_336, 999_499, 999_500, 134_515_008, 1_235_814_400)
    assert list(map(compact_words, numbers)) == ["0", "9,999", "12.5 k", "270 k", "999 k", "1 M", "135 M", "1.24 B"]
    seconds = (0.0004, 0.24, 0.9996, 85, 90, 720, 5399, 5400, 360_000)
    assert list(map(duration_words, seconds)) == [
        "0 ms",
        "240 ms",
        "1 s",
        "85 s",
        "2 min",
        "12 min",
        "90 min",
        "1.5 h",
        "100.0 h",
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            (text, 0.24)
            for text in ("0.24", "0,24", ".24", " 0.24 ", "+0.24", "24 %", "24%", "0．24", "０，２４", "0。24", "24％")
        ),
        *((text, -1.52) for text in ("-1.52", "−1.52", "–1,52", "－１．５２", "-152 %")),
        ("24", 24),
        ("24.", 24),
        *(
            (text, None)
            for text in ("", " ", ".", "%", "-", "a", "0.2.4", "1,234.5", "0 24", "1/4", "1e3", "inf", "nan", "٢٤", "9" * 400)
        ),
    ],
)
def test_a_number_is_read_as_people_type_it_or_not_at_all(text: str, number: float | None) -> None:
    assert typed_number(text) == number


@given(st.floats(-1e6, 1e6), st.integers(1, 6))
def test_what_is_written_here_is_read_again(number: float, places: int) -> None:
    assert typed_number(number_words(number, places)) == pytest.approx(number, abs=0.51 * 10.0**-places)
