"""The numbers of layers, by where their attention stands among the lists of a module."""

from collections.abc import Sequence

from transformer_viz.readers.modules.running import Place


def layer_numbers(places: Sequence[Place]) -> Sequence[int]:
    """The numbers of layers: their indices in the outermost list that tells them apart.

    Where no list does (layers that share one module, or stand in several lists) they are numbered as they were called.
    """
    for level in zip(*places, strict=False):
        numbers = tuple(index for _, index in level)
        if len({name for name, _ in level}) > 1:
            break
        if len(set(numbers)) == len(numbers):
            return numbers
        if len(set(numbers)) > 1:
            break
    return range(len(places))
