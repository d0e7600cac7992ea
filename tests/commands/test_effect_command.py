"""`effect`: what is printed is what `tv.effect` says."""

from dataclasses import asdict

import transformer_viz as tv

TINY = ("effect", "--checkpoint", "tiny", "--device", "cpu")
EDIT = "cross.1.1:zero"


def test_strings_of_the_task(home, cli):
    done = cli(*TINY, "--edits", EDIT, "--samples", "30", "--seed", "4", "--json")
    assert (done.code, done.err) == (0, "")
    found = tv.effect(tv.load_checkpoint("tiny", "cpu"), edits=[EDIT], samples=30, seed=4)
    assert done.json == {"checkpoint": "tiny", "edits": EDIT, "mistake": None, **asdict(found)}
    lines = cli(*TINY, "--edits", EDIT, "--samples", "30", "--seed", "4").out.splitlines()
    assert lines[0] == f"changed       {found.changed:.4f}   of 30 fresh strings"
    assert lines[1] == f"exact match   {found.exact_before:.4f} without the change, {found.exact_after:.4f} with it"


def test_a_persons_texts(home, cli):
    texts = ["abc", "d", "ab a"]
    given = [word for text in texts for word in ("--text", text)]
    done = cli(*TINY, "--mistake", "wrong-axis", *given, "--max-length", "5", "--json")
    found = tv.effect(tv.load_checkpoint("tiny", "cpu"), texts, mistake="wrong-axis", max_length=5)
    assert done.json == {"checkpoint": "tiny", "edits": "", "mistake": "wrong-axis", **asdict(found)}
