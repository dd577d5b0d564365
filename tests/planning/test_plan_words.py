"""What a plan says: widths, hours, and what is detectable."""

from evalcore.planning.pilot_estimates import Target, detectable
from evalcore.planning.words import hours_short, hours_words, often_words, width_words
from evalcore.rubric.drawings import Goal


def test_half_a_width_of_a_share_is_in_percentage_points():
    assert width_words(Target(Goal.JUDGE_ERROR, 0.03, (), ("Magpie",)), 0.0304) == "±3.0 percentage points"


def test_hours_are_said_where_reading_was_timed():
    said = "About 12 hours of reading in all, with 2 readers each: a criterion takes 61 seconds, as measured."
    assert hours_words(12.34, 2, 61.0) == said
    assert hours_words(None, 2, None) == "No reading has been timed yet, so hours cannot be told."
    short = [hours_short(hours) for hours in (0.5, 2.345, 1234.5, None)]
    assert short == ["30 minutes", "2.3 hours", "1,234 hours", "– (not timed yet)"]


def test_a_power_takes_a_narrower_interval_than_the_difference():
    assert round(Target(Goal.DIFFERENCE, 0.03, ("Alder", "Birch"), ("Magpie",), power=0.8).half_width, 4) == 0.021
    assert round(detectable(0.05, 0.8), 4) == 0.0715


def test_how_often_is_told_by_the_ratio_itself():
    told = [often_words(times) for times in (0.7, 1.002, 1.3, 2.04)]
    assert told == ["30 % less often than", "as often as", "30 % more often than", "2.0 times as often as"]
