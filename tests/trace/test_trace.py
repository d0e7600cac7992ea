"""A Trace's parts must fit together, and it never changes. See also `test_damaged_json.py`."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.attentions import unmasked, with_parts
from tests.trace import planted
from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError, TraceError
from transformer_viz.terms import KINDS
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.groups import MOST_ARRAYS, MOST_GROUPS, Group
from transformer_viz.trace.hidden_answer import hide_answer
from transformer_viz.trace.steps import Fill
from transformer_viz.trace.trace import Trace

INSIDES: Any = [("cross", 1, 2, 3), ("decoder", 0, 4, 1), ("encoder", 1, 0, 0)]


def occlusion(trace: Trace, **changes: Any) -> Attribution:
    values = np.ones((trace.n_steps, len(trace.source_tokens)))
    given: dict[str, Any] = {"method": "occlusion", "kind": "cross", "values": values, "mode": "word", "unit": "nats"}
    return Attribution(**{**given, **changes})


@pytest.fixture(scope="module")
def runs(hello: Trace, tiny: tv.Checkpoint) -> dict[str, Trace]:
    looked_into = hello
    for place in INSIDES:
        looked_into = looked_into.with_inside(tv.inspect_head(tiny, hello, HeadAddress(*place[:3]), place[3]))
    beam = tv.decode(tiny, "hello", strategy="beam", beam_size=2)
    prompt, search, windowed = planted.run((3, 4, 2)), planted.search(), planted.search(is_windowed=True)
    filled, results = planted.filled(), looked_into.with_attribution(occlusion(hello))
    edited = tv.decode(tiny, "hello", edits=["cross:off", "cross.2.3:4=1", "cross.1.1:zero"])
    named = {"hello": hello, "beam": beam, "prompt": prompt, "search": search, "windowed": windowed, "filled": filled}
    return {**named, "results": results, "edited": edited}


def test_a_trace_cannot_be_changed(hello):
    for kind in KINDS:
        for array in (hello.attentions[kind].weights, hello.attentions[kind].reasons, hello.attentions[kind].mask):
            with pytest.raises(ValueError, match="read-only"):
                array[..., 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        hello.text = "olleh"


def attention(kind: Any, **parts: Callable[[Any], Any]) -> Callable[[Trace], Trace]:
    """Changes parts of one kind's attention."""

    def changed(trace: Trace) -> Trace:
        own = trace.attentions[kind]
        made = {name: change(own.weights if name == "scores" else getattr(own, name)) for name, change in parts.items()}
        return dataclasses.replace(trace, attentions=with_parts(trace, kind, **made), search=None)

    return changed


def fields(**changes: Callable[[Any], Any]) -> Callable[[Trace], Trace]:
    """Changes fields of the Trace, each by a function of what it was."""
    return lambda trace: dataclasses.replace(trace, **{name: to(getattr(trace, name)) for name, to in changes.items()})


def searched(**changes: Callable[[Any], Any]) -> Callable[[Trace], Trace]:
    """Changes fields of the search."""

    def changed(trace: Trace) -> Trace:
        own = {name: change(getattr(trace.search, name)) for name, change in changes.items()}
        assert trace.search is not None
        return dataclasses.replace(trace, search=dataclasses.replace(trace.search, **own))

    return changed


def half(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16)


def empty(trace: Trace) -> Trace:
    no: dict[str, Any] = dict.fromkeys(("steps", "output_tokens", "target_tokens", "alignment"), ())
    return dataclasses.replace(trace, **no, attentions={"decoder": unmasked(np.zeros((3, 5, 0, 0), np.float32))})


@pytest.mark.parametrize(
    ("run", "change", "words"),
    [
        ("hello", fields(target_tokens=lambda x: x[1:]), "target_tokens.*steps"),
        ("hello", fields(output_tokens=lambda x: (*x, "x")), "output_tokens.*steps"),
        ("hello", fields(alignment=lambda x: ()), "alignment.*0 entries"),
        ("hello", fields(source_letters=lambda x: x[1:]), "source_letters.*7 source tokens"),
        ("hello", attention("cross", weights=lambda x: x.transpose(0, 1, 3, 2).copy()), "cross.*query.*key"),
        ("hello", attention("cross", weights=lambda x: x[0]), "cross.*layer, head"),
        ("hello", attention("encoder", weights=lambda x: x[:0]), r"encoder.*\(0, 5, 7, 7\)"),
        ("hello", attention("decoder", weights=lambda x: x[..., :-1]), "decoder"),
        ("hello", attention("encoder", weights=lambda x: x.astype(np.float64)), "encoder.*float64"),
        ("hello", attention("cross", weights=lambda x: x * np.float32("nan")), "cross.*not finite"),
        ("hello", attention("cross", weights=lambda x: -x), "cross.*negative"),
        ("hello", attention("cross", weights=half), "float16, float32"),
        ("hello", attention("cross", scores=lambda x: x[0]), "cross.*scores.*float32"),
        ("hello", attention("cross", reasons=lambda x: x > 0), "cross.*mask.*bool.*uint8"),
        ("hello", attention("cross", reasons=lambda x: x.T), "cross.*mask"),
        ("hello", attention("cross", reasons=lambda x: x + np.uint8(9)), "cross.*mask.*9"),
        ("hello", attention("cross", layers=lambda x: (0, 2, 1)), "3 ascending numbers"),
        ("hello", fields(attentions=lambda x: {**x, "self": x["cross"]}), "'self'.*encoder, decoder, cross"),
        ("hello", empty, r"decoder.*\(3, 5, 0, 0\)"),
        ("beam", searched(cross_rows=half), "rows of cross are float16"),
        ("beam", searched(cross_rows=lambda x: -x), "cross_rows holds numbers that are not finite, or negative"),
        ("beam", searched(cross_rows=lambda x: x[:, 1:].copy()), "rows of cross are float32 with 2 layers"),
        ("beam", searched(decoder_rows=lambda x: None), "rows of cross in a run with"),
        ("prompt", fields(n_given=lambda n: -1), "n_given is -1"),
        ("prompt", fields(n_given=lambda n: 7), "number of output_tokens, 6"),
        ("prompt", fields(target_ids=lambda x: x[1:]), "target_ids has 5 entries for 6"),
        ("prompt", fields(output_ids=lambda x: (*x[:-1], -1)), "or a negative one"),
        ("prompt", fields(output_ids=lambda x: (*x[:-1], 6)), r"steps\[5\] says id 2 where output_ids has 6"),
        ("filled", fields(fills=lambda x: x * 2), "fill"),
        ("filled", fields(fills=lambda x: (*x, Fill(place=1, candidates=()))), "fill"),
        ("search", searched(opening=lambda x: ()), "at least one token"),
        ("search", searched(opening_ids=lambda x: x[:2]), "and an id each"),
        ("search", searched(candidate_ids=lambda x: ((1,),)), "an id for each candidate"),
        ("search", searched(opening=lambda x: x[:2], opening_ids=lambda x: x[:2]), "3 entries for 5 steps after 1 given"),
        ("search", searched(decoder_reasons=lambda x: np.zeros((6, 6))), "decoder_reasons is float64"),
        ("search", searched(decoder_reasons=lambda x: np.zeros((5, 5), np.uint8)), r"uint8 \(6, 6\)"),
        ("search", searched(decoder_reasons=lambda x: np.full((6, 6), 17, np.uint8)), "decoder_reasons holds code 17"),
        # Two labels that look alike are told apart by their ids.
        ("search", searched(opening_ids=lambda x: (0, 1, 4, 4)), "its opening has 4 tokens"),
        ("search", searched(opening=lambda x: ("<s>", "b", "�", "�")), "its opening has 4 tokens"),
        ("search", searched(opening_ids=lambda x: None), "its opening has 4 tokens"),
        ("search", fields(n_given=lambda n: 2), "its opening has 4 tokens"),
        ("search", fields(steps=lambda x: ()), "its opening has 4 tokens"),
        ("results", lambda t: dataclasses.replace(t.steps[0], candidate_ids=(1,)), "1 ids for 10 candidates"),
        ("results", lambda t: occlusion(t, values=np.zeros((2, 3), np.int32)), "float32 or float64 with 2 or 4"),
        ("results", lambda t: occlusion(t, values=np.zeros((1, 1, 3, 4)), layers=(-1,)), r"layers\[0\]=-1"),
        ("results", lambda t: t.with_attribution(occlusion(t, values=np.zeros((2, 3)))), "it is of another run"),
        ("results", lambda t: dataclasses.replace(t.insides[0], weights=np.zeros(3)), r"weights has \d d_|key where others"),
    ],
)
def test_parts_that_do_not_fit_are_named(runs: dict[str, Trace], run: str, change: Any, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        change(runs[run])


def test_an_inside_of_another_run_is_refused_and_of_one_run_there_are_eight(
    runs: dict[str, Trace], tiny: tv.Checkpoint
) -> None:
    full = runs["results"]
    with pytest.raises(TraceError, match=r"weights of cross\.2\.3:4 are not those of the run"):
        runs["edited"].with_inside(full.insides[0])
    again = full.with_inside(tv.inspect_head(tiny, full, HeadAddress(*INSIDES[0][:3]), INSIDES[0][3]))
    places = [(inside.kind, inside.layer, inside.head, inside.row) for inside in again.insides]
    assert places == [*INSIDES[1:], INSIDES[0]], "one of the same place gives way"
    for head in range(5):
        again = again.with_inside(tv.inspect_head(tiny, full, HeadAddress("cross", 2, head), 0))
    with pytest.raises(TraceError, match="at most 8 heads and rows"):
        again.with_inside(tv.inspect_head(tiny, full, "cross.3.1", 1))


def test_results_belong_to_their_run_alone(runs: dict[str, Trace], hello: Trace) -> None:
    full = runs["results"]
    assert (hello.attributions, hello.insides) == ({}, ())
    held = full.with_attribution(occlusion(hello, values=np.zeros((hello.n_steps, 7)))).attributions
    assert list(held) == ["occlusion_word_cross"] and not held["occlusion_word_cross"].values.any()
    for derived in (hide_answer(full, 1), tv.by_words(full)):
        assert derived.attributions == {} and derived.insides == ()
    arrays = [one.values for one in full.attributions.values()]
    arrays += [array for inside in full.insides for array in (*inside.arrays.values(), inside.reasons)]
    assert full.nbytes - hello.nbytes == sum(array.nbytes for array in arrays)
    assert not any(array.flags.writeable for array in arrays)


def test_a_group_is_counted_and_never_changed() -> None:
    bare = planted.filled()
    trace = bare.with_group("more", Group({"of_it": np.zeros((3, 5)), "bools": np.array([True, False])}))
    assert (bare.groups, trace.nbytes - bare.nbytes) == ({}, 3 * 5 * 8 + 2)
    with pytest.raises(ValueError, match="read-only"):
        trace.groups["more"].arrays["of_it"][0] = 1


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda trace, name=name: trace.with_group(name, Group()) for name in ("../up", "Upper", "", "a" * 33, "meta.json")),
        lambda trace: Group({"a/b": np.zeros(3)}),
        lambda trace: Group({"a": [1, 2]}),  # ty: ignore[invalid-argument-type]
        *(
            lambda trace, array=array: Group({"a": array})
            for array in (np.zeros(()), np.zeros((1,) * 7), np.zeros(3, complex), np.zeros(3, np.int64), np.array([object()]))
        ),
        lambda trace: dataclasses.replace(trace, groups={f"g{i}": Group() for i in range(MOST_GROUPS + 1)}),
        lambda trace: trace.with_group("many", Group({f"a{i}": np.zeros(1) for i in range(MOST_ARRAYS + 1)})),
    ],
)
def test_groups_that_no_file_can_hold_are_refused_where_they_are_made(wrong: Callable[[Trace], Any]) -> None:
    with pytest.raises(TraceError, match=r"group|array"):
        wrong(planted.filled())


def test_only_a_named_mistake_may_hold_nan(hello):
    broken = np.full_like(hello.cross.weights, np.nan)
    assert dataclasses.replace(hello, attentions=with_parts(hello, "cross", weights=broken), mistake="forgotten mask").mistake


def test_a_kind_that_a_run_does_not_have_is_absent(hello):
    """Decoder-only models have no encoder; nothing after the Trace may assume one."""
    trace = dataclasses.replace(hello, attentions={"decoder": hello.decoder})
    assert trace.kinds == ("decoder",)
    with pytest.raises(OptionError, match="this run has no cross attention; it has decoder"):
        _ = trace.cross
    with pytest.raises(OptionError, match=r"'self'.*encoder, decoder, cross"):
        _ = trace.attentions["self"]
    assert set(trace.to_frame()["kind"]) == {"decoder"}


def test_layers_are_asked_for_by_their_numbers(tiny):
    trace = tv.decode(tiny, "hello", kinds=("decoder", "cross"), layers=(0, 2))
    assert [trace.cross.layer_index(number) for number in trace.cross.layers] == [0, 1]
    wrong: tuple[Any, ...] = (1, 3, -1, True, "0", None, 0.0)
    for number in wrong:
        with pytest.raises(OptionError, match=re.escape("one of 0, 2")):
            trace.cross.layer_index(number)


def test_queries_and_keys_are_the_tokens_of_the_right_side(hello):
    assert hello.encoder.queries == hello.encoder.keys == hello.cross.keys == hello.source_tokens
    assert hello.decoder.queries == hello.decoder.keys == hello.cross.queries == hello.target_tokens


def test_is_right_needs_the_answer_and_the_end(hello):
    assert dataclasses.replace(hello, text="olleh").is_right is True
    assert dataclasses.replace(hello, text="olleh", finished="length").is_right is False
    assert dataclasses.replace(hello, text="oleh").is_right is False
    assert dataclasses.replace(hello, expected=None, alignment=(None,) * hello.n_steps).is_right is None


def test_true_tokens_are_those_of_the_answer_by_position(hello):
    known = dataclasses.replace(hello, expected_tokens=("o", "l", "<end>"))
    assert [known.true_token(t) for t in range(5)] == ["o", "l", "<end>", None, None]
    assert dataclasses.replace(hello, expected_tokens=None).true_token(0) is None
    assert [hello.true_token(t) for t in range(7)] == [*"olleh", "<end>", None]


def test_what_was_not_recorded_is_empty(hello):
    """Outputs without probabilities, and neither; the query rows are those of the tokens that were read."""
    silent = dataclasses.replace(hello, steps=())
    assert silent.output_tokens == hello.output_tokens
    assert silent.n_steps == hello.n_steps == len(hello.steps)
    assert dataclasses.replace(silent, output_tokens=()).n_steps == hello.n_steps


def test_masks_may_differ_by_head_and_a_mean_is_masked_where_all_are(hello):
    reasons = np.zeros(hello.cross.weights.shape, np.uint8)
    reasons[1, :, 0, 3] = 4
    reasons[1, 2, :, 5] = 1
    cross = dataclasses.replace(hello, attentions=with_parts(hello, "cross", reasons=reasons)).cross
    assert int(cross.mask.sum()) == 5 + len(hello.steps)
    assert np.argwhere(cross.head_reasons(1, "mean")).tolist() == [[0, 3]]
    np.testing.assert_array_equal(cross.head_reasons(1, 2), reasons[1, 2])


def test_a_run_says_what_it_read_and_what_it_wrote(hello: Trace) -> None:
    """A prompt is read and given; where an encoder read a source there is none, and all is written."""
    run = planted.run((3, 4), (1, 2, 5), has_source=False)
    assert (run.prompt, run.read_tokens) == (run.target_tokens[:3], run.target_tokens[:3])
    assert run.output_tokens[run.written] == run.output_tokens[2:] and len(run.output_tokens[run.written]) == 2
    assert [run.is_given(step) for step in range(run.n_steps)] == [True, True, False, False]
    assert (hello.prompt, hello.read_tokens) == ((), hello.source_tokens)
    assert hello.steps[hello.written] == hello.steps and not hello.is_given(0)
