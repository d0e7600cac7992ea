"""`diff A.npz B.npz`: the exit code is the verdict, for other people's checks too."""

import dataclasses

import pytest

from tests.attentions import with_parts
from transformer_viz import decode, load_checkpoint, load_trace, save_trace


@pytest.fixture
def files(home, tmp_path):
    """`files["abc"]`: a trace file of that text."""
    checkpoint, paths = load_checkpoint("tiny", device="cpu"), {}
    for text in ("abc", "abd"):
        paths[text] = str(tmp_path / f"{text}.npz")
        save_trace(decode(checkpoint, text), paths[text])
    return paths


def test_different_runs_and_the_same(files, cli):
    done = cli("diff", files["abc"], files["abd"])
    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("Different: ")
    assert "  input: source: 'abc' → 'abd'" in lines
    assert any(line.startswith("  attention: cross-attention, layer ") for line in lines)
    data = cli("diff", files["abc"], files["abd"], "--json").json
    assert (data["before"], data["after"], data["equal"], data["tolerance"]) == (files["abc"], files["abd"], False, 0)
    sources = {"before": "abc", "after": "abd", "size": None, "count": 1}
    assert data["differences"][0] == {"what": "input", "where": {"field": "source"}, **sources}
    done = cli("diff", files["abc"], files["abc"], "--json")
    assert (done.code, done.json["equal"], done.json["differences"]) == (0, True, [])


def test_tolerance_and_ignore(files, cli, tmp_path):
    trace = load_trace(files["abc"])
    weights = trace.cross.weights.copy()
    weights[1, 2, 0, 3] += 1e-4
    made_by = {**trace.made_by, "checkpoint": "mine"}
    other = dataclasses.replace(trace, attentions=with_parts(trace, "cross", weights=weights), made_by=made_by)
    save_trace(other, tmp_path / "other.npz")
    pair = ("diff", files["abc"], str(tmp_path / "other.npz"))
    for some in ((), ("--tolerance", "1e-3"), ("--ignore", "model")):
        assert cli(*pair, *some).code == 1
    done = cli(*pair, "--tolerance", "1e-3", "--ignore", "model")
    assert done.code == 0 and "note: numbers within the tolerance differ by up to 0.0001" in done.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("abc", "nowhere.npz"), "There is no file nowhere.npz"),
        (("abc", "."), "it is a folder, not a file"),
        (("abc", "abc", "--tolerance", "nan"), "'nan'"),
        (("abc", "abc", "--ignore", "colours"), "'colours'"),
    ],
)
def test_a_mistake_is_one_line_and_2(files, mistake, arguments, named):
    assert named in mistake("diff", *(files.get(argument, argument) for argument in arguments))
