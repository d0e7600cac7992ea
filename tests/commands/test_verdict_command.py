"""`verdict`: over drawn texts or given ones, as a table and as JSON."""

import transformer_viz as tv


def test_over_texts_of_ones_own(home, cli):
    texts = ["abca", "dcab", "bdbd"]
    given = [part for text in texts for part in ("--text", text)]
    found = cli("verdict", "--checkpoint", "tiny", *given, "--mode", "position", "--curve", "L1 H2", "--json").json
    model = tv.load_checkpoint("tiny", "cpu")
    own = tv.verdict(model, [tv.decode(model, text) for text in texts], mode="position")
    assert (found["n_texts"], found["n_judged"], found["mode"], found["kind"]) == (3, own.n_judged, "position", "cross")
    assert [each["name"] for each in found["maps"]] == [each.name for each in own.maps]
    top = own.at("L2 H3").top.value
    assert [each["top"]["value"] for each in found["maps"] if each["name"] == "L2 H3"] == [top if own.n_judged else None]
    assert [each["name"] for each in found["curves"]] == ["L1 H2", "occlusion", "random"]


def test_over_drawn_texts(home, cli):
    done = cli("verdict", "--checkpoint", "tiny", "--samples", "4", "--kind", "decoder")
    assert done.code == 0 and done.out.startswith("cause by word, decoder: ")
    assert "steps of 4 texts" in done.out and "\nalti " in done.out
    assert cli("verdict", "--checkpoint", "tiny", "--samples", "4", "--kind", "decoder").out == done.out
    assert cli("verdict", "--checkpoint", "tiny", "--samples", "4", "--kind", "decoder", "--seed", "1").out != done.out


def test_a_map_that_is_not_there_is_a_line(home, mistake):
    assert "no map 'L9'" in mistake("verdict", "--checkpoint", "tiny", "--text", "abc", "--curve", "L9")
