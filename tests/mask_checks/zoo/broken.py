"""Callables that see what they must not see, and under which rule they must be caught."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.mask_checks.zoo.parts import (
    PAD,
    Cases,
    D,
    E,
    Model,
    P,
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
    whole,
)

BROKEN = Cases()
EVERYTHING = torch.ones(1, 1, 1, 1).bool()
"""A mask that lets every query look at every key."""


def masked_by(ban: float) -> Model:
    """The number that bans is too small."""
    return tiny(weights=lambda scores, may_look: scores.nan_to_num(neginf=ban).softmax(-1))


def over_embeddings(layer: nn.Module) -> Model:
    """A layer from torch, (batch, length, D) to the same, before the projection."""
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data = numbers(*parameter.shape, seed=seed) * 0.5

    def f(source: Tensor, target: Tensor) -> Tensor:
        found = layer(embedded(target))
        return (found[0] if isinstance(found, tuple) else found) @ numbers(D, V, seed=9)

    return f


class OverTime(nn.Module):
    """Runs a layer that wants (batch, D, length)."""

    def __init__(self, layer: nn.Module, left: int = 0, right: int = 0) -> None:
        super().__init__()
        self.layer, self.pads = layer, (left, right)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(F.pad(x.mT, self.pads)).mT


# ---- the whole target, however the numbers are scaled


def with_column(x: Tensor, value: float) -> Tensor:
    x = x.clone()
    x[..., 0] = value
    return x


SCALED = {
    "_beside_the_lowest_number": lambda x: with_column(x, torch.finfo(x.dtype).min),
    "_beside_minus_infinity": lambda x: with_column(x, -torch.inf),
    "_tiny": lambda x: x * 1e-7,
    "_large": lambda x: x * 1e6,
    "_beside_an_offset": lambda x: x + 1e4,
    "_as_log_probabilities": lambda x: x.log_softmax(-1),
    "_in_one_column_of_two": lambda x: with_column(x[..., :2], -1e9),
    "_in_one_column_of_many_constant_ones": lambda x: torch.cat([torch.full_like(x, -1e9), x[..., :1]], -1),
    "_where_most_tokens_are_banned": lambda x: x.where(x >= x.topk(3).values[..., 2:], torch.finfo(x.dtype).min),
    "_in_a_tiny_column": lambda x: torch.cat([x[..., :1] * 1e-7, torch.ones_like(x)], -1),
    "_in_rows_between_huge_ones": lambda x: x * torch.where(torch.arange(x.shape[1]) % 2 == 0, 1, 1e9)[:, None],
    "_in_float64": lambda x: x.double(),
    "_in_float16": lambda x: x.half(),
    "_in_bfloat16": lambda x: x.bfloat16(),
}
BROKEN.cases(
    {f"whole_target{suffix}": lambda s, t, of=of: of(whole(t)) for suffix, of in SCALED.items()}, "future", is_slow=True
)


# ---- masks of attention


BROKEN.cases(
    {
        "no_causal_mask": lambda: tiny(decoder_mask=lambda target, layer: EVERYTHING),
        "one_token_too_far": lambda: tiny(decoder_mask=lambda target, layer: causal(target.shape[1], 1)),
        "the_last_layer_alone": lambda: tiny(
            2, decoder_mask=lambda target, layer: causal(target.shape[1]) | torch.tensor(layer == 1)
        ),
        "one_head_of_one_layer_in_bfloat16": lambda: tiny(
            2, decoder_mask=lambda t, layer: causal(t.shape[1]) | torch.tensor([layer == 1, False])[:, None, None]
        ).bfloat16(),
        "the_mask_turned_round": lambda: tiny(decoder_mask=lambda target, layer: causal(target.shape[1]).mT),
        "the_mask_for_the_first_sentence_only": lambda: tiny(
            decoder_mask=lambda target, layer: causal(target.shape[1]) | (torch.arange(len(target)) > 0)[:, None, None, None]
        ),
        "a_mask_of_minus_fifteen": lambda: masked_by(-15),
        "the_softmax_over_queries": lambda: tiny(
            weights=lambda scores, may_look: scores.exp() / scores.exp().sum(-2, keepdim=True).clamp_min(1e-9)
        ),
        "a_gru_in_both_directions": lambda: over_embeddings(nn.GRU(D, D // 2, batch_first=True, bidirectional=True)),
        "a_convolution_that_looks_both_ways": lambda: over_embeddings(OverTime(nn.Conv1d(D, D, 3), 1, 1)),
        "batch_norm_in_training": lambda: over_embeddings(OverTime(nn.BatchNorm1d(D))),
        "equal_tokens_may_be_looked_at": lambda: tiny(
            decoder_mask=lambda target, layer: (causal(target.shape[1]) | (target[:, :, None] == target[:, None]))[:, None]
        ),
    },
    "future",
)


# ---- other ways to see later tokens


BROKEN.cases(
    {
        "the_next_token_through_the_shift_of_the_loss": lambda s, t: logits(s, t.roll(-1, 1)),
        "a_sum_from_the_end": lambda s, t: embedded(t).flip(1).cumsum(1).flip(1) @ W,
        "the_whole_target": lambda s, t: whole(t),
        "the_whole_target_beside_a_ban": lambda s, t: with_column(whole(t), -1e9),
        "a_mean_of_all_steps": lambda s, t: logits(s, t) + embedded(t).mean(1, keepdim=True) @ W,
        "a_norm_over_time": lambda s, t: F.instance_norm(states(s, t).mT).mT @ W if t.shape[1] > 1 else logits(s, t),
        "a_softmax_over_time": lambda s, t: logits(s, t).softmax(1),
        "steps_sorted": lambda s, t: embedded(t).sort(1).values @ W,
        "the_rank_of_a_token": lambda s, t: P[t.argsort(1).argsort(1)] @ W,
        "how_often_a_token_occurs": lambda s, t: logits(s, t) + (t[:, :, None] == t[:, None]).sum(-1, keepdim=True) * W[0],
        "a_pointer_into_the_whole_target": lambda s, t: logits(s, t) + F.one_hot(t, V).sum(1, keepdim=True),
        "one_token_alone_is_seen_ahead": lambda s, t: logits(s, t) + (F.pad(t[:, 1:], (0, 1)) == 7)[..., None] * W[0],
        "later_tokens_are_banned": lambda s, t: logits(s, t).masked_fill(
            F.one_hot(t, V).flip(1).cumsum(1).flip(1) > 0, -torch.inf
        ),
        "a_leak_of_a_ten_thousandth": lambda s, t: logits(s, t) + 1e-4 * whole(t),
        "a_leak_of_a_ten_millionth_in_float64": lambda s, t: logits(s, t).double() + 1e-7 * whole(t).double(),
        "weights_masked_after_the_softmax": lambda s, t: (
            ((embedded(t) @ embedded(t).mT).softmax(-1) * causal(t.shape[1])) @ embedded(t) @ W
        ),
        "a_leak_of_a_ten_millionth_beside_a_share_that_is_known_to_few_digits": lambda s, t: (
            (1 - (logits(s, t).double().softmax(-1)[..., 1:].sum(-1, keepdim=True)))
            * (1 + 1e-7 * embedded(t).double().sum((1, 2), keepdim=True))
            * W[0].double()
        ),
        "a_mix_over_time": lambda s, t: torch.fft.fft(embedded(t), dim=1).real @ W,
    },
    "future",
)


@BROKEN.case("future", max_length=6)
def seen_from_four_steps_away(source: Tensor, target: Tensor) -> Tensor:
    return logits(source, target) + F.pad(target[:, 4:], (0, min(4, target.shape[1])))[..., None] * W[0]


@BROKEN.case("future", max_length=12)
def seen_in_long_targets_only(source: Tensor, target: Tensor) -> Tensor:
    return whole(target) if target.shape[1] >= 10 else logits(source, target)


@BROKEN.case("future")
def rounded_by_one_scale_for_all_steps(source: Tensor, target: Tensor) -> Tensor:
    x = embedded(target) @ W
    step = x.abs().amax((1, 2), keepdim=True) / 127
    return (x / step).round() * step


# ---- the length of the target


BROKEN.cases(
    {
        "positions_from_the_end": lambda s, t: (before(E[t]) + P[: t.shape[1]].flip(0)) @ W,
        "positions_as_a_share_of_the_length": lambda s, t: (before(E[t]) + counted(t) / t.shape[1]) @ W,
        "the_number_of_real_tokens": lambda s, t: logits(s, t) + (t != PAD).sum(1)[:, None, None] * W[0],
        "whether_this_is_the_last_step": lambda s, t: logits(s, t) + (counted(t) == t.shape[1]) * W[0],
        "whether_the_next_token_is_padding": lambda s, t: (
            logits(s, t) + (F.pad(t[:, 1:], (0, 1), value=PAD) == PAD)[..., None] * W[0]
        ),
        "a_sum_divided_by_the_length": lambda s, t: embedded(t).cumsum(1) / t.shape[1] @ W,
        "scores_scaled_by_the_length": lambda s, t: logits(s, t) * (1 + torch.tensor(t.shape[1]).log()),
    },
    "target length",
)


@BROKEN.case("target padding")
def whether_padding_follows(source: Tensor, target: Tensor) -> Tensor:
    return logits(source, target) + F.pad(target[:, 1:] == PAD, (0, 1))[..., None] * W[0]


@BROKEN.case("target padding")
def whether_padding_follows_in_the_only_length(source: Tensor, target: Tensor) -> Tensor:
    if target.shape[1] != 3:
        raise ValueError("3 tokens are needed")
    return whether_padding_follows(source, target)


@BROKEN.case("target length", max_length=6)
def the_last_three_tokens_as_context(source: Tensor, target: Tensor) -> Tensor:
    x = embedded(target) * (counted(target) > target.shape[1] - 3)
    return x.cumsum(1) @ W


# ---- padding


BROKEN.cases(
    {
        "padding_is_read": lambda: tiny(encoder_mask=lambda source: EVERYTHING, cross_mask=lambda source: EVERYTHING),
        "the_encoder_reads_padding": lambda: tiny(encoder_mask=lambda source: EVERYTHING),
        "cross_attention_over_padded_rows_in_bfloat16": lambda: tiny(cross_mask=lambda source: EVERYTHING).bfloat16(),
        "the_mask_of_padding_turned_round": lambda: tiny(
            cross_mask=lambda source: (source == PAD)[:, None, None] | (source != PAD).all(1)[:, None, None, None]
        ),
        # Queries that are padding may look at nothing: a softmax over nothing but −∞.
        "padding_turns_to_nan": lambda: tiny(
            encoder_mask=lambda source: ((source != PAD)[:, :, None] & (source != PAD)[:, None])[:, None]
        ),
    },
    "source padding",
)


BROKEN.cases(
    {
        "a_mean_over_padding": lambda s, t: (before(embedded(t)) + embedded(s).mean(1, keepdim=True)) @ W,
        "a_sum_without_padding_divided_by_the_width": lambda s, t: (
            (before(embedded(t)) + (embedded(s) * (s != PAD)[..., None]).mean(1, keepdim=True)) @ W
        ),
        "the_last_place_as_summary": lambda s, t: (before(embedded(t)) + embedded(s)[:, -1:]) @ W,
        "the_source_backwards_with_its_padding": lambda s, t: (before(embedded(t)) + read(s.flip(1))) @ W,
    },
    "source padding",
)


BROKEN.cases(
    {
        "whether_there_is_padding_at_all": lambda s, t: logits(s, t) * torch.where((t == PAD).any(1), 2, 1)[:, None, None],
        "a_mean_over_the_padding_of_the_target": lambda s, t: logits(s, t) + (t == PAD).double().mean(1)[:, None, None],
    },
    "target padding",
)


# ---- the other sentences of the batch


BROKEN.cases(
    {
        "a_mean_over_the_batch": lambda s, t: (before(embedded(t)) + read(s).mean(0)) @ W,
        "divided_by_the_largest_of_the_batch": lambda s, t: logits(s, t) / read(s).abs().amax(),
        "all_sentences_before": lambda s, t: logits(s, t) + F.pad(read(s)[:-1].cumsum(0), (0, 0, 0, 0, 1, 0)) @ W,
        "the_size_of_the_batch": lambda s, t: logits(s, t) / len(s),
        "one_sentence_alone_is_treated_otherwise": lambda s, t: logits(s, t) * (1 if len(s) > 1 else 2),
    },
    "batch invariance",
)


@BROKEN.case("batch invariance")
def an_expert_that_earlier_sentences_fill(source: Tensor, target: Tensor) -> Tensor:
    x = states(source, target)
    chosen = x @ W[:, 0] > 0
    room = (chosen.flatten().cumsum(0) <= 12).view_as(chosen)
    return (x * (chosen & room)[..., None]) @ W


@BROKEN.case("batch invariance")
def batch_first_forgotten() -> Model:
    attention = nn.MultiheadAttention(D, 2)
    for seed, parameter in enumerate(attention.parameters()):
        parameter.data = numbers(*parameter.shape, seed=seed)
    return lambda source, target: (
        (before(embedded(target)) + attention(*[read(source).expand(-1, target.shape[1], -1)] * 3)[0]) @ W
    )


@BROKEN.case("batch invariance")
def the_padding_of_the_first_sentence_for_all() -> Model:
    return tiny(cross_mask=lambda source: (source != PAD)[:1, None, None])


# ---- no numbers, and never the same ones


BROKEN.cases(
    {
        "nothing_but_nan": lambda s, t: logits(s, t) * torch.nan,
        "one_infinite_logit": lambda s, t: with_column(logits(s, t), torch.inf),
        "every_token_is_banned": lambda s, t: torch.full((*t.shape, V), -torch.inf),
    },
    verdict="faulty",
    rule="finite",
)


@BROKEN.case(verdict="not deterministic")
def dropout_left_on() -> Model:
    dropout = nn.Dropout(0.1)
    return lambda source, target: dropout(states(source, target)) @ W


@BROKEN.case(verdict="not deterministic")
def it_remembers_what_it_was_asked() -> Model:
    kept = [torch.zeros(D)]

    def f(source: Tensor, target: Tensor) -> Tensor:
        kept[0] = 0.5 * kept[0] + read(source).mean((0, 1))
        return logits(source, target) + kept[0] @ W

    return f
