"""`attribute`: the file holds the run and what was asked of it."""

import numpy as np

import transformer_viz as tv


def test_the_file_holds_what_was_asked(home, cli):
    asked = ["--method", "occlusion", "--method", "rollout", "--mode", "position", "--edits", "cross.1.1:zero"]
    done = cli("attribute", "abca", "--checkpoint", "tiny", *asked, "-o", "run.npz")
    assert (done.code, done.out.split(":")[0]) == (0, "run.npz")
    trace = tv.load_trace("run.npz")
    assert list(trace.attributions) == ["occlusion_position_cross", "rollout_cross"]
    own = tv.attribute(tv.load_checkpoint("tiny", "cpu"), trace, "occlusion", mode="position")
    assert np.allclose(trace.attributions["occlusion_position_cross"].values, own.values)


def test_of_the_prefix(home, cli):
    assert (
        cli("attribute", "abca", "--checkpoint", "tiny", "--method", "gradient", "--kind", "decoder", "-o", "run.npz").code == 0
    )
    assert list(tv.load_trace("run.npz").attributions) == ["gradient_decoder"]
