"""`patch`: what of one run makes another write the same."""

import transformer_viz as tv

TEXTS = ("abca", "dcab")


def test_it_says_what_python_says(home, cli):
    model = tv.load_checkpoint("tiny", "cpu")
    own = tv.patch(model, *(tv.decode(model, text) for text in TEXTS))
    found = cli("patch", *TEXTS, "--checkpoint", "tiny", "--json").json
    assert (found["step"], tuple(found["tokens"]), tuple(found["differences"])) == (own.step, own.tokens, own.differences)
    assert found["effects"] == {kind: effects.tolist() for kind, effects in own.effects.items()}
    done = cli("patch", *TEXTS, "--checkpoint", "tiny", "--by", "layer", "--kind", "cross")
    first, _, *rows = done.out.splitlines()
    assert first.startswith(f"the runs part at step {own.step + 1}: ")
    assert len(rows) == 2 * (own.step + 1) and {row.split()[0] for row in rows} == {"cross.1", "cross.2"}


def test_mistakes_are_a_line(home, mistake):
    assert "'row' is not known" in mistake("patch", *TEXTS, "--checkpoint", "tiny", "--by", "row")
    assert "patching needs as many" in mistake("patch", "abca", "abc", "--checkpoint", "tiny")
