"""`trace_module`: ids and labels in every form, outputs, errors that say what to do, and a model left as it was."""

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import transformer_viz as tv
from tests.inside import hooks
from tests.tracing.adapters.test_torch_modules import TARGET, WORDS, Model, built
from transformer_viz import figures, load_trace, trace_module
from transformer_viz.errors import OptionError
from transformer_viz.trace.store import to_bytes

SOURCE = [5, 9, 3, 7, 6, 8, 4]


@pytest.fixture
def model() -> Model:
    return built(2, n_heads=2)


@pytest.mark.parametrize(
    "form",
    [lambda i: i, tuple, np.array, torch.tensor, lambda i: [i], lambda i: torch.tensor([i]), lambda i: np.array([i], np.int32)],
)
def test_ids_in_every_form(model, form):
    want = trace_module(model, SOURCE, TARGET)
    found = tv.diff(want, tv.trace_module(model, form(SOURCE), form(TARGET)))
    assert found.equal, str(found)


def test_the_trace_is_one_like_any_other(model):
    trace = trace_module(model, SOURCE, TARGET, vocabulary=WORDS)
    assert trace.source_tokens == tuple(WORDS[i] for i in SOURCE)
    assert trace.target_tokens == tuple(WORDS[i] for i in TARGET)
    assert tv.diff(trace, load_trace(to_bytes(trace))).equal
    for kind in trace.kinds:
        figures.player(trace, kind).to_json()
    assert (trace.finished, trace.made_by["strategy"]) == ("given", "teacher forcing")
    assert trace.made_by["checkpoint"] == "Model"


def test_outputs_are_the_next_ids_and_then_the_models_own(model):
    trace = trace_module(model, SOURCE, TARGET, vocabulary=WORDS)
    for vocabulary in (dict(enumerate(WORDS)), tuple(WORDS)):
        assert trace_module(model, SOURCE, TARGET, vocabulary=vocabulary).steps == trace.steps
    with torch.no_grad():
        logits = model.eval()(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0].double().softmax(-1)
    last = int(logits[-1].argmax())
    assert trace.output_tokens == ("w8", "w4", "w6", "w3", WORDS[last])
    assert trace.steps[-1].rank == 0
    for t, number in enumerate([8, 4, 6, 3, last]):
        assert trace.steps[t].probability == pytest.approx(float(logits[t, number]), abs=1e-6)
    other = trace_module(model, SOURCE, TARGET, vocabulary=WORDS, output_ids=[0, 1, 2, 3, 4], candidates=2)
    assert other.output_tokens == ("w0", "w1", "w2", "w3", "w4")
    assert [len(step.candidates) for step in other.steps] == [2] * 5


def test_hidden_states_are_not_taken_for_logits(model):
    """Both have three axes; only a word from the caller, or a vocabulary of that size, makes them logits."""
    assert trace_module(model, SOURCE, TARGET).steps == ()
    assert trace_module(model, SOURCE, TARGET).output_tokens == ()
    assert trace_module(model, SOURCE, TARGET, vocabulary=WORDS[:7]).steps == ()
    assert len(trace_module(model, SOURCE, TARGET, logits=True).steps) == 5
    assert trace_module(model, SOURCE, TARGET, vocabulary=WORDS, logits=False).steps == ()
    assert trace_module(model, SOURCE, TARGET, logits=False, output_ids=TARGET).output_tokens == tuple(map(str, TARGET))


def test_labels_that_are_given(model):
    names = [f"t{i}" for i in range(5)]
    trace = trace_module(model, SOURCE, TARGET, source_tokens=list("abcdefg"), target_tokens=iter(names), logits=True)
    assert trace.source_tokens == tuple("abcdefg")
    assert trace.target_tokens == tuple(names)
    assert trace.output_tokens[:4] == tuple(names[1:])
    names_by_id = dict(zip(SOURCE, "abcdefg", strict=True)) | dict(zip(TARGET, names, strict=True))
    with torch.no_grad():
        best = model.eval()(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0, 0].topk(10).indices.tolist()
    assert [token for token, _ in trace.steps[0].candidates] == [names_by_id.get(i, str(i)) for i in best]


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        ((), {}, ["no ids", "source_ids, target_ids or both"]),
        (([], TARGET), {}, ["source_ids is empty"]),
        (([SOURCE, SOURCE], TARGET), {}, ["source_ids", "(2, 7)", "one sentence"]),
        (([0.5, 1.5], TARGET), {}, ["source_ids", "float32", "whole numbers"]),
        ((["a"], TARGET), {}, ["source_ids", "cannot be read as ids"]),
        ((SOURCE, [True, False]), {}, ["target_ids", "bool"]),
        ((SOURCE, TARGET), {"source_tokens": ["a"]}, ["source_tokens has 1", "7 ids"]),
        ((SOURCE, TARGET), {"target_tokens": "abcde"}, ["target_tokens is one text"]),
        ((SOURCE, TARGET), {"output_ids": [1]}, ["output_ids has 1", "5 target ids"]),
        ((SOURCE, TARGET), {"output_ids": [1, 2, 3, 4, 23], "logits": True}, ["output id 23", "vocabulary of 23"]),
        ((SOURCE, TARGET), {"candidates": 0}, ["candidates=0"]),
        ((SOURCE, [99]), {}, ["Model failed: IndexError", "call="]),
        ((SOURCE,), {}, ["Model failed: TypeError", "target", "call="]),
        ((SOURCE, TARGET), {"call": lambda s, t: None}, ["no attention was seen in Model", "Trace.from_arrays"]),
    ],
)
def test_what_is_impossible_is_said(model, arguments, options, named):
    with pytest.raises(OptionError) as caught:
        trace_module(model, *arguments, **options)
    for part in named:
        assert part in str(caught.value), str(caught.value)


def test_logits_that_are_promised_must_be_there(model):
    model.output = nn.Identity()
    assert len(trace_module(model, SOURCE, TARGET, logits=True).steps) == 5, "12 columns, if the caller says so"

    class Silent(Model):
        def forward(self, source: Tensor, target: Tensor) -> Any:
            return {"no": super().forward(source, target)}

    with pytest.raises(OptionError, match=r"logits=True, but the model returns no tensor; \(1, 5, vocabulary\)"):
        trace_module(Silent(), SOURCE, TARGET, logits=True)
    with pytest.raises(OptionError, match="model is int, not a torch module; load it first"):
        trace_module(3, SOURCE, TARGET)  # ty: ignore[invalid-argument-type]


def test_two_shapes_of_layers_are_refused():
    """A Trace holds one array for all layers of a kind."""
    first, second = nn.MultiheadAttention(12, 2, batch_first=True), nn.MultiheadAttention(12, 3, batch_first=True)
    both, embedding = nn.ModuleList([first, second]), nn.Embedding(23, 12)

    def call(target: Tensor) -> None:
        x = embedding(target)
        x = x + first(x, x, x)[0]
        second(x, x, x)

    with pytest.raises(OptionError, match=r"different shapes.*\(2, 5, 5\), \(3, 5, 5\)"):
        trace_module(both, None, TARGET, call=call)


@pytest.fixture(params=[True, False], ids=["fast path", "slow path"])
def fast_path(request):
    """torch's own switch, on or off, and as it was afterwards."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(request.param)
    yield request.param
    torch.backends.mha.set_fastpath_enabled(was)


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(model, fails, fast_path):
    """Modes, hooks, gradients, random numbers and torch's fast path; the person's own hook still runs."""
    model.train()
    model.inner.encoder.eval()
    calls = []
    handle = model.inner.encoder.layers[0].self_attn.register_forward_hook(lambda *arguments: calls.append(1))

    def state() -> Any:
        modes = [module.training for module in model.modules()]
        grads = [(p.requires_grad, p.grad is None) for p in model.parameters()]
        settings = torch.backends.mha.get_fastpath_enabled(), torch.get_rng_state().tolist(), torch.is_grad_enabled()
        return hooks(model), modes, grads, settings

    before = state()
    if fails:
        with pytest.raises(OptionError):
            trace_module(model, SOURCE, [99])
    else:
        trace_module(model, SOURCE, TARGET)
    assert state() == before
    assert torch.backends.mha.get_fastpath_enabled() == fast_path
    assert bool(calls) == (not fails), "an id beyond the vocabulary fails before the encoder"
    handle.remove()
    outputs = [model.eval()(torch.tensor([SOURCE]), torch.tensor([TARGET])) for _ in range(2)]
    assert torch.equal(*outputs)


def test_another_threads_run_is_not_recorded(model):
    def call(source: Tensor, target: Tensor) -> Tensor:
        other = threading.Thread(target=model, args=(source, target))
        other.start()
        other.join()
        return model(source, target)

    found = tv.diff(trace_module(model, SOURCE, TARGET), trace_module(model, SOURCE, TARGET, call=call))
    assert found.equal, str(found)


def test_the_models_own_outputs_are_untouched(model, fast_path):
    """But for the kernel: torch's fused one gives no weights, and rounds otherwise."""
    model.eval()
    seen: list[Tensor] = []

    def call(source: Tensor, target: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        seen.append(model(source, target))
        return seen[0]

    trace_module(model, SOURCE, TARGET, call=call)
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        torch.testing.assert_close(seen[0], model(torch.tensor([SOURCE]), torch.tensor([TARGET])), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_transformers_is_needed_by_nobody_else():
    """A module of torch is traced where transformers cannot be imported, and a name of a model says what to install."""
    program = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "transformers":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import torch
import transformer_viz as tv
layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
embedding = torch.nn.Embedding(4, 4)
print(tv.trace_module(layer, None, [1, 2, 3], call=lambda ids: layer(*[embedding(ids)] * 3)).kinds)
try:
    tv.trace_module("t5-small", [1], [2])
except tv.TransformerVizError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "('decoder',)" in done.stdout
    assert "pip install 'transformers>=5.23,<6'" in done.stdout
