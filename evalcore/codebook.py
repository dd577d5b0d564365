"""What each exported column means. The tables have exactly these columns, in this order."""

_ITEM = [
    ("dataset", "data set of the example"),
    ("example_id", "the source's name of the example (prompt_id)"),
    ("response_id", "number of the response in this study"),
    ("model", "who answered"),
]
_WORDS = "met, not_met, cannot_assess"
_CANARY = ("canary", "the source's canary: keep it with the rows, so that they stay out of training data")

CODEBOOK: dict[str, list[tuple[str, str]]] = {
    "labels": [
        *_ITEM,
        ("criterion_position", "place of the criterion in the rubric, from 1"),
        ("criterion", "its text"),
        ("points", "-10..10 without 0, negative for undesirable behaviour; empty where the source gives none"),
        ("theme", "theme of the example"),
        ("axis", "axis of the criterion"),
        ("cluster", "consensus cluster of the criterion"),
        ("judge", "whose label stands in judge_label; empty where this judge gave none"),
        ("judge_label", "met or not_met"),
        ("judge_explanation", "in the judge's words"),
        (
            "reference_label",
            f"{_WORDS}: adjudicated, else what the readers agree on, else the only reader's, else the judge's; "
            "empty where unsettled",
        ),
        (
            "reference_source",
            "adjudicated, agreed, single, judge; unsettled where reads conflict and nobody has adjudicated",
        ),
        ("n_reads", "physicians who read the item, each counted once"),
        ("n_met", "of them: met"),
        ("n_not_met", "of them: not met"),
        ("n_cannot_assess", "of them: cannot assess"),
        ("overridden", "true where a physician's standing verdict, or the adjudication, is not the judge's label"),
        ("override_cause", "why, by the newest verdict that differs"),
        ("severity", "of the judge's error, by the same verdict: none, mild, moderate, severe"),
        ("note", "in the words of the same verdict, or of the newest read"),
        ("selection", "how the item came to be read: random, importance, volunteered; several joined by ;"),
        ("inclusion_probability", "with which it was drawn, above 0 and at most 1; empty where it was not drawn"),
        ("blinded", "true where the readers did not see the judge's verdict; several joined by ;"),
        ("first_read_at", "time of the first read, one that was changed later too, UTC"),
        _CANARY,
    ],
    "verdicts": [
        *_ITEM,
        ("evaluation", "what the response was made for, e.g. healthbench_hard"),
        ("sample_index", "0, 1, ... for repeats"),
        ("completion_id", "the source's name of the response"),
        ("criterion_position", "place of the criterion in the rubric, from 1"),
        ("criterion", "its text"),
        ("points", "-10..10 without 0"),
        ("rater", "name of the judge or physician"),
        ("rater_kind", "judge or reviewer"),
        ("stage", "judge, first (blind), revised (the judge's verdict shown since), open (judge in view), adjudicated"),
        ("label", _WORDS),
        ("confidence", "0..1 where the rater stated one"),
        ("explanation", "in the rater's words"),
        ("cause", "of a difference from the judge"),
        ("severity", "of the judge's error"),
        ("error_kind", "omission or commission: what the response did wrong where the judge's label is wrong about it"),
        ("reason", "why a physician cannot assess the item"),
        ("conflict_cause", "on an adjudication: why the readers differed"),
        ("guideline_version", "of the guideline that the reader had at hand"),
        ("right_for_wrong_reason", "the judge's label is right, its explanation is not"),
        ("selection", "how the item came to be read"),
        ("inclusion_probability", "with which it was drawn"),
        ("blinded", "true where the rater did not see the judge's verdict"),
        ("read_at", "when, UTC"),
        _CANARY,
    ],
    "scores": [
        *_ITEM,
        ("evaluation", "what the response was made for"),
        ("sample_index", "0, 1, ... for repeats"),
        ("theme", "theme of the example"),
        ("judge", "by whose verdicts"),
        ("n_criteria", "criteria judged"),
        ("n_expected", "criteria that the response is graded on"),
        ("achieved", "sum of the points of met criteria, negative ones included"),
        ("possible", "sum of the positive points"),
        ("score", "achieved / possible, at most 1; empty where it is undefined"),
        _CANARY,
    ],
    "criteria": [
        *_ITEM[:2],
        ("criterion_position", "place of the criterion in the rubric, from 1"),
        ("criterion", "its text"),
        ("points", "-10..10 without 0"),
        ("theme", "theme of the example"),
        ("axis", "axis of the criterion"),
        ("cluster", "consensus cluster of the criterion"),
        ("n_faults", "how often it was called at fault: the sum of the five counts, each person once a response"),
        ("n_settled_wrong", "adjudications that say: the criterion is wrong"),
        ("n_settled_ambiguous", "adjudications that say: the criterion is ambiguous"),
        ("n_readers_wrong", "reads that say so: the criterion is wrong"),
        ("n_readers_ambiguous", "reads that say so: the criterion is ambiguous"),
        ("n_readers_unclear", "reads that could not assess because the criterion is unclear"),
        ("rationales", "adjudicators' words, a line a remark; nobody is named"),
        ("notes", "readers' words, a line a remark; nobody is named"),
        _CANARY,
    ],
}
"""Table name to pairs of column and meaning."""

_NUMBERS = (
    "response_id", "sample_index", "criterion_position", "points", "n_reads", "n_met", "n_not_met", "n_cannot_assess",
    "n_criteria", "n_expected", "achieved", "possible", "n_faults", "n_settled_wrong", "n_settled_ambiguous", "n_readers_wrong",
    "n_readers_ambiguous", "n_readers_unclear", "guideline_version",
)  # fmt: skip
_KINDS = {
    **dict.fromkeys(_NUMBERS, "Int64"),
    **dict.fromkeys(("confidence", "inclusion_probability", "score"), "float64"),
    **dict.fromkeys(("overridden", "right_for_wrong_reason"), "boolean"),
    **dict.fromkeys(("first_read_at", "read_at"), "datetime64[us, UTC]"),
}
DTYPES = {"labels": _KINDS, "verdicts": _KINDS | {"blinded": "boolean"}, "scores": _KINDS, "criteria": _KINDS}
"""Table name to the kinds of its columns, also where nothing is in them; a column that is not named here is text."""
