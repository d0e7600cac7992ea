"""A press while the answer to another one is under way: its message has the old value of a box that the answer sets, and takes
back what was set."""

from benchmarks.streamlit_losses import report, shown_after

APP = """
import time

import streamlit as st


def count():
    st.session_state.number = str(int(st.session_state.number) + 1)


@st.fragment
def player():
    st.toggle("other")
    st.session_state.setdefault("number", "0")
    st.button("count", on_click=count)
    time.sleep(0.1)
    st.text_input("number", key="number")
    st.write("number", st.session_state.number)


player()
"""
ACT = """
[...document.querySelectorAll("button")].find((one) => one.textContent.includes("count")).click();
setTimeout(() => document.querySelector("[data-testid=stCheckbox] input").click(), 40);
"""

if __name__ == "__main__":
    report("a toggle 40 ms after a button whose callback sets a box", shown_after(APP, ACT, "number 0"), "number 1")
