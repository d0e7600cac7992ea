"""The vectors that an attention sublayer adds up: one from each key and head, and the residual connection around them.

`join_layers` joins shares of keys from layer to layer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.attribution.rerun import Run
from transformer_viz.decoding.memory import WORKING, n_at_once
from transformer_viz.errors import OptionError
from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.tap import RecordTap, Site, TapName
from transformer_viz.terms import Kind, kind_words


@dataclass(frozen=True)
class Sublayer:
    """One attention of a run.

    Attributes:
        site: which.
        weights: (head, query, key).
        projected: (head, key, d_model), each value through the output projection; zeros of a head that is switched off.
        stream: what else was asked for by its name, (query, d_model).
        around: what stands around it.
    """

    site: Site
    weights: Tensor
    projected: Tensor
    stream: dict[TapName, Tensor]
    around: AttentionBlock

    def parts(self) -> Iterator[tuple[slice, Tensor]]:
        """Yields some query rows at a time with what each key adds to them, f: (query, key, d_model), summed over heads."""
        _, n_keys, width = self.projected.shape
        n = n_at_once(WORKING, n_keys * width)
        for start in range(0, self.weights.shape[1], n):
            rows = slice(start, start + n)
            yield rows, torch.einsum("hqk,hkd->qkd", self.weights[:, rows], self.projected)

    def terms(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some query rows at a time, and the vectors whose sum, with the biases of projection and norm, they become.

        Of keys they are (query, key, d_model), and of the row itself (query, d_model). In self-attention the row is a key, and
        its own term is zero.
        """
        for rows, given in self.parts():
            own = self.stream["residual_before"][rows]
            norm, is_own = self.norm_of(rows), self.site.kind != "cross"
            if is_own and self.around.placement != "residual-post":
                given = _add_own_vectors(given, own, rows)
            given = norm(given)
            if is_own and self.around.placement == "residual-post":
                given = _add_own_vectors(given, own, rows)
            if is_own:
                own = torch.zeros_like(own)
            elif self.around.placement == "post":
                own = norm(own[:, None])[:, 0]
            yield rows, given, own

    def norm_of(self, rows: slice) -> Callable[[Tensor], Tensor]:
        """L_i(u) = γ ⊙ (u − mean u) / σ_i for each of these rows, σ_i of what the norm was given; nothing where it comes first.

        It takes and returns (query, n, d_model).
        """
        norm, placement = self.around.norm, self.around.placement
        if placement == "pre":
            return lambda u: u
        assert norm is not None
        given = self.stream["added"][rows]
        if placement == "post":
            given = given + self.stream["residual_before"][rows]
        has_mean = norm.kind == "layer"
        centred = given - given.mean(-1, keepdim=True) if has_mean else given
        sigma = (centred.square().mean(-1, keepdim=True) + norm.epsilon).sqrt()[:, None]
        weight = 1.0 if norm.weight is None else norm.weight
        return lambda u: weight * (u - u.mean(-1, keepdim=True) if has_mean else u) / sigma


def sublayers(run: Run, measure: str, kind: Kind | None = None, streams: Sequence[TapName] = ()) -> list[Sublayer]:
    """The sublayers of all kinds of attention, or of one, in the order of the calls.

    Args:
        run: the run.
        measure: what needs them, in words.
        kind: of attention.
        streams: what else is wanted of each.

    Raises:
        OptionError: this model does not tell them.
    """
    tap = RecordTap("weights", "value", "heads", *streams)
    run.logits(run.inputs, tap)
    contributions = []
    for site, kept in tap.kept.items():
        around = run.model.network.attention_block(site.kind, site.layer)
        if kind not in (None, site.kind):
            continue
        seen = {name: value[0] for name, value in kept.items()}
        lacking = [name for name in ("value", *streams) if name not in seen]
        if lacking or around.out is None or (streams and around.placement is None):
            what = "how heads are combined" if not streams else "where norms and residual connections are"
            raise OptionError(
                f"{measure} is not available for {run.model.name}: it is not known {what} in {kind_words(site.kind)}. "
                "Occlusion works for every model that writes"
            )
        is_on = (seen["heads"] != 0).flatten(1).any(1)[:, None, None]
        projected = torch.where(is_on, seen["value"] @ around.out, 0.0)
        contributions.append(Sublayer(site, seen["weights"], projected, {name: seen[name] for name in streams}, around))
    return contributions


def _add_own_vectors(given: Tensor, own: Tensor, rows: slice) -> Tensor:
    """(query, key, d_model) with each row's own vector at its own key."""
    at = torch.arange(len(given), device=given.device)
    given[at, at + rows.start] += own
    return given


def join_layers(shares: Iterable[tuple[Site, Tensor, Tensor]], n_source: int, n_steps: int) -> dict[Kind, Tensor]:
    """The shares of source tokens (`cross`) and of tokens that the decoder read (`decoder`) in each row after the last layer,
    (step, key).

    `shares` are in the order of the calls: the encoder's layers, then each decoder layer's self-attention and cross-attention.
    Each has the shares of keys in every position, (query, key), and what stays of the position itself, (query,). In
    self-attention the position is one of the keys, and nothing else stays.
    """
    encoder = torch.eye(n_source, dtype=torch.float64)
    rows = torch.eye(n_source + n_steps, dtype=torch.float64)[n_source:]
    for site, *share in shares:
        of_keys, of_residual = (part.to("cpu", encoder.dtype) for part in share)
        match site.kind:
            case "encoder":
                encoder = of_keys @ encoder
            case "decoder":
                rows = of_keys @ rows
            case "cross":
                rows = of_residual[:, None] * rows
                rows[:, :n_source] += of_keys @ encoder
    return {"cross": rows[:, :n_source], "decoder": rows[:, n_source:]}
