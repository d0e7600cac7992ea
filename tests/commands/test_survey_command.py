"""`survey`: what it prints, what it writes, and what it refuses."""

from pathlib import Path

import pytest

from transformer_viz.export import survey_html
from transformer_viz.surveys import survey as surveying
from transformer_viz.surveys.result import load_survey

SMALL = ("--workers", "1", "--verdict-texts", "2", "--device", "cpu")


@pytest.fixture
def corpus(home, tmp_path) -> Path:
    """Four lines, one of which the model cannot read."""
    (tmp_path / "texts.txt").write_text("abc\nbad c\nxyz\ndd-a\n", encoding="utf-8")
    return tmp_path / "texts.txt"


def test_it_says_what_it_found_and_where_it_is(corpus, cli, tmp_path):
    done = cli("survey", "--checkpoint", "tiny", "--texts", str(corpus), *SMALL)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "3 of 4 texts were read (texts.txt)"
    assert lines[1].startswith("line 3 was not: Character 1 is “x”")
    assert lines[2] == "exact match   0.0000   of 3 texts whose answer is known"
    assert [line.split()[0] for line in lines[3:-1]] == ["encoder", "decoder", "cross"]
    assert lines[-1].startswith("surveys/tiny: summary.json, survey.parquet, report.html;")
    # Nobody watches a bar that goes into a file; what it takes is said.
    assert done.err == "it takes about 500 MB of memory\n"
    found = load_survey(tmp_path / "surveys" / "tiny")
    assert (tmp_path / "surveys" / "tiny" / "report.html").read_text(encoding="utf-8") == survey_html(found)


def test_json_is_the_summary_and_nothing_else_is_said(corpus, cli, tmp_path):
    (tmp_path / "targets.txt").write_text("a\n\nb\n\n", encoding="utf-8")
    given = ("--checkpoint", "tiny", "--texts", "-", "--targets", "targets.txt", "-o", "new", "--json", *SMALL)
    done = cli("survey", *given, stdin=corpus.read_bytes())
    assert (done.code, done.err) == (0, "")
    assert done.json["texts"]["source"] == "standard input" and done.json["options"]["verdict_texts"] == 2
    assert done.json["outputs"]["n_known"] == 3, "where a target is empty the task knows"
    assert load_survey(tmp_path / "new").texts.n_failed == done.json["texts"]["n_failed"] == 1


def test_a_mistake_is_one_line(corpus, mistake):
    texts = ("--texts", str(corpus), "--checkpoint", "tiny")
    assert "one of --texts FILE and --held-out N is needed" in mistake("survey", "--checkpoint", "tiny")
    assert "not allowed with argument" in mistake("survey", *texts, "--held-out", "9")
    assert "is no folder" in mistake("survey", *texts, "-o", str(corpus), *SMALL)


def test_ctrl_c_says_how_it_goes_on(corpus, cli, monkeypatch):
    def interrupted(*arguments: object, **keywords: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(surveying, "survey", interrupted)
    done = cli("survey", "--texts", str(corpus), "--checkpoint", "tiny", "-o", "new")
    assert (done.code, done.err) == (130, "\nwhat is done is in new; the same command continues\n")
