"""The visitor of the present session, who may or may not manage a training."""

import streamlit as st

from transformer_viz.training.jobs import Visitor
from transformer_viz.views.server import visitors


def of_session() -> Visitor:
    """The browser of this session. One that keeps no cookies is the same for as long as its page stays open."""
    context = st.context
    token = visitors.token_in(context.cookies)
    if token is None:
        token = st.session_state.setdefault("visitor_token", visitors.new_token())
    return Visitor(token, visitors.is_owner(context.cookies, context.headers, context.ip_address))
