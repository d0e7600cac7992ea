"""The five published implementations, in their articles' manner: traced as they are, and decoded from the command line."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch

import tests.published as published
import transformer_viz as tv
from transformer_viz.commands import main
from transformer_viz.model.tap import RecordTap, Site
from transformer_viz.vocabulary import PAD_ID, START_ID

TEXT = "hello bad"


@pytest.mark.parametrize("variant", published.ARTICLES)
def test_each_is_traced_equal_to_our_variant(variant):
    """With padding in the source, and source and target equally long."""
    article = published.ARTICLES[variant]().eval()
    source = [*published.TASK.source_vocabulary.encode(published.TASK.frame(published.TASK.read("hello"))), PAD_ID]
    target = [START_ID, *source[1:-2], 5, 6]
    assert len(source) == len(target)
    trace = tv.trace_module(article, source, target, call=published.call_of(article), pad_id=PAD_ID)
    keep, padding = RecordTap("weights", "mask"), torch.tensor([source]) == PAD_ID
    article.model(torch.tensor([source]), torch.tensor([target]), padding, tap=keep)
    assert trace.kinds == ("encoder", "decoder", "cross")
    for kind in trace.kinds:
        for layer in range(2):
            kept = keep.kept[Site(kind, layer)]
            np.testing.assert_allclose(trace.attentions[kind].weights[layer], kept["weights"][0].numpy(), atol=1e-6)
            np.testing.assert_array_equal(trace.attentions[kind].mask, kept["mask"][0, 0].numpy())


@pytest.mark.parametrize("variant", published.ARTICLES)
def test_the_command_writes_what_its_own_loop_writes(variant):
    function = f"make_{variant.replace('-', '_')}"
    with redirect_stdout(StringIO()) as printed:
        arguments = ["--module", f"{Path(published.__file__)}:{function}", "--max-length", "9", "--json"]
        assert main(["decode", TEXT, *arguments]) == 0
    run = json.loads(printed.getvalue())
    assert run["output_tokens"] == published.written_by_its_own_loop(published.ARTICLES[variant]().eval(), TEXT, 9)
    assert run["checkpoint"] == "published"
