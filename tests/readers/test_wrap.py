"""`wrap`: a module that knows nothing of this package is decoded, edited and judged as the checkpoint whose weights it has.

Both run the same weights, one by our own tap and cache, one by torch's operators and all rows anew at each step.
"""

import json
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import transformer_viz as tv
from tests.attention_ways import HEADS, WAYS, Own
from transformer_viz.analysis.softmax import head_softmax
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, ModelError, OptionError
from transformer_viz.figures.maps import softmax_maps
from transformer_viz.loaded_model import LoadedModel

WORDS = ["<pad>", "<s>", "</s>", *"abcdefghij"]


class Foreign(nn.Module):
    """Somebody's model with a checkpoint's weights, which masks its padding by its id."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.inner = checkpoint.network

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == 0
        return self.inner.decode(target, self.inner.encode(source, padding), padding)


@pytest.fixture(scope="module")
def wrapped(tiny: Checkpoint) -> LoadedModel:
    return tv.wrap(Foreign(tiny), tiny.task, longest=tiny.network.sizes.longest_target)


def assert_same(here: tv.Trace, there: tv.Trace, tolerance: float = 1e-6) -> None:
    found = tv.diff(here, there, tolerance=tolerance)
    about = {"model", "settings", "input"}
    assert not [one for one in found.differences if one.what not in about], str(found)


WAYS_OF_DECODING: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"strategy": "beam", "beam_size": 3},
    "sample": {"strategy": "sample", "seed": 5, "temperature": 2.0},
    "prefix and ban": {"prefix": ["a"], "ban": ["b"]},
    "teacher forcing": {"target": "bad"},
    "padding kept": {"target": "bad", "pad_to": 9, "pad_target_to": 6},
    "scores": {"record": ("weights", "scores")},
    "a head off": {"edits": ["cross.1.1:zero", "encoder.1.2:zero"]},
    "keys closed": {"edits": ["cross:1-2", "decoder:3-1", "encoder:2-2"]},
    "rows forced": {"edits": ["cross.1.2:2=3", "cross:2=uniform"]},
    "looking ahead": {"edits": ["decoder:off"]},
    "a mistake": {"mistake": "no-causal"},
}


@pytest.mark.parametrize("way", WAYS_OF_DECODING)
def test_a_foreign_module_decodes_as_the_checkpoint_whose_weights_it_has(tiny, wrapped, way):
    options = WAYS_OF_DECODING[way]
    here, there = (
        tv.decode(model, "hello", max_length=None if "target" in options else 8, **options) for model in (tiny, wrapped)
    )
    if way == "scores":
        for kind in here.kinds:
            mine, other = (np.asarray(run.attentions[kind].scores) for run in (here, there))
            known = ~here.attentions[kind].mask.astype(bool) if here.attentions[kind].reasons.ndim == 2 else slice(None)
            np.testing.assert_allclose(other[..., known], mine[..., known], atol=1e-6)
        return
    assert_same(here, there)


def test_a_batch_of_texts_of_several_lengths(tiny, wrapped):
    texts = ["hello", "ab", "bed"]
    for mistake in (None, "source-mask-forgotten"):
        for here, there in zip(*(tv.decode_batch(model, texts, mistake=mistake) for model in (tiny, wrapped)), strict=True):
            assert_same(here, there)


def test_experiments_give_the_numbers_of_the_checkpoint(tiny, wrapped):
    texts = ["hello", "bed"]
    mine, other = ([tv.decode(model, text, max_length=6) for text in texts] for model in (tiny, wrapped))
    for mode in ("word", "position", "deleted"):
        here, there = (
            tv.attribute(model, runs[0], "occlusion", mode=mode).values for model, runs in ((tiny, mine), (wrapped, other))
        )
        np.testing.assert_allclose(there, here, atol=1e-6)
    rollout = [tv.attribute(model, runs[0], "rollout").values for model, runs in ((tiny, mine), (wrapped, other))]
    np.testing.assert_allclose(rollout[1], rollout[0], atol=1e-6)
    for how in ("zero", "mean", "uniform"):
        here, there = (tv.knock_out(model, runs, how=how) for model, runs in ((tiny, mine), (wrapped, other)))
        losses = [[head.log_p.value for head in each.heads] for each in (here, there)]
        np.testing.assert_allclose(losses[1], losses[0], atol=1e-6)
    pairs = [("hello", "bad"), ("hallo", "abe")]
    patches = [
        tv.patch(model, *(tv.decode(model, text, target=target) for text, target in pairs)).effects for model in (tiny, wrapped)
    ]
    for kind in patches[0]:
        np.testing.assert_allclose(patches[1][kind], patches[0][kind], atol=1e-5)
    judged = [tv.judge_attention(model, runs) for model, runs in ((tiny, mine), (wrapped, other))]
    # Methods that need values or gradients are left out of the second, by name.
    theirs, ours = (
        {" ".join(line.split()) for line in str(one).splitlines() if re.match(r"\s*(L\d|by chance)", line)} for one in judged
    )
    assert ours and ours <= theirs


def test_evaluation_and_surveys(tiny, wrapped, tmp_path):
    here, there = (tv.evaluate(model, samples=44) for model in (tiny, wrapped))
    assert there["exact_match"] == here["exact_match"]
    np.testing.assert_allclose(there["head_mass"], here["head_mass"], atol=1e-6)
    surveys = [tv.survey(model, ["hello", "bed", "ab"], workers=1, verdict_texts=2).to_frame() for model in (tiny, wrapped)]
    np.testing.assert_allclose(surveys[1]["mean"], surveys[0]["mean"], atol=1e-6)


def test_what_needs_more_than_the_tap_sees_says_so(wrapped):
    run = tv.decode(wrapped, "hello", max_length=6)
    with pytest.raises(OptionError, match=r"inside of a head is not available for Foreign.*query, keys, values are not known"):
        tv.inspect_head(wrapped, run, "cross.2.1", 2)
    with pytest.raises(OptionError, match="Gradients are not available for Foreign"):
        tv.attribute(wrapped, run, "gradient")
    with pytest.raises(OptionError, match="not available for Foreign"):
        tv.attribute(wrapped, run, "value_weighted")


def test_the_certificate_is_about_the_module_itself(tiny):
    """Not about what hides padding here: one that forgets its padding is found out."""
    assert tv.check_masks(tv.wrap(Foreign(tiny), tiny.task, longest=4), replacements=1).sound

    class Forgetful(Foreign):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return self.inner.decode(target, self.inner.encode(source, source == 0))

    report = tv.check_masks(tv.wrap(Forgetful(tiny), tiny.task, longest=4), replacements=1)
    assert {finding.rule for finding in report.findings} == {"source padding", "batch invariance"}


def test_a_module_is_not_accused_of_padding_that_nobody_named(tiny):
    """It hides id 0, and nobody says so: sound where that is not asked, while a leak is found all the same."""
    n = len(tiny.task.target_vocabulary)
    words, options = ["_", "^", "$", *map(str, range(n - 3))], dict[str, Any](start="^", end="$", longest=4)
    report = tv.check_masks(tv.wrap(Foreign(tiny), words, **options), replacements=1)
    assert report.sound, str(report)
    assert any("padding was not checked" in note and "pad=" in note for note in report.notes)
    assert tv.check_masks(tv.wrap(Foreign(tiny), words, pad="_", **options), replacements=1).sound

    class Leaking(Foreign):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return super().forward(source, target) + target.roll(-1, 1)[..., None]

    report = tv.check_masks(tv.wrap(Leaking(tiny), words, **options), replacements=1)
    assert "future" in {finding.rule for finding in report.findings}


def test_the_certificate_asks_for_no_more_than_the_module_takes(tiny):
    """Its longest texts with padding are as long as it takes, and the shorter ones are padded as always."""

    class Short(Foreign):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            assert max(source.shape[1], target.shape[1]) <= 8
            return super().forward(source, target)

    assert tv.check_masks(tv.wrap(Short(tiny), tiny.task), replacements=1).sound


def own(stacks: str = "both", way: str = "by_matmul", **options: Any) -> Own:
    torch.manual_seed(3)
    return Own(WAYS[way], stacks, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stacks", ["both", "decoder", "encoder"])
def test_however_attention_is_written_it_is_read_and_changed(way, stacks):
    """A shorter text of a batch is what it is alone, and closing a key makes its weights what a softmax over the others is."""
    model = tv.wrap(own(stacks, way), WORDS, start="<s>" if stacks == "both" else None, end="</s>", longest=16)
    length: Any = {} if stacks == "encoder" else {"max_length": 5}
    _, padded = tv.decode(model, ["abcab", "ced"], **length)
    alone = tv.decode(model, "ced", **length)
    assert_same(alone, padded, 1e-5)
    kind = alone.kinds[-1]
    edited = tv.decode(model, "ced", edits=[f"{kind}.1.2:3-1"], **length)
    if edited.n_steps < 3 and kind != "encoder":
        pytest.skip("it wrote too little")
    before, after = (run.attentions[kind].weights[0] for run in (alone, edited))
    n = min(before.shape[-1], after.shape[-1])
    want = before[1, 2, :n] * (np.arange(n) != 0)
    np.testing.assert_allclose(after[1, 2, :n], want / want.sum(), atol=1e-6)
    np.testing.assert_allclose(after[0, :3, :n], before[0, :3, :n], atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stacks", ["both", "decoder", "encoder"])
@pytest.mark.parametrize("text", ["ced", "c"])
def test_a_head_that_is_switched_off_writes_nothing_at_any_step(way, stacks, text):
    """As in a copy of the module whose output matrix takes nothing of it; also where there is one key, as at the first step."""
    module, options = own(stacks, way), dict[str, Any](start="<s>" if stacks == "both" else None, end="</s>", longest=16)
    length: Any = {} if stacks == "encoder" else {"max_length": 4, "ban": ["</s>"]}
    for kind in tv.decode(tv.wrap(module, WORDS, **options), text, **length).kinds:
        without = deepcopy(module)
        with torch.no_grad():
            without.attend(kind, 0).out.weight[:, 4:8] = 0
        edited = tv.decode(tv.wrap(module, WORDS, **options), text, edits=[f"{kind}.1.2:zero"], **length)
        wanted = tv.decode(tv.wrap(without, WORDS, **options), text, **length)
        assert_same(replace(edited, edits=()), wanted, 1e-5)


def by_masked_exponents(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """The mask is a factor of the exponents, so that no score says what is hidden."""
    scores = q @ k.mT
    exponents = torch.exp(scores - scores.amax(-1, keepdim=True)) * ~masked
    return exponents / exponents.sum(-1, keepdim=True) @ v


def test_what_a_factor_hides_has_no_score():
    torch.manual_seed(3)
    model = tv.wrap(Own(by_masked_exponents), WORDS, start="<s>", end="</s>", longest=16)
    for trace in tv.decode_forced(model, ("abc", "a"), ("cba", "ab")):
        for kind, attention in trace.attentions.items():
            assert attention.scores is not None
            hidden = attention.head_mask(0, 0)
            assert np.isfinite(attention.scores[0, 0][~hidden]).all() and not np.isinf(attention.scores).any()
            shown = softmax_maps(trace, f"{kind}.1.1", head_softmax(trace, f"{kind}.1.1"), 0)
            json.dumps(json.loads(shown.to_json()), allow_nan=False)


def test_what_a_head_writes_is_refused_where_it_cannot_be_followed():
    """Here two copies of the values are weighted at once."""

    def doubled(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
        weights = (q @ k.mT).masked_fill(masked, -torch.inf).softmax(-1)
        return (weights[:, :, None] @ torch.stack([v, v], 2)).mean(2)

    model = tv.wrap(Own(doubled), WORDS, start="<s>", end="</s>", longest=16)
    assert tv.decode(model, "abc", target="cba").encoder.weights.shape[1] == HEADS
    with pytest.raises(OptionError, match=r"encoder self-attention of encoder\.0.* cannot be seen or changed"):
        tv.decode(model, "abc", target="cba", edits=["encoder.1.2:zero"])


@pytest.mark.parametrize("batch_first", [True, False])
def test_greedy_decoding_writes_what_a_loop_of_ones_own_writes(batch_first):
    module = own(batch_first=batch_first)
    model = tv.wrap(module, WORDS, start="<s>", end="</s>", longest=16)
    turn = lambda ids: torch.tensor([ids]) if batch_first else torch.tensor([ids]).T  # noqa: E731
    source, written = [3, 4, 5, 6], [1]
    while len(written) < 8 and (len(written) == 1 or written[-1] != 2):
        logits = module(turn(source), turn(written))
        written.append(int((logits[0, -1] if batch_first else logits[-1, 0]).argmax()))
    assert tv.decode(model, "abcd", max_length=7).output_ids == tuple(written[1:])


class Heads(nn.Module):
    """One module a head, as in a well-known lecture: each layer's heads side by side in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(13, 12), nn.Linear(12, 13)
        self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(12, 12) for _ in range(3)]) for _ in range(2)])

    def forward(self, ids: Tensor) -> Tensor:
        x, future = self.embedding(ids), torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        for heads in self.layers:
            parts = []
            for head in heads:  # ty: ignore[not-iterable]
                q, k, v = head(x).chunk(3, -1)
                parts.append((q @ k.mT).masked_fill(future, -1e9).softmax(-1) @ v)
            x = x + torch.cat(parts, -1)
        return torch.log_softmax(self.output(x), -1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half])
def test_a_module_in_half_precision_is_decoded_and_changed(tiny, dtype):
    half = tv.wrap(deepcopy(Foreign(tiny)).to(dtype), tiny.task, longest=tiny.network.sizes.longest_target)
    for edits in ([], ["cross.1.1:zero"], ["cross.1.2:2=3", "decoder:2-1", "encoder:2-2"]):
        here, there = (tv.decode(model, "abcd", target="dcba", edits=edits) for model in (half, tiny))
        for kind, attention in here.attentions.items():
            assert attention.weights.dtype == np.float32
            np.testing.assert_allclose(attention.weights, there.attentions[kind].weights, atol=0.05)
            np.testing.assert_array_equal(attention.mask, there.attentions[kind].mask)


def test_why_nothing_is_seen_is_said_of_the_way_in_which_it_runs():
    class Talking(nn.Module):
        """Mixes its heads after the softmax: no row of keys is multiplied with values as it was."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.mix, self.out = nn.Embedding(13, 8), nn.Linear(2, 2), nn.Linear(8, 13)

        def forward(self, ids: Tensor) -> Tensor:
            x = self.embedding(ids).unflatten(-1, (2, 4)).transpose(1, 2)
            future = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
            weights = (x @ x.mT).masked_fill(future, -torch.inf).softmax(-1)
            mixed = self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            return self.out((mixed @ x).transpose(1, 2).flatten(2))

    with pytest.raises(ModelError, match=r"No attention .* Talking .Talking: its weights are summed over another axis"):
        tv.wrap(Talking(), WORDS)


def test_heads_that_are_computed_one_by_one_are_heads_of_one_layer():
    torch.manual_seed(0)
    module = Heads()
    trace = tv.trace_module(module, None, [3, 5, 4, 6])
    assert trace.decoder.weights.shape == (2, 3, 4, 4)
    model = tv.wrap(module, WORDS, end="</s>", longest=16)
    run = tv.decode(model, "acbd", max_length=1)
    np.testing.assert_allclose(run.decoder.weights, trace.decoder.weights, atol=1e-6)
    edited = tv.decode(model, "acbd", max_length=1, edits=["decoder.1.2:zero"])
    assert not np.allclose(edited.decoder.weights[1], run.decoder.weights[1])
    np.testing.assert_allclose(edited.decoder.weights[0], run.decoder.weights[0], atol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "named"),
    [
        (lambda: tv.wrap(3, WORDS), OptionError, ["model is int, not a torch module"]),
        (lambda: tv.wrap(own(), 3), OptionError, ["vocabulary is int", "list of tokens"]),
        (lambda: tv.wrap(own(), WORDS, start="nope"), OptionError, ["start='nope' is not in the vocabulary"]),
        (lambda: tv.wrap(own(), WORDS[:9], start="<s>"), OptionError, ["writes one of 13 tokens, and the vocabulary has 9"]),
        (lambda: tv.wrap(nn.Linear(3, 3), WORDS), OptionError, ["Linear failed", "call="]),
        (lambda: tv.wrap(nn.Sequential(nn.Embedding(13, 13)), WORDS), ModelError, ["No attention between tokens"]),
        (lambda: tv.decode(tv.wrap(own(), WORDS, start="<s>"), "axb"), InputError, ["'x' is not in the vocabulary"]),
        (lambda: tv.decode(tv.wrap(own(), WORDS, start="<s>"), ""), InputError, ["empty"]),
    ],
)
def test_what_is_impossible_is_said(make, error, named):
    with pytest.raises(error) as caught:
        make()
    assert all(part in str(caught.value) for part in named), str(caught.value)


def test_a_module_that_mixes_the_sentences_of_a_batch_is_refused():
    class Mixing(Own):
        def forward(self, *ids: Tensor) -> Tensor:
            logits = super().forward(*ids)
            return logits + logits.mean(0, keepdim=True)

    with pytest.raises(ModelError, match="a batch of two sentences gives other logits than each of them alone"):
        tv.wrap(Mixing(WAYS["by_matmul"]), WORDS, start="<s>")


def test_an_error_of_ones_own_code_has_its_line():
    class Broken(Own):
        def forward(self, *ids: Tensor) -> Tensor:
            return super().forward(*ids) @ torch.ones(3)

    with pytest.raises(
        OptionError, match=r"Broken failed: RuntimeError.*test_wrap\.py, line \d+: return super\(\)\.forward.*Does it take"
    ):
        tv.wrap(Broken(WAYS["by_matmul"]), WORDS, start="<s>")


def test_a_module_that_ran_before_is_not_asked_what_it_takes():
    class Moody(Own):
        def forward(self, *ids: Tensor) -> Tensor:
            if WORDS.index("b") in ids[0]:
                raise ValueError("no b")
            return super().forward(*ids)

    torch.manual_seed(3)
    model = tv.wrap(Moody(WAYS["by_matmul"]), WORDS, start="<s>", longest=8)
    with pytest.raises(OptionError, match=r'^Moody failed: ValueError: no b \(test_wrap\.py, line \d+: raise .*"no b"\)\)\.$'):
        tv.decode(model, "j b a", max_length=2)
    assert tv.decode(model, "j c a", max_length=2).n_steps
