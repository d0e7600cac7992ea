"""`decode_untrained`: the same run by a model with random parameters, the second baseline for every grade of attention."""

import threading
from dataclasses import replace

import torch

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.model.transformer import Transformer
from transformer_viz.schema import whole_number
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.recording_options import keywords_of
from transformer_viz.tracing.tokenize_batch import LONGEST
from transformer_viz.vocabulary import END, PAD

LARGEST_SEED = 2**63 - 1
# Fresh parameters are drawn from the one random state that all threads share.
_ONE_AT_A_TIME = threading.Lock()


def decode_untrained(checkpoint: Checkpoint, trace: Trace, seed: int = 0) -> Trace:
    """Runs a model of the checkpoint's sizes, but with random parameters, over the source and the output of a run.

    It reads the same tokens as the trained model in one pass (teacher forcing), so that the rows of the two runs correspond.
    The run's edits, mistake and padding stay in force, and the same attention is kept.

    Args:
        checkpoint: the trained model; its task, sizes and device are used, its parameters are not.
        trace: a run of this checkpoint.
        seed: of the parameters; the same seed gives the same model.

    Returns:
        Its Trace, whose rows are those of the run.

    Raises:
        OptionError: an impossible seed.
        InputError: the task cannot read the run's source again.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> fresh = tv.decode_untrained(model, trace, seed=0)
        >>> fresh.cross.weights.shape == trace.cross.weights.shape
        True
    """
    whole_number("seed", seed, 0, LARGEST_SEED)
    like = next(checkpoint.network.parameters())
    # As training begins, but for the seed; the random state of the process stays as it is.
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: that would seed every GPU too, and nobody would put it back.
        torch.random.default_generator.manual_seed(seed)
        model = Transformer(checkpoint.network.config)
    model = model.to(like.device, like.dtype).eval().requires_grad_(False)
    fresh = replace(checkpoint, network=model, recipe={}, metrics={})
    output, n_steps = list(trace.output_tokens), len(trace.steps)
    while END in output[:-1] and output[-1] == PAD:
        output.pop()
    return decode(
        fresh,
        trace.source,
        # The last token is written and never read: with `<end>` in its place every query row stays what it was.
        target=tuple(output[:-1]),
        pad_to=len(trace.source_tokens),
        pad_target_to=n_steps,
        max_length=min(LONGEST, checkpoint.network.config.max_positions),
        edits=trace.edits,
        mistake=trace.mistake,
        **keywords_of(trace, fresh.network.sizes),
    )
