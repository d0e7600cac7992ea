"""Whatever stands in a file of JSON: it is read, or refused in a sentence that says what is wrong. One row a damage.

Rows are of what a class checks beyond the types of its fields, which `test_schema.py` has, and one of each kind of them.
"""

import copy
import json
import math
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import tiny as checkpoint
from tests.fuzz.mutations import bits, cut, doubled
from tests.surveys import made
from tests.trace import planted
from tests.trace.conftest import members_of, zip_of
from tests.training.tiny import RECIPE, event
from transformer_viz import checkpoints, untrusted_files
from transformer_viz.errors import CheckpointError, ConfigError, FileError, SurveyError, TraceError, TransformerVizError
from transformer_viz.schema import read_value, to_plain
from transformer_viz.surveys.result import load_survey
from transformer_viz.trace.store import description, load_trace, to_bytes
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.reporter import JobEvent
from transformer_viz.training.saved_state import Progress
from transformer_viz.views.server.jobs import JobDescription


@dataclass(frozen=True)
class File:
    """A file that is whole: what stands in it, how it is read, and which error refuses it.

    `read` gets the file and gives what would be written again.
    """

    name: str
    data: Any
    read: Callable[[Path], Any]
    error: tuple[type[TransformerVizError], ...]


def described(path: Path) -> Any:
    checkpoints.task_of(str(path.parent))
    return to_plain(checkpoints.read_description(path.parent))


def whole_checkpoint() -> Any:
    metrics = {
        "exact_match": 1,
        "best_head": {"layer": 1, "head": 2},
        "samples": 3,
        "failures": [{"source": "a", "output": ""}],
    }
    return json.loads(
        checkpoints.description(checkpoint.tiny_model(), checkpoint.TASK, "pre-norm", {"longest": 5, "sharpness": 0.3}, metrics)
    )


TRACE = planted.with_results(planted.grouped(planted.search((0, 1), has_source=True, is_windowed=True, steps=2)))
"""A run with a prompt, ids, a window, a beam search, groups, attributions and the insides of heads."""
ARRAYS = members_of(to_bytes(TRACE))
META = json.loads(ARRAYS.pop("meta.json"))


def described_trace(path: Path) -> Any:
    """Of the file whose arrays are those of `TRACE` and whose description is this one."""
    trace = load_trace(zip_of({**ARRAYS, "meta.json": path.read_bytes()}, zipfile.ZIP_STORED))
    return {"format": 1, **description(trace)}


def training_file(name: str, whole: Any) -> File:
    """A file of a training that holds one dataclass."""
    kind = type(whole)
    return File(
        name, to_plain(whole), lambda path: to_plain(read_value(kind, untrusted_files.read_json(path, 2**20))), (FileError,)
    )


SURVEY = made.survey(kinds=("encoder", "cross"), n_layers=1, n_heads=2, n=12)
FILES = {
    "trace": File("meta.json", META, described_trace, (TraceError,)),
    "survey": File(
        "summary.json", json.loads(SURVEY.to_json()), lambda path: json.loads(load_survey(path).to_json()), (SurveyError,)
    ),
    "checkpoint": File("config.json", whole_checkpoint(), described, (CheckpointError,)),
    "recipe": File(
        "recipe.json",
        RECIPE.to_json(),
        lambda path: Recipe.from_json(untrusted_files.read_json(path, 2**20)).to_json(),
        (ConfigError, FileError),
    ),
    "job": training_file("job.json", JobDescription(recipe=RECIPE, started=1e9, mark="ab")),
    "event": training_file("events", JobEvent(**vars(event(50, held_out=0.5)), at=1e9)),
    "state": training_file("state.json", Progress(step=60, history=(event(50, mass_0_1=0.5), event(60)))),
}
GONE = object()
"""In the place of a value that is left out."""
VOCABULARY = ["<pad>", "<start>", "<end>", "<unk>"]
TABLE: dict[str, list[tuple[tuple[Any, ...], Any, str]]] = {
    "trace": [
        (("format",), 2, "its format is 2, and this version reads format 1"),
        (("format",), GONE, "its format is None"),
        (("source",), GONE, "lacks 'source'"),
        (("colour",), "red", "'colour', which does not belong there"),
        (("target_tokens",), "abc", "target_tokens='abc' .*a list"),
        (("output_tokens",), [], "output_tokens has 0 entries for 2 steps"),
        (("finished",), "maybe", "finished='maybe' .*one of end, length, given"),
        (("alignment", 0), 99, r"alignment\[0\] is 99; it is None, or a position below 3"),
        (("source_letters", 0), 3, r"source_letters\[0\] is 3"),
        (("steps", 0, "probability"), 1.5, r"steps\[0\]\.probability=1\.5"),
        (("steps", 0, "probability"), None, "a probability is no number; only a mask mistake"),
        (("steps", 0, "log_probability"), 0.5, r"log_probability=0\.5 .*at most 1e-06"),
        (("steps", 0, "token"), "?", r"steps\[0\] says '\?'"),
        (("steps", 0, "candidate_ids"), [1], "1 ids for 3 candidates"),
        (("steps", 0, "candidates", 0), ["a"], r"candidates\[0\]=\['a'\] .*a list of 2"),
        (("steps", 0, "candidates", 0, 1), None, "a probability is no number"),
        (("steps",), [[]] * 1000, r"steps\[0\]=\[\] is not possible; it is an object"),
        (("source_ids",), [1], "source_ids has 1 entries for 3 source_tokens"),
        (("fills",), [{"place": 9, "candidates": []}], "fills are at 9"),
        (("attentions", "self"), {}, "attentions.*'self' .*one of encoder, decoder, cross"),
        (("attentions", "cross"), GONE, "'attentions/cross/weights.npy', which does not belong there"),
        (("attentions", "cross", "layers"), [1, 1], "layers are numbered 1, 1; 2 ascending numbers"),
        (("attentions", "cross", "layers"), [2, 0], "ascending"),
        (("attentions", "cross", "layers"), [0], "2 ascending numbers"),
        (("attentions", "cross", "layers"), [0, 10**4], r"layers\[1\]=10000 .*from 0 to 9999"),
        (("search", "nodes", 0, "parent"), 0, "node 0 does not fit to its parent"),
        (("search", "nodes", 0, "row"), 99, "node 0 does not fit"),
        (("search", "nodes", 0, "state"), "lost", "state='lost'"),
        (("search", "nodes", 0, "pruned_by"), 99, "node 0 does not fit"),
        (("search", "best"), [], "1 to 1,048,576 entries"),
        (("search", "best", 0), 99, "a best hypothesis is not among the nodes"),
        (("search", "alignment", 0), 7, "alignment names a position that is not below 3"),
        (("search", "opening"), ["<s>", "x"], "its opening has 2 tokens"),
        (("search",), None, "'search/.*', which does not belong there"),
        (("groups",), {}, "'groups/unheard_of/arrays/of_0.npy', which does not belong there"),
        (("groups",), META["groups"] | {f"x{i}": 0 for i in range(16)}, "it is an object of 0 to 16 entries"),
        (("groups", "UP"), {"arrays": {}, "notes": {}}, "group name 'UP' is not possible"),
        (("attributions", "occlusion_word_cross", "kind"), "encoder", "kind 'encoder' has no causes"),
        (("attributions", "occlusion_word_cross", "kind"), "decoder", "is the name of occlusion_word_decoder"),
        (("attributions", "occlusion_word_cross", "method"), "<b>", "method name '<b>' is not possible"),
        (("attributions", "occlusion_word_cross", "layers"), [1], "has 1 layer numbers"),
        (("attributions", "occlusion_word_cross", "unit"), "x" * 41, "unit=.*text of 0 to 40 characters"),
        (("attributions", "occlusion_word_cross"), GONE, "which does not belong there"),
        (("insides", 0), GONE, "'insides/1/.*', which does not belong there"),
        (("insides", 0, "layer"), 99, r"cross\.100\.1:2 is not in this run"),
        (("insides", 0, "head"), 1, r"the weights of cross\.2\.2:2 are not those of the run"),
        (("insides", 0, "row"), 99, "are not those of the run"),
        (("insides", 0, "row_token"), "?", r"row_token of cross\.2\.1:2 is not that of the run"),
        (("insides", 0, "key_tokens"), ["a"], "3 key where others have 1"),
        (("insides", 0, "run"), {}, "run of cross"),
        (("insides", 0, "lens", 0, "probability"), 2, r"insides\[0\]\.lens\[0\]\.probability=2"),
    ],
    "survey": [
        (("format",), 1, "reads format 2; update"),
        (("format",), True, "reads format 2"),
        (("format",), GONE, "its format is None"),
        (("version",), GONE, "the survey lacks 'version'"),
        (("model", "name"), "x" * 2001, "text of 0 to 2,000 characters"),
        (("extra",), 1, "'extra', which does not belong"),
        (("kinds", "sideways"), {"layers": [0], "n_heads": 1}, "one of encoder, decoder, cross"),
        (("kinds", "cross", "layers"), [0, 0], "ascending numbers"),
        (("kinds", "cross", "n_heads"), 3, r"cross\.1\.3: roles of 0 texts; each of the 12"),
        (("kinds", "cross", "n_heads"), 2**14 + 1, "up to 16384 heads"),
        (("heads", 0, "head"), 5, r"encoder\.1\.6: 'entropy_share' of no such head"),
        (("heads", 0, "kind"), "decoder", r"decoder\.1\.1: 'entropy_share' of no such head"),
        (("heads", 0, "statistic"), "<b>", "'<b>' is no statistic and no role"),
        (("heads", 0, "statistic"), "distance", "20 bins; 3 are needed"),
        (("heads", 1, "statistic"), "role mirror", "3 bins; 2 are needed"),
        (("heads", 2), GONE, r"encoder\.1\.1: roles of"),
        (("heads", 0, "mean"), 99, "a mean of 99 is not between"),
        (("heads", 1, "counts"), [12], "in 1 bins; 3 are needed"),
        (("heads", 0, "n"), 13, "13 texts, and 12 in 20 bins"),
        (("examples", 0, "by"), "mass", "no text has 'mass'"),
        (("examples", 0, "head"), 1, "examples of a head stand twice"),
        (("examples", 3, "highest"), [{"line": 1, "text": "", "value": 0}] * 2, "highest has 2 texts by 'mass'; one a line"),
        (("statistics", 0, "edges"), [0, 1, 1], "edges of 'mass' do not ascend"),
        (("statistics", 0, "edges"), [0], "a list of 2 to 201 entries"),
        (("statistics", 0, "name"), "distance", "two statistics have one name"),
        (("agreement", "cross", 0), [1.0], "as many rows of as many"),
        (("agreement", "decoder"), [[1.0]], "for 0 heads"),
        (("outputs", "n_known"), 99, "99 known of 12"),
        (("outputs", "by_length", 1, "length"), 4, "do not ascend"),
        (("outputs", "confidence", "n_right", 0), 10**6, "more tokens are right"),
        (("outputs", "confidence", "counts"), [], "20 bins between edges that ascend need 20 counts"),
        (("outputs", "worst", 0, "line"), 2, "one a line"),
        (("verdict", "maps", 1, "top", "value"), 1.5, "cannot be"),
        (("verdict", "maps", 1, "rho", "interval"), [0.5, 0.25], "cannot be"),
        (("verdict", "maps", 1, "name"), "L1 H1", "two maps have one name"),
        (("verdict", "chance", "value"), -0.5, "chance is"),
        (("verdict", "n_without_choice"), 5, "5 of 4 steps that were left out"),
        (("verdict", "n_texts"), 13, "more texts than the 12"),
        (("options", "seed"), {"a": 1}, "or a finite number, or true or false, or null"),
    ],
    "checkpoint": [
        (("format",), 0, "format 0 is not known; this version reads format 1"),
        (("format",), GONE, "lacks 'format'"),
        (("model",), {}, "model lacks 'source_vocabulary_size'"),
        (("model", "d_modle"), 3, "'d_modle', which does not belong there.*d_model"),
        (("model", "d_model"), 10**12, "d_model=1000000000000"),
        (("model", "d_model"), 7, "model: n_heads=3 does not divide d_model=7; .* 1, 7,"),
        (("model", "d_model"), 9, "d_model=9 is odd.*even"),
        (("model", "d_k"), 0, "d_k=0 is not possible; it is a whole number from 1 to 8192, or null"),
        (("model", "n_decoder_layers"), 65, "n_decoder_layers=65 .* 64"),
        (("model", "source_vocabulary_size"), 3, "source_vocabulary_size=3 .*from 4"),
        (("model", "max_positions"), 10**6, "max_positions=1000000 .*4096"),
        (("model", "dropout"), 1.0, "dropout=1.0 .*below 1"),
        (("model", "sinusoid_base"), 1, "sinusoid_base=1 .*above 1"),
        (("task",), {"name": "../x", "options": {}}, "'../x' is not known.*reverse"),
        (("task", "options", "alphabet"), 5, "alphabet=5"),
        (("task", "options", "trained_lengths"), 5, "trained_lengths|len()"),
        (("task", "options", "alphabet"), "abdc", "vocabular"),
        (("task", "options", "alphabet"), "abcde", "vocabular.*9 and 9 tokens"),
        (("task", "options", "alphabet"), "ab" * 500_000, "alphabet='abab"),
        (("task", "options", "trained_lengths"), ["x"] * 250_000, "trained_lengths=.*give two numbers"),
        (("task", "options", "max_length"), {"y" * 1_000_000: 1}, "max_length={'yy"),
        (("task", "options", "held_out_share"), "ab" * 500_000, "held_out_share='abab"),
        (("task",), {"name": "shift", "options": {"by": ["x"] * 250_000}}, r"by=\['x'"),
        (("vocabularies", "source"), [*VOCABULARY, "a" * 201], "text of 0 to 200 characters"),
        (("vocabularies", "source"), VOCABULARY[1:], "a vocabulary begins with <pad>"),
        (("variant",), "<b>" * 100, "variant=.* is no name"),
        (("recipe", "longest"), 10**9, r"recipe\.longest=1000000000"),
        (("recipe", "sharpness"), "<b>", r"recipe\.sharpness='<b>'"),
        (("metrics", "best_head"), {"layer": 2, "head": 0}, "is not in this model"),
        (("metrics", "best_head"), {"layer": 0, "head": 3}, "is not in this model"),
        (("metrics", "samples"), 10**400, "samples=1000"),
    ],
    "recipe": [
        (("task",), "x" * 101, "text of 0 to 100 characters"),
        (("steps",), 0, "steps=0 is not possible; it is a whole number from 1 to 1000000000"),
        (("mix",), {"uniform": 0.5, "few": 0.4}, "add up to 0.9"),
        (("mix",), {}, "add up to 0"),
        (("schedule",), "zigzag", "schedule='zigzag'.*one-cycle"),
        (("label_smoothing",), 1.0, "label_smoothing=1.0"),
        (("sharpness_from",), 0.9, "sharpness rises from 0.9 to 0.8"),
        (("betas", 1), 1, r"betas\[1\]=1"),
        (("clip",), -1, "clip=-1 is not possible; it is a number at least 0, or null"),
    ],
    "job": [
        (("recipe", "steps"), 0, r"recipe\.steps=0"),
        (("recipe", "mix"), {}, "recipe: the shares of the mix"),
    ],
    "event": [
        (("loss",), None, "loss=None .*a finite number"),
        (("token_accuracy",), 1.5, "from 0 to 1"),
        (("at",), GONE, "lacks 'at'"),
    ],
    "state": [
        (("history", 0, "loss"), "x", r"history\[0\]\.loss='x'"),
        (("history", 1, "step"), GONE, r"history\[1\] lacks 'step'"),
        (("history", 0, "checks", "mass_0_1"), None, r"checks\.mass_0_1=None"),
    ],
}


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, bytes], Any]:
    """`read("survey", content)`: what is read of a file with this content."""

    def from_disk(kind: str, content: bytes) -> Any:
        path = tmp_path / FILES[kind].name
        path.write_bytes(content)
        return FILES[kind].read(path)

    return from_disk


def damaged(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value in one place."""
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    if value is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("kind", "path", "value", "words"),
    [
        pytest.param(kind, *row, id=f"{kind}-{'.'.join(map(str, row[0]))}={str(row[1])[:20]}")
        for kind in TABLE
        for row in TABLE[kind]
    ],
)
def test_each_damage_is_refused_in_its_words(read: Any, kind: str, path: tuple[Any, ...], value: Any, words: str) -> None:
    with pytest.raises(FILES[kind].error, match=words) as caught:
        read(kind, json.dumps(damaged(FILES[kind].data, path, value)).encode())
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


OTHERS = ["", "[]", "null", "NaN", '{"a": 1}', '{"format": 1, "format": 1}', "\xff\xfe"]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("text", [*OTHERS, "[" * 10**5, "1" * 5000], ids=lambda text: text[:20])
def test_what_is_something_else_is_refused(read: Any, kind: str, text: str) -> None:
    with pytest.raises(FILES[kind].error):
        read(kind, text.encode("latin1"))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value; of long lists the first and last entry."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, len(value) - 1} & set(range(len(value)))):
            found += places(value[i], (*path, i))
    return found


VALUES: list[Any] = [
    *(GONE, None, True, -1, 0, 3, 0.5, 1e300, 10**400, "", "x", "3", "<script>alert(1)</script>", [], [1], [[1]], {}, {"a": 1}),
    *(math.nan, "\ud800"),
]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("n", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_every_wrong_value_in_every_place_is_refused_or_read(read: Any, kind: str, n: int) -> None:
    """What is read says what stood in the file."""
    file, rng, refusals = FILES[kind], random.Random(0), []
    assert read(kind, json.dumps(file.data).encode()) == file.data
    tried = [(path, value) for path in places(file.data) for value in rng.sample(VALUES, n)]
    for path, value in tried:
        content = damaged(file.data, path, value)
        try:
            again = read(kind, json.dumps(content).encode())
        except file.error as error:
            refusals.append(str(error))
        else:
            assert value is GONE or again == content, (path, value)
    assert len(refusals) > len(tried) / 2
    assert not [words for words in refusals if len(words) > 1600 or "\n" in words]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("n", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_changed_bytes_are_refused_or_read(read: Any, kind: str, n: int) -> None:
    rng, good, n_refused = random.Random(0), json.dumps(FILES[kind].data).encode(), 0
    for _ in range(n):
        try:
            again = read(kind, rng.choice((bits, cut, doubled))(good, rng))
        except FILES[kind].error:
            n_refused += 1
        else:
            assert read(kind, json.dumps(again).encode()) == again
    assert n / 3 < n_refused
