"""`check-masks`: the exit code is the verdict."""

import pytest

from transformer_viz.model.mistakes import MISTAKES

TINY = ("--checkpoint", "tiny", "--device", "cpu", "--replacements", "1")


def test_a_sound_checkpoint(home, cli):
    done = cli("check-masks", *TINY)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Sound: nothing that must not be seen changed anything in checkpoint tiny")
    data = cli("check-masks", *TINY, "--json").json
    assert (data["checkpoint"], data["mistake"], data["sound"], data["verdict"]) == ("tiny", None, True, "sound")
    assert data["findings"] == data["causes"] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_fails_and_is_named(home, cli, mistake):
    done = cli("check-masks", *TINY, "--mistake", mistake, "--json")
    assert done.code == 1
    assert done.json["causes"] == [mistake]
    done = cli("check-masks", *TINY, "--mistake", mistake)
    assert done.code == 1
    assert MISTAKES[mistake].title in done.out


def test_edits_are_checked_too(home, cli):
    done = cli("check-masks", *TINY, "--edits", "decoder.2.3:1-2, encoder.1:off", "--json")
    assert done.code == 1
    assert {finding["rule"] for finding in done.json["findings"]} >= {"future", "source padding"}
