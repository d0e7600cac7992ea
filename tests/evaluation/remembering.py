"""A task that keeps what was drawn of it."""

from transformer_viz.tasks.reverse import Reverse


class Remembering(Reverse):
    """Keeps every string that it was asked to draw."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.drawn: list[tuple[str, int, str]] = []

    def sample(self, source, length, count, rng, split=None):
        texts = super().sample(source, length, count, rng, split)
        self.drawn += [(source, length, text) for text in texts]
        return texts
