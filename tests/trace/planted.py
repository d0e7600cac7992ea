"""Runs of a made-up decoder whose every row is a formula of what it has read: a search and a single run of it must agree.

Its tokens are numbers, and two of them have the same label.
"""

from dataclasses import replace

import numpy as np

from tests.attentions import unmasked
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.groups import Group
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.search import Search, SearchNode
from transformer_viz.trace.steps import Fill, Step
from transformer_viz.trace.trace import Trace

LABELS = ("<s>", "a", "</s>", "�", "�", "b", "c")
END = 2
SOURCE = (5, 6, 3)
PROMPT = (0, 1, 3, 4)
SHAPE = (2, 2)
N_CANDIDATES = 3


def labels(ids: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(LABELS[number] for number in ids)


def mask(n: int, *, is_windowed: bool) -> np.ndarray:
    """Causal; where it is windowed, the second layer sees two tokens only, (layer, head, query, key)."""
    query, key = np.indices((n, n))
    causal = np.where(key > query, Reason.FUTURE, Reason.ALLOWED).astype(np.uint8)
    if not is_windowed:
        return causal
    near = np.where(key < query - 1, Reason.WINDOW, causal).astype(np.uint8)
    return np.repeat(np.stack([causal, near])[:, None], SHAPE[1], 1)


def decoder_row(ids: tuple[int, ...], *, is_windowed: bool) -> np.ndarray:
    """What the last token looks at, (layer, head, key)."""
    layer, head, key = np.indices((*SHAPE, len(ids)))
    raw = 1 + (7 * np.array(ids)[key] + 3 * ids[-1] + 5 * layer + 11 * head + key) % 13
    rule = np.broadcast_to(mask(len(ids), is_windowed=is_windowed), (*SHAPE, len(ids), len(ids)))[:, :, -1]
    raw = np.where(rule > 0, 0, raw)
    return (raw / raw.sum(-1, keepdims=True)).astype(np.float32)


def cross_row(ids: tuple[int, ...]) -> np.ndarray:
    layer, head, key = np.indices((*SHAPE, len(SOURCE)))
    raw = 1 + (sum(ids) + 3 * np.array(SOURCE)[key] + 5 * layer + 7 * head + len(ids)) % 11
    return (raw / raw.sum(-1, keepdims=True)).astype(np.float32)


def log_probabilities(ids: tuple[int, ...]) -> np.ndarray:
    raw = 1 + (5 * sum(ids) + 3 * np.arange(len(LABELS)) + len(ids)) % 17
    return np.log(raw / raw.sum())


def ranked(ids: tuple[int, ...]) -> list[int]:
    return np.argsort(-log_probabilities(ids), kind="stable").tolist()


def candidates(ids: tuple[int, ...]) -> tuple[tuple[str, float], ...]:
    return tuple((LABELS[number], float(np.exp(log_probabilities(ids)[number]))) for number in ranked(ids)[:N_CANDIDATES])


def step(read: tuple[int, ...], token: int) -> Step:
    log_probability = float(log_probabilities(read)[token])
    return Step(
        token=LABELS[token],
        probability=float(np.exp(log_probability)),
        log_probability=log_probability,
        rank=ranked(read).index(token),
        candidates=candidates(read),
        token_id=token,
        candidate_ids=tuple(ranked(read)[:N_CANDIDATES]),
    )


def run(
    written: tuple[int, ...], prompt: tuple[int, ...] = PROMPT, *, has_source: bool = False, is_windowed: bool = False
) -> Trace:
    """The run that wrote this after the prompt, row by row."""
    ids = (*prompt, *written)
    n = len(ids) - 1
    decoder = np.zeros((*SHAPE, n, n), np.float32)
    cross = np.zeros((*SHAPE, n, len(SOURCE)), np.float32)
    for t in range(n):
        decoder[:, :, t, : t + 1] = decoder_row(ids[: t + 1], is_windowed=is_windowed)
        cross[:, :, t] = cross_row(ids[: t + 1])
    attentions: dict[Kind, Attention] = {"decoder": Attention(weights=decoder, reasons=mask(n, is_windowed=is_windowed))}
    if has_source:
        attentions["cross"] = unmasked(cross)
    source = SOURCE if has_source else ()
    return Trace(
        source="b c",
        text=" ".join(labels(written)),
        source_tokens=labels(source),
        target_tokens=labels(ids[:-1]),
        output_tokens=labels(ids[1:]),
        steps=tuple(step(ids[: t + 1], ids[t + 1]) for t in range(n)),
        attentions=attentions,
        finished="end" if written[-1] == END else "length",
        alignment=(None,) * n,
        source_letters=(None,) * len(source),
        made_by={"checkpoint": "planted"},
        n_given=len(prompt) - 1,
        source_ids=source,
        target_ids=ids[:-1],
        output_ids=ids[1:],
    )


def search(prompt: tuple[int, ...] = PROMPT, *, has_source: bool = False, is_windowed: bool = False, steps: int = 3) -> Trace:
    """The best run of a beam of two, with the search in it."""
    live: list[tuple[int | None, tuple[int, ...], float]] = [(None, (), 0.0)]
    nodes: list[SearchNode] = []
    read: list[tuple[int, ...]] = []
    for t in range(steps):
        found = []
        for parent, written, total in live:
            read.append((*prompt, *written))
            for place, token in enumerate(ranked(read[-1])[:N_CANDIDATES]):
                more = float(log_probabilities(read[-1])[token])
                found.append((parent, (*written, token), total + more, more, len(read) - 1, place))
        live = []
        for rank, (parent, written, total, more, row, place) in enumerate(sorted(found, key=lambda each: -each[2])):
            is_kept = rank < 2
            ends = written[-1] == END
            state = "pruned" if not is_kept else "end" if ends else "length" if t == steps - 1 else "kept"
            text, last = " ".join(labels(written)), written[-1]
            node = SearchNode(
                parent=parent, row=row, step=t, token=LABELS[last], text=text, log_probability=more, total=total, score=total,
                rank=rank, place=place, state=state, pruned_by=None, token_id=last,
            )  # fmt: skip
            live += [(len(nodes), written, total)] if is_kept and not ends else []
            nodes.append(node)
    best = sorted((i for i, node in enumerate(nodes) if node.state in ("end", "length")), key=lambda i: -nodes[i].score)
    n_keys = len(prompt) - 1 + steps
    rows = np.zeros((len(read), *SHAPE, n_keys), np.float32)
    for number, ids in enumerate(read):
        rows[number, ..., : len(ids)] = decoder_row(ids, is_windowed=is_windowed)
    recorded = Search(
        nodes=tuple(nodes),
        best=tuple(best),
        decoder_rows=rows,
        cross_rows=np.stack([cross_row(ids) for ids in read]) if has_source else None,
        alignment=(None,) * steps,
        candidates=tuple(candidates(ids) for ids in read),
        settings={"beam_size": 2},
        opening=labels(prompt),
        opening_ids=prompt,
        candidate_ids=tuple(tuple(ranked(ids)[:N_CANDIDATES]) for ids in read),
        decoder_reasons=mask(n_keys, is_windowed=True) if is_windowed else None,
    )
    own = run(path(recorded, best[0]), prompt, has_source=has_source, is_windowed=is_windowed)
    return replace(own, search=recorded)


def path(recorded: Search, number: int) -> tuple[int, ...]:
    """Ids that are written up to a node, by its parents."""
    node = recorded.nodes[number]
    before = () if node.parent is None else path(recorded, node.parent)
    assert node.token_id is not None
    return (*before, node.token_id)


def filled() -> Trace:
    """An encoder without a decoder, and what it would put at its mask token."""
    read = (0, 1, 3, 2)
    return Trace(
        source="a ?",
        text="",
        source_tokens=labels(read),
        target_tokens=(),
        output_tokens=(),
        steps=(),
        attentions={"encoder": unmasked(np.full((*SHAPE, 4, 4), 0.25, np.float32))},
        finished="given",
        alignment=(),
        source_letters=(None,) * 4,
        source_ids=read,
        fills=(Fill(place=2, candidates=candidates(read), candidate_ids=tuple(ranked(read)[:N_CANDIDATES])),),
    )


def grouped(trace: Trace) -> Trace:
    """With a group that this program does not know: every type, and one to six axes."""
    types = ("f2", "f4", "f8", "i4", "u1", "?")
    arrays = {f"of_{i}": np.arange(2**i * 5).reshape(5, *(2,) * i).astype(kind) for i, kind in enumerate(types)}
    trace = trace.with_group("unheard_of", Group(arrays, {"why": ["x", None, 0.5], "of": {"a": 1}}))
    return trace.with_group("notes_alone", Group(notes={"seconds": 1}))


def with_results(trace: Trace) -> Trace:
    """With two attributions, one by head, and the inside of two heads, whose numbers are random but for the weights."""
    shape = (trace.n_steps, len(trace.source_tokens))
    values = np.arange(shape[0] * shape[1], dtype=np.float64).reshape(shape)
    values[0, 0] = np.nan
    trace = trace.with_attribution(Attribution("occlusion", "cross", values, mode="word", unit="nats", notes={"n": [1, "x"]}))
    trace = trace.with_attribution(Attribution("value_weighted", "cross", trace.cross.weights * 2, layers=(0, 1)))
    places: tuple[tuple[Kind, int, int, int], ...] = (("cross", 1, 0, 1), ("decoder", 0, 1, 0))
    for kind, layer, head, row in places:
        attention, random = trace.attentions[kind], np.random.default_rng(row)
        n_keys = len(attention.keys)
        trace = trace.with_inside(
            Inside(
                **trace.inside_labels(kind, row), kind=kind, layer=layer, head=head, row=row, scale=0.5, norm="pre",
                norm_kind="rms", norm_epsilon=1e-5, query=random.normal(size=3), keys=random.normal(size=(n_keys, 3)),
                values=random.normal(size=(n_keys, 2)), weights=attention.head(layer, head)[row].copy(),
                reasons=attention.head_reasons(layer, head)[row].copy(), output=random.normal(size=2), lens=trace.steps[:2],
            )
        )  # fmt: skip
    return trace
