"""Callables that see nothing that they must not see, however odd their numbers are."""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.mask_checks.zoo.broken import EVERYTHING, OverTime, masked_by, over_embeddings, with_column
from tests.mask_checks.zoo.parts import (
    PAD,
    Cases,
    D,
    E,
    Model,
    P,
    Tiny,
    V,
    W,
    before,
    causal,
    counted,
    embedded,
    logits,
    numbers,
    read,
    states,
    tiny,
)

SOUND = Cases()

# ---- one sound model, its numbers made odd

ODD = {
    "beside_the_lowest_number": lambda x: with_column(x, torch.finfo(x.dtype).min),
    "beside_minus_infinity": lambda x: with_column(x, -torch.inf),
    "half_of_the_tokens_banned": lambda x: x.masked_fill(torch.arange(V) % 2 == 0, -1e9),
    "all_but_three_at_minus_infinity": lambda x: x.where(x >= x.topk(3).values[..., 2:], -torch.inf),
    "banned_by_adding": lambda x: x + torch.where(torch.arange(V) < 9, -1e9, 0),
    "tiny": lambda x: x * 1e-7,
    "large": lambda x: x * 1e6,
    "beside_an_offset": lambda x: x + 1e4,
    "offsets_by_row": lambda x: x + 1e3 * x[..., :1],
    "probabilities": lambda x: x.softmax(-1),
    "log_probabilities": lambda x: x.log_softmax(-1),
    "sharp_log_probabilities": lambda x: (60 * x).log_softmax(-1),
    "log_probabilities_of_two": lambda x: (60 * x[..., :2]).log_softmax(-1),
    "one_number": lambda x: x[..., :1],
    "one_column_of_many_constant_ones": lambda x: torch.cat([torch.full_like(x, -1e9), x[..., :1]], -1),
    "mostly_zeros": lambda x: (x - 1).relu(),
    "huge_rows_between": lambda x: x * torch.where(torch.arange(x.shape[1]) % 2 == 0, 1, 1e9)[:, None],
    "rounded_by_row": lambda x: (x * 127 / x.abs().amax(-1, keepdim=True)).round(),
    "float64": lambda x: x.double(),
    "float16": lambda x: x.half(),
    "bfloat16": lambda x: x.bfloat16(),
    "log_probabilities_of_bfloat16": lambda x: x.bfloat16().float().log_softmax(-1),
    "whole_numbers": lambda x: (100 * x).round().long(),
}
SOUND.cases({name: lambda s, t, of=of: of(logits(s, t)) for name, of in ODD.items()}, is_slow=True)


SOUND.cases(
    {
        "plain": logits,
        "beside_a_ban": lambda s, t: with_column(logits(s, t), -1e9),
        "a_constant": lambda s, t: torch.ones(*t.shape, V),
        "the_source_ignored": lambda s, t: before(embedded(t)) @ W,
        "the_target_ignored": lambda s, t: read(s).expand(-1, t.shape[1], -1) @ W,
        "the_last_token_alone": lambda s, t: numbers(V, V)[t],
        "the_position_alone": lambda s, t: (P[: t.shape[1]] @ W).expand(len(t), -1, -1),
    }
)


# ---- Transformers

DTYPES = {str(dtype)[6:]: dtype for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)}
SOUND.cases({f"a_transformer_in_{name}": lambda dtype=dtype: Tiny(2).to(dtype) for name, dtype in DTYPES.items()}, is_slow=True)


@SOUND.case()
def a_transformer_under_autocast() -> Model:
    model = Tiny()

    def f(source: Tensor, target: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(source, target).float().log_softmax(-1)

    return f


SOUND.cases(
    {
        "masked_by_the_lowest_number": lambda: tiny(
            weights=lambda scores, may_look: (scores.nan_to_num(neginf=0) + ~may_look * torch.finfo(scores.dtype).min).softmax(
                -1
            )
        ),
        "masked_by_a_product": lambda: tiny(weights=lambda scores, may_look: F.normalize(scores.exp() * may_look, p=1, dim=-1)),
        "positions_as_biases_of_scores": lambda: tiny(
            weights=lambda scores, may_look: (
                scores - (torch.arange(scores.shape[-2])[:, None] - torch.arange(scores.shape[-1])).abs() / 3
            ).softmax(-1)
        ),
        "a_window_of_two": lambda: tiny(
            decoder_mask=lambda target, layer: causal(target.shape[1]) & ~causal(target.shape[1], -2)
        ),
    }
)


@SOUND.case()
def one_sequence_with_the_source_as_its_prefix(source: Tensor, target: Tensor) -> Tensor:
    """The source sees itself, the target sees the source and what was written."""
    n = source.shape[1]
    x = torch.cat([embedded(source), embedded(target)], 1)
    may_look = causal(x.shape[1])
    may_look[:, :n] = True
    is_real = F.pad(source != PAD, (0, target.shape[1]), value=True)
    scores = (x @ x.mT).masked_fill(~(may_look & is_real[:, None]), -torch.inf)
    return (scores.softmax(-1) @ x)[:, n:] @ W


class Whole(nn.Module):
    """Somebody's model around torch's own Transformer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.output = nn.Embedding(V, D), nn.Linear(D, V)
        self.model = nn.Transformer(D, 2, 1, 1, 16, dropout=0.3, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD
        options = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        mask = ~causal(target.shape[1])
        read, written = (self.embedding(ids) + P[: ids.shape[1]].to(self.output.weight.dtype) for ids in (source, target))
        return self.output(self.model(read, written, tgt_mask=mask, **options))


SOUND.cases({f"torchs_transformer_in_{name}": lambda dtype=dtype: Whole().to(dtype).eval() for name, dtype in DTYPES.items()})


# ---- other decoders

SOUND.cases(
    {
        "a_mask_of_minus_forty": lambda: masked_by(-40),
        "a_gru": lambda: over_embeddings(nn.GRU(D, D, batch_first=True)),
        "a_causal_convolution": lambda: over_embeddings(OverTime(nn.Conv1d(D, D, 3), 2)),
        "batch_norm_in_evaluation": lambda: over_embeddings(OverTime(nn.BatchNorm1d(D)).eval()),
    }
)


@SOUND.case()
def linear_attention(source: Tensor, target: Tensor) -> Tensor:
    x = embedded(target)
    # Divided by the largest of all steps for safety, which cancels.
    key = (x - x.amax(1, keepdim=True)).exp()
    return ((key * x).cumsum(1) / key.cumsum(1)) @ W


@SOUND.case()
def a_causal_convolution_by_fourier(source: Tensor, target: Tensor) -> Tensor:
    x, n = embedded(target), 2 * target.shape[1]
    spectrum = torch.fft.rfft(x, n, dim=1) * torch.fft.rfft(P[: target.shape[1]] / 4, n, dim=0)
    return torch.fft.irfft(spectrum, n, dim=1)[:, : target.shape[1]] @ W


@SOUND.case()
def a_sum_less_the_later_ones(source: Tensor, target: Tensor) -> Tensor:
    x = embedded(target)
    return (x.sum(1, keepdim=True) - (x.flip(1).cumsum(1).flip(1) - x)) @ W


@SOUND.case()
def experts_with_room_for_all(source: Tensor, target: Tensor) -> Tensor:
    x = states(source, target)
    expert, experts = (x @ numbers(D, 3, seed=6)).argmax(-1), numbers(3, D, V, seed=7)
    found = torch.zeros(*target.shape, V, dtype=x.dtype)
    for i in range(3):
        found[expert == i] = x[expert == i] @ experts[i]
    return found


@SOUND.case()
def a_pointer_into_the_source(source: Tensor, target: Tensor) -> Tensor:
    places = F.one_hot(source, V) * (source != PAD)[..., None]
    return (logits(source, target) + places.sum(1, keepdim=True) * counted(target)).log_softmax(-1)


def a_pointer_generator(seed: int, gap: float) -> Model:
    """The share 1 − g of a softmax over source and vocabulary together, of which g takes nearly all: how wide the source is
    decides the last digits of g, and they are 1 − g."""

    def f(source: Tensor, target: Tensor) -> Tensor:
        x = before(embedded(target))
        scores = (x @ embedded(source).mT).masked_fill((source == PAD)[:, None], -torch.inf)
        both = torch.cat([scores - gap, x @ numbers(D, V, seed=seed)], -1).softmax(-1)
        generated = both[..., source.shape[1] :].sum(-1, keepdim=True)
        return (1 - generated) * (scores.softmax(-1) @ F.one_hot(source, V).to(scores.dtype))

    return f


POINTERS = {
    f"a_pointer_generator_{given[0]}_{given[1]}": lambda given=given: a_pointer_generator(*given)
    for given in ((2, 10), (4, 10), (5, 10))
}
SOUND.cases(POINTERS)
SOUND.cases(
    {
        "written_tokens_are_banned": lambda s, t: logits(s, t).masked_fill(F.one_hot(t, V).cumsum(1) > 0, -torch.inf),
        "the_target_shifted_by_the_model_itself": lambda s, t: logits(s, F.pad(t[:, :-1], (1, 0), value=1)),
        "states_instead_of_logits": lambda s, t: F.layer_norm(states(s, t), (D,)),
    }
)


@SOUND.case(pad_id=None)
def no_padding_known() -> Model:
    return tiny(encoder_mask=lambda source: EVERYTHING, cross_mask=lambda source: EVERYTHING)


@SOUND.case()
def a_packed_gru_reads_the_source() -> Model:
    torch.manual_seed(0)
    gru = nn.GRU(D, D, batch_first=True)

    def f(source: Tensor, target: Tensor) -> Tensor:
        lengths = (source != PAD).sum(1).clamp_min(1)
        packed = nn.utils.rnn.pack_padded_sequence(embedded(source), lengths, batch_first=True, enforce_sorted=False)
        return (before(embedded(target)) + gru(packed)[1][0][:, None]) @ W

    return f


# ---- what torch in float64 does not reach


@SOUND.case()
def not_torch_at_all(source: Tensor, target: Tensor) -> Tensor:
    x = E.numpy()[target.numpy()].cumsum(1) @ W.numpy()
    return torch.from_numpy(x.astype(np.float32))


class Recurrent(nn.Module):
    """Small enough for TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.gru = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.gru(self.embedding(target))[0]


@SOUND.case()
def traced_by_torchscript_in_bfloat16() -> Model:
    ids = torch.ones(2, 3, dtype=torch.long)
    with warnings.catch_warnings(action="ignore"):  # that it is old, and that the GRU's own checks are not traced
        return torch.jit.trace(Recurrent().bfloat16(), (ids, ids))


@SOUND.case()
def weights_of_eight_bits() -> Model:
    torch.manual_seed(0)
    weight = (W * 127 / W.abs().amax(0)).round().to(torch.int8)
    return lambda source, target: states(source, target) @ (weight * W.abs().amax(0) / 127)


@SOUND.case()
def one_length_only(source: Tensor, target: Tensor) -> Tensor:
    if source.shape[1] != 3 or target.shape[1] != 3:
        raise ValueError("3 tokens are needed")
    return logits(source, target)


@SOUND.case()
def computed_elsewhere_in_float32(source: Tensor, target: Tensor) -> Tensor:
    """As a runtime such as ONNX does it: whatever it is given, it takes and gives float32."""
    x, weight = np.asarray(E.tolist(), np.float32)[np.asarray(target)], np.asarray(W.tolist(), np.float32)
    return torch.from_numpy(x.cumsum(1) @ weight).log_softmax(-1)
