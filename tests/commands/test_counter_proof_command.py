"""`counter-proof`: how far weights go unnoticed."""

import re

import transformer_viz as tv


def test_it_says_what_python_says(home, cli):
    found = cli("counter-proof", "abca", "--checkpoint", "tiny", "--scope", "cross", "--scope", "encoder.1.2",
                "--epsilon", "0.002", "--json").json  # fmt: skip
    model = tv.load_checkpoint("tiny", "cpu")
    trace = tv.decode(model, "abca")
    for said, scope in zip(found["proofs"], ("cross", "encoder.1.2"), strict=True):
        own = tv.counter_proof(model, trace, scope=scope, epsilon=0.002)
        assert (said["scope"], said["farthest"]) == (scope, own.farthest.target)
        assert [each["share"] for each in said["moved"]] == [each.share for each in own.moved]
    done = cli("counter-proof", "abca", "--checkpoint", "tiny")
    lines = done.out.splitlines()[2:]
    rows = [line.split()[0] for line in lines]
    assert all(re.search(r" [01]\.\d{3}  (over |under )?\d+ % of the weight elsewhere", line) for line in lines)
    assert len(rows) == 3 + 6 + 6 + 5 + 3 and {"cross.2.3", "decoder.1", "encoder"} < set(rows)
