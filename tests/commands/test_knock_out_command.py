"""`knock-out`: every head alone, and which can go together."""

import transformer_viz as tv


def test_over_texts_of_ones_own(home, cli):
    texts = ["abca", "dcab"]
    given = [part for text in texts for part in ("--text", text)]
    found = cli("knock-out", "--checkpoint", "tiny", *given, "--how", "mean", "--suffices", "0", "--json").json
    model = tv.load_checkpoint("tiny", "cpu")
    own = tv.knock_out(model, [tv.decode(model, text) for text in texts], how="mean")
    assert [each["log_p"]["value"] for each in found["heads"]] == [each.log_p.value for each in own.heads]
    assert len(found["removed"]) == len(own.heads) and found["left"] == []
    done = cli("knock-out", "--checkpoint", "tiny", *given)
    assert done.out.startswith("2 texts, the true answer; in the place of a head: zero\n")
    assert "\ncross.2.3 " in done.out and "suffices" not in done.out
