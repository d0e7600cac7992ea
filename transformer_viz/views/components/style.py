"""The few rules by which the page differs from Streamlit's own looks: less air, nothing else."""

import streamlit as st

from transformer_viz.figures.theme import ThemeName

_CSS = """
<style>
/* Room for the navigation, which lies over the page. */
.stAppHeader { height: 2.9rem; min-height: 2.9rem; }
.stMainBlockContainer { padding: 3.4rem 2.2rem 2rem; max-width: 1680px; }
.stVerticalBlock { gap: 0.7rem; }
/* Where nothing is opened yet, the place to drop a file is the page's largest thing. */
.st-key-open-drop section {
  min-height: 180px; border-style: dashed; flex-direction: column; align-items: center; justify-content: center; gap: 0.6rem;
}
.st-key-open-drop section > :last-child {
  flex: none; align-self: center; align-items: center; margin: 0;
}
/* What was shown before a text that cannot be read: it can be looked at, and is not what was asked for. */
.st-key-last-picture { opacity: 0.4; filter: grayscale(1); pointer-events: none; }
@media (max-width: 640px) {
  .stMainBlockContainer { padding: 3.4rem 0.7rem 1rem; }
  /* All three kinds of attention at once, in two lines each, instead of a row that begins with half a word. */
  .st-key-kind [role="radiogroup"] { width: 100%; }
  .st-key-kind button {
    flex: 1 1 0; min-width: 0; height: auto; padding: 0.2rem 0.3rem; white-space: normal; line-height: 1.2;
  }
}
</style>
"""


def theme() -> ThemeName:
    """Light or dark, as the page is."""
    return "dark" if st.context.theme.type == "dark" else "light"


def apply() -> None:
    """Once a run, before anything is drawn. The text is ours alone."""
    st.html(_CSS)
