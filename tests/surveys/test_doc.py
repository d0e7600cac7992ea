"""What docs/survey.md says, a program says too."""

from tests.test_readme import run_blocks


def test_the_example_says_what_its_comments_say():
    assert len(run_blocks("survey.md")) == 5
