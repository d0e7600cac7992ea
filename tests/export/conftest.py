"""The run of the figures' tests: all-different prime sizes, and tokens that would act as markup."""

from tests.figures.conftest import make_trace as make_trace
from tests.figures.conftest import trace as trace
