"""The page of a large run: every head is in it, packed, and comes back with the error that the page says."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from tests.export.test_pages import data_of
from transformer_viz.export import packed_heads
from transformer_viz.export.pages import html
from transformer_viz.trace.trace import Trace


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is a large one."""
    monkeypatch.setattr(packed_heads, "EXACT_UP_TO", 0)


def inflated(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)


def unpacked(text: str, rows: int, columns: int) -> np.ndarray:
    """As a browser unpacks a head."""
    data = inflated(text)
    scales = np.frombuffer(data[: 4 * rows], "<f4")
    low, high = np.frombuffer(data[4 * rows :], np.uint8).reshape(2, rows, columns).astype(np.uint16)
    whole = low + 256 * high
    return np.where(whole == 65535, np.nan, whole * scales[:, None])


def test_every_head_comes_back_within_what_the_page_says(trace: Trace) -> None:
    page = data_of(html(trace, plotlyjs=False))
    (words,) = (words for words in page["made"] if "rounded" in words)
    (said,) = re.findall(r"weights rounded to 16 bits, by at most ([\d.e−]+)$", words)
    errors = []
    for kind, attention in trace.attentions.items():
        data = page["kinds"][kind]
        assert "weights" not in data and data["shape"] == list(attention.weights.shape)
        for place, layer in enumerate(attention.layers):
            for head in range(attention.n_heads):
                again = unpacked(data["packed"][f"{place} {head}"]["weights"], *attention.weights.shape[2:])
                errors.append(np.abs(again - attention.head(layer, head)).max())
            assert {"0 mean", "0 max"} < set(data["packed"])
    assert 0 < max(errors) <= 1 / 65_534 / 2 * 1.01
    assert float(said.replace("−", "-")) == pytest.approx(max(errors), rel=0.05)


def test_sentences_and_masks_are_those_of_the_exact_page(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = data_of(html(trace, plotlyjs=False))
    monkeypatch.setattr(packed_heads, "EXACT_UP_TO", 10**9)
    exact = data_of(html(trace, plotlyjs=False))
    assert not any("rounded" in words for words in exact["made"]) and "packed" not in exact["kinds"]["cross"]
    for kind, data in packed["kinds"].items():
        assert data["reasons"] == exact["kinds"][kind]["reasons"]
        assert data["mosaic"] == exact["kinds"][kind]["mosaic"]
    for head, name in enumerate([*range(trace.cross.n_heads), "mean", "max"]):
        sentences = json.loads(inflated(packed["kinds"]["cross"]["packed"][f"2 {name}"]["sentences"]))
        assert sentences == [[exact["pieces"][piece] for piece in one] for one in exact["kinds"]["cross"]["sentences"][2][head]]
    # One sentence for all heads of an encoder beside a decoder.
    assert packed["kinds"]["encoder"]["sentences"] and not any(
        "sentences" in one for one in packed["kinds"]["encoder"]["packed"].values()
    )


@pytest.mark.parametrize("most", [1, 7.5])
def test_a_map_keeps_what_is_no_number_and_what_is_above_one(most: float) -> None:
    weights = np.array([[0, np.nan, most], [most / 3, 1e-7, 0.25]], np.float32)
    data, again = packed_heads.packed_weights(weights)
    np.testing.assert_array_equal(unpacked(base64.b64encode(data).decode(), 2, 3).astype(np.float32), again)
    np.testing.assert_array_equal(np.isnan(again), np.isnan(weights))
    assert again[0, 0] == 0 and np.nanmax(np.abs(again - weights)) <= most / 65_534


def test_masks_of_heads_are_small_and_whole() -> None:
    reasons = np.zeros((3, 4, 64, 64), np.uint8)
    reasons[1, 2, 5:, 7] = 4
    kept = packed_heads.packed_reasons(reasons)
    assert np.frombuffer(inflated(kept["deflated"]), np.uint8).reshape(kept["shape"]).tolist() == reasons.tolist()
    assert len(kept["deflated"]) < 300


def test_the_size_is_known_before(trace: Trace) -> None:
    page = data_of(html(trace, plotlyjs=False))
    n_bytes = sum(len(text) for data in page["kinds"].values() for one in data["packed"].values() for text in one.values())
    assert packed_heads.estimated_size(trace) == pytest.approx(n_bytes, rel=0.4)


def test_a_notebook_shows_a_large_run_too(trace: Trace) -> None:
    assert "weights rounded to 16 bits" in str(trace._repr_html_())
