"""The question *Could it look elsewhere?*: how far the head's weights can be moved without changing the output."""

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.attribution.counter_proof import EPSILON
from transformer_viz.attribution.result.counter_proof import CounterProof
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.terms import KIND_TITLES, layer_label
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options, link

_TOGETHER = ("all heads of its kind", "the heads of its layer")


def show(trace: Trace, model: LoadedModel) -> None:
    """Draws a toggle and, while it is on, the farthest map of the head alone and together with others, beside its own."""
    if (place := asked.one_head()) is None:
        return
    is_large = display_options.current().is_large
    st.markdown(
        "The weights of a head are replaced by (1 − λ) of themselves and λ of other weights, as far as no token's "
        f"probability changes by more than {EPSILON:g}. The result is another map with the same output."
    )
    together = link.option("trial_together", _TOGETHER)
    if not is_large:
        link.segmented_control("Moved together", _TOGETHER, key="trial_together")
    if not asked.is_asked(asked.COUNTER_PROOF, trace, model, "Move the weights"):
        return
    scopes = {
        f"{asked.name_of(place.layer, place.head)} alone": str(place),
        f"all heads of {layer_label(place.layer)}": f"{place.kind}.{place.layer + 1}",
        f"all of {KIND_TITLES[place.kind]}": place.kind,
    }
    proofs = {moved: runs.counter_proof(model, trace, scope) for moved, scope in scopes.items()}
    alone, of_layer, of_kind = proofs.values()
    if not is_large:
        rows = {
            moved: {
                **{f"λ, {each.target}": f"{each.share:.2f}" for each in proof.moved},
                "elsewhere": percent_words(proof.farthest.distance),
                "largest change of p": f"{proof.farthest.change:.4f}",
            }
            for moved, proof in proofs.items()
        }
        st.table(pd.DataFrame.from_dict(rows, orient="index").rename_axis("moved"))
    shown = [alone, of_layer if together == _TOGETHER[1] else of_kind]
    first, second = map(_farthest, shown)
    words = f"Alone, this head can have {first} elsewhere without changing the output; together with others, {second}."
    st.markdown(literal(words))
    alt = f"The map as it is, and the farthest found with this head alone and together with others. {words}"
    at = (place.layer, place.head)
    figure = chart.draw(figures.counter_proof, trace, shown, *at, key="trial-moved", words=alt, file="counter-proof")
    if is_large:
        return
    st.caption(
        "λ is the farthest found by halving, not the farthest possible. Elsewhere: the share of the weight at other keys than "
        "before, mean over rows, at the target where it is most. A head that may look anywhere may still do its work: with "
        "weights that say nothing, or because others do it as well."
    )
    code.show(*(Call("print({}.words)", proof) for proof in shown), figure, key="code_of_tab")


def _farthest(proof: CounterProof) -> str:
    found = proof.farthest
    towards = {"uniform": "all keys alike", "reversed": "the row reversed"}.get(found.target, f"the {found.target}")
    return f"{percent_words(found.distance)} of the weight (λ = {found.share:.2f} towards {towards})"
