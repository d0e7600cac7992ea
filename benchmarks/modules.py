"""A module of somebody's own, seen at the level of torch's operators: one pass with the tap against one without.

`nn.Transformer` with random weights. The two passes more that tell the kinds of attention apart are no part of it.
"""

from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.decoding import SIZES
from benchmarks.measure import Line, Number, Report, Target, in_turns
from transformer_viz.readers.modules.passes import Passes

TITLE = "a module of one's own, seen by torch's operators"
TARGETS = {
    "one pass": Target("a pass of a module that is seen, 6+6 layers, 20 tokens: times one that is not", "at most", 1.5, "×")
}
N_TOKENS, WORDS, THREADS = 20, 50, (1, 2, 4)
_BUDGET, _MOST = 30.0, 200


class Module(nn.Module):
    """Embeddings, torch's Transformer with a causal mask, and logits."""

    def __init__(self, layers: int, d_model: int, heads: int, d_ff: int) -> None:
        super().__init__()
        self.embedding, self.logits = nn.Embedding(WORDS, d_model), nn.Linear(d_model, WORDS)
        self.transformer = nn.Transformer(d_model, heads, layers, layers, d_ff, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of each target token."""
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.logits(self.transformer(self.embedding(source), self.embedding(target), tgt_mask=future))


def measure(report: Report) -> None:
    """By threads on the CPU, and on a GPU where there is one; a small model shows what Python takes by itself."""
    threads = torch.get_num_threads()
    for name, d_model in (("d_model 512", 512), ("d_model 8", 8)):
        torch.manual_seed(0)
        model = Module(**(SIZES["6+6"] | {"d_model": d_model, "d_ff": 4 * d_model})).eval()
        try:
            for number in THREADS if d_model > 8 else (1,):
                torch.set_num_threads(number)
                _compare(f"{name}, {number} thread{'s' * (number > 1)}", model, report, counts=d_model > 8)
        finally:
            torch.set_num_threads(threads)
        if torch.cuda.is_available():
            _compare(f"{name}, GPU", model.cuda(), report, counts=False)


def _compare(name: str, model: Module, report: Report, *, counts: bool) -> None:
    device = model.logits.weight.device
    source, target = (torch.arange(n, n + N_TOKENS, device=device)[None] for n in (3, 4))
    works = {
        "seen": partial(Passes(model, model).run, source, target),
        "not seen": partial(torch.no_grad()(model), source, target),
    }
    seconds = in_turns(works, budget=_BUDGET, most=_MOST)
    seen, plain = (Number.of(whose, [1000 * each for each in taken]) for whose, taken in seconds.items())
    report.add(Line(f"6+6 layers, {name}", seen, plain, "ms", len(seconds["seen"])))
    if counts:
        report.worst("one pass", seen.value / plain.value, "at most")
