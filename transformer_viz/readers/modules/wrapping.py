"""`wrap`: a module that somebody holds in the hand as a loaded model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter, signature
from itertools import groupby
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from transformer_viz import tasks
from transformer_viz.decoding.tokenizer import Tokenizer
from transformer_viz.errors import ModelError, OptionError, TransformerVizError, join_names
from transformer_viz.loaded_model import LoadedModel, in_one_line
from transformer_viz.model.architecture import Architecture, architecture_of_sizes
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Site
from transformer_viz.model_options import ModelOptions
from transformer_viz.readers.modules.kinds import Found, KnownAttention, find_attention
from transformer_viz.readers.modules.layers import layer_numbers
from transformer_viz.readers.modules.layout import find_layout
from transformer_viz.readers.modules.passes import Call, Pass, Passes
from transformer_viz.readers.modules.reader import AttentionPlace, ModuleReader, logits_of
from transformer_viz.readers.modules.tokenizer import ListTokenizer, labels_of
from transformer_viz.schema import whole_number
from transformer_viz.task_tokenizer import TaskTokenizer
from transformer_viz.tasks import Task
from transformer_viz.terms import KINDS, Kind, ModelKind
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

_LONGEST, _LONGEST_ON_A_GPU = 512, 64
_SAME = 1e-3
_N_SOURCE, _N_TARGET = 5, 4
"""Tokens of the sentences with which a module is asked."""


@dataclass(frozen=True)
class ModuleModel:
    """See `loaded_model.LoadedModel`.

    Attributes:
        name: its class, or as a person says.
        network: reads and writes ids.
        tokenizer: makes them of text.
        task: what it was trained for, where that is one of ours.
    """

    name: str
    network: ModuleReader
    tokenizer: Tokenizer
    task: Task | None = None

    languages = ()
    default_total_length = None
    metrics: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    generation: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    options = ModelOptions()

    def __repr__(self) -> str:
        """One line."""
        return in_one_line(self)

    @property
    def variant(self) -> str:
        """Its class."""
        return type(self.network.model).__name__

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""
        return self.network.passes.device

    @property
    def architecture(self) -> Architecture:
        """Its attention alone, since no more is known."""
        return architecture_of_sizes(self.network.sizes)

    @cached_property
    def n_parameters(self) -> int:
        """Trained numbers in the module."""
        return sum(parameter.numel() for parameter in self.network.model.parameters())

    @property
    def default_max_length(self) -> int:
        """The number of tokens that it can write, at most 64."""
        if self.task is not None:
            return min(self.task.max_target_length + 1, self.network.sizes.longest_target)
        return min(64, self.network.sizes.longest_target)

    def with_options(self, options: ModelOptions) -> "ModuleModel":
        """The same model: it has no options."""
        if options != ModelOptions():
            raise OptionError(f"{self.name} is a module of your own; it has no generation config, chat template or languages")
        return self


def wrap(
    model: Any,
    vocabulary: Any,
    *,
    start: str | int | None = None,
    end: str | int | None = None,
    pad: str | int | None = None,
    call: Call | None = None,
    encode: Callable[[str], Sequence[int]] | None = None,
    longest: int | None = None,
    name: str | None = None,
) -> LoadedModel:
    """Wraps a module or a Hugging Face model that is in memory, so that every function takes it in place of a checkpoint.

    A module of your own needs nothing but its forward pass, `model(source_ids, target_ids) -> logits` or, where it has one
    stack, `model(ids) -> logits`. Each step of decoding runs it anew over all that was read. Padding is hidden from it.

    Args:
        model: a `torch.nn.Module`, in any mode, on any device; or a Hugging Face model, with its tokenizer as `vocabulary`.
        vocabulary: tokens by id (a list, or a dict either way round), a pair of two such for source and target, a tokenizer of
            transformers, or the name of a task of this package whose vocabularies it has.
        start: the token, or its id, that an encoder–decoder reads first. Of a decoder alone, one before each prompt.
        end: the token after which nothing is written; None = it writes up to the longest length.
        pad: the token that fills shorter rows of a batch; by default `<pad>` or `[PAD]` where there is one, else the end.
        call: a function from int64 tensors (batch, source) and (batch, target) to logits (batch, target, vocabulary), where the
            module is run in another way. It may return a tuple whose first part they are.
        encode: a function from a source text to ids, where they are not the words or letters of the vocabulary.
        longest: the most tokens that it reads and writes. By default what is possible on a CPU, up to 512, and 64 on a GPU.
        name: what it is called; its class by default.

    Returns:
        A loaded model, for every function that takes one.

    Raises:
        OptionError: an impossible argument; or the module fails, or does not return logits.
        ModelError: its attention is not all seen, or a batch gives other numbers than each sentence alone.

    Example:
        >>> import torch
        >>> import transformer_viz as tv
        >>> class Reads(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embedding, self.output = torch.nn.Embedding(5, 8), torch.nn.Linear(8, 5)
        ...         self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        ...     def forward(self, ids):
        ...         x, n = self.embedding(ids), ids.shape[1]
        ...         masked = torch.ones(n, n, dtype=torch.bool).triu(1)
        ...         return self.output(x + self.attention(x, x, x, attn_mask=masked)[0])
        ...
        >>> model = tv.wrap(Reads(), ["<pad>", "<s>", "</s>", "a", "b"], start="<s>", end="</s>")
        >>> tv.decode(model, "ab", max_length=2).kinds  # "ab" is read letter by letter
        ('decoder',)
    """
    if not isinstance(model, nn.Module):
        raise OptionError(f"model is {type(model).__name__}, not a torch module; load it first")
    if _is_of_hugging_face(model) and call is None:
        given = {"start": start, "end": end, "pad": pad, "encode": encode, "longest": longest}
        if unused := [key for key, value in given.items() if value is not None]:
            raise OptionError(f"{unused[0]} is for modules of your own; a Hugging Face model's config and tokenizer say it")
        if not hasattr(vocabulary, "convert_ids_to_tokens"):
            raise OptionError(
                f"vocabulary is {type(vocabulary).__name__}; of a Hugging Face model it is the tokenizer: tv.wrap(model, it)"
            )
        from transformer_viz.readers.huggingface.loading import wrap_in_memory

        return wrap_in_memory(model, vocabulary, name)
    kind = _kind_of(model, call, start is not None)
    tokenizer, task, ids = _tokenizer(vocabulary, kind, start, end, pad, encode)
    reader = _reader(Passes(model, call or model, has_run=call is not None), kind, tokenizer, ids, longest)
    if reader.kind is ModelKind.ENCODER_DECODER and reader.start_id is None:
        raise OptionError("start is missing: the token that the decoder reads before it writes, or its id")
    if reader.kind is ModelKind.DECODER and ids.start is not None and isinstance(tokenizer, ListTokenizer):
        tokenizer = replace(tokenizer, first=(ids.start,))
    return ModuleModel(name or type(model).__name__, reader, tokenizer, task)


def _is_of_hugging_face(model: nn.Module) -> bool:
    return any(
        kind.__module__.startswith("transformers.") and kind.__name__ == "PreTrainedModel" for kind in type(model).__mro__
    )


def _kind_of(model: nn.Module, call: Call | None, has_start: bool) -> ModelKind:
    """Counts the arguments that it needs; of one stack, the kind shows later."""
    try:
        parameters = signature(call or model.forward).parameters.values()
    except (TypeError, ValueError):
        return ModelKind.ENCODER_DECODER
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [each for each in parameters if each.kind in positional and each.default is Parameter.empty]
    is_open = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    return ModelKind.ENCODER_DECODER if len(needed) > 1 or (is_open and has_start) else ModelKind.DECODER


@dataclass(frozen=True)
class _Ids:
    """The special ids, and how many ids each side has."""

    start: int | None
    end: int | None
    pad: int
    n_source: int
    n_target: int
    knows_padding: bool = True


def _tokenizer(
    vocabulary: Any,
    kind: ModelKind,
    start: str | int | None,
    end: str | int | None,
    pad: str | int | None,
    encode: Callable[[str], Sequence[int]] | None,
) -> tuple[Tokenizer, Task | None, _Ids]:
    if isinstance(vocabulary, str):
        vocabulary = tasks.make_task(vocabulary)
    if isinstance(vocabulary, Task):
        if any(each is not None for each in (start, end, pad, encode)):
            raise OptionError("start, end, pad and encode are those of the task; leave them out")
        sizes = len(vocabulary.source_vocabulary), len(vocabulary.target_vocabulary)
        return TaskTokenizer(vocabulary), vocabulary, _Ids(START_ID, END_ID, PAD_ID, *sizes)
    if hasattr(vocabulary, "convert_ids_to_tokens"):
        from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer

        made = HuggingFaceTokenizer.of(vocabulary)
        numbers = [
            _id_of(name, given, made.labels, made.id_of) for name, given in (("start", start), ("end", end), ("pad", pad))
        ]
        chosen = numbers[2] if numbers[2] is not None else getattr(vocabulary, "pad_token_id", None)
        padding = next((each for each in (chosen, numbers[1]) if each is not None), 0)
        sizes = len(made.labels), len(made.labels)
        return made, None, _Ids(numbers[0], numbers[1], padding, *sizes, chosen is not None)
    is_pair = isinstance(vocabulary, tuple) and len(vocabulary) == 2 and not any(isinstance(each, str) for each in vocabulary)
    of_source, of_target = vocabulary if is_pair else (vocabulary, vocabulary)
    sources, targets = labels_of("vocabulary", of_source), labels_of("vocabulary", of_target)
    lookup = {token: number for number, token in enumerate(targets)}.get
    first, last, filling = (
        _id_of(what, given, targets, lookup) for what, given in (("start", start), ("end", end), ("pad", pad))
    )
    named = next((number for token in ("<pad>", "[PAD]", "<PAD>", "PAD", "P") if (number := lookup(token)) is not None), None)
    known = filling if filling is not None else named
    filling = next((each for each in (known, last) if each is not None), 0)
    specials = frozenset(each for each in (first, last, filling) if each is not None)
    tokenizer = ListTokenizer(targets, sources, specials, (), encode)
    return tokenizer, None, _Ids(first, last, filling, len(sources), len(targets), known is not None)


def _id_of(name: str, given: str | int | None, labels: Sequence[str], lookup: Callable[[str], int | None]) -> int | None:
    if given is None:
        return None
    number = given if isinstance(given, int) else lookup(given)
    if number is None or not 0 <= number < len(labels):
        raise OptionError(f"{name}={given!r} is not in the vocabulary; it has {join_names(labels[:8])} …")
    return number


def _reader(passes: Passes, kind: ModelKind, tokenizer: Tokenizer, ids: _Ids, longest: int | None) -> ModuleReader:
    """Asks the module what its attention is, and checks that it reads a batch as it reads each sentence alone."""
    device, name = passes.device, type(passes.model).__name__
    if longest is not None:
        whole_number("longest", longest, 2, 100_000)
    rows = [_question(ids.n_source, ids, _N_SOURCE, row) for row in (0, 1)]
    targets = [_question(ids.n_target, ids, _N_TARGET, row) for row in (0, 1)]
    if ids.start is not None:
        targets = [[ids.start, *row[1:]] for row in targets]
    first, batch_first, found = None, True, Found((), ())
    both = kind is ModelKind.ENCODER_DECODER
    source, target = (torch.tensor(each, device=device) for each in (rows, targets))
    whole = [source, target] if both else [source]
    texts = [[ids[row : row + 1] for ids in whole] for row in (0, 1)]
    error: TransformerVizError | None = None
    unseen = ""
    for batch_first in (True, False):
        turn = lambda each: each if batch_first else each.T  # noqa: B023, E731
        try:
            first = passes.run(*map(turn, texts[0]), is_searching=True)
            found = find_attention(passes, first, turn(texts[0][0]), turn(texts[0][1]) if both else None, None)
        except OptionError as why:
            error = error or why
            continue
        if found.attentions:
            break
        unseen = unseen or "; ".join(dict.fromkeys(f"{one.module or name}: {one.why}" for one in found.unseen))
    if not found.attentions or first is None:
        if error is not None:
            raise error
        raise ModelError(
            f"No attention between tokens was seen in {name}{f' ({unseen})' if unseen else ''}; it cannot be shown here."
        )
    if found.unseen:
        one = found.unseen[0]
        raise ModelError(
            f"{name} cannot be shown here: the {one.kind or ''} attention of {one.module or name} is not seen: {one.why}."
        )
    alone = [first, passes.run(*map(turn, texts[1]))]
    batch = passes.run(*map(turn, whole))
    n_steps = texts[0][-1].shape[1]
    logits = [logits_of(one.returned, 1, n_steps, batch_first) for one in alone]
    together = logits_of(batch.returned, 2, n_steps, batch_first)
    scale = max(1.0, float(together[together.isfinite()].abs().max()))
    if not torch.allclose(together, torch.cat(logits), rtol=0, atol=_SAME * scale):
        raise ModelError(f"{name} cannot be shown here: a batch of two sentences gives other logits than each of them alone.")
    places, sizes = _places(name, found, alone, batch), {}
    if not both and found.attentions[0].kind == "encoder":
        kind = ModelKind.ENCODER
    layers: dict[Kind, tuple[int, ...]] = {}
    for place, _ in places:
        layers[place.site.kind] = tuple(sorted({*layers.get(place.site.kind, ()), place.site.layer}))
    heads = _heads(name, places, batch)
    most = longest or _longest(passes, turn, whole)
    vocabulary = int(together.shape[-1])
    if vocabulary < ids.n_target and not isinstance(tokenizer, TaskTokenizer):
        raise OptionError(f"the vocabulary has {ids.n_target} tokens, and the module writes one of {vocabulary}; give its own")
    if vocabulary > ids.n_target:
        raise OptionError(
            f"the module writes one of {vocabulary} tokens, and the vocabulary has {ids.n_target}; give all of them"
        )
    sizes = Sizes(
        layers={each: layers[each] for each in KINDS if each in layers},
        heads=heads,
        vocabulary=vocabulary,
        longest_source=most,
        longest_target=most,
        cached=0,
        source_vocabulary=ids.n_source if kind.has_encoder else vocabulary,
    )
    n_softmaxes = len(first.seen.softmaxes)
    by_number = {number: place for place, number in places}
    return ModuleReader(
        replace(passes, has_run=True),
        kind,
        ids.start if kind is ModelKind.ENCODER_DECODER else None,
        () if ids.end is None or not kind.writes else (ids.end,),
        ids.pad,
        sizes,
        tuple(by_number.get(number) for number in range(n_softmaxes)),
        batch_first,
        ids.knows_padding,
    )


def _question(n_ids: int, ids: _Ids, n: int, row: int) -> list[int]:
    """So many different ids, none of which is special where that is possible."""
    own = [number for number in range(n_ids) if number not in (ids.start, ids.end, ids.pad)] or [*range(n_ids)]
    return [own[(7 * row + 3 + 2 * place) % len(own)] for place in range(n)]


def _places(name: str, found: Found, alone: Sequence[Pass], batch: Pass) -> list[tuple[AttentionPlace, int]]:
    """Each call of attention with its place, and the number of its softmax."""
    numbers: dict[int, int] = {}
    groups = [[*group] for _, group in groupby(found.attentions, key=lambda one: one.group)]
    softmaxes = alone[0].seen.softmaxes
    for kind in KINDS:
        own = [group for group in groups if group[0].kind == kind]
        for group, number in zip(own, layer_numbers([softmaxes[group[0].softmax].place for group in own]), strict=True):
            numbers[group[0].group] = number
    places = []
    for group in groups:
        head = 0
        for one in group:
            layout = find_layout(one, [each.seen.softmaxes[one.softmax] for each in alone], batch.seen.softmaxes[one.softmax])
            if layout is None:
                raise ModelError(
                    f"{name} cannot be shown here: which sentences of a batch the rows of the attention of "
                    f"{one.module or name} belong to is not known."
                )
            places.append((AttentionPlace(Site(one.kind, numbers[one.group]), layout, head, one.module), one.softmax))
            head += _n_heads(one, softmaxes[one.softmax].weights)
    return places


def _n_heads(one: KnownAttention, weights: Tensor) -> int:
    """The number of heads of one sentence."""
    return weights.numel() // (weights.shape[one.query_axis] * weights.shape[-1])


def _heads(name: str, places: Sequence[tuple[AttentionPlace, int]], batch: Pass) -> dict[Kind, int]:
    """Counts the heads of the layers of each kind.

    Raises:
        ModelError: they have different numbers.
    """
    found: dict[Site, int] = {}
    for place, number in places:
        standard = place.layout.standard(batch.seen.softmaxes[number].weights)
        found[place.site] = found.get(place.site, 0) + standard.shape[1]
    heads: dict[Kind, int] = {}
    for kind in KINDS:
        numbers = sorted({n for site, n in found.items() if site.kind == kind})
        if len(numbers) > 1:
            raise ModelError(f"{name} cannot be shown here: its {kind} layers have {join_names(map(str, numbers))} heads.")
        if numbers:
            heads[kind] = numbers[0]
    return heads


def _longest(passes: Passes, turn: Callable[[Tensor], Tensor], whole: Sequence[Tensor]) -> int:
    """The most tokens that the module takes. On a GPU an id beyond a table would end the process, so nothing is tried there."""
    if passes.device.type != "cpu":
        return _LONGEST_ON_A_GPU
    n = _LONGEST
    while n > _N_SOURCE:
        try:
            passes.run(*(turn(ids[:1, :1].expand(1, n).contiguous()) for ids in whole))
            return n
        except OptionError:
            n //= 2
    return _N_SOURCE
