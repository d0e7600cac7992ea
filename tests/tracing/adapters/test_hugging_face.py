"""`trace_module` on Hugging Face models, tiny and random, against their own eager attentions."""

import copy
import logging
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.inside import attention_of, hooks  # noqa: E402
from transformer_viz import export, trace_module  # noqa: E402
from transformer_viz.errors import OptionError  # noqa: E402
from transformer_viz.readers.huggingface import attention  # noqa: E402
from transformer_viz.terms import KINDS, Reason  # noqa: E402
from transformer_viz.trace.store import to_bytes  # noqa: E402
from transformer_viz.tracing.adapters import huggingface  # noqa: E402

SOURCE, TARGET, PAD = [5, 9, 3, 7, 6, 1, 1], [2, 8, 4, 6, 3], 1
SIZES: dict[str, Any] = {"vocab_size": 23, "d_model": 12, "pad_token_id": PAD, "bos_token_id": 0, "eos_token_id": 2}
BOTH: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 3, "decoder_attention_heads": 3}
FFN: dict[str, Any] = {"encoder_ffn_dim": 7, "decoder_ffn_dim": 7, "max_position_embeddings": 31}
T5: dict[str, Any] = {"d_kv": 5, "d_ff": 7, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 3}
BERT: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}
START: dict[str, Any] = {"decoder_start_token_id": PAD}


def bart() -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(BartConfig(**SIZES, **BOTH, **FFN, dropout=0.4, attention_dropout=0.3))


def marian() -> Any:
    """Its decoder starts with the padding symbol."""
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(MarianConfig(**SIZES, **BOTH, **FFN, **START))


def t5() -> Any:
    """A bias by position is added to the scores, and nothing is scaled."""
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(T5Config(**SIZES, **T5, **START))


FAMILIES = {"bart": bart, "marian": marian, "t5": t5}


def built(name: str) -> Any:
    """Random, and not so small that all attention is even."""
    torch.manual_seed(7)
    model = FAMILIES[name]()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def eager(model: Any, source: list[int], target: list[int]) -> Any:
    """What the model itself gives when it is asked for attentions the slow way."""
    other = copy.deepcopy(model).eval()
    other.set_attn_implementation("eager")
    ids = torch.tensor([source])
    with torch.no_grad():
        return other(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            decoder_input_ids=torch.tensor([target]),
            output_attentions=True,
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_is_that_of_the_eager_model(name):
    model = built(name)
    assert attention_of(model.config) == "sdpa", "their default, which gives no attentions"
    trace, want = trace_module(model, SOURCE, TARGET), eager(model, SOURCE, TARGET)
    for kind in KINDS:
        found, layers = trace.attentions[kind].weights, want[f"{kind}_attentions"]
        assert found.shape[:2] == (2 if kind == "encoder" else 3, 3)
        np.testing.assert_allclose(found, torch.cat(layers).numpy(), atol=1e-5)
    probabilities = want.logits[0].double().softmax(-1)
    assert [step.token for step in trace.steps] == ["8", "4", "6", "3", str(int(probabilities[-1].argmax()))]
    for t, step in enumerate(trace.steps):
        assert step.probability == pytest.approx(float(probabilities[t, int(step.token)]), abs=1e-6)
        assert [int(token) for token, _ in step.candidates] == probabilities[t].topk(10).indices.tolist()
        assert step.rank == int((probabilities[t] > probabilities[t, int(step.token)]).sum())
    assert trace.made_by["variant"] == type(model).__name__
    assert trace.made_by["versions"]["transformers"] == transformers.__version__


@pytest.mark.parametrize("name", FAMILIES)
def test_masks_are_what_attention_was_given(name):
    trace = trace_module(built(name), SOURCE, TARGET)
    padding = [int(Reason.PADDING) * (number == PAD) for number in SOURCE]
    assert trace.encoder.reasons.tolist() == [padding] * 7
    assert trace.cross.reasons.tolist() == [padding] * 5
    assert trace.decoder.reasons.tolist() == (np.triu(np.ones((5, 5), int), 1) * int(Reason.FUTURE)).tolist()


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_a_start_symbol_that_is_the_padding_symbol_is_no_padding(name):
    """Padding of the target is what comes after its last real token."""
    trace = trace_module(built(name), SOURCE, [PAD, PAD, 4, PAD, PAD])
    p, f = int(Reason.PADDING), int(Reason.FUTURE)
    want = [[0, f, f, p + f, p + f], [0, 0, f, p + f, p + f], [0, 0, 0, p + f, p + f], [0, 0, 0, p, p + f], [0, 0, 0, p, p]]
    assert trace.decoder.reasons.tolist() == want
    alone = trace_module(built(name), SOURCE, [PAD])
    assert alone.decoder.reasons.tolist() == [[0]]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("google-t5/t5-small", "google-t5/t5-small"),
        ("gpt2", "gpt2"),
        ("/home/somebody/models/my-t5", "my-t5"),
        ("/home/somebody/models/my-t5/", "my-t5"),
        ("./my-t5", "my-t5"),
        ("../models/my-t5", "my-t5"),
        ("~/my-t5", "my-t5"),
        ("one/two/my-t5", "my-t5"),
        (r"C:\Users\somebody\my-t5", "my-t5"),
        ("", ""),
    ],
)
def test_a_model_is_named_as_on_the_hub_or_by_its_folder(given, name):
    """Never by a path of the machine, of this one or of another."""
    assert huggingface.name_of(SimpleNamespace(config=SimpleNamespace(name_or_path=given))) == name


def test_a_model_from_a_folder_tells_no_path(tmp_path, monkeypatch):
    """Loaded by its whole path or as `.`: no file and no page that is made of it says more than the folder's name."""
    from transformers import BartForConditionalGeneration

    (folder := tmp_path / "secret" / "mine").mkdir(parents=True)
    built("bart").save_pretrained(folder)
    monkeypatch.chdir(folder)
    for path in (str(folder), "."):
        trace = trace_module(BartForConditionalGeneration.from_pretrained(path), SOURCE, TARGET)
        assert trace.made_by["checkpoint"] == "mine"
        with ZipFile(BytesIO(to_bytes(trace))) as file:
            members = [file.read(name).decode(errors="replace") for name in file.namelist()]
        assert any("mine" in member for member in members)
        assert not any("secret" in written for written in (*members, export.html(trace, plotlyjs="cdn")))


def test_a_model_without_logits_has_no_probabilities():
    from transformers import BartConfig, BartModel

    trace = trace_module(BartModel(BartConfig(**SIZES, **BOTH, **FFN)), SOURCE, TARGET)
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert trace.steps == trace.output_tokens == ()


def test_a_decoder_alone():
    """GPT-2 and Llama, the latter with fewer keys than queries; ids may be given as either."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    some: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 2}
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=23, n_embd=12, n_layer=2, n_head=3, n_positions=31, **some))
    sizes: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3}
    llama = LlamaForCausalLM(LlamaConfig(vocab_size=23, intermediate_size=7, **sizes, **some))
    for model in (gpt2, llama):
        other = copy.deepcopy(model).eval()
        other.set_attn_implementation("eager")
        with torch.no_grad():
            want = torch.cat(other(torch.tensor([TARGET]), output_attentions=True).attentions).numpy()
        for ids in ((None, TARGET), (TARGET, None)):
            trace = trace_module(model, *ids)
            assert trace.kinds == ("decoder",)
            np.testing.assert_allclose(trace.decoder.weights, want, atol=1e-5)
            assert trace.target_tokens == tuple(map(str, TARGET))
            assert len(trace.steps) == len(TARGET)


def test_an_encoder_alone():
    from transformers import BertConfig, BertModel

    trace = trace_module(BertModel(BertConfig(vocab_size=23, pad_token_id=PAD, **BERT)), SOURCE)
    assert trace.kinds == ("encoder",)
    assert trace.encoder.mask.tolist() == [[number == PAD for number in SOURCE]] * 7
    assert trace.n_steps == 0


def test_a_tokenizer_gives_the_labels():
    class Tokenizer:
        def convert_ids_to_tokens(self, number: int) -> str:
            return f"▁{number}"

    trace = trace_module(built("bart"), SOURCE, TARGET, vocabulary=Tokenizer())
    assert trace.source_tokens[:2] == ("▁5", "▁9")
    assert trace.steps[0].token == "▁8"
    assert all(token.startswith("▁") for token, _ in trace.steps[0].candidates)


def test_a_model_within_somebodys_module():
    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = built("bart")

        def forward(self, source: torch.Tensor, target: torch.Tensor) -> Any:
            return self.inner(input_ids=source, decoder_input_ids=target)

    trace = trace_module(Wrapped(), SOURCE, TARGET)
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert not trace.encoder.mask.any(), "this one masks no padding"


def test_both_sides_are_needed():
    with pytest.raises(OptionError, match="has an encoder and a decoder"):
        trace_module(built("t5"), SOURCE)


# What is left behind


def state(model: Any) -> list[Any]:
    settings = [
        (name, module.config.to_dict(), attention_of(module.config))
        for name, module in model.named_modules()
        if hasattr(module, "config")
    ]
    modes = [module.training for module in model.modules()]
    weights = [parameter.clone() for parameter in model.parameters()]
    grads = [parameter.requires_grad for parameter in model.parameters()]
    return [settings, hooks(model), modes, grads, [w.tolist() for w in weights], torch.get_rng_state().tolist()]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("ids", [(SOURCE, TARGET), ([99], TARGET)], ids=["good", "failing"])
def test_the_model_is_left_as_it_was(name, ids):
    """Mixed modes, a chosen kernel, and a failure in the middle: an id that is not in the vocabulary."""
    model = built(name).train()
    next(iter(model.children())).eval()
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        before = state(model)
        if ids[0] == [99]:
            with pytest.raises(OptionError, match=r"failed: IndexError"):
                trace_module(model, *ids)
        else:
            trace_module(model, *ids)
        assert state(model) == before


def test_one_attention_is_registered_for_good():
    """However many runs there are: transformers forgets no name, nor what its function holds."""
    trace_module(built("bart"), SOURCE, TARGET)
    names = transformers.AttentionInterface().valid_keys(), transformers.AttentionMaskInterface().valid_keys()
    assert all(attention.NAME in each for each in names)
    trace_module(built("t5"), SOURCE, TARGET)
    assert names == (transformers.AttentionInterface().valid_keys(), transformers.AttentionMaskInterface().valid_keys())


def test_parts_that_were_put_together_keep_their_own():
    """They have copies of their configurations, which no public name reaches, and here another attention than the whole."""
    named: dict[str, Any] = {"vocab_size": 23, "bos_token_id": 0, "eos_token_id": 2}
    bert = transformers.BertModel(transformers.BertConfig(**named, **BERT))
    sizes: dict[str, Any] = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 31, "add_cross_attention": True}
    model = transformers.EncoderDecoderModel(
        encoder=bert, decoder=transformers.GPT2LMHeadModel(transformers.GPT2Config(**named, **sizes))
    )
    model.encoder.set_attn_implementation("eager")
    before = state(model)
    assert [attention_of(part.config) for part in (model, model.encoder, bert.encoder)] == ["sdpa", "eager", "sdpa"]
    assert trace_module(model, SOURCE, TARGET).kinds == ("encoder", "decoder", "cross")
    assert state(model) == before


def test_a_class_that_was_written_at_a_prompt(caplog):
    """transformers looks into a class's file to learn whether its attention can be set, and finds none.

    It remembers what it found of a class also for those made of it: no other test has a PLBart.
    """
    prompt: dict[str, Any] = {"__name__": "prompt", "PLBart": transformers.PLBartForConditionalGeneration}
    exec("class Mine(PLBart): pass", prompt)
    model = prompt["Mine"](transformers.PLBartConfig(**SIZES, **BOTH, **FFN))
    model.set_attn_implementation("eager")
    assert attention_of(model.config) == "sdpa"
    assert "does not support setting" in caplog.text
    caplog.clear()
    assert trace_module(model, SOURCE, TARGET).kinds == ("encoder", "decoder", "cross")
    assert not caplog.records
    assert attention_of(model.config) == "sdpa"


def test_another_threads_run_is_not_recorded():
    """Nor does it fail: it gets the eager attention meanwhile."""
    import threading

    model = built("bart").eval()
    other: list[Any] = []

    def meanwhile() -> None:
        with torch.no_grad():
            other.append(model(input_ids=torch.tensor([[5, 6]]), decoder_input_ids=torch.tensor([[7]])).logits)

    def call(source: torch.Tensor, target: torch.Tensor) -> Any:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()
        return model(input_ids=source, decoder_input_ids=target)

    trace = trace_module(model, SOURCE[:5], TARGET, call=call)
    meanwhile()
    assert len(trace.encoder.weights) == 2
    torch.testing.assert_close(other[0], other[1], atol=1e-5, rtol=0)


def test_nothing_is_logged(caplog):
    with caplog.at_level(logging.WARNING):
        trace_module(built("bart"), SOURCE, TARGET)
    assert not caplog.records
