"""`trace_module` on Hugging Face models, tiny and random, against their own eager attentions."""

import threading
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.inside import attention_of, hooks  # noqa: E402
from tests.readers.families import ALL, BART, BERT, ENCODER_DECODERS, ENCODERS, PAD, SHARED, cases, own, untapped  # noqa: E402
from tests.readers.test_families import returned  # noqa: E402
from transformer_viz import export, trace_module  # noqa: E402
from transformer_viz.errors import OptionError  # noqa: E402
from transformer_viz.readers.huggingface import attention  # noqa: E402
from transformer_viz.terms import Reason  # noqa: E402
from transformer_viz.trace.store import to_bytes  # noqa: E402
from transformer_viz.tracing.adapters import huggingface  # noqa: E402

SOURCE, TARGET = [5, 9, 3, 7, 6], [2, 8, 4, 6, 3]
"""Equally long, so that shapes tell nothing."""


@pytest.mark.parametrize("name", cases(ALL))
def test_attention_is_that_of_the_eager_model(name: str) -> None:
    source = SOURCE if name in ENCODER_DECODERS or name in ENCODERS else None
    target = None if name in ENCODERS else TARGET
    model = untapped(name)
    trace = trace_module(model, source, target)
    expected, logits = returned(own(name), source or [], target or [])
    assert trace.kinds == tuple(expected) and trace.n_steps == len(target or ())
    for kind, weights in expected.items():
        np.testing.assert_allclose(trace.attentions[kind].weights, weights, atol=1e-5)
        assert trace.attentions[kind].layers == tuple(range(len(weights))), "also where layers share one module"
    for step, row in zip(trace.steps, logits.double().softmax(-1), strict=target is not None):
        assert step.probability == pytest.approx(float(row[int(step.token)]), abs=1e-5)
    assert trace.made_by["variant"] == type(model).__name__
    assert trace.made_by["versions"]["transformers"] == transformers.__version__


@pytest.mark.parametrize(("name", "reads"), [("gpt2", "source"), ("llama", "source"), ("bert", "target")])
def test_ids_of_one_stack_may_be_given_as_either(name: str, reads: str) -> None:
    ids: Any = {"source_ids": TARGET} if reads == "source" else {"target_ids": SOURCE}
    trace = trace_module(untapped(name), **ids)
    assert trace.kinds == (("decoder",) if reads == "source" else ("encoder",))
    assert (trace.target_tokens if reads == "source" else trace.source_tokens) == tuple(map(str, next(iter(ids.values()))))


P, F = int(Reason.PADDING), int(Reason.FUTURE)


def test_masks_are_what_attention_was_given() -> None:
    for name in ("bart", "marian", "t5"):
        trace = trace_module(untapped(name), [*SOURCE, PAD, PAD], TARGET)
        assert trace.encoder.reasons.tolist() == [[0] * 5 + [P] * 2] * 7
        assert trace.cross.reasons.tolist() == [[0] * 5 + [P] * 2] * 5
        assert trace.decoder.reasons.tolist() == (np.triu(np.ones((5, 5), int), 1) * F).tolist()
    alone = trace_module(untapped("bert"), [*SOURCE, PAD])
    assert alone.encoder.mask.tolist() == [[False] * 5 + [True]] * 6


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_a_start_symbol_that_is_the_padding_symbol_is_no_padding(name: str) -> None:
    """Padding of the target is what comes after its last real token."""
    trace = trace_module(untapped(name), SOURCE, [PAD, PAD, 4, PAD, PAD])
    want = [[0, F, F, P + F, P + F], [0, 0, F, P + F, P + F], [0, 0, 0, P + F, P + F], [0, 0, 0, P, P + F], [0, 0, 0, P, P]]
    assert trace.decoder.reasons.tolist() == want
    assert trace_module(untapped(name), SOURCE, [PAD]).decoder.reasons.tolist() == [[0]]


def test_a_model_is_named_as_on_the_hub_or_by_its_folder() -> None:
    """Never by a path of the machine, of this one or of another."""
    paths = (
        "/home/me/my-t5",
        "./my-t5",
        "../models/my-t5",
        "~/my-t5",
        "one/two/my-t5",
        "/home/me/my-t5/",
        r"C:\Users\me\my-t5",
    )
    for given in ("google-t5/t5-small", "gpt2", "", *paths):
        name = huggingface.name_of(SimpleNamespace(config=SimpleNamespace(name_or_path=given)))
        assert name == ("my-t5" if given in paths else given)


def test_a_model_from_a_folder_tells_no_path(tmp_path, monkeypatch) -> None:
    """Loaded by its whole path or as `.`: no file and no page that is made of it says more than the folder's name."""
    (folder := tmp_path / "secret" / "mine").mkdir(parents=True)
    untapped("bart").save_pretrained(folder)
    monkeypatch.chdir(folder)
    for path in (str(folder), "."):
        trace = trace_module(transformers.BartForConditionalGeneration.from_pretrained(path), SOURCE, TARGET)
        assert trace.made_by["checkpoint"] == "mine"
        with ZipFile(BytesIO(to_bytes(trace))) as file:
            members = [file.read(name).decode(errors="replace") for name in file.namelist()]
        assert any("mine" in member for member in members)
        assert not any("secret" in written for written in (*members, export.html(trace, plotlyjs="cdn")))


def test_a_model_without_logits_has_no_probabilities() -> None:
    trace = trace_module(untapped("bart").model, SOURCE, TARGET)
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert trace.steps == trace.output_tokens == ()


def test_a_tokenizer_gives_the_labels() -> None:
    tokenizer = SimpleNamespace(convert_ids_to_tokens=lambda number: f"▁{number}")
    trace = trace_module(untapped("bart"), SOURCE, TARGET, vocabulary=tokenizer)
    assert (trace.source_tokens[:2], trace.steps[0].token) == (("▁5", "▁9"), "▁8")
    assert all(token.startswith("▁") for token, _ in trace.steps[0].candidates)


def test_a_model_within_somebodys_module() -> None:
    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = untapped("bart")

        def forward(self, source: torch.Tensor, target: torch.Tensor) -> Any:
            return self.inner(input_ids=source, decoder_input_ids=target)

    trace = trace_module(Wrapped(), [*SOURCE, PAD], TARGET)
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert not trace.encoder.mask.any(), "this one masks no padding"


def test_both_sides_are_needed() -> None:
    with pytest.raises(OptionError, match="has an encoder and a decoder"):
        trace_module(untapped("t5"), SOURCE)


# What is left behind


def state(model: Any) -> list[Any]:
    settings = [
        (name, module.config.to_dict(), attention_of(module.config))
        for name, module in model.named_modules()
        if hasattr(module, "config")
    ]
    parameters = [(parameter.tolist(), parameter.requires_grad) for parameter in model.parameters()]
    return [settings, hooks(model), [module.training for module in model.modules()], parameters, torch.get_rng_state().tolist()]


@pytest.mark.parametrize("name", ["bart", "t5"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_the_model_is_left_as_it_was(name: str, implementation: str) -> None:
    """Mixed modes, a chosen kernel, and a failure in the middle: an id that is not in the vocabulary."""
    model = untapped(name).train()
    next(iter(model.children())).eval()
    model.set_attn_implementation(implementation)
    before = state(model)
    with pytest.raises(OptionError, match=r"failed: IndexError"):
        trace_module(model, [99], TARGET)
    assert state(model) == before
    trace_module(model, SOURCE, TARGET)
    assert state(model) == before


def test_one_attention_is_registered_for_good() -> None:
    """However many runs there are: transformers forgets no name, nor what its function holds."""
    trace_module(untapped("bart"), SOURCE, TARGET)
    names = transformers.AttentionInterface().valid_keys(), transformers.AttentionMaskInterface().valid_keys()
    assert all(attention.NAME in known for known in names)
    trace_module(untapped("t5"), SOURCE, TARGET)
    assert names == (transformers.AttentionInterface().valid_keys(), transformers.AttentionMaskInterface().valid_keys())


def test_parts_that_were_put_together_keep_their_own() -> None:
    """They have copies of their configurations, which no public name reaches, and here another attention than the whole."""
    bert = transformers.BertModel(transformers.BertConfig(**BERT))
    sizes = {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 31, "add_cross_attention": True}
    gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SHARED, **sizes))
    model = transformers.EncoderDecoderModel(encoder=bert, decoder=gpt2)
    model.encoder.set_attn_implementation("eager")
    before = state(model)
    assert [attention_of(part.config) for part in (model, model.encoder, bert.encoder)] == ["sdpa", "eager", "sdpa"]
    assert trace_module(model, SOURCE, TARGET).kinds == ("encoder", "decoder", "cross")
    assert state(model) == before


def test_a_class_that_was_written_at_a_prompt(caplog) -> None:
    """transformers looks into a class's file to learn whether its attention can be set, and finds none. Nothing is logged.

    It remembers what it found of a class also for those made of it: no other test has a PLBart.
    """
    prompt: dict[str, Any] = {"__name__": "prompt", "PLBart": transformers.PLBartForConditionalGeneration}
    exec("class Mine(PLBart): pass", prompt)
    model = prompt["Mine"](transformers.PLBartConfig(**BART))
    model.set_attn_implementation("eager")
    assert attention_of(model.config) == "sdpa"
    assert "does not support setting" in caplog.text
    caplog.clear()
    assert trace_module(model, SOURCE, TARGET).kinds == ("encoder", "decoder", "cross")
    assert not caplog.records
    assert attention_of(model.config) == "sdpa"


class Own(transformers.PreTrainedModel):
    """Somebody's decoder in the frame of theirs, which computes its attention itself and may hide padding."""

    config_class = transformers.GPT2Config

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embedding, self.output = torch.nn.Embedding(config.vocab_size, 12), torch.nn.Linear(12, config.vocab_size)
        self.seen: list[torch.Tensor] = []

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        x, n = self.embedding(input_ids), input_ids.shape[1]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        if attention_mask is not None:
            hidden = hidden | (attention_mask == 0)
        weights = (x @ x.mT).masked_fill(hidden, -1e9).softmax(-1)
        self.seen.append(weights.detach())
        return self.output(x + weights @ x)


@pytest.mark.parametrize("is_within", [False, True])
@pytest.mark.parametrize("ids", [[5, 9, 3, 7], [5, 9, PAD, PAD]])
def test_a_class_that_computes_its_attention_itself(ids, is_within: bool) -> None:
    """No attention of theirs is called, and torch's operators show it as of any module."""
    model = Own(transformers.GPT2Config(vocab_size=23, pad_token_id=PAD)).eval()
    trace = trace_module(torch.nn.Sequential(model) if is_within else model, None, ids)
    assert trace.kinds == ("decoder",)
    np.testing.assert_allclose(trace.decoder.weights[0, 0], model.seen[0][0].numpy(), atol=1e-6)
    padding = 3 if PAD in ids and not is_within else 0
    assert trace.decoder.mask.sum() == 6 + padding


def test_another_threads_run_is_not_recorded() -> None:
    """Nor does it fail: it gets the eager attention meanwhile."""
    model = untapped("bart").eval()
    other: list[Any] = []

    def meanwhile() -> None:
        with torch.no_grad():
            other.append(model(input_ids=torch.tensor([[5, 6]]), decoder_input_ids=torch.tensor([[7]])).logits)

    def call(source: torch.Tensor, target: torch.Tensor) -> Any:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()
        return model(input_ids=source, decoder_input_ids=target)

    trace = trace_module(model, SOURCE, TARGET, call=call)
    meanwhile()
    assert len(trace.encoder.weights) == 2
    torch.testing.assert_close(other[0], other[1], atol=1e-5, rtol=0)
