"""Two English sentences and their Chinese translations in pinyin without tones, the toy of the `torch-reference` source.

Worked example: `I have a hd ,` is framed as `<start> I have a hd , <end>`; the answer is `wo you yi ge hd ,`. The other
sentence is longer, so that a batch of both shows what fixed-length padding and its masks are.
"""

from transformer_viz.tasks.sentences import Sentences


class PinyinToy(Sentences):
    """What the masks notebook is about."""

    name = "pinyin-toy"
    about = "This model knows two English sentences and writes them in Chinese, in pinyin."
    translations = (
        ("I have a hd ,", "wo you yi ge hd ,"),
        ("but it is a big dog .", "dan shi ta shi yi zhi gou ."),
    )


TASK = PinyinToy
