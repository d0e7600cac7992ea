"""Whether maps point where the cause is, on sampled lines of a survey: each is decoded and asked for causes alone."""

from transformer_viz.analysis.survey.verdicts import VerdictPartial
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.verdict import CAUSE, of_run
from transformer_viz.errors import TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying.block import Block
from transformer_viz.surveying.on_block import one_thread
from transformer_viz.surveying.options import SurveyOptions
from transformer_viz.tracing.decode import decode


def survey_verdicts(model: LoadedModel, block: Block, options: SurveyOptions) -> VerdictPartial:
    """The verdict of every map on each of some lines; a line that cannot be read or judged leaves nothing."""
    others, missing, found = [name for name in METHODS if name != CAUSE], dict[str, str](), []
    with one_thread():
        for line in block.lines:
            try:
                trace = None if line.fault else decode(model, line.text, max_length=options.max_length)
            except TransformerVizError:
                continue  # its block says why
            try:
                if trace is not None:
                    found.append(of_run(model, trace, others, missing, mode=options.mode))
            except TransformerVizError as error:
                missing.setdefault(CAUSE, str(error))
    return VerdictPartial(verdicts=tuple(found), missing=missing)
