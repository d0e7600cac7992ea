"""The question *Could it look elsewhere?*: how far the head's weights can be moved without changing the output."""

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import HeadPlace
from transformer_viz.attribution.counter_proof import EPSILON
from transformer_viz.attribution.result.counter_proof import CounterProof
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.terms import KIND_TITLES, layer_label
from transformer_viz.views.components import chart, code, figure_file, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.trial import asked, runs
from transformer_viz.views.state import display_options, link

_TOGETHER = ("all heads of its kind", "the heads of its layer")


def show(shown: Shown) -> None:
    """A button; the farthest found of the head alone and together with others, beside its map."""
    if (place := asked.one_head()) is None:
        return
    st.markdown(
        "The weights of a head are replaced by (1 − λ) of themselves and λ of other weights, as far as no token's "
        f"probability changes by more than {EPSILON:g}. The result is another map with the same output."
    )
    together = link.option("trial_together", _TOGETHER)
    if not display_options.current().is_large:
        link.segmented_control("Moved together", _TOGETHER, key="trial_together")
    if not asked.is_asked(asked.COUNTER_PROOF, shown, "Move the weights"):
        return
    of_layer = together == _TOGETHER[1]
    model, is_large = shown.model, display_options.current().is_large
    assert model is not None
    proofs = {words: runs.counter_proof(model, shown.tokens, scope) for words, scope in _scopes(place).items()}
    alone, layers, kinds = proofs.values()
    if not is_large:
        st.table(_table(proofs))
    joint = layers if of_layer else kinds
    st.markdown(literal(_words(alone, joint)))
    moved = [alone, joint]
    figure = call(figures.counter_proof, shown.tokens, moved, place.layer, place.head, style=style.figure_style())
    words = f"The map as it is, and the farthest found with this head alone and together with others. {_words(alone, joint)}"
    chart.show(figure, "trial-moved", words)
    figure_file.offer(figure, "counter-proof")
    if is_large:
        return
    st.caption(
        "λ is the farthest found by halving, not the farthest possible. Elsewhere: the share of the weight at other keys than "
        "before, mean over rows, at the target where it is most. A head that may look anywhere may still do its work: with "
        "weights that say nothing, or because others do it as well."
    )
    code.show(*(Call("print({}.words)", proof) for proof in (alone, joint)), figure, key="code_of_tab")


def _scopes(place: HeadPlace) -> dict[str, str]:
    return {
        f"{asked.name_of(place.layer, place.head)} alone": str(place),
        f"all heads of {layer_label(place.layer)}": f"{place.kind}.{place.layer + 1}",
        f"all of {KIND_TITLES[place.kind]}": place.kind,
    }


def _table(proofs: dict[str, CounterProof]) -> pd.DataFrame:
    """λ towards each target, and what the farthest found is."""
    rows = {
        words: {
            **{f"λ, {each.target}": f"{each.share:.2f}" for each in proof.moved},
            "elsewhere": percent_words(proof.farthest.distance),
            "largest change of p": f"{proof.farthest.change:.4f}",
        }
        for words, proof in proofs.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("moved")


def _words(alone: CounterProof, joint: CounterProof) -> str:
    alone_words, joint_words = _farthest(alone), _farthest(joint)
    return (
        f"Alone, this head can have {alone_words} elsewhere without changing the output; together with others, {joint_words}."
    )


def _farthest(proof: CounterProof) -> str:
    found = proof.farthest
    towards = {"uniform": "all keys alike", "reversed": "the row reversed"}.get(found.target, f"the {found.target}")
    return f"{percent_words(found.distance)} of the weight (λ = {found.share:.2f} towards {towards})"
