"""`patch`: what of one run makes another write the same."""

import numpy as np

import transformer_viz as tv

TEXTS = ("abca", "dcab")


def test_it_says_what_python_says(home, cli):
    model = tv.load_checkpoint("tiny", "cpu")
    own = tv.patch(model, *(tv.decode(model, text) for text in TEXTS))
    found = cli("patch", *TEXTS, "--checkpoint", "tiny", "--json").json
    assert (found["step"], tuple(found["tokens"]), tuple(found["differences"])) == (own.step, own.tokens, own.differences)
    assert found["effects"] == {kind: effects.tolist() for kind, effects in own.effects.items()}
    done = cli("patch", *TEXTS, "--checkpoint", "tiny", "--by", "layer", "--kind", "cross")
    size, first, _, _, *rows = done.out.splitlines()
    assert size.startswith(f"{len(rows)} places, of at most ")
    assert first.startswith(f"the runs part at step {own.step + 1}: ")
    assert len(rows) == 2 * (own.step + 1) and {row.split()[0] for row in rows} == {"cross.1", "cross.2"}

    done = cli("patch", *TEXTS, "--checkpoint", "tiny", "--by", "layer", "--layers", "2", "--json").json
    wanted = {kind: rows[1:] for kind, rows in by_layer(model).items() if len(rows) > 1}
    assert done["effects"].keys() == wanted.keys()
    for kind, rows in wanted.items():
        # Places are run together, and a batch of fewer layers is added up in another order.
        np.testing.assert_allclose(done["effects"][kind], rows, atol=1e-4)


def by_layer(model):
    found = tv.patch(model, *(tv.decode(model, text) for text in TEXTS), by="layer")
    return {kind: effects.tolist() for kind, effects in found.effects.items()}
