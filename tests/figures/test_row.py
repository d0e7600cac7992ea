"""One row of a map, as bars."""

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz.errors import OptionError
from transformer_viz.terms import REASON_WORDS


@pytest.fixture(scope="module")
def trace(tiny):
    return tv.decode(tiny, "hello")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_bars_are_the_weights_of_the_row_and_masked_keys_are_hatched(trace, kind):
    attention = trace.attentions[kind]
    _, n_heads, n_rows, n_keys = attention.weights.shape
    for head in range(n_heads):
        for step in range(n_rows):
            weights, reasons = attention.weights[0, head, step], attention.head_reasons(0, head)[step]
            seen, *hatched = tv.figures.row(trace, f"{kind}.1.{head + 1}", step).data
            assert list(seen.x) == [*range(n_keys)]
            np.testing.assert_array_equal(np.isnan(seen.y), reasons > 0)
            np.testing.assert_array_equal(np.asarray(seen.y)[reasons == 0], weights[reasons == 0])
            assert np.nansum(seen.y) == pytest.approx(1, abs=1e-5)
            covered = {key: column.hovertemplate for column in hatched for key in column.x}
            assert covered.keys() == {*np.nonzero(reasons)[0].tolist()}
            assert all(REASON_WORDS[int(reasons[key])] in words for key, words in covered.items())


def test_it_says_which_row_and_numbers_only_what_can_be_seen(trace):
    figure = tv.figures.row(trace, "cross.1.mean", 0)
    written = trace.output_tokens[0]
    assert figure.layout.title.text == f"cross-attention, layer 1, mean of the heads, row 1: &lt;start&gt; → {written}"
    mean = trace.cross.weights[0].mean(0)[0]
    np.testing.assert_allclose(figure.data[0].y, mean, atol=1e-6)
    assert [bool(words) for words in figure.data[0].text] == [weight >= 0.01 for weight in mean]


@pytest.mark.parametrize("step", [-1, 99])
def test_no_such_row(trace, step):
    with pytest.raises(OptionError, match=rf"step={step} is not possible; the cross map of this run has rows 0 to \d+"):
        tv.figures.row(trace, "cross", step)


def test_the_command_and_a_page_know_it(trace, tmp_path):
    page = tv.export.save(trace, tmp_path / "row.html", "row", head="cross.1.2", step=1)
    assert "layer 1 head 2, row 2" in page.read_text(encoding="utf-8")
