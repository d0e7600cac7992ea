"""The fixture `assert_masks` makes a test of a port's masks one line, and its failure says the cell."""

pytest_plugins = ["pytester"]

PORT = """
from tests.mask_checks.ports import Decoder

pytest_plugins = ["transformer_viz.pytest_plugin"]

def test_sound(assert_masks):
    assert_masks(Decoder())

def test_leaking(assert_masks):
    assert_masks(Decoder("sees next"))
"""


def test_one_line_tests_a_port(pytester, monkeypatch, request):
    monkeypatch.setenv("PYTHONPATH", str(request.config.rootpath))
    pytester.makepyfile(PORT)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:transformer-viz")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*MaskError: layers: decoder layer 1, query 1, key 2 is seen and must not be; *"])
    # The failure ends at the line of the test, and not within the package.
    assert "assert_masks.py:" not in result.stdout.str()
