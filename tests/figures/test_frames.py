"""How names stand in figures, and which colour a model has."""

from evalcore.figures.colours import colour_of
from evalcore.figures.frames import on_lines, on_one_line


def test_a_long_name_stands_on_two_lines_or_is_cut_off():
    assert on_lines("hedging") == "hedging"
    long = "health data tasks enough-info-to-complete-task response instruction following"
    assert on_lines(long) == "health data tasks enough-info-to-complete-<br>task response instruction following"
    assert on_one_line("Dr. Amara Okafor", 10) == "Dr. Amara…"


def test_models_take_their_colours_by_name():
    assert colour_of(["Briar-1", "Alder-2"]) == {"Alder-2": "#0072B2", "Briar-1": "#D55E00"}
