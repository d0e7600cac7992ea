"""`widget`: a run in a notebook, in a viewer whose focus the next cell reads and sets."""

from typing import TYPE_CHECKING, Unpack

from transformer_viz.addresses import AttentionAddress
from transformer_viz.errors import OptionError
from transformer_viz.export.content import view
from transformer_viz.loaded_model import LoadedModel, check_loaded
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.decode_request import DecodeKeywords, with_decode_keywords

if TYPE_CHECKING:
    from transformer_viz.notebook.run_widget import RunWidget

_INSTALL = (
    "A widget needs anywidget: pip install anywidget, and start the notebook's kernel anew. Without it a trace at the end of a "
    "cell shows its page, which does not talk back"
)


@with_decode_keywords
def widget(
    run: Trace | LoadedModel,
    text: str | None = None,
    *,
    head: str | AttentionAddress | None = None,
    step: int | None = None,
    language: str | None = None,
    **options: Unpack[DecodeKeywords],
) -> "RunWidget":
    """Shows a run in a notebook's cell, in a viewer that talks with the next cell. Needs `anywidget`.

    Args:
        run: a Trace; or a model with the text that it reads first, whose viewer has a box for the next one.
        text: what the model reads.
        head: that is in focus first, such as `cross.2.3` or `cross.2.mean`; by default the one that looks best at the right
            tokens.
        step: that is in focus first, from 0; by default the last letter.
        language: as in `tv.export.html`; errors are English.
        options: as in `decode`, for this text and all that follow.

    Returns:
        A widget. Its `focus` is what is looked at: it can be read, set and observed. `widget.decode("text")` shows another
        text.

    Raises:
        OptionError: anywidget is not installed; the run has no such head or step, or is too large for a page; or text and
            options are given with a Trace.
        InputError: a text that the model cannot read.

    Example:
        >>> import transformer_viz as tv
        >>> widget = tv.widget(tv.load_model("reverse"), "hello")  # doctest: +SKIP
        >>> widget.focus  # doctest: +SKIP
        {'kind': 'cross', 'layer': 0, 'head': 0, 'step': 4, 'cell': None}
        >>> widget.focus = {"head": 2}  # doctest: +SKIP
    """
    try:
        from transformer_viz.notebook.run_widget import RunWidget
    except ModuleNotFoundError as error:
        if error.name != "anywidget":
            raise
        raise OptionError(_INSTALL) from None
    if isinstance(run, Trace):
        if text is not None or options:
            raise OptionError(
                "a run that is there already takes no text and no options of decode; give the model: tv.widget(model, text)"
            )
        return RunWidget(run, view(run, head, step), language=language)
    check_loaded(run)
    if not isinstance(text, str):
        raise OptionError("the text is missing: tv.widget(model, text)")
    trace = decode(run, text, **options)
    return RunWidget(trace, view(trace, head, step), lambda other: decode(run, other, **options), language)
