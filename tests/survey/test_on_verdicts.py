"""Verdicts of sampled lines are those of `tv.verdict` over the same runs; a line that cannot be read leaves nothing."""

from transformer_viz.analysis.survey.verdicts import load_verdicts
from transformer_viz.surveying.block import Block, Line
from transformer_viz.surveying.on_verdicts import survey_verdicts
from transformer_viz.surveying.options import SurveyOptions

import transformer_viz as tv
from transformer_viz.attribution.result import verdict as judging


def test_verdicts_of_lines_are_those_of_runs(make_model, make_tiny, tmp_path):
    model = make_tiny(make_model(4, n_heads=2, n_encoder_layers=1, n_decoder_layers=1))
    lines = (Line(3, "helo"), Line(5, "ZZ"), Line(7, "", fault="it is empty"), Line(8, "abc"))
    found = survey_verdicts(model, Block(0, lines), SurveyOptions(max_length=4, mode="position"))
    (tmp_path / "verdicts").write_bytes(found.to_bytes("d"))
    again = load_verdicts(tmp_path / "verdicts", "d")
    wanted = tv.verdict(model, [tv.decode(model, text, max_length=4) for text in ("helo", "abc")], mode="position", seed=0)
    assert repr(judging.over(again.verdicts, again.missing, seed=0)) == repr(wanted)
