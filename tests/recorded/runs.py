"""Runs by the command line and the public names: what each gives today is in `runs.json` and `runs.npz`.

A run is a function of an empty folder. Where a public name, a keyword or a field changes, change it here, and nowhere else.
"""

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import transformer_viz as tv
from tests import tiny_models
from tests.recorded.fixture import Flat, arrays_in, drawn_by, flat
from transformer_viz.addresses import map_address
from transformer_viz.commands import main
from transformer_viz.edits import AttentionAddress
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.terms import KINDS

LATER = ("reverse-leak", "german")
"""Checkpoints that were made after the recording."""

TEXTS = {
    "reverse": "hello world",
    "reverse-small": "reversethis",
    "dates": "3 March 2024",
    "numbers": "siebenhundertdreiundzwanzig",
    "pinyin": "一心一意",
    "german": "den Hund sieht der König",
}
WRITES = {
    tiny_models.MARIAN: "The house is small.",
    tiny_models.GPT2: "The capital of France is",
}
EDITS = ("cross:off", "decoder:3-5", "cross:3-*", "encoder:*-4", "cross.1.1:zero", "cross.2.4:3=5", "cross.1.1:2=5@0.75+1@0.25")
EDITS = (*EDITS, "cross:2=uniform")
STRATEGIES: dict[str, dict[str, Any]] = {
    "beam": {"strategy": "beam", "beam_size": 5, "n_best": 3},
    "beam, refilled, no length penalty": {"strategy": "beam", "beam_size": 3, "refill": True, "length_penalty": 0.0},
    "beam, to the limit": {"strategy": "beam", "beam_size": 2, "stop": "never", "max_length": 14},
    "sampled": {"strategy": "sample", "seed": 4, "temperature": 3.0, "top_k": 20, "top_p": 0.9},
    "a prefix and a ban": {"prefix": ("s", "i"), "ban": ("t",)},
    "a given target": {"target": "sihtesrever"},
    "half precision, scores, one kind": {"precision": "float16", "record": ("weights", "scores"), "kinds": ("cross",)},
}


def command(*arguments: str, code: int = 0) -> str:
    """What a command prints."""
    with redirect_stdout(io.StringIO()) as printed:
        assert main([*arguments]) == code, arguments
    return printed.getvalue()


def listed_checkpoints(folder: Path) -> Any:
    """What `checkpoints --json` prints of those that there were."""
    rows = json.loads(command("checkpoints", "--json"))["checkpoints"]
    return {"checkpoints": [row for row in rows if row["name"] not in LATER]}


def printed(*arguments: str, code: int = 0) -> Callable[[Path], Any]:
    """A run of a command with `--json`."""
    return lambda folder: json.loads(command(*arguments, "--json", code=code))


def aligned_heads(folder: Path) -> Any:
    """The reference as it was recorded: its layer and its head."""
    data = json.loads(command("align-heads", "--checkpoint", "reverse-small", "--samples", "10", "--json"))
    return data | {"reference": [data["reference"]["layer"], data["reference"]["head"]]}


def decoded(*arguments: str) -> Callable[[Path], Any]:
    """What `decode --json` prints, without what is null or empty, and where tokens came from."""

    def run(folder: Path) -> Any:
        data = json.loads(command("decode", *arguments, "--json"))
        names = ("expected_tokens", "source_letters", "fills", "n_given", "source_ids", "target_ids", "output_ids")
        data = {name: part for name, part in data.items() if name not in names}
        of_step = ("sampling_probability", "token_id", "candidate_ids")
        steps = [{name: part for name, part in step.items() if name not in of_step} for step in data["steps"]]
        return data | {"steps": steps}

    return run


@cache
def checkpoint(name: str = "reverse") -> Any:
    return tv.load_checkpoint(name, "cpu")


@cache
def trace(name: str = "reverse", text: str | None = None, **settings: Any) -> Any:
    return tv.decode(checkpoint(name), text or TEXTS[name], candidates=4, **settings)


@cache
def tiny_folder() -> Path:
    """Hugging Face models, tiny and untrained."""
    return tiny_models.save(Path(tempfile.mkdtemp(prefix="tiny-models-")))


@cache
def tiny(name: str) -> Any:
    return tv.load_model(str(tiny_folder() / name), "cpu")


@cache
def random_model(variant: str) -> Any:
    """A random model of a variant. Every parameter is random, norms and biases too."""
    task = Reverse("helo abcd", 11, (1, 11))
    sizes: dict[str, Any] = {"source_vocabulary_size": len(task.source_vocabulary), "d_model": 12, "n_heads": 3, "d_ff": 7}
    sizes |= {"target_vocabulary_size": len(task.target_vocabulary), "n_encoder_layers": 2, "n_decoder_layers": 2}
    model = Transformer(ModelConfig(**{**variants.settings(variant), **sizes})).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        random = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = random * (3.0 if "embedding" in name else 0.3) + name.endswith("norm.weight")
    return tv.Checkpoint("random", Path("random"), model, task, variant, {}, {}, torch.device("cpu"))


def of(run: Any) -> dict[str, Any]:
    """All that a Trace holds of a run, under names that are those of this record."""
    return {
        **{name: getattr(run, name) for name in ("source", "text", "finished", "expected", "mistake", "edits", "n_given")},
        **{name: getattr(run, name) for name in ("source_tokens", "target_tokens", "output_tokens", "alignment", "fills")},
        "steps": [{name: getattr(step, name) for name in step.__slots__} for step in run.steps],
        "weights": {kind: run.attentions[kind].weights for kind in run.kinds},
        "masked_because": {kind: run.attentions[kind].reasons for kind in run.kinds},
        "scores": {kind: each.scores for kind, each in run.attentions.items() if each.scores is not None},
        "layers": {kind: each.layers for kind, each in run.attentions.items() if each.layers != tuple(range(each.n_layers))},
        "groups": {f"inside.{name}": numbers for name, numbers in insides_of(run).items()},
        "search": run.search and {"nodes": run.search.nodes, "best": run.search.best, "arrays": rows_of(run.search)},
    }


def insides_of(run: Any) -> dict[str, np.ndarray]:
    """Of each head that was looked into one row of all its numbers, and the reasons of its mask."""
    numbers = {
        f"numbers_{i}": np.concatenate([array.ravel() for array in one.arrays.values()]) for i, one in enumerate(run.insides)
    }
    return numbers | {f"reasons_{i}": one.reasons for i, one in enumerate(run.insides)}


def rows_of(search: Any) -> dict[str, Any]:
    arrays = {"decoder_rows": search.decoder_rows, "cross_rows": search.cross_rows}
    arrays["decoder_search_reasons"] = search.decoder_reasons
    return {name: array for name, array in arrays.items() if array is not None}


def drawn(*figures: Any) -> dict[str, Flat]:
    """The numbers and texts of figures' traces."""
    return {f"figure {place}": drawn_by(json.loads(figure.to_json())) for place, figure in enumerate(figures)}


def in_page(html: str) -> dict[str, Any]:
    """The arrays of a page's data, and the numbers that one reads in it."""
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    read = [float(number) for number in re.findall(r"(?<![\w.])\d+\.\d+", text)]
    return {"weights": [leaf for one in data for leaf in _typed(json.loads(one))], "read": read}


def _typed(content: Any) -> list[np.ndarray]:
    """Without the small maps, which are a picture of the same weights."""
    if isinstance(content, dict) and "bdata" in content:
        return [*arrays_in({"": content}).values()]
    parts = content if isinstance(content, list) else ()
    if isinstance(content, dict):
        parts = [part for name, part in content.items() if name != "mosaic"]
    return [array for part in parts for array in _typed(part)]


# One function for what takes more than a line


def saved_and_rendered(folder: Path) -> Any:
    file, table = folder / "run.npz", folder / "run.csv"
    command("trace", "hello", "--checkpoint", "reverse", "--device", "cpu", "--inside", "cross.2.3:5", "-o", str(file))
    for name in ("run.csv", "run.html", "run.parquet"):
        command("render", str(file), "-o", str(folder / name), *(["--without-plotlyjs"] if name.endswith("html") else []))
    command("render", str(file), "--inside", "-o", str(folder / "inside.html"))
    import pandas as pd

    with np.load(file, allow_pickle=False) as members, table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
        return {
            "members": {
                f"{kind}_{name}": members[f"attentions/{kind}/{part}"]
                for kind in ("encoder", "decoder", "cross")
                for name, part in (("attentions", "weights"), ("mask_reasons", "reasons"))
            }
            | {f"inside/{name}": numbers for name, numbers in insides_of(tv.load_trace(file)).items()},
            "again": of(tv.load_trace(file)),
            "page": in_page((folder / "run.html").read_text(encoding="utf-8")),
            "inside page": in_page((folder / "inside.html").read_text(encoding="utf-8")),
            "csv": {"columns": list(rows[0]), "weight": [float(row["weight"]) for row in rows]},
            "parquet": {name: column.to_numpy() for name, column in pd.read_parquet(folder / "run.parquet").items()},
        }


def attributed(model: Any, run: Any, methods: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The numbers of each method, in each of its modes."""
    asked = [(method, mode) for method, modes in methods.items() for mode in modes or ("word",)]
    return {f"{method} {mode}": tv.attribute(model, run, method, mode=mode).values for method, mode in asked}


METHODS = {"occlusion": ("word", "position", "deleted"), "value_weighted": (), "value_weighted_sum": (), "gradient": ()}
METHODS |= {"rollout": (), "alti": ()}


def surveyed(model: Any, folder: Path) -> Any:
    """A survey of 300 numbers, written with the letters of the task."""
    letters = "abcdefghij" if isinstance(model, str) else "helo abcd"
    texts = ["".join(letters[int(digit) % len(letters)] for digit in str(place * 7919)) for place in range(1, 301)]
    found = tv.survey(model, texts, workers=1, verdict_texts=3, output=folder / "survey")
    summary = json.loads((folder / "survey" / "summary.json").read_text(encoding="utf-8"))
    # As it was recorded: each head with all that is known of it.
    numbers, heads = ("n", "mean", "sd", "low", "high", "min", "max", "even", "counts"), []
    examples = {(texts.pop("kind"), texts.pop("layer"), texts.pop("head")): texts for texts in summary.pop("examples")}
    nothing = {"by": None, "highest": [], "typical": [], "unusual": []}
    rows = found.to_frame().rename(columns={"uniform": "even"})
    rows["counts"] = [row.counts for row in found.heads]
    for place in found.places:
        at = {"kind": place.kind, "layer": place.layer, "head": place.head}
        own = rows[np.logical_and.reduce([rows[name] == value for name, value in at.items()])].set_index("statistic")
        names = [of.name for of in found.statistics]
        statistics = {name: own.loc[name, [*numbers]].to_dict() if name in own.index else None for name in names}
        roles = {name.removeprefix("role "): row["counts"][1] for name, row in own.iterrows() if str(name).startswith("role ")}
        about = {"n_texts": found.texts.n_read, "roles": roles, "statistics": statistics}
        heads.append(at | about | examples.get((place.kind, place.layer, place.head), nothing))
    return summary | {"format": 1, "heads": heads, "rows": rows.drop(columns="counts").to_dict("list")}


def figures_of_a_run(folder: Path) -> Any:
    run, figures = trace(), tv.figures
    looks = (("encoder", 0, 1), ("decoder", 1, "mean"), ("cross", 1, "max"))
    scored = tv.decode(checkpoint(), "hello", record=("weights", "scores"))
    softmax = tv.analysis.head_softmax(scored, "cross.2.3")
    return {
        "attention": drawn(*(figures.attention(run, map_address(kind, layer, head)) for kind, layer, head in looks)),
        "player": drawn(*(figures.player(run, map_address(*look)) for look in looks)),
        "mosaic": drawn(*(figures.mosaic(run, kind) for kind in KINDS)),
        "masks": drawn(*(figures.mask(run, kind) for kind in KINDS), figures.mask_grid([tv.analysis.mask_parts(run)], ["a"])),
        "overview": drawn(figures.overview(run, "cross", "entropy_share")),
        "softmax": drawn(figures.softmax_maps(scored, "cross.2.3", softmax, 3)),
        "page": in_page(tv.export.html(run, "decoder.2.1", 2, plotlyjs=False)),
    }


def two_runs(folder: Path) -> Any:
    a, b = trace(), trace(text="hellx worle")
    compared = tv.compare(a, b)
    return {
        "parted": compared.parted,
        "difference": [compared.difference(f"{kind}.2.3") for kind in KINDS],
        "farthest": compared.farthest("cross"),
        "drawn": drawn(tv.figures.difference(a, b, "cross.2.3"), *(tv.figures.difference_mosaic(a, b, kind) for kind in KINDS)),
        "diff": [(one.what, one.size) for one in tv.diff(a, b, tolerance=1e-3).differences],
    }


def patched(folder: Path) -> Any:
    a, b = trace(), trace(text="hellx world")
    found = tv.patch(checkpoint(), a, b)
    run = tv.patched_run(checkpoint(), a, b, AttentionAddress("cross", 0, 0), 6)
    by_layer = tv.patch(checkpoint(), a, b, by="layer").effects
    return {"effects": found.effects, "by layer": by_layer, "run": run.tokens, "of both": run.of_both,
            "drawn": drawn(tv.figures.patching(found, a, b, "cross"))}  # fmt: skip


def graded(folder: Path) -> Any:
    run = trace("dates")
    grades = tv.analysis.alignment(run, untrained=tv.decode_untrained(checkpoint("dates"), run))
    return {"grades": grades.to_frame().to_dict("list"), "drawn": drawn(tv.figures.grades(grades))}


def on_trial(folder: Path) -> Any:
    traces = [trace(text=text) for text in ("hello world", "Mississippi", "level up")]
    curves = tv.faithfulness(checkpoint(), traces, ["cross.2.1", "gradient", "rollout"])
    removed = tv.knock_out(checkpoint(), traces, how="mean")
    proof = tv.counter_proof(checkpoint(), traces[0], scope="cross")
    return {
        "verdict": {mode: tv.judge_attention(checkpoint(), traces, mode=mode) for mode in ("word", "position")},
        "faithfulness": curves,
        "without a head": removed,
        "counter-proof": {"moved": proof.moved, "farthest": proof.farthest.weights},
        "drawn": drawn(tv.figures.faithfulness(curves), tv.figures.counter_proof(traces[0], [proof], "cross.2.3")),
        "heads drawn": drawn(*(tv.figures.knock_out(removed, kind) for kind in KINDS)),
    }


def training_replayed(folder: Path) -> Any:
    moments = tv.trace_training(checkpoint("reverse-small"), TEXTS["reverse-small"], moments=4, candidates=4)
    rows = [{"step": 50 * i, "loss": 3.0 / i, "held_out": i / 20, "mass_0_1": i / 30} for i in range(1, 9)]
    maps = tv.figures.snapshot_maps([(str(moment.step), moment.forced) for moment in moments], "cross.1.1")
    runs = [of(run) for moment in moments[1:3] for run in (moment.written, moment.forced)]
    return {"runs": runs, "drawn": drawn(maps, tv.figures.training_playback(moments), tv.figures.training(rows, 400))}


def by_length(folder: Path) -> Any:
    found = tv.accuracy_by_length(checkpoint("reverse-small"), [8, 15, 22], samples=20)
    return {"found": found, "drawn": drawn(tv.figures.accuracy_by_length(found))}


def padded(mistake: str | None, folder: Path) -> Any:
    written = tv.decode_batch(checkpoint(), ["hello", "ab"], mistake=mistake)
    read = tv.decode_forced(checkpoint(), ["hello", "ab"], ["olleh", "ba"], mistake=mistake)
    losses = tv.analysis.losses(read)
    return {
        "written": of(written[1]),
        "read": of(read[1]),
        "losses": losses,
        "drawn": drawn(tv.figures.token_losses(read, losses)),
    }


def _ends(interval: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("low", "high"), interval, strict=True))


def _estimate(row: Any) -> dict[str, Any]:
    return {"value": row.mean, **_ends(row.interval), "n": row.n, "even": row.uniform}


def shipped_surveys(folder: Path) -> Any:
    a, b = (tv.load_survey(Path(checkpoint(name).folder) / "survey") for name in ("numbers", "reverse"))
    figures, outputs = tv.figures, b.outputs
    assert outputs is not None
    heads = drawn(*(figures.survey_heads(b, kind, "entropy_share") for kind in KINDS))
    changes = [
        {**vars(head.place), **{name: _estimate(row) for name, row in (("a", head.a), ("b", head.b))}, **_ends(head.interval)}
        for head in tv.compare_surveys(a, b, "mass").heads
    ]
    compared = {"column": tv.compare_surveys(a, b, "mass").column, "heads": changes, "is_same_texts": False}
    rest = drawn(figures.survey_agreement(b, "cross"), figures.survey_distribution(b, "cross.1.1", "mass"))
    rest_of_outputs = drawn(figures.survey_lengths(outputs), figures.survey_calibration(outputs.confidence))
    report = in_page(tv.export.survey_html(b))["read"]
    return {"compared": compared, "report": report, "heads": heads, "rest": rest, "outputs": rest_of_outputs}


def arrays_and_modules(folder: Path) -> Any:
    causal = np.tril(np.ones((2, 3, 4, 4))) / np.arange(1, 5)[:, None]
    given = tv.Trace.from_arrays(decoder=causal, target_tokens=["<s>", "ein", "Haus", "<pad>"], masks={"decoder": "causal"})
    torch.manual_seed(2)
    module = torch.nn.Transformer(16, 2, 2, 3, 32, batch_first=True).eval()
    embed, out = torch.nn.Embedding(11, 16), torch.nn.Linear(16, 11)
    call = lambda source, target: out(module(embed(source), embed(target)))  # noqa: E731
    return {"given": of(given), "module": of(tv.trace_module(module, [3, 4, 5, 2], [1, 5, 4], call=call, logits=True))}


def hugging_face(name: str, folder: Path) -> Any:
    model, text = tiny(name), WRITES[name]
    run = tv.decode(model, text, candidates=4, max_length=9)
    kind = run.kinds[-1]
    return {
        "run": of(run),
        "by words": of(tv.by_words(run)),
        "causes": attributed(model, run, {"occlusion": ("position",), "value_weighted": (), "gradient": (), "rollout": ()}),
        "beam": of(tv.decode(model, text, strategy="beam", beam_size=3, candidates=4, max_length=8)),
        "edited": of(tv.decode(model, text, edits=[f"{kind}.1.2:zero", f"{kind}:2-1"], candidates=4, max_length=7)),
        "inside": tv.inspect_head(model, run, f"{kind}.2.2", 2),
        "certificate": flat(tv.check_masks(model, texts=[text], replacements=1)),
    }


def encoder_alone(folder: Path) -> Any:
    model = tiny(tiny_models.BERT)
    run = tv.decode(model, "The [MASK] is small.", candidates=4)
    return {
        "run": of(run),
        "inside": tv.inspect_head(model, run, "encoder.2.2", 2),
        "graded": tv.analysis.alignment(run).to_frame().to_dict("list"),
    }


def firefox(folder: Path) -> Any:
    model: Any = tv.load_model("firefox:pten", "cpu")
    run = tv.decode(model, "O gato preto dorme na casa grande.", candidates=4)
    return {"run": of(run), "by words": of(tv.by_words(run)),
            "without the shortlist": of(tv.decode(model.with_shortlist(False), "Bom dia.", candidates=4)),
            "inside": tv.inspect_head(model, run, "cross.2.2", 2)}  # fmt: skip


def in_float64(variant: str, folder: Path) -> Any:
    model = random_model(variant)
    run = tv.decode(model, "hello", candidates=4, record=("weights", "scores"))
    return {"run": of(run), "beam": of(tv.decode(model, "bed", strategy="beam", beam_size=3, candidates=4)),
            "inside": tv.inspect_head(model, run, "cross.2.2", 0)}  # fmt: skip


def run_of(name: str = "reverse", text: str | None = None, **settings: Any) -> Callable[[Path], Any]:
    return lambda folder: of(trace(name, text, **settings))


RUNS: dict[str, Callable[[Path], Any]] = {
    "decode hello world with reverse": decoded("hello world", "--checkpoint", "reverse", "--candidates", "4"),
    **{f"trace of {name}": run_of(name) for name in TEXTS},
    **{f"decoded: {how}": run_of("reverse", "reversethis", **settings) for how, settings in STRATEGIES.items()},
    **{f"edited: {edit}": run_of(edits=(edit,)) for edit in EDITS},
    "padded": partial(padded, None),
    **{f"mistake: {name}": partial(padded, name) for name in tv.MISTAKES},
    **{f"variant in float64: {name}": partial(in_float64, name) for name in variants.names()},
    **{f"of Hugging Face: {name}": partial(hugging_face, name) for name in WRITES},
    "of Hugging Face: tiny-bert": encoder_alone,
    "firefox:pten": firefox,
    "evaluate": printed("evaluate", "--checkpoint", "reverse-small", "--samples", "400", "--beyond", "2"),
    "verdict": printed("verdict", "--checkpoint", "numbers", "--samples", "3", "--curve", "cross.2.1"),
    "knock-out": printed("knock-out", "--samples", "6", "--how", "uniform", "--suffices", "1"),
    "counter-proof": printed("counter-proof", "hello", "--scope", "cross.2.3", "--scope", "encoder.1"),
    "check-masks": printed("check-masks", "--text", "hello", "--text", "ab"),
    "check-masks, a mistake": printed("check-masks", "--text", "hello", "--mistake", "no-causal", code=1),
    "effect": printed("effect", "--edits", "cross.1.1:zero", "--samples", "60"),
    "patch": printed("patch", "hello world", "hellx world", "--by", "layer"),
    "align-heads": aligned_heads,
    "checkpoints": listed_checkpoints,
    "saved and rendered": saved_and_rendered,
    "survey of 300 texts in float64": lambda folder: surveyed(random_model("pre-norm"), folder),
    "shipped surveys": shipped_surveys,
    "measures in float64": lambda folder: attributed(
        random_model("post-norm"), tv.decode(random_model("post-norm"), "hello"), METHODS
    ),
    "on trial": on_trial,
    "graded": graded,
    "figures of a run": figures_of_a_run,
    "two runs": two_runs,
    "patched": patched,
    "training replayed": training_replayed,
    "accuracy by length": by_length,
    "arrays and modules": arrays_and_modules,
}
