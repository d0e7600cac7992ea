"""What commands that run an experiment print and write is what the Python function of that name gives."""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.model.mistakes import MISTAKES

TINY = ("--checkpoint", "tiny", "--device", "cpu")
EDIT = "cross.1.1:zero"
TEXTS = ["abca", "dcab", "bdbd"]
GIVEN = [word for text in TEXTS for word in ("--text", text)]


@pytest.fixture
def model(home) -> tv.Checkpoint:
    return tv.load_checkpoint("tiny", "cpu")


def test_align_heads_with_the_alignment_of_the_task(home, cli):
    done = cli("align-heads", *TINY, "--samples", "3")
    assert done.code == 0 and "3 texts" in done.out and "the task's own alignment" in done.out
    lines = done.out.splitlines()
    assert len(lines) == 2 + 6 + 2 and {line[:5] for line in lines[2:8]} == {f"L{n} H{k}" for n in (1, 2) for k in (1, 2, 3)}
    result = cli("align-heads", *TINY, "--samples", "3", "--json").json
    assert lines[-2].endswith(f", alignment_heads={result['alignment_heads']}")
    errors = [head["errors"]["writes"] for head in result["heads"]]
    assert errors == sorted(errors)
    assert result["truth"] == "task" and all(head["effect"]["value"] is not None for head in result["heads"])


def test_align_heads_with_files_of_one_line_a_text(home, cli, mistake):
    for name, text in (("texts", "abc\nca\n"), ("targets", "cba\nac\n"), ("links", "0-0\n0-0\n")):
        Path(name).write_text(text)
    given = ("align-heads", *TINY, "--texts", "texts", "--no-effect")
    result = cli(*given, "--targets", "targets", "--links", "links", "--reference", "cross.2.3", "--json").json
    assert (result["truth"], result["n_words"], result["reference"]) == ("links", 2, {"kind": "cross", "layer": 1, "head": 2})
    assert {head["effect"] for head in result["heads"]} == {None}
    Path("links").write_text("0-0\n0-1\n")
    refused = {
        "Text 2: Link 0-1 is not possible": ("--targets", "targets", "--links", "links"),
        "--targets: there is no file nothing.": ("--targets", "nothing"),
        "--links: . is not read: it is a folder": ("--targets", "targets", "--links", "."),
        "give the targets too": ("--links", "links"),
        "is not an address of attention; write it as": ("--reference", "L0-H1"),
        "reference: tiny has no head cross.9.1": ("--reference", "cross.9.1"),
    }
    for words, more in refused.items():
        assert words in mistake(*given, *more)
    assert "--targets and --links need --texts" in mistake("align-heads", "--links", ".", *TINY)
    assert "no map 'L9'" in mistake("verdict", "--text", "abc", "--curve", "L9", *TINY)


def test_attribute_writes_the_run_with_its_attributions(model, cli):
    methods = ["--method", "occlusion", "--method", "rollout", "--mode", "position", "--edits", EDIT]
    done = cli("attribute", "abca", *TINY, *methods, "-o", "run.npz")
    assert (done.code, done.out.split(":")[0]) == (0, "run.npz")
    trace = tv.load_trace("run.npz")
    assert list(trace.attributions) == ["occlusion_position_cross", "rollout_cross"]
    own = tv.attribute(model, trace, "occlusion", mode="position")
    assert np.allclose(trace.attributions["occlusion_position_cross"].values, own.values)
    arguments = ("--method", "gradient", "--kind", "decoder", "-o", "prefix.npz")
    assert cli("attribute", "abca", *TINY, *arguments).code == 0
    assert list(tv.load_trace("prefix.npz").attributions) == ["gradient_decoder"]


def test_check_masks(home, cli):
    given = ("check-masks", *TINY, "--replacements", "1")
    data = cli(*given, "--json").json
    assert (data["checkpoint"], data["mistake"], data["sound"], data["verdict"]) == ("tiny", None, True, "sound")
    assert data["findings"] == data["causes"] == []
    done = cli(*given, "--mistake", "wrong-axis")
    assert done.code == 1 and MISTAKES["wrong-axis"].title in done.out
    done = cli(*given, "--edits", "decoder.2.3:1-2, encoder.1:off", "--json")
    assert done.code == 1
    assert {finding["rule"] for finding in done.json["findings"]} >= {"future", "source padding"}


def test_counter_proof(model, cli):
    scopes = ("cross", "encoder.1.2")
    data = cli("counter-proof", "abca", *TINY, *(f"--scope={scope}" for scope in scopes), "--epsilon", "0.002", "--json").json
    for proof, scope in zip(data["proofs"], scopes, strict=True):
        own = tv.counter_proof(model, tv.decode(model, "abca"), scope=scope, epsilon=0.002)
        assert (proof["scope"], proof["farthest"]) == (scope, own.farthest.target)
        assert [moved["share"] for moved in proof["moved"]] == [moved.share for moved in own.moved]
    lines = cli("counter-proof", "abca", *TINY).out.splitlines()[2:]
    assert all(re.search(r" [01]\.\d{3}  (over |under )?\d+ % of the weight elsewhere", line) for line in lines)
    assert len(lines) == 3 + 6 + 6 + 5 + 3 and {"cross.2.3", "decoder.1", "encoder"} < {line.split()[0] for line in lines}


def test_effect_over_strings_of_the_task_and_over_given_texts(model, cli):
    given = ("effect", *TINY, "--edits", EDIT, "--samples", "30", "--seed", "4")
    own = tv.measure_effect(model, edits=[EDIT], samples=30, seed=4)
    assert cli(*given, "--json").json == {"checkpoint": "tiny", "edits": EDIT, "mistake": None, **asdict(own)}
    lines = cli(*given).out.splitlines()
    assert lines[0] == f"changed       {own.changed:.4f}   of 30 fresh strings"
    assert lines[1] == f"exact match   {own.exact_before:.4f} without the change, {own.exact_after:.4f} with it"
    data = cli("effect", *TINY, "--mistake", "wrong-axis", *GIVEN, "--max-length", "5", "--json").json
    own = tv.measure_effect(model, TEXTS, mistake="wrong-axis", max_length=5)
    assert data == {"checkpoint": "tiny", "edits": "", "mistake": "wrong-axis", **asdict(own)}


def test_knock_out(model, cli):
    data = cli("knock-out", *TINY, *GIVEN, "--how", "mean", "--suffices", "0", "--json").json
    own = tv.knock_out(model, [tv.decode(model, text) for text in TEXTS], how="mean")
    assert [head["log_p"]["value"] for head in data["heads"]] == [head.log_p.value for head in own.heads]
    assert len(data["removed"]) == len(own.heads) and data["left"] == []
    done = cli("knock-out", *TINY, *GIVEN)
    assert done.out.startswith("3 texts, the right answer; the output of a removed head: zero\n")
    assert "\ncross.2.3 " in done.out and "suffices" not in done.out


def test_patch(model, cli):
    traces = [tv.decode(model, text) for text in TEXTS[:2]]
    own = tv.patch(model, *traces)
    data = cli("patch", *TEXTS[:2], *TINY, "--json").json
    assert (data["step"], tuple(data["tokens"]), tuple(data["differences"])) == (own.step, own.tokens, own.differences)
    assert data["effects"] == {kind: effects.tolist() for kind, effects in own.effects.items()}
    size, first, _, _, *rows = cli("patch", *TEXTS[:2], *TINY, "--by", "layer", "--where", "cross").out.splitlines()
    assert size.startswith(f"{len(rows)} places to try, of at most ")
    assert first.startswith(f"the runs differ from step {own.step + 1} on: ")
    assert len(rows) == 2 * (own.step + 1) and {row.split()[0] for row in rows} == {"cross.1", "cross.2"}
    effects = cli("patch", *TEXTS[:2], *TINY, "--by", "layer", "--where", "decoder.2", "--where", "cross.2", "--json").json[
        "effects"
    ]
    second = {kind: rows[1:] for kind, rows in tv.patch(model, *traces, by="layer").effects.items() if len(rows) > 1}
    assert effects.keys() == second.keys()
    for kind, rows in second.items():
        # Places are run together, and a batch of fewer layers is added up in another order.
        np.testing.assert_allclose(effects[kind], rows, atol=1e-4)


def test_verdict(model, cli):
    data = cli("verdict", *TINY, *GIVEN, "--mode", "position", "--curve", "cross.1.2", "--json").json
    own = tv.judge_attention(model, [tv.decode(model, text) for text in TEXTS], mode="position")
    assert (data["n_texts"], data["n_judged"], data["mode"], data["kind"]) == (3, own.n_judged, "position", "cross")
    assert [given["name"] for given in data["maps"]] == [given.name for given in own.maps]
    top = own.at("L2 H3").top.value
    assert [given["top"]["value"] for given in data["maps"] if given["name"] == "L2 H3"] == [top if own.n_judged else None]
    assert [curve["name"] for curve in data["curves"]] == ["L1 H2", "occlusion", "random"]
    drawn = ("verdict", *TINY, "--samples", "4", "--kind", "decoder")
    done = cli(*drawn)
    assert done.code == 0 and done.out.startswith("cause by word, decoder: ")
    assert "steps of 4 texts" in done.out and "\nalti " in done.out
    assert done.out != cli(*drawn, "--seed", "1").out
