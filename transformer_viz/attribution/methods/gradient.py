"""Gradient × attention (Chefer et al. 2021, "Generic Attention-model Explainability", section 3, for encoder–decoders).

For each step t one gradient, of log p(y_t), all in one batch. Ā = mean over heads of (∇A ⊙ A)⁺. Relevance begins with
R_ss = I, R_qq = I, R_qs = 0. An encoder layer adds R_ss += Ā R_ss; in a decoder layer self-attention adds R_qq += Ā R_qq and
R_qs += Ā R_qs, then cross-attention R_qs += R̂_qqᵀ Ā R̂_ss, where R̂ is R − I with rows of sum 1, plus I; a row of zeros stays
zeros. What is shown is row t of R_qs, or, of what the decoder read, of R_qq.
"""

import torch
from torch import Tensor

from transformer_viz.attribution.methods import Method
from transformer_viz.attribution.rerun import Run
from transformer_viz.language import later
from transformer_viz.model.tap import RecordTap, ReplaceTap, Site, compose
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import TITLES


def of(run: Run, kind: Kind, mode: str) -> Tensor:
    """(query, key)."""
    run.check_one_pass("one gradient over all rows is not that of its steps")
    texts = run.inputs.repeated(len(run.written))
    rows = []
    for part in run.parts(texts):
        steps = torch.arange(part.start, part.stop, device=run.written.device)
        keep = RecordTap("weights")
        with torch.enable_grad():
            # In double precision: of a token that is all but sure, single precision knows no gradient, and 1 + 10⁻⁹ is 1.
            log_p = run.logits(texts[part], compose(ReplaceTap("weights", _begin_graph), keep)).double().log_softmax(-1)
            score = written_log_p if run.score is None else run.score
            chosen = score(log_p, run.written)[torch.arange(len(steps)), steps]
            weights = {site: kept["weights"] for site, kept in keep.kept.items()}
            gradients = torch.autograd.grad(chosen.sum(), list(weights.values()))
        r_ss, r_qq = (torch.eye(run.n_keys(side), dtype=log_p.dtype, device=log_p.device) for side in ("cross", "decoder"))
        r_qs = r_qq.new_zeros(len(r_qq), len(r_ss))
        for (site, weight), gradient in zip(weights.items(), gradients, strict=True):
            a = (gradient.double() * weight.detach()).clamp_min(0).mean(1)
            match site.kind:
                case "encoder":
                    r_ss = r_ss + a @ r_ss
                case "decoder":
                    r_qq, r_qs = r_qq + a @ r_qq, r_qs + a @ r_qs
                case "cross":
                    r_qs = r_qs + _normalised(r_qq).mT @ a @ _normalised(r_ss)
        rows.append((r_qq if kind == "decoder" else r_qs)[torch.arange(len(steps)), steps].cpu())
    return torch.cat(rows)


def written_log_p(log_p: Tensor, written: Tensor) -> Tensor:
    """(batch, step, vocabulary) -> (batch, step): of what was written."""
    return log_p.gather(-1, written.expand(len(log_p), -1)[..., None])[..., 0]


def _begin_graph(site: Site, weights: Tensor) -> Tensor:
    """Weights that depend on nothing, so that a gradient with respect to them can be taken."""
    return weights if weights.requires_grad else weights.detach().requires_grad_()


def _normalised(relevance: Tensor) -> Tensor:
    """R̂."""
    identity = torch.eye(relevance.shape[-1], dtype=relevance.dtype, device=relevance.device)
    rest = relevance - identity
    sums = rest.sum(-1, keepdim=True)
    return torch.where(sums > 0, rest / sums, 0.0) + identity


METHOD = Method(
    of,
    title=TITLES["gradient"],
    help=later("Weights times what the written token's log-probability gains from them, followed through all layers"),
    cannot=later("how one row compares with another, or what a key speaks against"),
    follows_layers=True,
    explains_scores=True,
    order=4,
)
