"""The CSS that changes Streamlit's looks: less space, accessibility, and the settings of the reader's system."""

import json

import streamlit as st

from transformer_viz.figures.theme import THEMES, Style, ThemeName
from transformer_viz.language import ENGLISH, current, say
from transformer_viz.views.components import screen, term_tips

_CSS = """
<style>
:root { COLOURS }
/* Streamlit's own header lies over the links of the pages, and has nothing but a sign on its right that something runs. */
.stAppHeader { height: 2.9rem; min-height: 2.9rem; background: none; pointer-events: none; }
.stMainBlockContainer { padding: 0 2.2rem 2rem; max-width: 1680px; }
.stVerticalBlock { gap: 0.7rem; }
/* What stands above the large map leaves it the first screen. */
.st-key-bar, .st-key-picture, .st-key-focus-controls { margin-top: -0.35rem; }
.st-key-focus-controls { margin-bottom: -0.35rem; }
.told { margin: 0; font-size: 0.875rem; line-height: 1.25; color: var(--muted); }
.told code { font-size: 0.75rem; color: inherit; }
.st-key-pages { gap: 0.2rem; flex-wrap: nowrap; margin: -0.4rem 0 0 -0.5rem; }
.st-key-pages a { min-height: 2.1rem; }
.brand { display: flex; align-items: center; gap: 0.5rem; margin: 0 0.8rem 0 0.5rem; white-space: nowrap; }
.brand img { width: 22px; flex: none; }
.st-key-pages .language {
  display: block; height: 1.6rem; min-height: 0; padding: 0 0.5rem; overflow: hidden; line-height: 1.6rem;
  color: var(--muted); font-size: 0.875rem; white-space: nowrap;
}
/* For those who do not see the link that is marked. */
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
/* Boxes that hold for the link what no widget has. */
[class*="st-key-in-link"], [data-testid="stLayoutWrapper"]:has(> [class*="st-key-in-link"]) { display: none; }
/* Where nothing is opened yet, the place to drop a file is the page's largest thing. */
.st-key-open-drop section {
  min-height: 180px; border-style: dashed; flex-direction: column; align-items: center; justify-content: center; gap: 0.6rem;
}
.st-key-open-drop section > :nth-child(n) { flex: none; align-self: center; align-items: center; margin: 0; }
.st-key-focus-controls { gap: 0.6rem; }
@media (min-width: 900px) {
  .st-key-measure-row { flex-wrap: nowrap; }
  .st-key-measure-row > :last-child { flex: 1 1 0; }
}
/* A prompt's box is as high as its text, from one line to four. */
.st-key-text textarea, .st-key-b_text textarea { field-sizing: content; min-height: 2.4rem; max-height: 6.6rem; }
/* Compare's maps stand in the first screen: a side is one row where there is room. */
@media (min-width: 1300px) {
  [class*="st-key-side-"] { flex-wrap: nowrap; gap: 0.5rem; }
  [class*="st-key-side-"] > :not(:first-child) { flex: 0 3 auto; min-width: 5.2rem; }
  [class*="st-key-side-"] > :is(.st-key-text, .st-key-b_text) { flex: 1 1 16rem; }
}
/* `:has()` on elements that any page has costs at every change of it: 11 of the 126 ms of an Enter, as `:has(> .st-key-…)`.
   The drawing of a model stays in sight while one goes through the switches beside it. */
.st-key-train-columns :has(> * > .st-key-train-drawing) { position: sticky; top: 0.5rem; height: fit-content; flex: none; }
/* Where maps would be too narrow for their words beside the drawing, they go below it. */
.st-key-with-drawing > :last-child { min-width: min(100%, 34rem); }
/* Where the keyboard is. Streamlit's own ring is half transparent, and its navigation has none. */
:is(a, button, summary, [role="tab"], [role="radio"], [tabindex="0"]):focus-visible {
  outline: 3px solid var(--chosen) !important; outline-offset: 1px;
}
/* Streamlit writes white on a primary button, in every theme, and has its own colours for code and for an open button. */
button[kind^="primary"] { color: var(--paper); }
button[kind="tertiary"]:is(:hover, :focus-visible, :active) { color: var(--ink); }
pre .token { color: var(--ink) !important; }
pre .token:is(.keyword, .function, .class-name, .parameter) { color: var(--code) !important; }
pre .token:is(.string, .number, .boolean) { color: var(--literal) !important; }
pre .token:is(.comment, .operator, .punctuation) { color: var(--muted) !important; }
@media (prefers-reduced-motion: reduce) {
  *, ::before, ::after {
    animation-duration: 1ms !important; animation-delay: 0s !important; animation-iteration-count: 1 !important;
    transition-duration: 1ms !important; transition-delay: 0s !important; scroll-behavior: auto !important;
  }
  /* Each change of a chart's size would take this millisecond too, and who asks for a place meanwhile gets the old one. */
  .chart * { transition: none !important; }
}
/* With the system's own colours a tint says nothing. */
@media (forced-colors: active) {
  button:is([aria-checked="true"], [aria-selected="true"]), button:is([aria-checked="true"], [aria-selected="true"]) * {
    forced-color-adjust: none; background: Highlight !important; color: HighlightText !important;
  }
  label:has([role="switch"]) > div:first-of-type { border: 2px solid ButtonText; }
  label:has([role="switch"]) > div:first-of-type > div { forced-color-adjust: none; background: ButtonText; }
  label:has([role="switch"]:checked) > div:first-of-type { forced-color-adjust: none; background: Highlight; }
}
PRINT
LARGE
@media (max-width: 767px) {
  /* Its columns. Said twice, so as to count for more than Streamlit's own width of a column. */
  [class*="st-key-stacked-"][class] > * > * > * { min-width: 100%; }
}
@media (max-width: 800px) {
  /* The row of pages with their names. */
  .brand { margin: 0; }
  .brand b { display: none; }
  .st-key-pages a { padding-inline: 0.3rem; }
}
@media (max-width: 640px) {
  /* Lines that scroll sideways would need a Tab stop of their own. */
  pre, pre code { white-space: pre-wrap !important; overflow-wrap: anywhere; overflow: visible !important; }
  .stMainBlockContainer { padding: 0.6rem 0.7rem 1rem; }
  /* Eight links in a row of 300 pixels, each at least 24 wide. */
  .st-key-pages { justify-content: space-between; margin: 0; gap: 0.1rem; }
  /* The box of the model and, beside it, signs alone of what opens; a screen reader says their names. */
  .st-key-bar { gap: 0.4rem; }
  .st-key-bar > :is(.st-key-text, .st-key-checkpoint) { flex: 1 1 7.5rem; min-width: 7.5rem; width: auto; }
  .st-key-bar > .st-key-text { flex-basis: 60%; }
  .st-key-bar [data-testid="stPopoverButton"]:has(span + span) { padding-inline: 0.55rem; min-width: 2.5rem; }
  .st-key-bar [data-testid="stPopoverButton"] span + span p {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  }
  .st-key-bar [data-testid="stPopoverButton"] > div > [aria-hidden="true"] { display: none; }
  /* Choices of which some would stand beyond the edge. */
  [data-testid="stButtonGroup"] > [role="radiogroup"] { flex-wrap: wrap; row-gap: 4px; }
  /* The sentence of a step says it too, and the picture stands in the first screen. */
  .st-key-focus-controls .told { display: none; }
  .st-key-pages .language { padding: 0 0.2rem; }
  .st-key-pages a { padding-inline: clamp(1px, 1.6vw - 3px, 0.3rem); justify-content: center; }
}
@media (max-width: 340px) {
  /* The longest name among them. */
  .st-key-pages { gap: 0; }
}
</style>
"""


_LARGE = """/* All of Streamlit's letters and buttons grow with the root's; the large map still stands in the first screen. */
html { font-size: 18px !important; }"""
_STAGE_ALONE = """<style>
/* What stands above a picture on a projector comes down where a pointer or the keyboard is on it, or while something of it is
   open. */
:is(.st-key-pages, .st-key-bar) {
  position: fixed; z-index: 1000; left: 0; top: 0; width: 100%; margin: 0; padding: 0.4rem 2.2rem; background: var(--paper);
  translate: 0 -110%; transition: translate 150ms;
}
.st-key-bar { top: 2.7rem; translate: 0 calc(-100% - 2.7rem); border-bottom: 1px solid var(--muted); }
.st-key-bar::after {
  content: "▾ CONTROLS" / ""; position: absolute; top: 100%; right: 2.2rem; padding: 0 0.6rem; background: var(--paper);
  border: solid var(--muted); border-width: 0 1px 1px; border-radius: 0 0 0.4rem 0.4rem; font-size: 0.8rem; color: var(--muted);
}
.st-key-bar::before { content: ""; position: absolute; top: 100%; left: 0; width: 100%; height: 0.8rem; }
.stApp:has(:is(.st-key-pages, .st-key-bar):is(:hover, :focus-within, :has([aria-expanded="true"])))
:is(.st-key-pages, .st-key-bar) {
  translate: none;
}
.stMainBlockContainer { padding-top: 1.1rem; }
.st-key-focus-controls { display: none; }
</style>"""
_QUESTION_ALONE = """<style>
/* Their places are kept. */
.st-key-bar :is(.stPopover, .stCheckbox, .stCheckbox *) { visibility: hidden; }
</style>"""
_STREAMLITS_WORDS = """
/* What Streamlit writes in English: hidden, and said in the page's language behind it. */
[data-testid="stFileUploaderDropzone"] button p, [data-testid="stFileUploaderDropzoneInstructions"] span,
[data-testid="InputInstructions"] { font-size: 0; }
[data-testid="stFileUploaderDropzone"] button p::after { content: var(--say-upload); font-size: 1rem; }
[data-testid="stFileUploaderDropzoneInstructions"] span { display: none; }
[data-testid="InputInstructions"]::after { content: var(--say-enter); font-size: 0.75rem; }
.stTextArea [data-testid="InputInstructions"]::after { content: var(--say-ctrl-enter); }
"""
_PRINTED_DARK = """/* Paper is white: a dark page is printed in its opposite colours, and what is red or blue stays so. */
@media print {
  html { background: #fff; }
  .stApp, .stApp .stAppViewContainer, .stApp .stMain { background: #000 !important; transition: none !important; }
  .stApp .chart .main-svg { background: transparent !important; }
  .stApp { filter: invert(1) hue-rotate(180deg); print-color-adjust: exact; }
}"""


def theme() -> ThemeName:
    """Light or dark, as the page is."""
    return "dark" if st.context.theme.type == "dark" else "light"


def figure_style() -> Style:
    """The style of the page's figures: its theme, large letters on a projector, and narrow where its window is."""
    return Style(theme(), bool(st.session_state.get("projector")), screen.is_narrow())


def apply() -> None:
    """Once a run, before anything is drawn. The text is ours alone."""
    colours = THEMES[theme()]
    names = {
        name: getattr(colours, name) for name in ("paper", "ink", "muted", "chosen", "accent", "curtain", "code", "literal")
    }
    css = _CSS.replace("COLOURS", " ".join(f"--{name}: {colour};" for name, colour in names.items()))
    # Its switch is drawn later, and a link may have it.
    is_large = st.session_state.get("projector", st.query_params.get("projector") == "true")
    css = css.replace("LARGE", _LARGE if is_large else "")
    words = "" if current() == ENGLISH else _streamlits_words()
    st.html(css.replace("PRINT", term_tips.STYLE + words + (_PRINTED_DARK if theme() == "dark" else "")))


def _streamlits_words() -> str:
    said = {"upload": say("Upload"), "enter": say("Press Enter to apply"), "ctrl-enter": say("Press Ctrl+Enter to apply")}
    named = " ".join(f"--say-{name}: {json.dumps(words, ensure_ascii=False)};" for name, words in said.items())
    return f":root {{ {named} }}{_STREAMLITS_WORDS}"


def stage_alone() -> None:
    """On a page whose picture is for a room: what stands above it is out of sight until somebody wants it."""
    st.html(_STAGE_ALONE.replace("CONTROLS", say("controls")))


def question_alone() -> None:
    """Until the first question is answered or put away: what else can be opened or set is out of sight."""
    st.html(_QUESTION_ALONE)
