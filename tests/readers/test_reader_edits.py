"""Edits in other people's models are what plain loops over the model's own numbers give: position bias, shared keys, BERT."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")

from tests.readers.families import TEXTS, family, own
from tests.readers.test_families import drawn, returned
from transformer_viz import Trace, decode
from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind

TARGET = (5, 9, 9, 3, 30, 12, 7)
HEAD, ROW = 3, 4
"""Of layer 1, counted from 0."""


@dataclass(frozen=True)
class Attention:
    """One attention: where a model keeps it, and its layers that make values and mix the heads."""

    kind: Kind
    place: str
    values: str
    mixed: str
    heads: int


CASES = {
    "t5-decoder": Attention("decoder", "decoder.block.1.layer.0.SelfAttention", "v", "o", 4),
    "t5-cross": Attention("cross", "decoder.block.1.layer.1.EncDecAttention", "v", "o", 4),
    "qwen2-decoder": Attention("decoder", "model.layers.1.self_attn", "v_proj", "o_proj", 4),
    "bert-encoder": Attention("encoder", "bert.encoder.layer.1.attention", "self.value", "output.dense", 4),
}


@contextmanager
def changed(model: Any, where: Attention, change: Callable[[Tensor, Tensor], None]) -> Generator[None]:
    """What is mixed is changed by hand: `change` gets the heads' outputs and the values, (position, width) each."""
    kept: list[Tensor] = []
    module = model.get_submodule(where.place)
    values, mixed = module.get_submodule(where.values), module.get_submodule(where.mixed)

    def before(_: Any, given: tuple[Tensor]) -> tuple[Tensor]:
        context = given[0].clone()
        change(context[0], kept[-1][0])
        return (context,)

    hooks = [values.register_forward_hook(lambda _m, _i, out: kept.append(out)), mixed.register_forward_pre_hook(before)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def edited(case: str, text: str) -> tuple[Trace, list[int], list[int]]:
    """The trace of an edit, and what its model reads as source and target."""
    name = case.split("-")[0]
    if name == "bert":
        trace = decode(family(name), TEXTS[0] + " [MASK]", edits=[text], candidates=5)
    else:
        trace = decode(family(name), TEXTS[0], target=TARGET, edits=[text])
    return trace, list(trace.source_ids or ()), list(trace.target_ids or ())


def agrees(trace: Trace, expected: dict[Kind, np.ndarray], logits: Tensor, but: Attention | None = None) -> None:
    """All attention, but that of one head in one row, and what the logits say."""
    for kind, whole in expected.items():
        seen = drawn(trace, kind).copy()
        if but is not None and kind == but.kind:
            seen[1, HEAD, ROW] = whole[1, HEAD, ROW]
        assert np.abs(seen - whole).max() < 1e-5
    if trace.fills:
        (fill,) = trace.fills
        assert np.allclose([p for _, p in fill.candidates], logits[fill.place].softmax(-1).topk(5).values, atol=1e-5)
    else:
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(trace.output_ids)[:, None])[:, 0]
        assert np.allclose([step.log_probability for step in trace.steps], chosen, atol=1e-4)


@pytest.mark.parametrize("edit", ["zero", f"{ROW + 1}=2@0.75+4@0.25"])
@pytest.mark.parametrize("case", CASES)
def test_a_head_set_to_zero_and_a_forced_row(case, edit):
    where, model = CASES[case], own(case.split("-")[0])
    trace, *read = edited(case, f"{where.kind}.2.{HEAD + 1}:{edit}")

    def change(context: Tensor, values: Tensor) -> None:
        width = context.shape[1] // where.heads
        head = slice(HEAD * width, (HEAD + 1) * width)
        if edit == "zero":
            context[:, head] = 0.0
            return
        shared = HEAD * values.shape[1] // width // where.heads
        of_keys = values[:, shared * width : (shared + 1) * width]
        context[ROW, head] = 0.75 * of_keys[1] + 0.25 * of_keys[3]

    with changed(model, where, change):
        expected, logits = returned(model, *read)
    agrees(trace, expected, logits, but=None if edit == "zero" else where)
    assert (returned(model, *read)[1] - logits).abs().max() > 1e-3, "the edit changed nothing"
    if edit != "zero":
        row = drawn(trace, where.kind)[1, HEAD, ROW]
        assert row.tolist() == [{1: 0.75, 3: 0.25}.get(key, 0.0) for key in range(len(row))]


@pytest.mark.parametrize("case", ["t5-decoder", "qwen2-decoder", "bert-encoder"])
def test_a_cell_of_the_mask(case):
    """Given to the model itself as a mask of all cells: a later token that is seen, or a token that is hidden."""
    where, query, key = CASES[case], 1, 3
    trace, *read = edited(case, f"{where.kind}:{query + 1}-{key + 1}")
    n = drawn(trace, where.kind).shape[-1]
    mask = torch.zeros(1, 1, n, n)
    for i in range(n):
        for j in range(n):
            if (where.kind == "decoder" and j > i) != ((i, j) == (query, key)):
                mask[0, 0, i, j] = torch.finfo(torch.float32).min
    name = "decoder_attention_mask" if case.startswith("t5") else "attention_mask"
    expected, logits = returned(own(case.split("-")[0]), *read, **{name: mask})
    agrees(trace, expected, logits)
    assert (expected[where.kind][..., query, key] > 0).all() == (where.kind == "decoder")


@pytest.mark.parametrize("edit", ["decoder:2-1", "decoder.2.1:*-1", "decoder.2.1:2=uniform"])
def test_positions_of_prompts_of_several_lengths_are_not_taken_for_those_of_the_padded_row(edit):
    """Padding stands before the shorter prompt, and its Trace begins behind it."""
    model = family("qwen2")
    with pytest.raises(OptionError, match=r"names positions, and shorter prompts are padded.*one after the other.*pad_to"):
        decode(model, list(TEXTS), edits=[edit])
    assert len(decode(model, [TEXTS[0]] * 2, edits=[edit])) == 2
    width = len(model.tokenizer.encode_source(TEXTS[0]))
    kept = decode(model, list(TEXTS), edits=[edit], pad_to=width, max_length=1)
    assert {len(trace.target_tokens) for trace in kept} == {width}
    by_head = decode(model, list(TEXTS), edits=["decoder.2.1:zero"], max_length=3)
    for trace, text in zip(by_head, TEXTS, strict=True):
        assert trace.output_ids == decode(model, text, edits=["decoder.2.1:zero"], max_length=3).output_ids
