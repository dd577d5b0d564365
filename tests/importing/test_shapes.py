"""A file in any of a dozen shapes is proposed right, or with two choices at most, and gives the numbers that follow from its content."""

import pytest

from evalcore.importing.context import Options
from evalcore.importing.mapping import parse, to_yaml
from evalcore.importing.proposing import conversations, missing, propose, sample
from tests.importing.shapes import ANSWERS, MET, SCORES, SHAPES, SWIM, WHY
from tests.importing.test_own_data import scores
from tests.invented import bring, rows, study

VERDICTS = (
    "SELECT e.first_words, m.name, r.text, c.text, a.name, v.label, v.explanation FROM verdict v JOIN example e ON e.id = v.example_id"
    " JOIN response r ON r.id = v.response_id JOIN model m ON m.id = r.model_id JOIN criterion c ON c.id = v.criterion_id JOIN rater a ON a.id = v.rater_id"
)
RESPONSES = "SELECT e.first_words, m.name, r.text FROM response r JOIN example e ON e.id = r.example_id JOIN model m ON m.id = r.model_id"


@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_a_file_of_this_shape_is_proposed_and_imported(tmp_path, sqlite_database_url, make):
    shape = make()
    path = shape.write(tmp_path)
    given = sample(path, shape.name)
    names = shape.chosen(propose(given))
    options = Options(**shape.told)
    assert shape.n_choices <= 2
    assert missing(given, names, options) == ""
    told, fault = conversations(given, names, options)
    assert (fault, [one.messages[-1].content for one in told][:1]) == ("", [SWIM])
    assert parse(to_yaml(names), "kept.yaml") == names
    with study(sqlite_database_url) as engine:
        report = bring(engine, path, names=names, **({"judge": None} | shape.told))
        answers = dict.fromkeys((asked, model, text) for asked, model, text in rows(engine, RESPONSES))
        assert {(asked, model): text for asked, model, text in answers}.items() <= ANSWERS.items()
        found = rows(engine, VERDICTS)
        assert (len(found), report.verdicts_new) == (shape.n_verdicts, shape.n_verdicts)
        assert {judge for *_, judge, _, _ in found} == (set(shape.judges) if found else set())
        for asked, model, text, criterion, judge, label, why in found:
            name = next(one for *_, one in MET if one == criterion or criterion.casefold() in one.casefold())
            is_met = MET[asked, model, name] if judge == shape.judges[0] else True
            assert (label, text) == ("met" if is_met else "not_met", ANSWERS[asked, model])
            assert why == (WHY if shape.has_reasons else None)
        if shape.scores is not None:
            assert scores(engine) == {model: round(score, 9) for model, score in shape.scores.items()}


def test_the_scores_of_the_shapes_are_those_of_their_world():
    """8 points can be had: wren's swim answer has all, its wine answer the 6 for care; finch has the 2 for tone twice."""
    assert SCORES == {"wren": 0.875, "finch": 0.25}
