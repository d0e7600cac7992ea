"""What differs, in words: who reads and writes what, where they diverge, and the rows of the table."""

from dataclasses import replace

import numpy as np

from tests.analysis.made_runs import run
from tests.attentions import with_parts
from transformer_viz import decode
from transformer_viz.comparison.compare import LargestDifference, compare
from transformer_viz.sentences.compare_words import change_words, how_words, size_words, summary, table
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.terms import KIND_TITLES
from transformer_viz.trace.trace import Trace


def said(a: Trace, b: Trace) -> str:
    return plain(summary(compare(a, b)))


def rows(a: Trace, b: Trace) -> dict[str, tuple[str, str, str]]:
    return {row.what: (row.a, row.b, row.apart) for row in table(compare(a, b))}


def test_equal_runs(hello: Trace) -> None:
    assert said(hello, hello) == f"Both read `hello` and write `{hello.text}`. No weight differs."
    found = rows(hello, hello)
    assert {found[name][2] for name in ("reads", "model", "decoding", "writes")} == {"same"}
    assert {found[title][2] for title in KIND_TITLES.values()} == {"no weight differs"}
    assert not [name for name in found if "mask" in name]


def test_another_input_and_where_they_part(hello: Trace, tiny) -> None:
    other = decode(tiny, "hella")
    words = said(hello, other)
    assert words.startswith("A reads `hello`, B `hella`")
    found = rows(hello, other)
    assert found["reads"] == ("hello", "hella", "token 6")
    step = compare(hello, other).parted
    assert (step is None) == (found["writes"][2] == "same")
    if step is not None:
        assert f"they diverge at step {step + 1}." in words
    largest = compare(hello, other).largest
    assert largest is not None
    place = f"{KIND_TITLES[largest.kind]}, layer {largest.layer + 1} head {largest.head + 1}: in row {largest.query + 1}"
    assert place in words
    a, b = (trace.attentions[largest.kind].weights for trace in (hello, other))
    cell = (largest.layer, largest.head, largest.query, largest.key)
    assert found[KIND_TITLES[largest.kind]][:2] == (f"{a[cell]:.3f}", f"{b[cell]:.3f}")


def test_a_run_that_reads_the_others_output_does_not_write_it(hello: Trace, tiny) -> None:
    target = tuple(token for token in hello.output_tokens if token != "<end>")
    given = decode(tiny, "hello", target=target)
    assert f"A writes `{hello.text}`, which B is given." in said(hello, given)
    assert f"B writes `{hello.text}`, which A is given." in said(given, hello)
    assert f"Both read `hello` and are given `{hello.text}`." in said(given, given)
    assert rows(hello, given)["writes"][1] == f"{hello.text} (given)"
    assert rows(hello, given)["decoding"] == ("greedy", "teacher forcing", "differs")


def test_how_a_run_was_decoded(tiny) -> None:
    assert how_words(decode(tiny, "hello", strategy="beam", beam_size=3)) == "beam, size 3"
    sampled = decode(tiny, "hello", strategy="sample", temperature=1.5, seed=7)
    assert how_words(sampled) == "sample, temperature 1.5, seed 7"
    edited = decode(tiny, "hello", edits=["cross.1.1:zero"])
    assert how_words(edited) == "greedy, 1 edit"


def test_kinds_that_one_or_neither_has() -> None:
    a, b = run(1, 1, 1, 3, 2, ("encoder", "cross")), run(1, 1, 1, 3, 2, ("cross",))
    found = rows(a, b)
    assert found["encoder self-attention"] == ("", "has none", "not in both")
    assert "decoder self-attention" not in found, "neither has it"
    assert "No weight differs." not in said(run(1, 1, 1, 3, 2, ("encoder",)), run(1, 1, 1, 3, 2, ("decoder",)))
    assert "no kind of attention in common" in said(run(1, 1, 1, 3, 2, ("encoder",)), run(1, 1, 1, 3, 2, ("decoder",)))


def test_masks_that_differ_have_a_row_with_both_reasons(hello: Trace, tiny) -> None:
    opened = decode(tiny, "hello", edits=["decoder:off"], target=hello.text)
    closed = decode(tiny, "hello", target=hello.text)
    n = closed.n_steps
    a, b, place = rows(closed, opened)["decoder mask"]
    assert (a, b) == (f"{n * (n - 1) // 2} masked here alone", "0 masked here alone")
    assert place == "first: row 1, column 2: in the future in A, allowed in B"


def test_a_number_that_is_none_is_said(hello: Trace) -> None:
    weights = np.array(hello.cross.weights)
    weights[0, 0, 0, 0] = np.nan
    broken = replace(hello, attentions=with_parts(hello, "cross", weights=weights), mistake="negated-additive")
    assert "B has no number" in said(hello, broken)
    assert rows(hello, broken)["cross-attention"][1:] == ("NaN", "not a number in L1 H1, row 1, column 1")


def test_a_change_is_said_with_its_size_and_place() -> None:
    found = LargestDifference("cross", 1, 0, 9, 1, 0.07, 0.98)
    assert change_words(found) == "0.91, in cross-attention, layer 2 head 1, row 10, column 2"
    assert change_words(replace(found, b=np.nan)).startswith("not a number any more, in cross")
    assert [size_words(size) for size in (0.914, -4.5e-5, -np.inf)] == ["+0.91", "−4.5e−05", "not a number"]


def test_long_texts_are_said_by_their_two_ends() -> None:
    tokens = [f"{i}" for i in range(97)]
    long = Trace.from_arrays(encoder=np.full((97, 97), 1 / 97), source_tokens=tokens)
    words = said(long, long)
    assert "`0␣1␣2" in words and "95␣96`" in words and "…" in words
    assert len(words) < 150
