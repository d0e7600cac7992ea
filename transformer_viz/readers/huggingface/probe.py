"""Finds out by a run on three tokens which attentions a Hugging Face model has, in which order and of which sizes.

It also checks that all attention is recorded: the recorded attentions must equal in number, order and value those that the
model itself returns. Otherwise the model is refused, so that no map is ever empty or incomplete.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import ModelError
from transformer_viz.model import masks
from transformer_viz.model.architecture import Architecture, Side
from transformer_viz.model.sizes import Sizes
from transformer_viz.readers.huggingface import attention
from transformer_viz.readers.huggingface.architecture import ObservedStack, architecture_of
from transformer_viz.readers.huggingface.attention import Call, Place
from transformer_viz.readers.huggingface.layers import AttentionModules, Recording, layers_of, modules_around, record_calls
from transformer_viz.terms import KINDS, Kind
from transformer_viz.text_display import shorten

_N_SOURCE, _N_TARGET = 3, 2
"""Tokens of the probe: attention over so many keys is cross-attention, since the decoder reads fewer."""
_IDS = (5, 7, 6)
_NUMBER = re.compile(r"\.(\d+)\b")


@dataclass(frozen=True)
class ProbedModel:
    """The findings of a probe.

    Attributes:
        encoder: kind and layer of each call of attention in a pass of the encoder, in order.
        decoder: kind and layer of each call of attention in a pass of the decoder, in order.
        sizes: of the model.
        modules: the modules around each attention.
        architecture: its drawing.
        encoder_output: the class of what the encoder returns; None without an encoder beside a decoder.
    """

    encoder: tuple[Place, ...]
    decoder: tuple[Place, ...]
    sizes: Sizes
    modules: dict[Place, AttentionModules]
    architecture: Architecture
    encoder_output: type[Any] | None


@torch.inference_mode()
def probe(model: Any, longest: int) -> ProbedModel:
    """Runs the model twice, once with its authors' eager attention and once with ours.

    Args:
        model: in eval mode, any attention; ours is in its place afterwards. Nobody else runs it yet.
        longest: the most positions that it has.

    Raises:
        ModelError: its attention is not all seen; the message names the family and the reason.
    """
    attention.register()
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or ()
    if others := sorted(set(kinds) - {"full_attention", "sliding_attention"}):
        raise refusal(model, f"it has layers of {others[0]!r}; only full attention and sliding windows can be shown")
    with model_errors(model, "a pass over three tokens"):
        returned = _returned_attentions(model)
        model.set_attn_implementation(attention.NAME)
        recordings, logits, encoder_output = _recorded(model)
    names = {id(module): name for name, module in model.named_modules()}
    calls: dict[Kind, list[Call]] = {kind: [] for kind in KINDS}
    places: dict[Side, list[Place]] = {"encoder": [], "decoder": []}
    for side, recording in recordings.items():
        for call in recording.attentions:
            is_cross = side == "decoder" and encoder_output is not None and call.key.shape[2] == _N_SOURCE
            kind: Kind = "cross" if is_cross else side
            calls[kind].append(call)
            # Layers that share a module, or have no number in its name, count as they come.
            after = max((layer + 1 for other, layer in places[side] if other == kind), default=0)
            match = _NUMBER.search(names.get(id(call.module), ""))
            places[side].append((kind, max(after, int(match[1])) if match else after))
    _compare(model, returned, calls)
    has_scores = all(_has_scores(call) for own in calls.values() for call in own)
    sizes = _sizes(model, places, calls, logits, longest)
    modules, stacks = dict[Place, AttentionModules](), dict[Side, ObservedStack]()
    for side, recording in recordings.items():
        layers = layers_of(recording.modules)
        modules |= zip(places[side], modules_around(recording, layers, has_scores=has_scores), strict=True)
        stacks[side] = recording.modules, layers, places[side]
    architecture = architecture_of(stacks, sizes, model.get_output_embeddings())
    return ProbedModel(tuple(places["encoder"]), tuple(places["decoder"]), sizes, modules, architecture, encoder_output)


def family(model: Any) -> str:
    """The name of its family."""
    return str(model.config.model_type)


def refusal(model: Any, why: str) -> ModelError:
    """Says of which family a model is, and why it cannot be shown."""
    return ModelError(f"A model of the family {family(model)!r} ({type(model).__name__}) cannot be shown here: {why}.")


@contextmanager
def model_errors(model: Any, what: str) -> Generator[None]:
    """Refuses a model whose run fails, whatever transformers raises; `what` says what was run."""
    try:
        yield
    except (torch.OutOfMemoryError, ModelError):
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise refusal(model, f"{what} fails ({type(error).__name__}: {shorten(str(error))})") from error


def tokens_of(model: Any, n: int) -> Tensor:
    """The first of the probe's three tokens, int (1, n)."""
    return torch.tensor([_IDS[:n]], device=model.device) % model.get_input_embeddings().weight.shape[0]


def _returned_attentions(model: Any) -> dict[Kind, list[Tensor]]:
    """Computes what the model itself returns, with its own eager attention; of a model of one stack as the decoder's."""
    model.set_attn_implementation("eager")
    source, target = tokens_of(model, _N_SOURCE), tokens_of(model, _N_TARGET)
    attentions: dict[Kind, Any]
    if model.config.is_encoder_decoder:
        returned = model(input_ids=source, decoder_input_ids=target, output_attentions=True)
        attentions = {kind: getattr(returned, f"{kind}_attentions") for kind in KINDS}
    else:
        attentions = {"decoder": getattr(model(input_ids=source, output_attentions=True), "attentions", None)}
    return {kind: [weights for weights in layers or () if weights is not None] for kind, layers in attentions.items()}


def _recorded(model: Any) -> tuple[dict[Side, Recording], Tensor | None, type[Any] | None]:
    """The calls of each stack, the logits, and the class of an encoder's output where there is a decoder too."""
    source, target = tokens_of(model, _N_SOURCE), tokens_of(model, _N_TARGET)
    if not model.config.is_encoder_decoder:
        with record_calls(model) as recording:
            returned = model(input_ids=source)
        # Which of the two it is, its mask shows.
        is_causal = any(masks.hides_future(call.masked) for call in recording.attentions)
        return {"decoder" if is_causal else "encoder": recording}, getattr(returned, "logits", None), None
    with record_calls(model) as encoder:
        memory = model.get_encoder()(input_ids=source)
    with record_calls(model) as decoder:
        returned = model(encoder_outputs=memory, decoder_input_ids=target)
    return {"encoder": encoder, "decoder": decoder}, returned.logits, type(memory)


def _compare(model: Any, returned: dict[Kind, list[Tensor]], calls: dict[Kind, list[Call]]) -> None:
    """Refuses the model unless the recorded attentions are the returned ones, in number, order and value."""
    if not any(calls.values()):
        raise refusal(model, "none of its attention passes through transformers' AttentionInterface, where it is recorded")
    if not model.config.is_encoder_decoder and calls["encoder"]:
        returned = {"encoder": returned["decoder"]}
    for kind, layers in returned.items():
        if len(layers) != len(calls[kind]):
            raise refusal(model, f"it returns {len(layers)} {kind} attentions, but {len(calls[kind])} were recorded")
        for layer, (theirs, call) in enumerate(zip(layers, calls[kind], strict=True), start=1):
            if theirs.shape != call.weights.shape or call.weights.shape[-1] != call.key.shape[2]:
                shapes = f"{tuple(theirs.shape)}, but {tuple(call.weights.shape)} was recorded"
                raise refusal(model, f"its {kind} attention {layer} has the shape {shapes} over {call.key.shape[2]} keys")
            if not torch.equal(theirs, call.weights):
                raise refusal(model, f"its {kind} attention {layer} differs from what was recorded of it")
            if not ((call.weights.sum(-1) - 1).abs() < 1e-3).all():
                sink = ", since a learned sink takes a part" if hasattr(call.module, "sinks") else ""
                raise refusal(model, f"the rows of its {kind} attention {layer} do not add up to 1{sink}")


def _has_scores(call: Call) -> bool:
    """Tells whether a softmax over the scores as `scores_of` computes them, masked, is what the call did."""
    scores = attention.scores_of(call.query, call.key, call.options).masked_fill(call.masked, float("-inf"))
    return scores.shape == call.weights.shape and torch.allclose(scores.softmax(-1), call.weights, atol=1e-5)


def _sizes(
    model: Any, places: dict[Side, list[Place]], calls: dict[Kind, list[Call]], logits: Tensor | None, longest: int
) -> Sizes:
    layers = {kind: tuple(layer for part in places.values() for k, layer in part if k == kind) for kind in KINDS if calls[kind]}
    windows: dict[Kind, dict[int, int]] = {}
    for kind, numbers in layers.items():
        far = ((layer, call.options.get("sliding_window")) for layer, call in zip(numbers, calls[kind], strict=True))
        if own := {layer: int(window) for layer, window in far if window}:
            windows[kind] = own
    # Of a table of positions that begins after the padding's, as RoBERTa's, as many as are left.
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings") and module.padding_idx is not None:
            longest = min(longest, module.num_embeddings - module.padding_idx - 1)
    return Sizes(
        layers=layers,
        heads={kind: calls[kind][0].weights.shape[1] for kind in layers},
        vocabulary=0 if logits is None else int(logits.shape[-1]),
        longest_source=longest,
        longest_target=longest,
        source_vocabulary=int(model.get_input_embeddings().weight.shape[0]),
        cached=sum(2 * call.key.shape[1] * call.key.shape[3] for call in (*calls["decoder"], *calls["cross"])),
        windows=windows,
    )
