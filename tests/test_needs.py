"""What a machine lacks is named, and nothing else is left out."""

import pytest

from tests.needs import needs, skip_without


def test_what_is_missing_is_named() -> None:
    lacking = needs("pytest", "no_such_package")
    assert lacking.args == (True,)
    assert lacking.kwargs["reason"] == "needs no_such_package: pip install no_such_package"
    assert needs("pytest").args == (False,)
    skip_without("pytest")
    with pytest.raises(pytest.skip.Exception, match="needs no_such_package"):
        skip_without("no_such_package")
