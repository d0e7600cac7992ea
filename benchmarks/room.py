"""A class opens the same address: thirty first visits in one moment, over the network.

What is fetched is what a new browser fetches before its first picture, by thirty clients that draw nothing, so that it is the
server that is measured. They come by the machine's own address in its network, as others would.
"""

import http.client
import re
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st

from benchmarks import browser, served
from benchmarks.measure import Line, Number, Report, Skipped
from transformer_viz.views.components import plotly_js
from transformer_viz.views.server import greeting

TITLE = "a class opens the same address"
VISITORS, ROUNDS = 30, 5
TARGETS = {}
_PLAIN = "a bare Streamlit page"
_LINKS = re.compile(r'(?:href|src)="\./(static/[^"]+)"')


def measure(report: Report) -> None:
    """Both servers in turns; the first round warms up."""
    address = greeting.address_in_network()
    if address is None:
        raise Skipped("this machine is in no network")
    with served.server(address=address) as server, browser.bare(address) as bare:
        files, charts = _files(server.url), Path(st.__file__).parent / "static/static/js"
        # What draws: ours brings Plotly's, a bare page with a chart has Streamlit's.
        (theirs,) = (f"/static/js/{path.name}" for path in charts.glob("PlotlyChart.*.js"))
        wanted = {server.url: [*files, f"/{plotly_js.NAME}"], bare.url: [*files, theirs]}
        seconds: dict[str, list[float]] = {server.url: [], bare.url: []}
        sizes = {url: _visit(url, wanted[url]) for url in seconds}
        for _ in range(ROUNDS):
            for url, found in seconds.items():
                found.append(_at_once(url, wanted[url]))
    words = f"the {len(files) + 1} files of a first visit, {VISITORS} visitors in the same moment"
    times = Number.of("ours", seconds[server.url]), Number.of(_PLAIN, seconds[bare.url])
    report.add(Line(words, *times, "s", ROUNDS))
    weights = Number("ours", sizes[server.url] / 1e6), Number(_PLAIN, sizes[bare.url] / 1e6)
    report.add(Line("the files of a first visit, on the wire", *weights, "MB", 1))


def _files(url: str) -> list[str]:
    """What a first visit to our page fetches; Streamlit's own server has the same files."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", "/")
    named = _LINKS.findall(connection.getresponse().read().decode())
    connection.close()
    return [f"/{name}" for name in dict.fromkeys(named)]


def _visit(url: str, files: list[str]) -> int:
    """Bytes of the files, over one connection."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    n_bytes = 0
    for file in files:
        connection.request("GET", file, headers={"Accept-Encoding": "gzip, deflate, br"})
        answer = connection.getresponse()
        assert answer.status == 200, f"{file}: {answer.status}"
        n_bytes += len(answer.read())
    connection.close()
    return n_bytes


def _at_once(url: str, files: list[str]) -> float:
    """Seconds until each visitor has all files."""
    visitors = [threading.Thread(target=_visit, args=(url, files)) for _ in range(VISITORS)]
    began = time.perf_counter()
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    return time.perf_counter() - began
