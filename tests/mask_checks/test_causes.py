"""Planted truths: what a callable's steps see is known, and the certificate has to say exactly that."""

import re

import pytest
import torch
from torch import Tensor

import transformer_viz as tv


def reading(may_look, vocabulary_size: int, width: int, seed: int):
    """One layer of attention over a target: `may_look(n)`, bool (query, key), says what each step sees. Float64."""
    generator = torch.Generator().manual_seed(seed)
    embedding, query, key, output = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((vocabulary_size, width), (width, width), (width, width), (width, vocabulary_size))
    )

    def f(source: Tensor, target: Tensor) -> Tensor:
        x, mask = embedding[target], may_look(target.shape[1])
        scores = (x @ query @ (x @ key).mT / width).masked_fill(~mask, -torch.inf)
        # Beside its own attention a step has the source, so that one that sees nothing is no NaN.
        return (scores.softmax(-1).nan_to_num() @ x + embedding[source].mean(1, keepdim=True)) @ output

    return f


def planted(rule):
    """A mask by the positions of query and key, and the length."""
    return lambda n: torch.as_tensor(rule(torch.arange(n)[:, None], torch.arange(n), n)).expand(n, n)


MASKS = {
    "causal": (planted(lambda i, j, n: j <= i), None),
    "a window of three": (planted(lambda i, j, n: (j <= i) & (j > i - 3)), None),
    "off by one": (planted(lambda i, j, n: j <= i + 1), "causal-off-by-one"),
    "off by one in a window": (planted(lambda i, j, n: (j <= i + 1) & (j > i - 2)), "causal-off-by-one"),
    "no mask": (planted(lambda i, j, n: j < n), "no-causal"),
    "the next two": (planted(lambda i, j, n: j <= i + 2), ""),
    "a prefix of three that sees both ways": (planted(lambda i, j, n: (j <= i) | ((i < 3) & (j < 3))), ""),
    "chunks of two": (planted(lambda i, j, n: j // 2 <= i // 2), ""),
    "chunks of three": (planted(lambda i, j, n: j // 3 <= i // 3), ""),
    "the first step sees the second": (planted(lambda i, j, n: (j <= i) | ((i == 0) & (j == 1))), ""),
    "all but the first step see the next": (planted(lambda i, j, n: (j <= i) | ((i > 0) & (j == i + 1))), ""),
    "the first step sees the last token": (planted(lambda i, j, n: (j <= i) | ((i == 0) & (j == n - 1))), ""),
    "turned round": (planted(lambda i, j, n: j >= i), ""),
    "the token after the next": (planted(lambda i, j, n: (j <= i) | (j == i + 2)), ""),
}


CAUSAL = reading(MASKS["causal"][0], 13, 5, 2)


def certified(f, vocabulary_size: int, longest: int, seed: int, **options):
    return tv.check_masks(f, vocabulary_size=vocabulary_size, pad_id=None, max_length=longest, seed=seed, **options)


@pytest.mark.parametrize(("vocabulary_size", "width", "longest"), [(11, 5, 7), pytest.param(29, 3, 11, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MASKS)
def test_the_cause_is_named_only_where_it_is_that_and_what_is_seen_is_told_otherwise(name, vocabulary_size, width, longest):
    may_look, cause = MASKS[name]
    report = certified(reading(may_look, vocabulary_size, width, seed=longest), vocabulary_size, longest, seed=width)
    assert report.verdict == ("sound" if cause is None else "leaking"), str(report)
    assert report.causes == ((cause,) if cause else ())
    told = "".join(note for note in report.notes if note.startswith("Sees later tokens"))
    assert bool(told) == (cause == "")
    if told and "every step" not in told:
        later = may_look(longest).triu(1)
        steps = re.findall(r"step (\d+) sees ((?:\d+(?: to \d+)?(?: and )?)+)", told.split("For example")[0])
        assert len(steps) == min(4, int(later.any(-1).sum()))
        for step, ranges in steps:
            ends = [[int(end) for end in part.split(" to ")] for part in ranges.split(" and ")]
            seen = {i for end in ends for i in range(end[0], end[-1] + 1)}
            assert seen == {int(i) + 1 for i in later[int(step) - 1].nonzero()}


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (-1, "every step sees the next one but not all see their own"),
        (1, "of 7, step 1 sees 7, step 2 sees 7, step 3 sees 7, step 4 sees 7, …"),
        (-2, "of 7, step 1 sees 3, step 2 sees 3 to 4, step 3 sees 4 to 5, step 4 sees 5 to 6, …"),
    ],
)
def test_a_target_that_is_rolled_is_no_mask_that_is_off_by_one(shift, words):
    report = certified(lambda source, target: CAUSAL(source, target.roll(shift, 1)), 13, 7, 2)
    assert (report.verdict, report.causes) == ("leaking", ())
    assert any(note.startswith("Sees later tokens") and words in note for note in report.notes)


def test_experts_that_choose_their_tokens_are_no_mask_that_is_off_by_one():
    def f(source: Tensor, target: Tensor) -> Tensor:
        x = CAUSAL(source, target)
        return x * (1 + (x[..., 0] >= x[..., 0].topk(min(2, x.shape[1]), 1).values[:, -1:])[..., None])

    report = certified(f, 13, 7, 2)
    assert report.verdict == "leaking" and "causal-off-by-one" not in report.causes


def packed(rule):
    """All targets of a batch one behind the other in one sequence."""
    one = reading(planted(rule), 13, 5, 3)
    return lambda source, target: one(source[:1] * 0, target.reshape(1, -1)).unflatten(1, target.shape)[0]


def test_packed_sequences_without_borders_are_called_that_and_not_a_missing_causal_mask():
    report = certified(packed(lambda i, j, n: j <= i), 13, 3, 2)
    assert (report.verdict, report.causes) == ("leaking", ("no-borders",))
    assert {finding.rule for finding in report.findings} == {"batch invariance"}
    assert "Sequences packed without borders" in str(report) and "sequence_of" in str(report)
    # Without a causal mask too, each step sees what comes later in its own sentence.
    report = certified(packed(lambda i, j, n: j < n), 13, 3, 2)
    assert report.causes == ("no-causal",)
    assert {finding.rule for finding in report.findings} >= {"batch invariance", "future"}


def length_first(may_look):
    batch_first = reading(may_look, 13, 5, 4)

    def f(source: Tensor, target: Tensor) -> Tensor:
        if source.shape[1] != target.shape[1]:
            raise RuntimeError("the batch number of src and tgt must be equal")  # as nn.Transformer says
        return batch_first(source.T, target.T).transpose(0, 1)

    return f


def test_a_sound_model_that_takes_the_length_first_is_told_so():
    report = certified(length_first(MASKS["causal"][0]), 13, 3, 2)
    assert (report.verdict, report.sound, report.findings, report.causes) == ("length first", False, (), ())
    assert str(report).startswith("Length first: the callable takes (length, batch)")
    assert "f(source.T, target.T).transpose(0, 1)" in str(report) and "batch_first=True" in str(report)


def test_a_model_that_takes_the_length_first_and_leaks_is_told_both():
    report = certified(length_first(MASKS["no mask"][0]), 13, 3, 2)
    assert report.verdict == "leaking"
    assert any("(length, batch)" in note and "another rule: future" in note for note in report.notes)


@pytest.mark.parametrize("seed", [2, 5])
def test_the_example_can_be_repeated(seed):
    f = reading(MASKS["chunks of three"][0], 13, 5, seed)
    (told,) = (note for note in certified(f, 13, 7, seed).notes if note.startswith("Sees later tokens"))
    step, size, target, key, other, source = re.findall(
        r"step (\d+) differs by (\S+) when of the target ids ([\d ]+) (?:token|all from token) (\d+) (?:on )?becomes ([\d ]+) "
        r"\(source ids ([\d ]+)\)",
        told,
    )[0]
    source, target, other = ([int(i) for i in ids.split()] for ids in (source, target, other))
    changed = [*target[: int(key) - 1], *other, *target[int(key) - 1 + len(other) :]]
    before, after = (f(torch.tensor([source]), torch.tensor([ids]))[0, int(step) - 1] for ids in (target, changed))
    assert int(step) < int(key)
    assert float((before - after).abs().max()) > 0.01 * float(size)
