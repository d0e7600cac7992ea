"""The least that a Streamlit page can do with a text: one box, one heatmap. What the app's times are compared with."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

text = st.text_input("Source text", "reversethis")
cells = np.frombuffer(text.encode(), np.uint8).astype(np.float32)
st.plotly_chart(go.Figure(go.Heatmap(z=np.outer(cells, cells)), {"meta": {"run": text}}), key="chart", theme=None)
