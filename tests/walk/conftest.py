"""The pages as the tests of `tests/dashboard` run them."""

from tests.dashboard.conftest import pytest_configure

__all__ = ["pytest_configure"]
