"""What a Hugging Face model is, found by running it on three tokens: which attentions it has, in which order, how large.

And whether all of its attention is seen: what a pass records is compared with what the model itself returns as its attentions,
in number, order and value. What differs is refused, never drawn empty or partly.
"""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import ModelError, shortened
from transformer_viz.model import masks
from transformer_viz.model.sizes import Sizes
from transformer_viz.readers.huggingface import attention
from transformer_viz.readers.huggingface.around import Around
from transformer_viz.readers.huggingface.around import around as arounds
from transformer_viz.readers.huggingface.attention import Call, Place
from transformer_viz.readers.huggingface.watching import Seen, watched
from transformer_viz.terms import KINDS, Kind

_N_SOURCE, _N_TARGET = 3, 2
"""Tokens of the probe: attention over so many keys is cross-attention, since the decoder reads fewer."""
_IDS = (5, 7, 6)
_LAYER = re.compile(r"\.(\d+)\b")


@dataclass(frozen=True)
class Found:
    """What the probe found.

    Attributes:
        encoder: where the encoder's calls of attention stand, in their order.
        decoder: likewise the decoder's.
        sizes: of the model.
        has_scores: whether the scores before the mask can be computed as the model does.
        around: what stands around each attention.
        encoder_output: the class of what the encoder returns; None without an encoder beside a decoder.
    """

    encoder: tuple[Place, ...]
    decoder: tuple[Place, ...]
    sizes: Sizes
    has_scores: bool
    around: dict[Place, Around]
    encoder_output: type[Any] | None


@torch.inference_mode()
def probe(model: Any, longest: int) -> Found:
    """Runs the model twice, as its authors let it show its attention and with ours in its place.

    Args:
        model: in eval mode, any attention; ours is in its place afterwards.
        longest: the most positions that it has.

    Raises:
        ModelError: its attention is not all seen; the message names the family and the reason.
    """
    attention.register()
    _check_layers(model)
    theirs, (encoder, decoder, logits, encoder_output) = _both(model)
    names = {id(module): name for name, module in model.named_modules()}
    calls: dict[Kind, list[Call]] = {kind: [] for kind in KINDS}
    places: list[tuple[Place, ...]] = []
    for part, kind_of in ((encoder, lambda call: "encoder"), (decoder, _decoder_kind(model))):
        found = []
        for call in _calls_of(part):
            kind: Kind = kind_of(call)
            found.append((kind, _layer(names.get(id(call.module), ""), [place[1] for place in found if place[0] == kind])))
            calls[kind].append(call)
        places.append(tuple(found))
    _compare(model, theirs, calls)
    sizes = _sizes(places, calls, logits, min(longest, _n_positions(model, longest)))
    sizes = replace(sizes, source_vocabulary=_n_embedded(model))
    has_scores = _has_scores(calls)
    around = {}
    for part, found in zip((encoder, decoder), places, strict=True):
        layers = [_layer_module(model, names.get(id(call.module), "")) for call in _calls_of(part)]
        around |= zip(found, arounds(part, layers, has_scores=has_scores), strict=True)
    return Found(places[0], places[1], sizes, has_scores, around, encoder_output)


def family(model: Any) -> str:
    """What its family is called."""
    return str(model.config.model_type)


def refused(model: Any, why: str) -> ModelError:
    """Says of which family a model is, and why it cannot be shown."""
    return ModelError(f"A model of the family {family(model)!r} ({type(model).__name__}) cannot be shown here: {why}.")


def _check_layers(model: Any) -> None:
    """Refuses layers whose attention three tokens do not show."""
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or ()
    if others := sorted(set(kinds) - {"full_attention", "sliding_attention"}):
        raise refused(model, f"it has layers of {others[0]!r}, in which a token does not see all before it or in a window")


def _n_positions(model: Any, longest: int) -> int:
    """Of a table of positions that begins after the padding's, as RoBERTa's, as many as are left."""
    tables = [m for name, m in model.named_modules() if isinstance(m, nn.Embedding) and name.endswith("position_embeddings")]
    return min((each.num_embeddings - each.padding_idx - 1 for each in tables if each.padding_idx is not None), default=longest)


def _both(model: Any) -> tuple[dict[Kind, list[Tensor]], tuple[Seen, Seen, Tensor | None, type[Any] | None]]:
    """What the model returns and what is seen of it. Where transformers cannot do either it may raise anything, or warn."""
    with failures(model, "a pass over three tokens"):
        theirs = _returned(model)
        model.set_attn_implementation(attention.NAME)
        return theirs, _calls(model)


@contextmanager
def failures(model: Any, what: str) -> Generator[None]:
    """Refuses a model whose run fails, whatever transformers raises; `what` says what was run."""
    try:
        yield
    except (torch.OutOfMemoryError, ModelError):
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise refused(model, f"{what} fails ({type(error).__name__}: {shortened(str(error))})") from error


def _n_embedded(model: Any) -> int:
    return int(model.get_input_embeddings().weight.shape[0])


def tokens_of(model: Any, n: int) -> Tensor:
    """The first of the probe's three tokens, int (1, n)."""
    size = _n_embedded(model)
    return torch.tensor([[each % size for each in _IDS[:n]]], device=model.device)


def _inputs(model: Any) -> dict[str, Tensor]:
    if not model.config.is_encoder_decoder:
        return {"input_ids": tokens_of(model, _N_SOURCE)}
    return {"input_ids": tokens_of(model, _N_SOURCE), "decoder_input_ids": tokens_of(model, _N_TARGET)}


def _returned(model: Any) -> dict[Kind, list[Tensor]]:
    """The attentions that the model itself returns, with its own eager attention."""
    model.set_attn_implementation("eager")
    returned = model(**_inputs(model), output_attentions=True)
    if model.config.is_encoder_decoder:
        each = (returned.encoder_attentions, returned.decoder_attentions, returned.cross_attentions)
        return {kind: [one for one in found or () if one is not None] for kind, found in zip(KINDS, each, strict=True)}
    # Which of the two it is, its mask shows.
    return {"decoder": [each for each in getattr(returned, "attentions", None) or () if each is not None]}


def _calls(model: Any) -> tuple[Seen, Seen, Tensor | None, type[Any] | None]:
    """What the encoder calls, what the decoder calls, the logits, and the class of what an encoder beside a decoder returns."""
    if not model.config.is_encoder_decoder:
        with watched(model) as seen:
            returned = model(**_inputs(model))
        logits = getattr(returned, "logits", None)
        is_causal = any(masks.hides_future(call.masked) for call in _calls_of(seen))
        return ([], seen, logits, None) if is_causal else (seen, [], logits, None)
    given = _inputs(model)
    with watched(model) as encoder:
        memory = model.get_encoder()(input_ids=given["input_ids"])
    with watched(model) as decoder:
        returned = model(encoder_outputs=memory, decoder_input_ids=given["decoder_input_ids"])
    return encoder, decoder, returned.logits, type(memory)


def _decoder_kind(model: Any) -> Callable[[Call], Kind]:
    has_both = model.config.is_encoder_decoder
    return lambda call: "cross" if has_both and call.key.shape[2] == _N_SOURCE else "decoder"


def _calls_of(seen: Seen) -> list[Call]:
    return [each for each in seen if isinstance(each, Call)]


def _layer_module(model: Any, name: str) -> nn.Module | None:
    """The module of the layer that has an attention of this name: up to the first number in it."""
    match = _LAYER.search(name)
    return model.get_submodule(name[: match.end()]) if match else None


def _layer(name: str, before: list[int]) -> int:
    """The number in the module's name; where layers share a module, or have no number, the next one."""
    match = _LAYER.search(name)
    number = int(match[1]) if match else len(before)
    return number if number not in before and number >= (before[-1] + 1 if before else 0) else before[-1] + 1


def _compare(model: Any, theirs: dict[Kind, list[Tensor]], calls: dict[Kind, list[Call]]) -> None:
    """In number, order and value."""
    if "encoder" not in theirs:
        theirs = {"encoder" if calls["encoder"] else "decoder": theirs["decoder"]}
    if not any(calls.values()):
        raise refused(model, "none of its attention passes through the AttentionInterface of transformers")
    for kind, returned in theirs.items():
        if len(returned) != len(calls[kind]):
            raise refused(model, f"it returns {len(returned)} {kind} attentions, and {len(calls[kind])} are seen here")
        for layer, (own, call) in enumerate(zip(returned, calls[kind], strict=True), start=1):
            if own.shape != call.weights.shape or call.weights.shape[-1] != call.key.shape[2]:
                shapes = f"{tuple(own.shape)}, and {tuple(call.weights.shape)} is seen"
                raise refused(model, f"its {kind} attention {layer} is {shapes} over {call.key.shape[2]} keys")
            if not torch.equal(own, call.weights):
                raise refused(model, f"its {kind} attention {layer} is computed in another way than what is seen of it")
            if not _adds_up(call):
                sink = ", since a learned sink takes a part" if hasattr(call.module, "sinks") else ""
                raise refused(model, f"the rows of its {kind} attention {layer} do not add up to 1{sink}")


def _adds_up(call: Call) -> bool:
    return bool(((call.weights.sum(-1) - 1).abs() < 1e-3).all())


def _has_scores(calls: dict[Kind, list[Call]]) -> bool:
    """Whether a softmax over the scores as `scores_of` computes them, masked, is what each call did."""
    for call in (call for each in calls.values() for call in each):
        scores = attention.scores_of(call.query, call.key, call.options).masked_fill(call.masked, float("-inf"))
        if scores.shape != call.weights.shape or not torch.allclose(scores.softmax(-1), call.weights, atol=1e-5):
            return False
    return True


def _sizes(places: list[tuple[Place, ...]], calls: dict[Kind, list[Call]], logits: Tensor | None, longest: int) -> Sizes:
    layers = {kind: tuple(layer for part in places for k, layer in part if k == kind) for kind in KINDS if calls[kind]}
    return Sizes(
        layers=layers,
        heads={kind: calls[kind][0].weights.shape[1] for kind in layers},
        vocabulary=0 if logits is None else int(logits.shape[-1]),
        longest_source=longest,
        longest_target=longest,
        cached=sum(2 * call.key.shape[1] * call.key.shape[3] for call in (*calls["decoder"], *calls["cross"])),
        windows={kind: found for kind in layers if (found := _windows(layers[kind], calls[kind]))},
    )


def _windows(layers: tuple[int, ...], calls: list[Call]) -> dict[int, int]:
    """How far each layer with a window looks, as it is told; `layers` are the numbers of these calls."""
    told = ((layer, call.options.get("sliding_window")) for layer, call in zip(layers, calls, strict=True))
    return {layer: int(window) for layer, window in told if window}
