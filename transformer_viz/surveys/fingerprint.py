"""A sha256 over everything that decides what a model computes, which tells apart models of one name."""

import hashlib
import json
from dataclasses import asdict

import torch
from torch import nn

from transformer_viz.loaded_model import LoadedModel


def fingerprint(model: LoadedModel) -> str:
    """A digest of the weights to the last bit, the labels of tokens, the options and the rules of generation, in hex."""
    tokenizer, sizes = model.tokenizer, model.model.sizes
    labels = [tokenizer.target_labels(range(sizes.vocabulary)), tokenizer.source_labels(range(sizes.source_vocabulary))]
    task = [model.task.name, model.task.options()] if model.task else None
    built = [model.variant, repr(model.architecture), repr(sizes)]
    about = [*built, asdict(model.options), dict(model.generation), task, *labels]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode())
    # The weights of a reader: its own, or of the model that it wraps.
    module = next(
        candidate for candidate in (model.model, getattr(model.model, "model", None)) if isinstance(candidate, nn.Module)
    )
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
