"""A decoding that is watched: what is seen of it, and that ending it there leaves what a limit of so many tokens leaves."""

from typing import Any

import pytest

import transformer_viz as tv
from tests.tracing.test_decode import assert_same_run
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import Written

TEXTS = ["hello", "ab", "dache lo"]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"strategy": "sample", "ban": ("<end>",)},
    "forced at first": {"prefix": ("b", "a"), "ban": ("<end>",)},
    "all rows again": {"edits": ["decoder:1-3"]},
}


def same(a: Trace, b: Trace) -> None:
    """Equal in everything but the seconds they took."""
    assert {**a.made_by, "seconds": 0} == {**b.made_by, "seconds": 0}
    assert_same_run(a, b)


@pytest.mark.parametrize("way", WAYS)
def test_ended_it_is_what_a_limit_leaves(tiny: Checkpoint, way: str) -> None:
    whole = tv.decode(tiny, TEXTS[0], **WAYS[way])
    assert whole.n_steps > 4
    seen: list[int] = []

    def until_four(written: Written) -> bool:
        seen.append(written.n_steps)
        return written.n_steps < 4

    ended = tv.decode(tiny, TEXTS[0], on_token=until_four, **WAYS[way])
    assert seen == ([2, 3, 4] if way == "forced at first" else [1, 2, 3, 4])
    assert ended.output_tokens == whole.output_tokens[:4]
    same(ended, tv.decode(tiny, TEXTS[0], max_length=4, **WAYS[way]))


def test_a_batch_ends_together(tiny: Checkpoint) -> None:
    ended = tv.decode(tiny, TEXTS, on_token=lambda written: written.n_steps < 6)
    for one, other in zip(ended, tv.decode(tiny, TEXTS, max_length=6), strict=True):
        same(one, other)


def test_who_only_looks_changes_nothing_and_sees_all(tiny: Checkpoint) -> None:
    seen: list[Written] = []
    looked_at = tv.decode(tiny, TEXTS, on_token=seen.append)
    for one, other in zip(looked_at, tv.decode(tiny, TEXTS), strict=True):
        same(one, other)
    assert seen[-1].texts == tuple(trace.text for trace in looked_at)
    ids = [tuple(tiny.tokenizer.ids_of("output", trace.output_tokens)) for trace in looked_at]
    for n, written in enumerate(seen, 1):
        assert written.ids == tuple(row[:n] for row in ids)


@pytest.mark.parametrize("n", [1, 3])
def test_an_ended_search_is_one_that_reached_its_limit(tiny: Checkpoint, n: int) -> None:
    how: dict[str, Any] = {"strategy": "beam", "beam_size": 3, "stop": "never"}
    ended = tv.decode(tiny, TEXTS[0], on_token=lambda written: written.n_steps < n, **how)
    limited = tv.decode(tiny, TEXTS[0], max_length=n, **how)
    same(ended, limited)
    assert ended.search is not None and limited.search is not None
    assert ended.search.best == limited.search.best
    assert [(node.token, node.state, node.rank) for node in ended.search.nodes] == [
        (node.token, node.state, node.rank) for node in limited.search.nodes
    ]


def test_a_search_shows_its_best_living_hypothesis(tiny: Checkpoint) -> None:
    seen: list[Written] = []
    trace = tv.decode(tiny, TEXTS[0], strategy="beam", beam_size=3, on_token=seen.append)
    assert trace.search is not None
    for step, written in enumerate(seen):
        nodes = [node for node in trace.search.nodes if node.step == step and node.state in ("kept", "stopped")]
        if nodes:
            assert written.texts == (nodes[0].text,)


def test_what_it_raises_ends_everything(tiny: Checkpoint) -> None:
    def refuse(written: Written) -> bool:
        raise KeyboardInterrupt

    for strategy in ("greedy", "beam"):
        with pytest.raises(KeyboardInterrupt):
            tv.decode(tiny, TEXTS[0], strategy=strategy, on_token=refuse)
    tv.decode(tiny, "ab", target="ba", on_token=refuse)  # nothing is written, and nothing asked
