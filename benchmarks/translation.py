"""What the checkpoint `german` gets right, by clause, length and what training never saw: `python -m benchmarks.translation`.

Beside it: the weight of every cross head on the gold key against uniform attention, how often the best head's order crosses as
the gold alignment does, and how sure it is of words in no order.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

import transformer_viz as tv
from transformer_viz.analysis.intervals import wilson
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.evaluation.evaluate import Evaluation, evaluate_texts
from transformer_viz.tasks.translation import Translation

PER_CLAUSE, LONGER, SHUFFLED, CROSSING = 100, 500, 100, 300


def main() -> None:
    """Prints one line for each number, with its 95 % interval (Wilson 1927) where it is a share."""
    checkpoint = tv.load_checkpoint("german")
    task = checkpoint.task
    assert isinstance(task, Translation)
    rng = np.random.default_rng(20)
    drawn = [(kind, text) for kind in task.sources for text in task.sample(kind, None, PER_CLAUSE, rng, "held-out")]
    texts = [text for _, text in drawn]
    found = evaluate_texts(checkpoint, texts)
    held_out = [task.held_out_as(text) or "" for text in texts]
    _print_shares("held out as", held_out, found.is_exact)
    for why in ("sentence", "combination"):
        some = [i for i, reason in enumerate(held_out) if reason == why]
        _print_shares(f"by {why}", [drawn[i][0] for i in some], [found.is_exact[i] for i in some])
    _print_shares("words", [f"{length:2}" for length in found.lengths], found.is_exact)
    for unseen in task.unseen:
        rarely = task.sample(unseen, None, LONGER, rng)
        _print_shares("never trained", [unseen] * len(rarely), evaluate_texts(checkpoint, rarely).is_exact)
    _print_heads(task, texts, found)
    _print_crossing(checkpoint, texts[:: len(texts) // CROSSING], found)
    _print_shuffled(checkpoint, texts[:: len(texts) // SHUFFLED], rng)


def _print_shares(what: str, groups: Sequence[str], is_exact: Sequence[bool]) -> None:
    hits = defaultdict[str, list[bool]](list)
    for group, hit in zip(groups, is_exact, strict=True):
        hits[group].append(hit)
    rows = sorted(hits.items()) if what == "words" else list(hits.items())
    for group, of_group in [*rows, ("all", list(is_exact))] if len(rows) > 1 else rows:
        low, high = wilson(sum(of_group), len(of_group))
        share = sum(of_group) / len(of_group)
        print(f"{what:16}{group:28}{share:.4f}  [{low:.4f}, {high:.4f}]  of {len(of_group)}", flush=True)


def _print_heads(task: Translation, texts: Sequence[str], found: Evaluation) -> None:
    """Mean weight on the gold key in the row that writes, beside uniform attention over the same steps."""
    uniform = []
    for text in texts:
        pair = task.reading(task.symbols(text))
        assert pair is not None
        uniform += [1 / (len(pair.source) + 2)] * sum(place is not None for place in pair.alignment)
    print(f"gold key        {'uniform attention':28}{np.mean(uniform):.3f}")
    assert found.head_mass is not None
    for (layer, head), mass in np.ndenumerate(found.head_mass):
        print(f"gold key        {f'layer {layer + 1} head {head + 1}':28}{mass:.3f}")


def _print_crossing(checkpoint: Checkpoint, texts: Sequence[str], found: Evaluation) -> None:
    """Of the sentences whose gold alignment crosses, those where the best head's largest weights cross at the same words."""
    assert found.head_mass is not None
    layer, head = map(int, np.unravel_index(found.head_mass.argmax(), found.head_mass.shape))
    n_crossing = n_alike = 0
    for text in texts:
        trace = tv.decode(checkpoint, text)
        steps = [t for t, key in enumerate(trace.alignment or ()) if key is not None and t < trace.n_steps]
        gold = _crossings([(trace.alignment or ())[t] for t in steps])
        keys = trace.attentions["cross"].head(layer, head).argmax(-1)
        n_crossing += bool(gold)
        n_alike += bool(gold) and _crossings([int(keys[t]) for t in steps]) == gold
    print(f"crossing        {'gold alignment crosses':28}{n_crossing / len(texts):.4f}  of {len(texts)}")
    print(f"crossing        {'best head crosses as gold':28}{n_alike / n_crossing:.4f}  of {n_crossing}")


def _crossings(keys: Sequence[int | None]) -> set[tuple[int, int]]:
    return {(i, j) for (i, a), (j, b) in combinations(enumerate(keys), 2) if a is not None and b is not None and a > b}


def _print_shuffled(checkpoint: Checkpoint, texts: Sequence[str], rng: np.random.Generator) -> None:
    """Words in no order, which are no sentence: of how many every token has a probability above 0.9."""
    task, n, n_sure = checkpoint.task, 0, 0
    for text in texts:
        symbols = list(rng.permutation(task.symbols(text)))
        if task.answer(symbols) is None:
            trace = tv.decode(checkpoint, task.join(symbols))
            n, n_sure = n + 1, n_sure + all(step.probability > 0.9 for step in trace.steps)
    print(f"shuffled        {'every token above 0.9':28}{n_sure / n:.4f}  of {n}")


if __name__ == "__main__":
    main()
