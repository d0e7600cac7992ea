"""What docs/memory.md says of sizes is what the code computes."""

from pathlib import Path

from docs.memory_table import table
from transformer_viz.tracing import trace_size
from transformer_viz.tracing.trace_size import MAX_TRACE_BYTES
from transformer_viz.views.cache import limits, store

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "memory.md").read_text(encoding="utf-8")


def test_the_table_is_what_its_command_prints():
    assert table() in TEXT


def test_the_numbers_are_those_of_the_code():
    assert (limits.MAX_TRACE_BYTES, store.MOST_BYTES, MAX_TRACE_BYTES) == (256_000_000, 512_000_000, 10**9)
    objects = (trace_size._CANDIDATE, trace_size._STEP, trace_size._NODE)
    assert "at most {} bytes a candidate, {} a step and {:,} a".format(*objects) in TEXT
    assert f"{trace_size._LOGIT} bytes a logit" in TEXT
    assert trace_size.PEAK_TIMES == 4
    assert "the peak may be four times that" in TEXT
