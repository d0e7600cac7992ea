"""The design of the viewer tried with plain Streamlit: one component that is the only master of what it shows.

`app.py` is the page, `bursts.py` presses everything on it at human speed and faster, and compares at rest what was pressed last
with the picture, the server's sentence, the address, and a reload of the address.
"""
