"""Compares the masks of a configuration with those that a tiny model of it applied: where its own weights are exactly 0."""

from inspect import signature
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

import transformer_viz as tv
from tests.readers import every_family
from transformer_viz.config_masks.result import ConfigMasks
from transformer_viz.model import masks as masks_of
from transformer_viz.readers.huggingface.loading import quiet_transformers

BATCHES: tuple[tuple[tuple[int, ...], str], ...] = (((7,), "right"), ((11, 7, 4), "right"), ((11, 7, 4), "left"))
"""Lengths of texts, and where the shorter ones are padded: alone, and three together on each side."""
KINDS = {"encoder_attentions": "encoder", "decoder_attentions": "decoder", "cross_attentions": "cross", "attentions": None}


def applied(model: Any, masks: ConfigMasks) -> dict[str, list[np.ndarray]]:
    """Of each kind the weights of the model's layers over the same texts, as it returns them itself."""
    real = torch.tensor([[token != "<pad>" for token in tokens] for tokens in masks.tokens])
    rng = np.random.default_rng(3)

    def ids(of: torch.Tensor) -> torch.Tensor:
        drawn = torch.from_numpy(rng.integers(5, every_family.SIZE, of.shape))
        return torch.where(of, drawn, torch.zeros_like(drawn))

    given: dict[str, Any] = {"input_ids": ids(real), "attention_mask": real.long()}
    if masks.targets:
        written = torch.tensor([[token != "<pad>" for token in tokens] for tokens in masks.targets])
        given |= {"decoder_input_ids": ids(written), "decoder_attention_mask": written.long()}
    softmaxes = _Softmaxes()
    with torch.no_grad(), quiet_transformers(), softmaxes:
        if "use_cache" in signature(model.forward).parameters:
            given["use_cache"] = False  # some build no mask where they keep a cache
        returned = model(**given, output_attentions=True)
    found = {}
    for name, kind in KINDS.items():
        layers = [weights.numpy() for weights in getattr(returned, name, None) or () if weights is not None]
        # Some return scores, after the mask and before the softmax.
        layers = [np.where(one <= masks_of.HIDDEN, 0, 1) if (one < 0).any() else one for one in layers]
        if layers:
            found[kind or masks.kinds[0]] = layers
    # Some return none of theirs.
    return found or {masks.kinds[0]: softmaxes.weights}


class _Softmaxes(TorchFunctionMode):
    """Keeps what every softmax over four axes gave."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[np.ndarray] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        if func in (F.softmax, torch.softmax, torch.Tensor.softmax) and given.dim() == 4:
            self.weights.append(given.numpy())
        return given


def differences(name: str) -> list[str]:
    """Where the masks of a family's configuration are others than those that a tiny random model of it applied."""
    with quiet_transformers():
        config, model = every_family.config_of(name), every_family.made(name)
        for name_of, parameter in model.named_parameters():
            if parameter.dim() > 1 or name_of.endswith(("q_norm.weight", "k_norm.weight")):
                parameter.mul_(0.05)  # so that no weight is 0 by rounding
    found = []
    for lengths, side in BATCHES:
        options: dict[str, Any] = {"lengths": lengths, "padding": side}
        if config.is_encoder_decoder:
            options["target_lengths"] = tuple(length - 2 for length in lengths)
        masks = tv.masks(config, **options)
        layers = applied(model, masks)
        for kind in masks.kinds:
            own = [one for one in masks.layers if one.kind == kind]
            if kind in layers and len(layers[kind]) > own[-1].layer:  # beside layers of another kind
                layers[kind] = [layers[kind][one.layer] for one in own]
            if len(own) != len(layers.get(kind, ())):
                found.append(f"{lengths} {side}: {len(own)} {kind} layers, {len(layers.get(kind, ()))} returned")
                continue
            for one, weights in zip(own, layers[kind], strict=True):
                # A row that may see nothing is filled in some way or other.
                rows = ~one.masked.all(-1)
                wrong = np.not_equal(weights == 0, one.masked[:, None]) & np.asarray(rows)[:, None, :, None]
                if wrong.any():
                    found.append(
                        f"{lengths} {side}: {kind} layer {one.layer + 1}, {wrong.sum()} cells, first {np.argwhere(wrong)[0]}"
                    )
    return found
