"""Two presses in one turn of the browser's loop, one of them in a fragment: one message leaves, with the fragment's name alone,
and the page does not hear of the other."""

from benchmarks.streamlit_losses import report, shown_after

APP = """
import streamlit as st

kind = st.radio("kind", ["a", "b"])
st.write("page shows", kind)


@st.fragment
def player():
    st.toggle("step")


player()
"""
ACT = """
document.querySelector("[data-testid=stCheckbox] input").click();
document.querySelectorAll("input[type=radio]")[1].click();
"""

if __name__ == "__main__":
    report("a toggle in a fragment and a radio of the page", shown_after(APP, ACT, "page shows a"), "page shows b")
