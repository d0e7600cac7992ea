"""Gradient × attention (Chefer et al. 2021, "Generic Attention-model Explainability", section 3, for encoder–decoders).

For each step t one gradient, of log p(y_t), all in one batch. Ā = mean over heads of (∇A ⊙ A)⁺. Relevance begins with
R_ss = I, R_qq = I, R_qs = 0. An encoder layer adds R_ss += Ā R_ss; in a decoder layer self-attention adds R_qq += Ā R_qq and
R_qs += Ā R_qs, then cross-attention R_qs += R̂_qqᵀ Ā R̂_ss, where R̂ is R − I with rows of sum 1, plus I; a row of zeros stays
zeros. What is shown is row t of R_qs, or, of what the decoder read, of R_qq.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_viz.attribution.method import Found, Method
from transformer_viz.attribution.run import Read, Run
from transformer_viz.errors import OptionError
from transformer_viz.model.tap import Change, Keep, Site, compose
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Found:
    """(query, key)."""
    if run.is_stepwise:
        raise OptionError(
            "in this run an edit or a mistake lets rows see later tokens, and each step was a pass of its own: "
            "one gradient over all rows is not that of its steps"
        )
    n_steps = len(run.written)
    texts = run.read.repeated(n_steps)
    rows = []
    for part in run.parts(texts):
        steps = torch.arange(part.start, part.stop, device=run.written.device)
        relevance = _relevance(_maps(run, texts[part], steps), run.read)[kind]
        rows.append(relevance[torch.arange(len(steps)), steps].cpu())
    return Found(torch.cat(rows))


def _maps(run: Run, texts: Read, steps: Tensor) -> list[tuple[Site, Tensor]]:
    """Ā of each call of attention in their order, (batch, query, key), where text i is for the i-th of these steps."""

    def begin_graph(site: Site, weights: Tensor) -> Tensor:
        """Weights that depend on nothing, so that a gradient with respect to them can be taken."""
        return weights if weights.requires_grad else weights.detach().requires_grad_()

    keep = Keep("weights")
    with torch.enable_grad():
        # In double precision: of a token that is all but sure, single precision knows no gradient, and 1 + 10⁻⁹ is 1.
        log_p = run.logits(texts, compose(Change("weights", begin_graph), keep)).double().log_softmax(-1)
        chosen = log_p[torch.arange(len(steps)), steps, run.written[steps]]
        weights = {site: kept["weights"] for site, kept in keep.kept.items()}
        gradients = torch.autograd.grad(chosen.sum(), list(weights.values()))
    products = zip(weights.items(), gradients, strict=True)
    return [(site, (gradient.double() * each.detach()).clamp_min(0).mean(1)) for (site, each), gradient in products]


def _relevance(maps: Sequence[tuple[Site, Tensor]], read: Read) -> dict[Kind, Tensor]:
    """R_qs and R_qq of a batch, (batch, step, key)."""
    like = maps[0][1]
    n_source, n_steps = read.source.shape[1], read.target.shape[1]
    of_source, of_steps = (torch.eye(n, dtype=like.dtype, device=like.device) for n in (n_source, n_steps))
    r_ss, r_qq, r_qs = of_source, of_steps, like.new_zeros(n_steps, n_source)
    for site, each in maps:
        match site.kind:
            case "encoder":
                r_ss = r_ss + each @ r_ss
            case "decoder":
                r_qq, r_qs = r_qq + each @ r_qq, r_qs + each @ r_qs
            case "cross":
                r_qs = r_qs + _normalised(r_qq).mT @ each @ _normalised(r_ss)
    return {"cross": r_qs, "decoder": r_qq}


def _normalised(relevance: Tensor) -> Tensor:
    """R̂."""
    own = torch.eye(relevance.shape[-1], dtype=relevance.dtype, device=relevance.device)
    more = relevance - own
    sums = more.sum(-1, keepdim=True)
    return torch.where(sums > 0, more / sums, 0.0) + own


METHOD = Method(
    of,
    title=TITLES["gradient"],
    help="Weights times what the written token's log-probability gains from them, followed through all layers",
    cannot="how one row compares with another, or what a key speaks against",
    follows_layers=True,
    order=4,
)
