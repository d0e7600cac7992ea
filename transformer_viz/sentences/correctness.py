"""Says whether a run's output is right, in the words beside every output: `right`, `wrong`, `unfinished` …"""

from dataclasses import replace
from typing import Literal

from transformer_viz.analysis.word_pooling import is_by_words, noun
from transformer_viz.language import say
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, say_sentence
from transformer_viz.terms import place_words
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import START

Answer = Literal["right", "wrong", "unfinished", "not known"]
TEACHER_FORCING = "teacher forcing"
"""The name of this strategy in a Trace."""
_LONGEST_TEXT, _LONGEST_TOKEN = 160, 40


def is_given(trace: Trace) -> bool:
    """Tells whether the output was given and not chosen by the model: teacher forcing, or tokens from elsewhere."""
    return trace.finished == "given" or trace.made_by.get("strategy") == TEACHER_FORCING


def answer(trace: Trace) -> Answer | None:
    """The verdict on the output, such as `right`. None where the output was given or not recorded, and where the tokens have
    ids, since other libraries' models have no known answers.

    `unfinished` is an output without an end that is the beginning of the true answer.
    """
    if is_given(trace) or not trace.output_tokens or _has_no_task(trace):
        return None
    if trace.is_right is None:
        return "not known"
    if trace.finished != "end" and trace.expected_tokens is not None and trace.first_wrong_step is None:
        return "unfinished"
    return "right" if trace.is_right else "wrong"


def _has_no_task(trace: Trace) -> bool:
    is_a_tokenizers = trace.output_ids is not None or (is_by_words(trace) and "task" not in trace.made_by)
    return is_a_tokenizers and trace.expected is None


def hypothesis_answer(trace: Trace, number: int) -> Answer | None:
    """`answer` of a node of the run's beam search, by its tokens alone: its attention need not be put together."""
    search = trace.search
    assert search is not None
    if _has_no_task(trace):
        return None
    path = search.path(number)
    tokens = tuple(node.token for node in path)
    return answer(
        replace(
            trace,
            attentions={},
            search=None,
            steps=(),
            text=path[-1].text,
            target_tokens=(START, *tokens[:-1]),
            output_tokens=tokens,
            finished="end" if path[-1].state == "end" else "length",
            alignment=search.alignment[: len(path)],
        )
    )


def answer_words(trace: Trace, step_name: str = "step") -> Sentence:
    """`right`, or ``wrong, expected `olleh`, differs from step 3 on``; nothing where `answer` is None.

    `step_name` replaces the word `step`, where that means something else.
    """
    verdict, step = answer(trace), trace.first_wrong_step
    if verdict is None:
        return ()
    if verdict == "not known":
        return say_sentence("not known whether it is right")
    if verdict == "right":
        return (("strong", say("right")),)
    if verdict == "unfinished":
        return say_sentence("{unfinished}, right so far", unfinished=("strong", say("unfinished")))
    wrong: Piece = ("strong", say("wrong"))
    if trace.expected is None:
        # It ends where something is left to be read: wrong, though the answer is not known.
        key = None if step is None else trace.alignment[step]
        assert key is not None
        token, place = of_run(trace.source_tokens[key], _LONGEST_TOKEN), place_words(key, noun(trace))
        return say_sentence("{wrong}, ends before {token} ({place}) is read", wrong=wrong, token=token, place=place)
    expected = of_run(trace.expected, _LONGEST_TEXT) if trace.expected else say("nothing")
    if step is None:
        return say_sentence("{wrong}, expected {text}", wrong=wrong, text=expected)
    place = say("row {row}", row=step + 1) if step_name == "row" else say("step {step}", step=step + 1)
    return say_sentence("{wrong}, expected {text}, differs from {place} on", wrong=wrong, text=expected, place=place)
