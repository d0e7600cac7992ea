"""`align-heads`: a table of heads, and `alignment_heads` for other programs."""

from pathlib import Path

import pytest


def test_the_task_says_where_to_look(home, cli):
    done = cli("align-heads", "--checkpoint", "tiny", "--samples", "3")
    assert done.code == 0 and "3 texts" in done.out and "the task's own alignment" in done.out
    lines = done.out.splitlines()
    assert len(lines) == 2 + 6 + 2 and {line[:5] for line in lines[2:8]} == {f"L{n} H{k}" for n in (1, 2) for k in (1, 2, 3)}
    found = cli("align-heads", "--checkpoint", "tiny", "--samples", "3", "--json").json
    assert lines[-2].endswith(f", alignment_heads={found['alignment_heads']}")
    errors = [each["errors"]["writes"] for each in found["heads"]]
    assert errors == sorted(errors)
    assert found["truth"] == "task" and all(each["effect"]["value"] is not None for each in found["heads"])


def test_files_line_by_line(home, cli, mistake):
    for name, text in (("texts", "abc\nca\n"), ("targets", "cba\nac\n"), ("links", "0-0\n0-0\n")):
        Path(name).write_text(text)
    given = ("align-heads", "--checkpoint", "tiny", "--texts", "texts", "--no-effect")
    done = cli(*given, "--targets", "targets", "--links", "links", "--reference", "L2 H3", "--json")
    assert (done.json["truth"], done.json["n_words"], done.json["reference"]) == ("links", 2, [1, 2])
    assert {each["effect"] for each in done.json["heads"]} == {None}
    Path("links").write_text("0-0\n0-1\n")
    assert "Text 2: Link 0-1 is not possible" in mistake(*given, "--targets", "targets", "--links", "links")
    assert "--targets: there is no file nothing." in mistake(*given, "--targets", "nothing")
    assert "--links: . is not read: it is a folder" in mistake(*given, "--targets", "targets", "--links", ".")
    assert "give the targets too" in mistake(*given, "--links", "links")


@pytest.mark.parametrize(("given", "words"), [
    (("--links", "."), "go with the lines of --texts"),
    (("--gold", "pt-de"), "no pairs 'pt-de' aligned by hand; choose one of pt-en, en-pt"),
    (("--reference", "L0 H1"), "is no head; write it as 'L2 H1'"),
    (("--reference", "L9 H1"), "is no head of cross-attention"),
])  # fmt: skip
def test_what_cannot_be_is_said_in_a_line(home, mistake, given, words):
    assert words in mistake("align-heads", "--checkpoint", "tiny", *given)
