"""A page of plain Streamlit with a component that holds 4 MB by a route, its own text box and the whole address."""

import hashlib
import json
import time
from pathlib import Path

import streamlit as st
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from streamlit.runtime.scriptrunner import get_script_run_ctx

from benchmarks.one_master.numbers import RUNS

MODULES = Path(__file__).parents[2] / "transformer_viz" / "viewer"
KINDS, TABS, MODELS = ("encoder", "decoder", "cross"), ("first", "slow", "third"), ("one", "two")
DEFAULTS = {"text": "hello", "kind": "cross", "step": 0, "pin": ""}


def numbers(request):
    data = RUNS.get(request.path_params["run"])
    return Response(data or b"", 200 if data else 404, {"cache-control": "private, max-age=3600"})


def module(request):
    return FileResponse(MODULES / Path(request.path_params["name"]).name, media_type="text/javascript")


def own(request):
    return FileResponse(Path(__file__).with_name("viewer.js"), media_type="text/javascript")


def component(name, html=""):
    js = f"""
      const {{ {name} }} = await import(new URL("proof/viewer.js", document.baseURI));
      export default {name};
    """
    return st.components.v2.component(f"proof-{name}", html=html, js=js)


def explore():
    viewer, address = component("viewer", "<div class='viewer'></div>"), component("address")
    state, context = st.session_state, get_script_run_ctx()
    if "seed" not in state or (context is not None and context.is_history_navigation):
        # The only time that the address is read.
        said = st.query_params.to_dict()
        state.seed = {**DEFAULTS, **{name: said[name] for name in ("text", "kind", "pin") if name in said}}
        state.seed["step"] = int(said.get("step", 0))
        state.model, state.tab = said.get("model", MODELS[0]), said.get("tab", TABS[0])
        state.request = state.get("request", 0) + 1
        told = None
    else:
        told = (state.get("viewer") or {}).get("at")
    view = dict(state.seed)
    # What was heard before is the server's own by now: it may have moved on since.
    is_news = told is not None and told["n"] > state.get("heard_n", 0)
    if is_news:
        view = {name: told[name] for name in DEFAULTS}
        # At once: a newer press may end this run of the script anywhere.
        state.heard_n, state.seed, state.run = told["n"], view, told["run"]
    state.setdefault("model", MODELS[0])
    model = st.radio("model", MODELS, key="model", horizontal=True, persist_state="session")
    run = hashlib.sha256(f"{view['text']} {model}".encode()).hexdigest()[:12]
    if run not in RUNS:
        time.sleep(0.15)
        RUNS[run] = (run * 400_000)[: 4 * 2**20].encode()
        while len(RUNS) > 20:
            RUNS.popitem(last=False)
    if run != state.setdefault("run", run):
        view |= {"step": 0, "pin": ""}
    state.seed, state.run = view, run
    viewer(
        key="viewer",
        data={"run": run, "start": view, "heard": state.get("heard_n", 0), "request": state.request},
        on_at_change=lambda: None,
    )
    file = st.file_uploader("file", key="file")
    # Streamlit forgets the tab of a page that was left.
    state.setdefault("tab", state.get("last_tab", TABS[0]))
    tabs = st.tabs(TABS, key="tab", on_change="rerun")
    name = next((name for name, tab in zip(TABS, tabs, strict=True) if tab.open), TABS[0])
    state.last_tab = name
    with tabs[TABS.index(name)]:
        if name == "slow":
            time.sleep(0.4)
        said = {**view, "model": model, "tab": name, "file": None if file is None else file.name}
        st.text(f"server {json.dumps(said, sort_keys=True)}")
    address(key="address", data={"words": {"model": model, "tab": name}})


def other():
    st.text("another page")
    st.text_input("box", key="box", bind="query-params")


if __name__ == "__main__":
    st.navigation([st.Page(explore, title="Explore", default=True), st.Page(other, title="Other")], position="top").run()
else:  # the server imports this file once
    routes = [Route("/proof/numbers/{run}", numbers), Route("/proof/viewer.js", own), Route("/proof/{name}", module)]
    app = st.App(__file__, routes=routes)
