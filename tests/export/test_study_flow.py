"""The flow diagram: each number is a count of its own, what leaves and what stays add up, and the figure says the same numbers."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
from hypothesis import given, strategies as some

from evalcore.export.reporting import BESIDE, LEFT, STAGE, UNITS, flow_svg, study_flow
from tests import rubric_rows

N_EXAMPLES, N_CRITERIA, MODELS = 4, 2, ("Alder", "Briar")
N = N_EXAMPLES * N_CRITERIA * len(MODELS)
letters = some.text(alphabet="+-?.", min_size=N, max_size=N)


def flow_of(judge: str, readers: dict[str, str], assigned: set[int], enough: list[str]):
    """A study of 4 examples, 2 models and 2 criteria, and its flow."""
    grid = [(e, m, c) for e in range(1, N_EXAMPLES + 1) for m in MODELS for c in range(1, N_CRITERIA + 1)]
    part = rubric_rows.of_columns(
        example=[e for e, _, _ in grid], model=[m for _, m, _ in grid], criterion=[c for _, _, c in grid], judges={"Magpie": judge}, readers=readers,
    )  # fmt: skip
    responses = part.items.drop_duplicates("response_id")[["response_id", "example_id"]]
    numbers = responses["response_id"].tolist()
    drawn = pd.DataFrame({"response_id": [numbers[place] for place in sorted(assigned)], "selection": "random"})
    flow = study_flow(
        part,
        examples=pd.DataFrame({"example_id": range(1, N_EXAMPLES + 2)}),  # one without a response
        responses=responses,
        assigned=drawn,
        enough=enough,
        judges=["Magpie"],
    )
    return part, drawn, flow


@given(
    judge=some.text(alphabet="+-+-.", min_size=N, max_size=N),
    readers=some.fixed_dictionaries({"dr_a": letters, "dr_b": letters}),
    assigned=some.sets(some.integers(0, N // N_CRITERIA - 1)),
    enough=some.lists(some.sampled_from(MODELS), unique=True),
)
def test_each_number_is_a_count_and_they_add_up(judge, readers, assigned, enough):
    part, drawn, flow = flow_of(judge, readers, assigned, enough)
    of_response = {}  # response -> its items, each with the judge's letter and the readers'
    for row, item in enumerate(part.items.itertuples()):
        said = [letter[row] for letter in readers.values() if letter[row] != "."]
        of_response.setdefault((item.example_id, item.model, item.response_id), []).append((judge[row], said))
    whole = {key: [said for _, said in items] for key, items in of_response.items() if "." not in [j for j, _ in items]}
    there = set(drawn["response_id"])
    steps = {
        "Judged on every criterion": lambda key, said: True,
        "Drawn to be read by physicians": lambda key, said: key[2] in there or bool(said),
        "Read blind by a physician": lambda key, said: bool(said),
        "With a physician's label": lambda key, said: bool(set(said) & {"+", "-"}),
        "In the corrected scores": lambda key, said: bool(set(said) & {"+", "-"}) and key[1] in enough,
    }
    by_name = flow.loc[flow["kind"].eq(STAGE)].set_index("what")
    for what, holds in steps.items():
        kept = [key for key, items in whole.items() for said in items if holds(key, said)]
        expected = (len({key[0] for key in kept}), len(set(kept)), len(kept))
        assert tuple(by_name.loc[what, list(UNITS)]) == expected
    read = [said for items in whole.values() for said in items]
    assert by_name.loc["Read blind by a physician", "n_reads"] == sum(map(len, read))
    assert by_name.loc["With a physician's label", "n_reads"] == sum(letter != "?" for said in read for letter in said)
    assert by_name.loc["Examples with a rubric", "n_examples"] == N_EXAMPLES + 1

    stages = flow.loc[flow["kind"].eq(STAGE)]
    left = flow.loc[flow["kind"].eq(LEFT)]
    assert len(left) == len(stages) - 1
    for unit in (*UNITS, "n_reads"):
        both = stages[unit].notna().to_numpy()[:-1] & stages[unit].notna().to_numpy()[1:]
        gone = (stages[unit].to_numpy()[:-1] - stages[unit].to_numpy()[1:])[both]
        assert left[unit].to_numpy()[both].tolist() == gone.tolist()
        assert np.all(left[unit].dropna() >= 0)


def test_the_figure_says_every_stage_and_is_escaped_text():
    _, _, flow = flow_of("+" * N, {"dr_a": "+-" * (N // 2), "dr_b": "++" * (N // 2)}, {0}, ["Alder"])
    flow.loc[0, "what"] = "<script>alert('x')</script> & more"
    drawn = flow_svg(flow)
    assert "<script" not in drawn
    root = ET.fromstring(drawn)
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<script>alert('x')</script> & more" in texts
    for stage in flow.loc[flow["kind"].eq(STAGE)].itertuples():
        counts = [
            f"{n:,} {word}"
            for n, word in zip(stage[4:7], ("example", "response", "item"), strict=True)
            if not pd.isna(n)
        ]
        assert any(all(re.search(rf"\b{count}", text) for count in counts) for text in texts)
    assert flow["kind"].eq(BESIDE).sum() == 4
