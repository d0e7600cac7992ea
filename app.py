"""Streamlit entry: `streamlit run app.py`. The server, and a page's set-up and navigation; nothing else."""

import streamlit as st

from transformer_viz.views import pages, server
from transformer_viz.views.components import address, style
from transformer_viz.views.server import turns, warm_up


def page() -> None:
    """One run of somebody's page."""
    st.set_page_config(page_title="Transformer Viz", page_icon="🔎", layout="wide")
    style.apply()
    warm_up.wait()
    with turns.turn():
        st.navigation(
            [
                st.Page(view.show, title=view.TITLE, icon=view.ICON, url_path=view.TITLE.lower(), default=view.ORDER == 0)
                for view in pages()
            ],
            position="top",
        ).run()
    address.one_entry_a_page()


if __name__ == "__main__":
    page()
else:  # the server imports this file once, to know what it serves
    app = st.App(__file__, middleware=server.middleware(), lifespan=server.lifespan)
