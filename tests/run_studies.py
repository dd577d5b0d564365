"""The studies on which tests of runs work."""

from collections.abc import Iterator

import pytest

from tests.run_world import Study, study


@pytest.fixture
def small(database_url: str) -> Iterator[Study]:
    """3 responses with 2 criteria each, on both databases."""
    with study(database_url, n_examples=3, points=(5, -3)) as made:
        yield made


@pytest.fixture
def quick(sqlite_database_url: str) -> Iterator[Study]:
    """As `small`, for what no database decides."""
    with study(sqlite_database_url, n_examples=3, points=(5, -3)) as made:
        yield made


@pytest.fixture
def larger(sqlite_database_url: str) -> Iterator[Study]:
    """30 responses with 2 criteria each, for rules of the loop, which knows no database."""
    with study(sqlite_database_url, n_examples=30, points=(5, -3)) as made:
        yield made
