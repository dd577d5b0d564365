"""Fixtures of these tests."""

import pytest

from tests import world


@pytest.fixture
def five_examples(database_url):
    made = world.made(
        database_url,
        points=((7, -4), (5,), (3,), (2,), ()),
        judged="+-+++",
        models=("Alder-2", "Birch-1"),
        languages={1: "ar", 2: None},
    )
    yield made
    made.engine.dispose()
