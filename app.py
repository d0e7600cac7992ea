"""Streamlit entry: `streamlit run app.py`. Page set-up and navigation, nothing else."""

import streamlit as st

from transformer_viz.views import pages
from transformer_viz.views.parts import plotly_js, settle, style, text_first

st.set_page_config(page_title="Transformer Viz", page_icon="🔎", layout="wide")
style.apply()
plotly_js.provide()
st.navigation(
    [
        st.Page(view.show, title=view.TITLE, icon=view.ICON, url_path=view.TITLE.lower(), default=view.ORDER == 0)
        for view in pages()
    ],
    position="top",
).run()
text_first.drawn()
settle.settle()
