"""Whatever the order in which the files of a study come, the study is the same."""

import shutil
import tempfile
from itertools import permutations
from pathlib import Path

from hypothesis import given, strategies as st

from tests import invented as made
from tests.invented import bring, criterion, entry, example, meta, results, study, user, write

SYSTEM = {"role": "system", "content": "Answer briefly."}


@st.composite
def rubrics(draw):
    """A full rubric: texts may be repeated, also with the same points; clusters are each there once."""
    clusters = draw(st.lists(st.sampled_from([made.SWEAT_CLUSTER, made.CLINIC_CLUSTER]), unique=True))
    own = [
        criterion(*draw(st.tuples(st.sampled_from("ABC"), st.sampled_from([5, 5, -3]))))
        for _ in range(draw(st.integers(1, 4)))
    ]
    shared = [
        criterion(draw(st.sampled_from("ABX")), draw(st.sampled_from([5, 7])), cluster=cluster) for cluster in clusters
    ]
    return draw(st.permutations(own + shared))


@st.composite
def files(draw):
    """Content by file name: examples in their three files, two models' results, physicians' labels."""
    by_id = {f"p{number}": draw(rubrics()) for number in range(1, draw(st.integers(1, 3)) + 1)}
    full = {prompt_id: example(prompt_id, rubric=rubric) for prompt_id, rubric in by_id.items()}
    consensus = {
        prompt_id: row | {"rubrics": shared}
        for prompt_id, row in full.items()
        if (shared := [one for one in row["rubrics"] if "level:cluster" in one["tags"]])
    }
    content = {"oss_eval.jsonl": made.lines(*full.values())}
    if all(map(told_by_text, by_id.values())) and draw(
        st.booleans()
    ):  # a rebuilt file, whose criteria have lost their clusters
        bare = [
            row | {"rubrics": [one | {"tags": ["level:example"]} for one in row["rubrics"]]} for row in full.values()
        ]
        content["hard.jsonl"] = made.lines(*bare)
    if consensus and draw(st.booleans()):
        content["consensus.jsonl"] = made.lines(*consensus.values())
    for model in "xy":
        ids = draw(st.lists(st.sampled_from([*full]), max_size=3))
        if ids:
            sent = draw(st.sampled_from([[user()], [SYSTEM, user()], [user("Quite another question?")]]))
            entries = [draw_entry(draw, prompt_id, by_id[prompt_id], sent) for prompt_id in ids]
            content[f"healthbench_{model}_20260101_101010_allresults.json"] = results(*entries)
    rated = [
        meta(prompt_id, rubric=one["criterion"], category=one["tags"][1])
        for prompt_id, row in consensus.items()
        for one in row["rubrics"]
    ]
    if rated and draw(st.booleans()):
        content["meta_eval.jsonl"] = made.lines(*rated)
    return content


def told_by_text(rubric):
    """Whether no text of a shared criterion stands twice: without its cluster, nothing would tell which is which."""
    texts = [one["criterion"] for one in rubric]
    return all(texts.count(one["criterion"]) == 1 for one in rubric if "level:cluster" in one["tags"])


def draw_entry(draw, prompt_id, rubric, sent):
    met = draw(st.lists(st.booleans(), min_size=len(rubric), max_size=len(rubric)))
    return entry(prompt_id, met, rubric=rubric, prompt=sent, answer=draw(st.sampled_from(["One", "Two"])))


def made_of(template, content, order):
    with tempfile.TemporaryDirectory() as folder, study(str(shutil.copy(template, folder))) as engine:
        for name in order:
            bring(engine, write(Path(folder) / name, content[name]))
        return made.contents(engine)


@given(data=st.data(), content=files())
def test_any_order_of_the_files_gives_the_same_study(sqlite_template, data, content):
    order = data.draw(st.permutations([*content]))
    assert made_of(sqlite_template, content, order) == made_of(sqlite_template, content, [*content])


def test_every_order_of_a_study_with_all_kinds_of_files_gives_the_same(tmp_path, database_url, sqlite_template):
    rubric = [criterion("A", 5), criterion("A", 5), criterion("B", 7, cluster=made.SWEAT_CLUSTER), criterion("A", -5)]
    content = {
        "oss_eval.jsonl": made.lines(example("p1", rubric=rubric), example("p2", rubric=rubric[::-1])),
        "consensus.jsonl": made.lines(example("p1", rubric=rubric[2:3])),
        "healthbench_x_20260101_101010_allresults.json": results(
            entry("p1", (True, False, True, False), rubric=rubric, prompt=[SYSTEM, user()]),
            entry("p1", (False, False, True, False), rubric=rubric, prompt=[SYSTEM, user()]),
        ),
        "meta_eval.jsonl": made.lines(meta("p1", rubric="B, said otherwise"), meta("p3")),
    }
    expected = made_of(sqlite_template, content, [*content])
    for order in permutations(content):
        assert made_of(sqlite_template, content, order) == expected, order
    with study(database_url) as engine:
        for name in reversed(content):
            bring(engine, write(tmp_path / name, content[name]))
        assert plain(made.contents(engine)) == plain(expected)


def plain(contents):
    """SQLite says 1 where PostgreSQL says True."""
    return {
        name: sorted(str(row).replace("True", "1").replace("False", "0") for row in rows)
        for name, rows in contents.items()
    }


@given(data=st.data(), rubric=rubrics())
def test_without_the_examples_the_order_of_two_results_files_does_not_matter(sqlite_template, data, rubric):
    """The plainer prompt of the two stands for the conversation."""
    prompts = st.sampled_from([[user()], [SYSTEM, user()], [user("Quite another question?")]])
    content = {
        f"healthbench_{model}_20260101_101010_allresults.json": results(
            draw_entry(data.draw, "p1", rubric, data.draw(prompts))
        )
        for model in "xy"
    }
    assert made_of(sqlite_template, content, [*content]) == made_of(sqlite_template, content, [*reversed(content)])
