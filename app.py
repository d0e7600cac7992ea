"""Streamlit entry: `streamlit run app.py`. The server, and a page's set-up and navigation; nothing else."""

import streamlit as st

from transformer_viz.views import pages, server
from transformer_viz.views.cache import watched
from transformer_viz.views.components import address, navigation, reconnected, screen, style
from transformer_viz.views.server import warm_up
from transformer_viz.views.server.page_slots import page_slot


def page() -> None:
    """One run of somebody's page."""
    st.set_page_config(page_icon="🔎", layout="wide")
    style.apply()
    warm_up.wait()
    with page_slot(), watched.whole_page():
        navigation.show(pages())()
    address.one_entry_a_page()
    screen.watch()
    reconnected.ask_again()


if __name__ == "__main__":
    page()
else:  # the server imports this file once, to know what it serves
    app = st.App(__file__, routes=server.routes(), middleware=server.middleware(), lifespan=server.lifespan)
