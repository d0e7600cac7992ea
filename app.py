"""Streamlit entry: `streamlit run app.py`. The server, and a page's set-up and navigation; nothing else."""

import streamlit as st

from transformer_viz.language import speaking
from transformer_viz.views import pages, path, server
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.components import lesson_card, navigation, screen, style, viewer
from transformer_viz.views.server import warm_up
from transformer_viz.views.server.page_slots import page_slot
from transformer_viz.views.state import early_end, link, visit_language


def page() -> None:
    """One run of somebody's page."""
    st.set_page_config(page_icon=navigation.MARK, layout="wide")
    with speaking(visit_language.current()):
        style.apply()
        warm_up.wait()
        with early_end.stopped(), page_slot(), long_jobs.whole_page():
            here = navigation.show(views := pages())
            try:
                with link.sentence(here.TITLE, [view.TITLE for view in views]), lesson_card.beside(here.TITLE) as may_show:
                    if may_show:
                        here.show()
            finally:
                viewer.keep_address(path(here) if here.ORDER else "", has_viewer=getattr(here, "HAS_VIEWER", False))
                screen.watch()


if __name__ == "__main__":
    page()
else:  # the server imports this file once, to know what it serves
    app = st.App(__file__, routes=server.routes(), middleware=server.middleware(), lifespan=server.lifespan)
