"""The page as text: what is in it, what it may load, how large it is, and that no token leaves its place."""

import base64
import gzip
import hashlib
import html as markup
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs, get_plotlyjs_version

import transformer_viz as tv
from tests.trace import planted
from transformer_viz.errors import OptionError
from transformer_viz.export import saving
from transformer_viz.export.pages import figure_html, html
from transformer_viz.text_display import display_token
from transformer_viz.trace import limits
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import plotly_js


class Elements(HTMLParser):
    """Tags with their attributes, and the text of each script, as a browser splits the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def policy(self) -> str:
        (found,) = [a["content"] for a in self.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        return str(found)


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(text)


def array(value: dict[str, Any]) -> np.ndarray:
    shape = [int(size) for size in value["shape"].split(",")]
    return np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"]).reshape(shape)


@pytest.fixture(scope="module")
def run() -> Trace:
    """12 letters of the shipped checkpoint."""
    return tv.decode(tv.load_checkpoint("reverse", device="cpu"), "reversethis!")


def test_the_page_may_load_nothing_and_runs_its_own_scripts_only(trace: Trace) -> None:
    page = html(trace)
    elements = Elements(page)
    directives = dict(part.strip().split(" ", 1) for part in elements.policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert set(directives) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    allowed = set(directives["script-src"].split())
    data, *others = [text for text in elements.scripts if text.startswith("{")]
    assert not others
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in elements.scripts if s != data
    }
    assert allowed == hashes
    assert len(hashes) == 2
    for tag in ("link", "img", "iframe", "object", "base"):
        assert not elements.named(tag)
    assert not [attributes for attributes in elements.named("script") if "src" in attributes]


@pytest.mark.parametrize(
    ("plotlyjs", "sources", "src"),
    [
        (False, "'self' file:", "plotly-cartesian.min.js"),
        ("lib/plotly.js", "'self' file:", "lib/plotly.js"),
        ("https://example.org/p.js", "https://example.org/p.js", "https://example.org/p.js"),
    ],
)
def test_plotly_from_elsewhere_is_named_and_allowed(trace: Trace, plotlyjs: Any, sources: str, src: str) -> None:
    elements = Elements(html(trace, plotlyjs=plotlyjs))
    assert f"script-src {sources} 'sha256-" in elements.policy
    assert [a["src"] for a in elements.named("script") if "src" in a] == [src]


def test_the_makers_server_is_asked_with_a_hash(trace: Trace) -> None:
    (attributes,) = [a for a in Elements(html(trace, plotlyjs="cdn")).named("script") if "src" in a]
    assert re.fullmatch(r"https://cdn\.plot\.ly/plotly-[\d.]+\.min\.js", str(attributes["src"]))
    digest = base64.b64encode(hashlib.sha256(get_plotlyjs().encode()).digest()).decode()
    assert attributes["integrity"] == f"sha256-{digest}"


@pytest.mark.parametrize(
    "plotlyjs", ["", "javascript:alert(1)", "a b.js", "'self'", "//x.org/p.js", "data:text/js,1", 'p".js', "x;y"]
)
def test_other_addresses_are_refused(trace: Trace, plotlyjs: str) -> None:
    with pytest.raises(OptionError, match="plotlyjs="):
        html(trace, plotlyjs=plotlyjs)


def test_compressed_plotly_is_the_same_script(trace: Trace) -> None:
    page = html(trace, plotlyjs="packed")
    packed = next(text for text in Elements(page).scripts if len(text) > 500_000)
    assert gzip.decompress(base64.b64decode(packed)) == plotly_js.BUNDLE.read_bytes()
    assert len(page) < 1_000_000


@pytest.mark.parametrize("trace_of_others", [go.Scatter3d(x=[1], y=[1], z=[1]), go.Sunburst(labels=["a"]), go.Table()])
def test_a_figure_that_the_bundle_cannot_draw_brings_the_whole(trace_of_others: Any) -> None:
    others, ours = go.Figure([go.Bar(y=[1]), trace_of_others]), go.Figure([go.Bar(y=[1]), go.Pie(values=[1])])
    page = Elements(figure_html(others))
    assert get_plotlyjs() in page.scripts
    assert f"'sha256-{base64.b64encode(hashlib.sha256(get_plotlyjs().encode()).digest()).decode()}'" in page.policy
    packed = next(text for text in Elements(figure_html(others, plotlyjs="packed")).scripts if len(text) > 500_000)
    assert gzip.decompress(base64.b64decode(packed)) == get_plotlyjs().encode()
    assert [a["src"] for a in Elements(figure_html(others, plotlyjs=False)).named("script") if "src" in a] == ["plotly.min.js"]
    assert plotly_js.BUNDLE.read_text(encoding="utf-8") in Elements(figure_html(ours)).scripts


def test_the_bundle_is_of_the_packages_version_and_another_version_brings_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert plotly_js.version_of(plotly_js.BUNDLE) == get_plotlyjs_version()
    assert plotly_js.path() == plotly_js.BUNDLE
    older = tmp_path / "plotly-cartesian.min.js"
    beginning = plotly_js.BUNDLE.read_text(encoding="utf-8")[:300]
    older.write_text(beginning.replace(get_plotlyjs_version(), "4.0.9"), encoding="utf-8")
    monkeypatch.setattr(plotly_js, "BUNDLE", older)
    assert plotly_js.path().read_text(encoding="utf-8") == get_plotlyjs()


def test_sizes_of_twelve_letters(run: Trace) -> None:
    assert len(html(run).encode()) < 2_000_000
    assert len(html(run, plotlyjs=False).encode()) < 310_000


def test_a_page_of_thirteen_letters_has_at_most_310_kb_without_plotly() -> None:
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "reversethis42")
    assert len(html(trace, plotlyjs=False).encode()) <= 310_000


HOSTILE = ("</script>", "<!--<script>", "</ScRiPt>", "{{data}}", "{{script}}", "\u2028", "\\u003c", "$x$", "]]>", "\ud800", '"')


def test_hostile_tokens_stay_data(make_trace: Callable[..., Trace]) -> None:
    trace = make_trace(source_tokens=HOSTILE, source="".join(HOSTILE))
    page = html(trace)
    assert [cell["text"] for cell in data_of(page)["source"]] == [token.replace(" ", "␣") for token in HOSTILE]
    assert [name for name, _ in Elements(page).tags] == [name for name, _ in Elements(html(make_trace())).tags]
    page.encode()


def test_the_page_opens_where_it_is_told(trace: Trace) -> None:
    assert data_of(html(trace, "decoder.3.max", 4, plotlyjs=False))["focus"] == {
        "kind": "decoder",
        "layer": 2,
        "head": "max",
        "step": 4,
    }
    opened = data_of(html(trace, plotlyjs=False))["focus"]
    mass = sum(trace.cross.weights[:, :, t, key] for t, key in enumerate(trace.alignment) if key is not None)
    assert (opened["layer"], opened["head"]) == np.unravel_index(np.argmax(mass), (3, 5))
    assert opened["step"] == 5


IMPOSSIBLE = {"head": ["sideways", "cross.4.1", "cross.1.6", "cross.1.sum", 5, True], "step": [7, -1], "theme": ["blue"]}


@pytest.mark.parametrize("options", [{name: value} for name, values in IMPOSSIBLE.items() for value in values])
def test_impossible_options_are_refused(trace: Trace, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        html(trace, **options)


def test_hiding_the_answer_leaves_nothing_of_it(make_trace: Callable[..., Trace]) -> None:
    wrong = make_trace(expected="lxl $&", expected_tokens=("l", "xx", "l", " ", "$", "&", "<end>"))
    shown = html(wrong, plotlyjs=False)
    assert "The right token: " in shown
    assert data_of(shown)["answer"]["words"][1:3] == [["plain", ", expected "], ["code", "lxl␣$&"]]
    hidden = html(wrong, plotlyjs=False, with_answer=False)
    assert "The right token: " not in hidden
    data = data_of(hidden)
    assert data["best"] is None
    assert data["answer"] is None
    assert not any(text in json.dumps(data, ensure_ascii=False) for text in ("lxl $&", "lxl␣$&"))
    assert data["true"] == [None] * 7
    assert not any("wrong" in cell["class"] for cell in data["output"])


def test_a_prompts_first_token_stands_before_what_follows_it(trace: Trace) -> None:
    prompted = planted.search()
    data = data_of(html(prompted, plotlyjs=False))
    assert prompted.target_ids is not None
    token = display_token(prompted.target_tokens[0])
    assert data["prompt"] == {"text": token, "title": f"token 1: {token} (id {prompted.target_ids[0]}), given"}
    assert len(data["output"]) == prompted.n_steps
    assert data_of(html(trace, plotlyjs=False))["prompt"] is None


def test_a_mistakes_numbers_that_are_none_survive(make_trace: Callable[..., Trace], trace: Trace) -> None:
    weights = trace.cross.weights.copy()
    weights[0, 0, 2] = np.nan
    page = html(make_trace(cross=weights, mistake="some"), plotlyjs=False)
    data = json.loads(json.dumps(data_of(page), allow_nan=False))
    np.testing.assert_array_equal(array(data["kinds"]["cross"]["weights"]), weights)


def test_a_trace_shows_itself_in_a_frame(trace: Trace) -> None:
    shown = trace._repr_html_()
    assert shown is not None
    shown.encode("ascii")
    (attributes,) = Elements(shown).named("iframe")
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == html(trace, plotlyjs="packed")
    assert shown.count("<") == 2, "the frame and its end"
    assert markup.unescape(shown).count("<!doctype html>") == 1


def test_a_very_large_trace_is_shown_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first tokens, whose weights are those of the run."""
    weights = np.tril(np.ones((2, 3, 30, 30))) / np.arange(1, 31)[:, None]
    trace = Trace.from_arrays(decoder=weights, target_tokens=[f"t{i}" for i in range(30)], masks={"decoder": "causal"})
    monkeypatch.setattr(limits, "MOST_IN_PAGE", 2 * 3 * 20 * 20)
    shown = trace._repr_html_()
    assert shown is not None
    assert "A window: the first 19 of 30 target tokens" in shown
    data = data_of(markup.unescape(str(Elements(shown).named("iframe")[0]["srcdoc"])))
    np.testing.assert_allclose(array(data["kinds"]["decoder"]["weights"]), weights[..., :19, :19], atol=1e-6)


def test_a_trace_has_one_line_of_text(trace: Trace) -> None:
    line = repr(trace)
    assert len(line) < 200
    assert line.isprintable()
    assert "7 steps, encoder 2×5, decoder 3×5, cross 3×5" in line


def test_a_head_that_aligns_is_in_the_page_where_one_is_asked_for(tiny) -> None:
    trace = tv.decode(tiny, "hello")
    assert '"label":"L1 H1' not in html(trace, plotlyjs=False)
    assert '"label":"L1 H1 (reads it)"' in html(trace, plotlyjs=False, aligner="cross.1.1.reads")
    by_text, by_address = (html(trace, plotlyjs=False, aligner=one) for one in ("cross.1.1", tv.HeadAddress("cross", 0, 0)))
    assert by_text == by_address
    for wrong in ("cross.9.1", "cross.0.1", "cross.1", "2.1", "cross.1.1.writes", "L1 H9", "decoder.1.1"):
        with pytest.raises(OptionError, match=r"^aligner: |does not name one head"):
            html(trace, aligner=wrong)
    with pytest.raises(OptionError, match="aligner is of the page of the whole run"):
        saving.render_bytes(trace, "html", "mosaic", aligner="cross.1.1")
