"""The classic mask mistakes, each as a tap that makes a sound model make it.

A tap sees the mask that the model rightly uses; a mistake puts the wrong one in its place. Nothing here
is a picture of a mistake: the model really runs with it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.errors import OptionError, join_names
from transformer_viz.language import later
from transformer_viz.model import masks
from transformer_viz.model.tap import Site, TapName
from transformer_viz.terms import MISTAKE_TITLES, Kind, Reason

Parts = tuple[Tensor, Tensor]
"""Parts of a faulty mask: as padding, and as the future; the mask is one or the other."""


@dataclass(frozen=True)
class Right:
    """The right mask of one attention call, taken apart. All bool, broadcastable to (batch, head, query, key)."""

    kind: Kind
    masked: Tensor
    key_padding: Tensor
    """(batch or 1, head or 1, 1, key)."""
    query_padding: Tensor
    """(batch or 1, head or 1, query, 1)."""
    future: Tensor
    """(query, key); all False where nothing is causal."""


@dataclass(frozen=True)
class Mistake:
    """One mistake: what is wrong, where it comes from, and how it is put right."""

    name: str
    wrong: str
    """The fault, in a sentence or two."""
    faulty_code: str
    fixed_code: str
    parts: Callable[[Right], Parts]
    looks_ahead: bool = False
    """A decoder row may see later tokens: decoding must compute earlier rows again at every step."""
    needs_padding: bool = True
    """True where it changes nothing unless something is padded."""

    @property
    def title(self) -> str:
        """The title for people."""
        return MISTAKE_TITLES[self.name]


_ALL = (
    Mistake(
        name="no-causal",
        wrong=later(
            "The decoder reads the tokens that it is about to write. A model that is trained so looks perfect, since the "
            "answer is in its input, and writes nonsense as soon as it must decode."
        ),
        faulty_code="model(source, target)",
        fixed_code="model(source, target, tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]))",
        parts=lambda right: (right.key_padding, torch.zeros_like(right.future)),
        looks_ahead=True,
        needs_padding=False,
    ),
    Mistake(
        name="causal-off-by-one",
        wrong=later("Every query may see one token too many: exactly the one that it must predict."),
        faulty_code="future = torch.ones(n, n, dtype=torch.bool).triu(diagonal=2)",
        fixed_code="future = torch.ones(n, n, dtype=torch.bool).triu(diagonal=1)",
        parts=lambda right: (
            right.key_padding,
            right.future & torch.ones_like(right.future).triu(right.future.shape[1] - right.future.shape[0] + 2),
        ),
        looks_ahead=True,
        needs_padding=False,
    ),
    Mistake(
        name="invalid-by-invalid",
        wrong=later(
            "A cell is masked only where the query and the key are both padding, so every real query still looks at "
            "padded keys."
        ),
        faulty_code="masked = padding[:, :, None] & padding[:, None, :]",
        fixed_code="masked = padding[:, None, :].expand(-1, n_queries, -1)",
        parts=lambda right: (right.query_padding & right.key_padding, right.future),
    ),
    Mistake(
        name="source-mask-forgotten",
        wrong=later(
            "The encoder masks the source's padding, the cross-attention of the decoder does not: what a sentence becomes "
            "depends on how long its neighbours in the batch are."
        ),
        faulty_code="logits = model.decode(target, memory)",
        fixed_code="logits = model.decode(target, memory, source_padding)",
        parts=lambda right: (right.key_padding & (right.kind != "cross"), right.future),
    ),
    Mistake(
        name="padded-queries-nan",
        wrong=later(
            "The rows of padded queries are masked as well. The softmax of a row of −∞ is NaN, and 0 · NaN is NaN: the next "
            "layer carries it into every real token."
        ),
        faulty_code="masked = padding[:, :, None] | padding[:, None, :]\n"
        'weights = scores.masked_fill(masked, float("-inf")).softmax(-1)',
        fixed_code="masked = padding[:, None, :].expand(-1, n_queries, -1)  # nobody reads a padded row",
        parts=lambda right: (right.query_padding | right.key_padding, right.future),
    ),
    Mistake(
        name="wrong-sign",
        wrong=later(
            "The mask is added with a plus: what must not be seen wins every softmax. In float32 a score vanishes "
            "beside 10⁹, so the weight is spread evenly over the forbidden cells."
        ),
        faulty_code="scores = scores + masked * 1e9",
        fixed_code='scores = scores.masked_fill(masked, float("-inf"))',
        # Neither: in a row with anything masked, exactly the rest is.
        parts=lambda right: (
            torch.where(right.masked.any(-1, keepdim=True), ~right.masked, right.masked),
            torch.zeros_like(right.future),
        ),
        looks_ahead=True,
        needs_padding=False,
    ),
    Mistake(
        name="wrong-axis",
        wrong=later(
            "The padding mask lies on the query axis instead of the key axis. No shape complains; padded queries see nothing "
            "and real ones see all the padding."
        ),
        faulty_code="masked = padding[:, None, :, None]  # (batch, head, query, key)",
        fixed_code="masked = padding[:, None, None, :]  # (batch, head, query, key)",
        # In cross-attention the two axes differ in length, and torch would refuse the shape.
        parts=lambda right: (right.key_padding if right.kind == "cross" else right.query_padding, right.future),
    ),
)
MISTAKES: dict[str, Mistake] = {mistake.name: mistake for mistake in _ALL}


def list_mistakes() -> dict[str, str]:
    """Lists the mask mistakes that `tv.decode(…, mistake=…)` can make deliberately.

    Returns:
        The name of each mistake, and what people read of it.

    Example:
        >>> import transformer_viz as tv
        >>> tv.list_mistakes()["no-causal"]
        'No causal mask'
    """
    return {name: mistake.title for name, mistake in MISTAKES.items()}


def named(name: str) -> Mistake:
    """A mistake by name.

    Raises:
        OptionError: there is none of that name.
    """
    if name not in MISTAKES:
        raise OptionError(f"mistake {name!r} is not known; choose one of {join_names(MISTAKES)}")
    return MISTAKES[name]


def codes(mistake: Mistake, kind: Kind, right: Tensor, query_padding: Tensor) -> Tensor:
    """Why a faulty mask masks each cell, as far as its own parts and the right reason agree.

    Args:
        mistake: which mistake.
        kind: of attention.
        right: uint8 (query, key), the reasons of the right mask.
        query_padding: bool (query,).

    Returns:
        uint8 (query, key) of `terms.Reason`; 0 where the mistake masks for no reason that there is, or does not mask.
    """
    padding = (right & Reason.PADDING).bool()[-1:]
    future = (right & Reason.FUTURE).bool()
    by_padding, by_future = mistake.parts(Right(kind, right > 0, padding, query_padding[:, None], future))
    faulty = by_padding.to(torch.uint8) * int(Reason.PADDING) | by_future.to(torch.uint8) * int(Reason.FUTURE)
    return faulty.expand_as(right) & right


class MistakeTap:
    """Makes one mistake in every attention it sees. One for each run: it remembers what it saw."""

    names = frozenset({"scores", "mask", "weights"})

    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        self._scores: Tensor | None = None
        self._right: Tensor | None = None
        self._target_padding: Tensor | None = None

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name == "scores":
            self._scores = value
        elif name == "mask":
            self._right = value
            n_queries, n_keys = value.shape[-2:]
            # The last query has no future: its row is the padding of the keys.
            key_padding = of_queries = value[..., -1:, :]
            future = masks.future(n_queries, n_keys, site.first_query, value.device) & (site.kind == "decoder")
            if site.kind == "decoder":
                self._target_padding = key_padding
            elif site.kind == "cross" and self._target_padding is not None:
                of_queries = self._target_padding
            query_padding = of_queries[..., -n_queries:].transpose(-2, -1)
            by_padding, by_future = self.mistake.parts(Right(site.kind, value, key_padding, query_padding, future))
            return (by_padding | by_future).expand_as(value)
        elif name == "weights" and self.mistake.name == "wrong-sign":
            assert self._scores is not None and self._right is not None
            return (self._scores + self._right.to(self._scores.dtype) * 1e9).softmax(-1)
        elif name == "weights" and self.mistake.name == "padded-queries-nan":
            # Ours gives an empty row zeros; the plain softmax of the published code gives it NaN.
            return value.masked_fill((value == 0).all(-1, keepdim=True), float("nan"))
        return value
