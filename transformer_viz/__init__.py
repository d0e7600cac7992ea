"""Transformer Viz: see an encoder-decoder Transformer think.

Names are loaded when they are first used, so that reading and drawing a saved trace needs no torch.
"""

# Not typing's own, since nothing must be imported before a Ctrl-C is heard (`__main__`).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from transformer_viz import analysis as analysis
    from transformer_viz import export as export
    from transformer_viz import figures as figures
    from transformer_viz.addresses import AttentionAddress as AttentionAddress
    from transformer_viz.addresses import HeadAddress as HeadAddress
    from transformer_viz.analysis.word_pooling import by_words as by_words
    from transformer_viz.attribution.alignment_heads import alignment_heads as alignment_heads
    from transformer_viz.attribution.attribute import attribute as attribute
    from transformer_viz.attribution.counter_proof import counter_proof as counter_proof
    from transformer_viz.attribution.knock_out import knock_out as knock_out
    from transformer_viz.attribution.methods import Method as Method
    from transformer_viz.attribution.methods import list_methods as list_methods
    from transformer_viz.attribution.patch import patch as patch
    from transformer_viz.attribution.patch import patched_run as patched_run
    from transformer_viz.attribution.result.alignment_heads import AlignmentHeads as AlignmentHeads
    from transformer_viz.attribution.result.counter_proof import CounterProof as CounterProof
    from transformer_viz.attribution.result.knock_out import KnockOut as KnockOut
    from transformer_viz.attribution.result.patching import PatchedRun as PatchedRun
    from transformer_viz.attribution.result.patching import Patching as Patching
    from transformer_viz.attribution.result.verdict import Verdicts as Verdicts
    from transformer_viz.attribution.verdict import faithfulness as faithfulness
    from transformer_viz.attribution.verdict import judge_attention as judge_attention
    from transformer_viz.checkpoints import Checkpoint as Checkpoint
    from transformer_viz.checkpoints import load_checkpoint as load_checkpoint
    from transformer_viz.checkpoints import load_snapshot as load_snapshot
    from transformer_viz.comparison.compare import Comparison as Comparison
    from transformer_viz.comparison.compare import compare as compare
    from transformer_viz.comparison.diff import TraceDiff as TraceDiff
    from transformer_viz.comparison.diff import diff as diff
    from transformer_viz.config_masks.masks import masks as masks
    from transformer_viz.edits import Edit as Edit
    from transformer_viz.errors import TransformerVizError as TransformerVizError
    from transformer_viz.evaluation.evaluate import accuracy_by_length as accuracy_by_length
    from transformer_viz.evaluation.evaluate import evaluate as evaluate
    from transformer_viz.inside_head.explanations import explain as explain
    from transformer_viz.inside_head.run import inspect_head as inspect_head
    from transformer_viz.live.page import live_html as live_html
    from transformer_viz.live.page import live_page as live_page
    from transformer_viz.loaded_model import LoadedModel as LoadedModel
    from transformer_viz.mask_checks.assert_masks import assert_masks as assert_masks
    from transformer_viz.mask_checks.check_masks import check_masks as check_masks
    from transformer_viz.mask_checks.effect import Effect as Effect
    from transformer_viz.mask_checks.effect import measure_effect as measure_effect
    from transformer_viz.mask_checks.result import MaskReport as MaskReport
    from transformer_viz.model.mistakes import MISTAKES as MISTAKES
    from transformer_viz.model.mistakes import list_mistakes as list_mistakes
    from transformer_viz.model.tap import RecordTap as RecordTap
    from transformer_viz.model.tap import ReplaceTap as ReplaceTap
    from transformer_viz.model.tap import Site as Site
    from transformer_viz.model.tap import Tap as Tap
    from transformer_viz.notebook.shown import widget as widget
    from transformer_viz.readers.models import load_model as load_model
    from transformer_viz.readers.modules.wrapping import wrap as wrap
    from transformer_viz.surveys.columns import compare_surveys as compare_surveys
    from transformer_viz.surveys.result import Survey as Survey
    from transformer_viz.surveys.result import load_survey as load_survey
    from transformer_viz.surveys.survey import survey as survey
    from transformer_viz.trace.attention import Attention as Attention
    from transformer_viz.trace.attribution import Attribution as Attribution
    from transformer_viz.trace.inside import Inside as Inside
    from transformer_viz.trace.store import load_trace as load_trace
    from transformer_viz.trace.store import save_trace as save_trace
    from transformer_viz.trace.trace import Trace as Trace
    from transformer_viz.tracing.adapters import trace_module as trace_module
    from transformer_viz.tracing.batch import decode_batch as decode_batch
    from transformer_viz.tracing.batch import decode_forced as decode_forced
    from transformer_viz.tracing.decode import decode as decode
    from transformer_viz.tracing.decode import trace_size as trace_size
    from transformer_viz.tracing.show import show as show
    from transformer_viz.tracing.trace_size import TraceSize as TraceSize
    from transformer_viz.tracing.untrained import decode_untrained as decode_untrained
    from transformer_viz.training.replay import trace_training as trace_training
    from transformer_viz.training.result import TrainingSnapshot as TrainingSnapshot
    from transformer_viz.version import __version__ as __version__

_HOMES = {
    "AttentionAddress": "addresses",
    "HeadAddress": "addresses",
    "Checkpoint": "checkpoints",
    "load_checkpoint": "checkpoints",
    "load_snapshot": "checkpoints",
    "load_model": "readers.models",
    "wrap": "readers.modules.wrapping",
    "TransformerVizError": "errors",
    "alignment_heads": "attribution.alignment_heads",
    "attribute": "attribution.attribute",
    "counter_proof": "attribution.counter_proof",
    "faithfulness": "attribution.verdict",
    "knock_out": "attribution.knock_out",
    "patch": "attribution.patch",
    "patched_run": "attribution.patch",
    "judge_attention": "attribution.verdict",
    "accuracy_by_length": "evaluation.evaluate",
    "assert_masks": "mask_checks.assert_masks",
    "check_masks": "mask_checks.check_masks",
    "decode": "tracing.decode",
    "by_words": "analysis.word_pooling",
    "compare": "comparison.compare",
    "decode_batch": "tracing.batch",
    "decode_forced": "tracing.batch",
    "measure_effect": "mask_checks.effect",
    "masks": "config_masks.masks",
    "MISTAKES": "model.mistakes",
    "diff": "comparison.diff",
    "evaluate": "evaluation.evaluate",
    "decode_untrained": "tracing.untrained",
    "trace_training": "training.replay",
    "compare_surveys": "surveys.columns",
    "load_survey": "surveys.result",
    "survey": "surveys.survey",
    "live_html": "live.page",
    "live_page": "live.page",
    "load_trace": "trace.store",
    "save_trace": "trace.store",
    "trace_module": "tracing.adapters",
    "trace_size": "tracing.decode",
    "show": "tracing.show",
    "widget": "notebook.shown",
    "explain": "inside_head.explanations",
    "inspect_head": "inside_head.run",
    "Inside": "trace.inside",
    "Trace": "trace.trace",
    "Attention": "trace.attention",
    "Attribution": "trace.attribution",
    "Edit": "edits",
    "Survey": "surveys.result",
    "LoadedModel": "loaded_model",
    "Method": "attribution.methods",
    "RecordTap": "model.tap",
    "ReplaceTap": "model.tap",
    "Site": "model.tap",
    "Tap": "model.tap",
    "TraceDiff": "comparison.diff",
    "Comparison": "comparison.compare",
    "Verdicts": "attribution.result.verdict",
    "KnockOut": "attribution.result.knock_out",
    "Patching": "attribution.result.patching",
    "PatchedRun": "attribution.result.patching",
    "CounterProof": "attribution.result.counter_proof",
    "AlignmentHeads": "attribution.result.alignment_heads",
    "Effect": "mask_checks.effect",
    "MaskReport": "mask_checks.result",
    "TrainingSnapshot": "training.result",
    "list_methods": "attribution.methods",
    "list_mistakes": "model.mistakes",
    "TraceSize": "tracing.trace_size",
    "__version__": "version",
}

_PARTS = ("analysis", "export", "figures")

__all__ = [*_PARTS, *_HOMES]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _PARTS:
        return import_module(f"transformer_viz.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'transformer_viz' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"transformer_viz.{_HOMES[name]}"), name)


def show_in_notebook(trace: "Trace") -> "str | None":
    """The step player that a notebook shows for a Trace, as HTML; None where plotly is not installed.

    It is defined here because `trace` must not import what draws it.
    """
    try:
        from transformer_viz.export.pages import shown
    except ModuleNotFoundError:
        return None
    return shown(trace)
