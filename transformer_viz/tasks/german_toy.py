"""Two German sentences and their English translations, the toy of the `bias-free` source.

Worked example: `ich mochte ein bier` is framed as `<start> ich mochte ein bier <end>`; the answer is `i want a beer .`
The source's symbols P, S and E are `<pad>`, `<start>` and `<end>` here; its spelling is kept.
"""

from transformer_viz.tasks.sentences import Sentences


class GermanToy(Sentences):
    """What the first published implementation is trained on."""

    name = "german-toy"
    about = "This model knows two German sentences and writes them in English."
    translations = (
        ("ich mochte ein bier", "i want a beer ."),
        ("ich mochte ein cola", "i want a coke ."),
    )


TASK = GermanToy
