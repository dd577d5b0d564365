"""The methods of a paper, written from what was done in the study and not from what was planned: a clause stands only where it has happened."""

import json
import math
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from typing import Any

import pandas as pd
from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.export import reporting
from evalcore.export.flow_diagram import flow_svg
from evalcore.export.reporting_checklist import METHODS, Said, checklist
from evalcore.export.reporting_checklist import markdown as checklist_page
from evalcore.export.study_flow import study_flow
from evalcore.judges.agreement import agreement, labels_of
from evalcore.judges.anchoring import CHANGED, anchoring, effect, effect_words
from evalcore.judges.record import OVERALL
from evalcore.rubric import queries as labels
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.rubric.data import DRAWN, RubricData, first_reads
from evalcore.rubric.results import FIELDS, ComputedAnalysis, compute, weights_of
from evalcore.stats.agreement_sums import Coefficient
from evalcore.stats.intervals import interval_words, share_words
from evalcore.stats.wording import counted, decimal, listed
from evalcore.study import contents, frames
from evalcore.study.analysis import StatedAnalysis, plain
from evalcore.study.db import reading
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import visible_verdicts
from evalcore.study.run_states import RunKind, version_and_repeat
from evalcore.study.schema import JURY, Format, NotBlind, RaterKind, Selection, Stage
from evalcore.triage import queries as triage
from evalcore.triage import setting_queries
from evalcore.triage.data import TriageData
from evalcore.triage.panels import Kind, described

PACKAGES = ("numpy", "pandas", "scipy")
COEFFICIENTS = {
    Coefficient.AGREEMENT: "agreement",
    Coefficient.AC1: "Gwet's AC1",
    Coefficient.ALPHA_NOMINAL: "Krippendorff's alpha",
}
NOTHING = "Nothing has been labelled yet."
SCORE = (
    "A response's score is the sum of the points of its met criteria over the sum of its positive points (HealthBench, arXiv 2505.08775); "
    "a model's score is the mean over its responses."
)
ESTIMATOR = (
    "Corrected scores use the judge's labels on all items and the physicians' blind first reads on the items that were drawn: a generalised regression "
    "(GREG) estimator, which is prediction-powered inference with fitted weights (PPI++), with items weighted by their inclusion probability and "
    "residuals corrected for leverage. Several reads of an item enter as their mean. All intervals are 95 % intervals, clustered by conversation."
)
BLANKS = {
    "ethics": "[to fill in: ethics approval, or why none was needed]",
    "funding": "[to fill in: funding and role of the funder]",
    "interests": "[to fill in: competing interests]",
    "protocol": "[to fill in: protocol and its registration]",
    "availability": "[to fill in: where data and code can be had]",
}
"""What no study can tell of itself."""
SELECTIONS = {
    Selection.RANDOM: "on items drawn at random",
    Selection.IMPORTANCE: "on items drawn with unequal, known probabilities",
    Selection.VOLUNTEERED: "volunteered, which enter no estimate",
    Selection.ADJUDICATION: "made for an adjudication, which enter no estimate",
}

KINDS = {
    Kind.CLEAR: "with one level of care",
    Kind.BOUNDARY: "between two levels",
    Kind.AMBIGUOUS: "ambiguous",
    Kind.UNLABELLED: "without a level",
}
FORMATS = {Format.QA: "asked for a level", Format.CONVERSATION: "in conversation"}


@dataclass(frozen=True)
class Clause:
    """One statement of the methods.

    Attributes:
        is_blank: The study does not know it: somebody has to fill it in, or it was not recorded.
    """

    key: str
    section: str
    text: str
    is_blank: bool = False


@dataclass(frozen=True)
class Drawn:
    """One drawing of responses that was read from.

    Attributes:
        n_read: Of the drawn responses, with a blind first read by somebody who took it from this drawing.
        lowest, highest: Inclusion probability of the drawn responses, in (0, 1].
    """

    n_drawn: int
    n_population: int
    n_read: int
    by_plan: bool
    seed: int
    lowest: float
    highest: float


@dataclass(frozen=True)
class TriageFacts:
    """What was done on levels of care.

    Attributes:
        n_voted: Cases that came with votes of physicians; n_votes of them in all.
        formats, models: Responses to the cases, by how their model was asked and by model.
        levels: Responses that each judge (parser and rules are judges too) has looked at for a level.
        n_reads, n_read, n_readers: Blind first reads of the level of a response, of so many responses, by so many physicians.
        n_case_reads, n_cases_read, n_case_readers: The same of what the case itself needs.
    """

    kinds: dict[str, int]
    n_voted: int
    n_votes: int
    formats: dict[str, int]
    models: dict[str, int]
    levels: dict[str, int]
    n_reads: int
    n_read: int
    n_readers: int
    n_case_reads: int
    n_cases_read: int
    n_case_readers: int

    @property
    def n_cases(self) -> int:
        """All cases."""
        return sum(self.kinds.values())


@dataclass(frozen=True)
class Facts:
    """What was done.

    Attributes:
        responses: Responses of each model that somebody has labelled.
        n_sent_otherwise: Responses (labelled or not) to which something else than the conversation was sent.
        languages: Conversations by language; "" where it is not known.
        judges: Each judge that gave labels, with its prompt versions; "" where they came with a file.
        repeats: How often each was asked again, at most.
        n_recorded: Readers whose profile is in the study.
        specialties, reader_languages: Of these readers, how many have each.
        dates: Of the earliest and the latest first read; None where there is none.
        by_selection: Blind first reads by how their item came to be read; "" where a file did not say.
        brought: Inclusion probability, lowest and highest, of drawn reads that came with a file; None where none did.
        n_blind: First reads of which it is recorded that they were blind; of the others the file did not say.
        by_guideline: First reads by the version of the guideline that the reader had; 0: none recorded.
        not_blind: First reads that were not blind, by the reason (`schema.NotBlind`; empty where a file gave none); they are no first reads here.
        n_knowing: First reads whose reader said that they know which model wrote the response.
        n_open: Reads that were made with the judge in view.
        n_wanted, n_missing: Reads that were assigned here, and those of them that were not made.
        n_conflicting: Items whose first reads differ; n_adjudicated of them are settled, by n_adjudicators.
        pull: Share of first reads that were changed after the reveal, in words; empty where none was revealed.
        n_looks: Reads of a criterion that got a second look without the judge's verdict; effect: what seeing it changes, in words, empty where that is
            not known.
        triage: What was done on levels of care.
        claim: What the intervals of the corrected scores hold for, in words, and why; empty where there is none.
        n_compared: Paired differences of corrected scores with a p value.
        stated: Every version of the stated analysis, the newest first.
        otherwise: What was computed otherwise than stated.
        flow: As `study_flow.study_flow` gives it; empty where no judge has labelled anything.
    """

    evaluations: tuple[str, ...]
    responses: dict[str, int]
    n_sent_otherwise: int
    languages: dict[str, int]
    runs: tuple[dict[str, Any], ...]
    judges: dict[str, tuple[str, ...]]
    repeats: dict[str, int]
    n_examples: int
    n_items: int
    n_readers: int
    n_recorded: int
    specialties: dict[str, int]
    reader_languages: dict[str, int]
    n_reads: int
    n_read_items: int
    n_cannot_assess: int
    n_read_examples: int
    n_read_twice: int
    dates: tuple[date, date] | None
    by_selection: dict[str, int]
    brought: tuple[float, float] | None
    n_brought: int
    n_blind: int
    not_blind: dict[str, int]
    by_guideline: dict[int, int]
    n_knowing: int
    n_open: int
    drawn: tuple[Drawn, ...]
    n_wanted: int
    n_missing: int
    n_conflicting: int
    n_adjudicated: int
    n_adjudicators: int
    agreement: pd.DataFrame
    pull: str
    n_looks: int
    effect: str
    triage: TriageFacts
    analysis: dict[str, Any]
    claim: str
    n_estimated: int
    n_compared: int
    stated: tuple[StatedAnalysis, ...]
    otherwise: tuple[str, ...]
    flow: pd.DataFrame

    @property
    def n_responses(self) -> int:
        """Responses that somebody has labelled."""
        return sum(self.responses.values())


def facts(engine: Engine, *, blind: frozenset[int] = frozenset(), found: ComputedAnalysis | None = None) -> Facts:
    """What was done in the study.

    Args:
        blind: Conversations that wait for the viewer's own first read: left out.
        found: The stated analysis without them, where it is at hand.
    """
    with reading(engine) as session:
        known = labels.load(session).without(blind)
        judge = contents.rules(session).judge or next(iter(known.judges), None)
        shown = blind_reads(session, judge) if judge else pd.DataFrame()
        made = reporting.first_reads(session, blind)
        not_blind = reporting.not_blind(session, blind)
        found = found or _analysed(session, known)
        told = {
            **_asked(session, known, blind),
            **_readers(session, made),
            **_assigned(session, made, blind),
            **_analysis(session, found),
            "flow": pd.DataFrame() if found is None else _flow(session, found, blind),
            "triage": triage_facts(described(triage.load(session).without(blind), setting_queries.load(session).rule)),
        }
    reads = first_reads(known.reads)
    rows = reads.groupby("row")["met"]
    differing = rows.agg(lambda met: met.nunique(dropna=False)).gt(1)
    settled = known.reads.loc[known.reads["stage"].eq(Stage.ADJUDICATED)]
    by_example = known.items.drop_duplicates("example_id")["language"]
    return Facts(
        evaluations=tuple(sorted(known.items["evaluation"].dropna().unique())),
        responses=_counts(known.items.drop_duplicates("response_id")["model"]),
        languages=_counts(by_example.astype(object).fillna("")),
        n_examples=known.items["example_id"].nunique(),
        n_items=len(known.items),
        n_readers=reads["rater"].nunique(),
        n_reads=len(reads),
        n_read_items=reads["row"].nunique(),
        n_cannot_assess=int(reads["met"].isna().sum()),
        n_read_examples=reads["example_id"].nunique(),
        n_read_twice=int(rows.size().gt(1).sum()),
        by_selection=_counts(reads["selection"].fillna("")),
        n_blind=int(reads["blinded"].isin([True]).sum()),
        not_blind=not_blind,
        n_open=int(known.reads["stage"].eq(Stage.OPEN).sum()),
        n_conflicting=int(differing.sum()),
        n_adjudicated=int(differing.index[differing].isin(settled["row"]).sum()),
        n_adjudicators=settled["rater"].nunique(),
        agreement=agreement(labels_of(known)),
        **_shown(visible_verdicts(shown.assign(rater_kind=RaterKind.REVIEWER), None, blind) if len(shown) else shown),
        **told,
    )


def _counts(names: pd.Series) -> dict[Any, int]:
    """How many of each, by name; without those that do not occur."""
    return {name: int(n) for name, n in names.value_counts().sort_index().items() if n}


def _analysed(session: Session, known: RubricData) -> ComputedAnalysis | None:
    try:
        return compute(session, rubric_data=known)
    except OverreadError:  # no judge has labelled what it is to be about
        return None


def _asked(session: Session, known: RubricData, blind: frozenset[int]) -> dict[str, Any]:
    """Who was asked how."""
    raters = frames.raters(session)
    raters = raters.loc[raters["rater_kind"].eq(RaterKind.JUDGE) & raters["rater"].isin(known.judges)]
    versions: dict[str, list[str]] = {}
    repeats: dict[str, int] = {}
    for name, told in zip(raters["rater"], raters["prompt_version"], strict=True):
        own, repeat = version_and_repeat(told)
        if repeat == 0:
            versions.setdefault(name, []).append(own)
        repeats[name] = max(repeats.get(name, 0), repeat)
    sent = reporting.rubric_responses(session, blind)
    return {
        "runs": tuple(reporting.asked(session)),
        "judges": {name: tuple(versions.get(name, ())) for name in known.judges},
        "repeats": {name: n for name, n in repeats.items() if n},
        "n_sent_otherwise": int(sent["n_sent_otherwise"].sum()),
    }


def _readers(session: Session, made: pd.DataFrame) -> dict[str, Any]:
    """Who read, when, by which guideline."""
    profiles = {person.name: person for person in contents.people(session)}
    known = [profiles[name] for name in sorted(set(made["rater"])) if name in profiles]
    times = pd.to_datetime(made["created_at"], utc=True)
    return {
        "n_recorded": len(known),
        "specialties": _tally(specialty for person in known for specialty in set(person.specialties)),
        "reader_languages": _tally(code for person in known for code in set(person.languages)),
        "dates": (times.min().date(), times.max().date()) if len(made) else None,
        "n_knowing": int(made["knows_model"].sum()),
        "by_guideline": {int(number): n for number, n in _counts(made["guideline_version"].fillna(0)).items()},
    }


def _tally(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda pair: (-pair[1], pair[0])))


def _assigned(session: Session, made: pd.DataFrame, blind: frozenset[int]) -> dict[str, Any]:
    """What was drawn and read, and what was assigned and not read."""
    assigned = reporting.assigned(session, blind)
    readings = reporting.drawn_readings(session)
    by_whom = ["response_id", "person_id"]
    read = readings.merge(made[by_whom].dropna().drop_duplicates().astype("int64"), on=by_whom)
    drawn = []
    for number, tasks in assigned.groupby("assignment_id"):
        n_read = read.loc[read["assignment_id"].eq(number) & read["response_id"].isin(tasks["response_id"]), "response_id"].nunique()  # fmt: skip
        if n_read and tasks["selection"].iloc[0] in DRAWN:
            first, chance = tasks.iloc[0], tasks["inclusion_probability"]
            drawn.append(
                Drawn(
                    len(tasks), int(first["n_population"]), n_read, "plan" in json.loads(first["chosen_by"]), int(first["seed"]), chance.min(), chance.max()
                )
            )  # fmt: skip
    n_locked = assigned["n_locked"].clip(upper=assigned["n_readers"]).sum()
    return {
        "drawn": tuple(drawn),
        "n_wanted": int(assigned["n_readers"].sum()),
        "n_missing": int(assigned["n_readers"].sum() - n_locked),
        **_brought(session, readings, blind),
    }


def _brought(session: Session, readings: pd.DataFrame, blind: frozenset[int]) -> dict[str, Any]:
    """Drawn reads that came with a file, and the probabilities that it states."""
    reads = first_reads(labels.reads(session))
    here = set(zip(readings["response_id"], readings["person_id"], strict=True))
    is_here = [pair in here for pair in zip(reads["response_id"], reads["person_id"], strict=True)]
    chances = reads.loc[
        ~pd.Series(is_here, index=reads.index, dtype=bool) & reads["selection"].isin(DRAWN) & ~reads["example_id"].isin(list(blind)),
        "inclusion_probability",
    ].dropna()  # fmt: skip
    return {
        "n_brought": len(chances),
        "brought": (float(chances.min()), float(chances.max())) if len(chances) else None,
    }


def _analysis(session: Session, found: ComputedAnalysis | None) -> dict[str, Any]:
    """What was estimated, for whom it holds, and what of it was stated when."""
    stated = tuple(contents.stated_analyses(session))
    if found is None:
        return {"analysis": {}, "claim": "", "n_estimated": 0, "n_compared": 0, "stated": stated, "otherwise": ()}
    results = found.results
    n_estimated = int(results.scores["enough"].astype(bool).sum())
    return {
        "analysis": plain(results.spec),
        "claim": " ".join(filter(None, (results.means, results.because))) if n_estimated else "",
        "n_estimated": n_estimated,
        "n_compared": int(results.differences["p"].notna().sum()),
        "stated": stated,
        "otherwise": found.otherwise,
    }


def _flow(session: Session, found: ComputedAnalysis, blind: frozenset[int]) -> pd.DataFrame:
    spec, scores = found.results.spec, found.results.scores
    examples = reporting.rubric_examples(session, blind)
    responses = frames.responses(session)
    there = responses["example_id"].isin(examples["example_id"]) & responses["evaluation"].eq(spec.evaluation or "")
    return study_flow(
        found.part,
        examples=examples,
        responses=responses.loc[there],
        assigned=reporting.assigned(session, blind),
        enough=list(scores.loc[scores["enough"].astype(bool), "model"]),
        judges=spec.judges,
        settled=spec.settled,
        weights=weights_of(found.part, spec),
    )


def documents(done: Facts, files: Iterable[str] = ()) -> tuple[dict[str, str], dict[str, pd.DataFrame]]:
    """What of a bundle tells how the study was done.

    Args:
        files: Names of the bundle's other files, for the checklist.

    Returns:
        Texts by file name: methods.md, checklist.md and, where there is a flow, flow.svg; tables by what they hold: checklist and flow.
    """
    drawn = {"flow.svg": flow_svg(done.flow)} if len(done.flow) else {}
    whose = {"dataset": done.analysis.get("evaluation"), "judge": " + ".join(done.analysis.get("judges", ()))}
    tables = {"flow": done.flow.assign(**whose)} if len(done.flow) else {}
    said = (Said(clause.key, clause.section, clause.is_blank) for clause in clauses(done))
    where = checklist(said, {*files, *drawn, *(f"{what}.csv" for what in tables)})
    texts = {METHODS: markdown(done), "checklist.md": checklist_page(where), **drawn}
    return texts, {"checklist": where, **tables}


def as_dict(done: Facts) -> dict[str, Any]:
    """The facts as JSON takes them."""

    def rows(table: pd.DataFrame) -> list[dict[Any, Any]]:
        return table.astype(object).where(table.notna(), None).to_dict(orient="records")

    told = {name: getattr(done, name) for name in done.__dataclass_fields__}
    return told | {
        "n_responses": done.n_responses,
        "by_guideline": {str(number): n for number, n in done.by_guideline.items()},
        "agreement": rows(done.agreement),
        "flow": rows(done.flow),
        "drawn": [asdict(one) for one in done.drawn],
        "stated": [asdict(one) for one in done.stated],
        "triage": asdict(done.triage),
        "dates": None if done.dates is None else [day.isoformat() for day in done.dates],
    }


def _shown(reads: pd.DataFrame) -> dict[str, Any]:
    """What readers changed after the judge's verdict was shown, and on a second look without it."""
    if reads.empty:
        return {"pull": "", "n_looks": 0, "effect": ""}
    found = effect(reads)
    return {
        "pull": _pull(reads),
        "n_looks": int(reads["looked_label"].notna().sum()),
        "effect": "" if found is None else effect_words(found),
    }


def triage_facts(triage_data: TriageData) -> TriageFacts:
    """What was done on levels of care."""
    first = first_reads(triage_data.reads)
    of_case = first["sample"].lt(0)
    reads, case_reads = first.loc[~of_case], first.loc[of_case]
    return TriageFacts(
        kinds=_counts(triage_data.cases["kind"].astype(str)),
        n_voted=triage_data.votes["row"].nunique(),
        n_votes=len(triage_data.votes),
        formats=_counts(triage_data.samples["format"].astype(str)),
        models=_counts(triage_data.samples["model"].astype(str)),
        levels={str(name): int(n) for name, n in triage_data.levels.notna().sum().items() if n},
        n_reads=len(reads),
        n_read=reads["sample"].nunique(),
        n_readers=reads["rater"].nunique(),
        n_case_reads=len(case_reads),
        n_cases_read=case_reads["row"].nunique(),
        n_case_readers=case_reads["rater"].nunique(),
    )


def _pull(reads: pd.DataFrame) -> str:
    moved = anchoring(reads, by=[OVERALL])
    changed = moved.loc[moved["movement"].eq(CHANGED)]
    if changed.empty or not changed["n"].iloc[0]:
        return ""
    row = changed.iloc[0]
    return f"{share_words(row['n_moved'], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"


def paragraph(done: Facts) -> str:
    """The methods in plain sentences, a paragraph a section; what did not happen is not mentioned."""
    by_section: dict[str, list[str]] = {}
    for clause in clauses(done):
        by_section.setdefault(clause.section, []).append(clause.text)
    return "\n\n".join(" ".join(texts) for texts in by_section.values())


def markdown(done: Facts) -> str:
    """The same with a heading a section."""
    by_section: dict[str, list[str]] = {}
    for clause in clauses(done):
        by_section.setdefault(clause.section, []).append(clause.text)
    parts = [f"## {section}\n\n{' '.join(texts)}\n" for section, texts in by_section.items()]
    return "\n".join(["# Methods\n", *parts])


def clauses(done: Facts) -> list[Clause]:
    """Everything that the methods say, in order."""
    if not done.n_items and not done.triage.n_cases:
        return [Clause("nothing", MATERIAL, NOTHING, is_blank=True)]
    of_rubrics = (_material, _judging, _reading, _drawing, _between, _estimating) if done.n_items else ()
    return [
        *(clause for say in of_rubrics for clause in say(done)),
        *_on_levels(done.triage),
        Clause("software", "Software", software()),
        *(Clause(key, "To fill in", text, is_blank=True) for key, text in BLANKS.items()),
    ]  # fmt: skip


MATERIAL, JUDGING, READING, SELECTION, BETWEEN, ANALYSIS, TRIAGE = (
    "Responses", "Judge", "Readers", "Selection", "Agreement between physicians", "Analysis", "Triage",
)  # fmt: skip


def _material(done: Facts) -> Iterator[Clause]:
    models = ", ".join(f"{name} {n:,}" for name, n in done.responses.items())
    yield Clause(
        "material",
        MATERIAL,
        f"We studied {counted(done.n_responses, 'response')} of {counted(len(done.responses), 'model')} ({models}) to "
        f"{counted(done.n_examples, 'conversation')} ({', '.join(done.evaluations)}): {counted(done.n_items, 'item')}, each one criterion of one response.",
    )
    yield Clause("languages", MATERIAL, f"Languages of the conversations: {_listing(done.languages, LANGUAGES)}.")
    asked: Counter[str] = Counter()
    for run in done.runs:
        if run["kind"] == RunKind.RESPOND and run["name"] in done.responses:
            asked[run["name"]] += run["n_answered"]
            yield Clause(
                "models_asked",
                MATERIAL,
                f"{run['name']} was asked for {counted(run['n_answered'], 'answer')} {_how(run)}, {counted(run['n_samples'], 'answer')} to each conversation; "
                "the conversation alone was sent, without a system prompt of ours.",
            )
    brought = {name: n - asked[name] for name, n in done.responses.items() if n > asked[name]}
    if brought:
        n = sum(brought.values())
        yield Clause(
            "models_brought",
            MATERIAL,
            f"{counted(n, 'response')} of {listed(brought)} came with a file: version of the model, dates, temperature and system prompt are not recorded "
            "[to fill in].",
            is_blank=True,
        )
    if done.n_sent_otherwise:
        yield Clause(
            "sent_otherwise",
            MATERIAL,
            f"By their files {counted(done.n_sent_otherwise, 'response')} {_was(done.n_sent_otherwise)} given to something else than the conversation "
            "as it stands here.",
        )


def _how(run: Mapping[str, Any]) -> str:
    """How a run asked."""
    heat = "no temperature set" if run["temperature"] is None else f"temperature {run['temperature']:g}"
    long = "" if run["max_tokens"] is None else f", at most {counted(run['max_tokens'], 'token')}"
    until = f"to {run['ended']:%Y-%m-%d}" if run["ended"] is not None else "and goes on"
    return f"as {run['api_model']} from {run['begun']:%Y-%m-%d} {until} ({heat}{long}, prompt {run['prompt_version']})"


def _was(n: int) -> str:
    return "was" if n == 1 else "were"


def _listing(numbers: Mapping[str, int], words: Mapping[str, str] | None = None, unknown: str = "not known") -> str:
    """Names with their numbers, most first, the unknown last."""
    order = sorted(numbers.items(), key=lambda pair: (not pair[0], -pair[1], pair[0]))
    return ", ".join(f"{(words or {}).get(name, name) or unknown} {n:,}" for name, n in order)


def _judging(done: Facts) -> Iterator[Clause]:
    if not done.judges:
        return
    yield Clause(
        "judges",
        JUDGING,
        f"Items were labelled met or not met by {counted(len(done.judges), 'judge')} ({', '.join(done.judges)}).",
    )
    runs = [run for run in done.runs if run["kind"] == RunKind.JUDGE and run["name"] in done.judges]
    for run in runs:
        yield Clause(
            "judges_asked",
            JUDGING,
            f"{run['name']} was asked {_how(run)}, one question an item, with our task as the system prompt; {counted(run['n_answered'], 'verdict')} came.",
        )
    for name, n in done.repeats.items():
        yield Clause("repeats", JUDGING, f"{name} was asked {counted(n, 'time')} again; repeats are no votes of their own.")  # fmt: skip
    juries = [name for name, versions in done.judges.items() if any(version.startswith(JURY) for version in versions)]
    if juries:
        yield Clause("juries", JUDGING, f"{listed(juries)} {_was(len(juries))} made of other judges' labels by majority.")  # fmt: skip
    brought = [name for name, versions in done.judges.items() if not any(versions)]
    if brought:
        yield Clause(
            "judges_brought",
            JUDGING,
            f"The labels of {listed(brought)} came with a file: version of the model, prompt, dates and temperature are not recorded [to fill in].",
            is_blank=True,
        )


def _reading(done: Facts) -> Iterator[Clause]:
    if not done.n_reads:
        yield Clause("no_reads", READING, "No physician has read any of them blind.", is_blank=True)
    else:
        twice = f", {done.n_read_twice:,} of them by two or more" if done.n_read_twice else ""
        lost = f"; {done.n_cannot_assess:,} could not be assessed and {_was(done.n_cannot_assess)} left out" if done.n_cannot_assess else ""  # fmt: skip
        yield Clause(
            "reads",
            READING,
            f"{counted(done.n_readers, 'physician')} read {counted(done.n_read_items, 'item')} of {counted(done.n_read_examples, 'conversation')}{twice} "
            f"({counted(done.n_reads, 'first read')}{lost}).",
        )
        if done.dates:
            first, last = done.dates
            when = f"on {first}" if first == last else f"from {first} to {last}"
            yield Clause("read_dates", READING, f"They read {when}.")
        yield from _profiles(done)
        yield Clause("blinding", READING, _blinding(done), is_blank=not done.n_blind)
        if done.n_knowing:
            share = share_words(done.n_knowing, done.n_reads, done.n_knowing / done.n_reads)
            said = f"The model was not named; of {share} of these first reads the reader said that they knew which model had written the response."
            yield Clause("knows_model", READING, said)
        yield Clause("guideline", READING, _guideline(done.by_guideline), is_blank=not any(done.by_guideline))
    if done.not_blind:
        yield Clause("not_blind", READING, _not_blind(done.not_blind))
    if done.n_open:
        further = "A further " if done.n_reads else ""
        yield Clause(
            "open_reads",
            READING,
            f"{further}{counted(done.n_open, 'read')} with the judge's verdict in view {'enters' if done.n_open == 1 else 'enter'} no estimate.",
        )
    if done.pull:
        yield Clause(
            "revealed",
            READING,
            f"After the judge's verdict was shown, {done.pull} of the first reads were changed by their reader; first reads enter all estimates.",
        )
    if done.n_looks:
        yield Clause(
            "second_look",
            READING,
            f"Before anything of the judge was shown, {counted(done.n_looks, 'read')} of a criterion, drawn at random, got a second look without its verdict."
            f"{' ' if done.effect else ''}{done.effect}",
        )


def _profiles(done: Facts) -> Iterator[Clause]:
    if done.specialties:
        yield Clause("specialties", READING, f"Specialties of the readers: {_listing(done.specialties)}.")
    if done.reader_languages:
        yield Clause("reader_languages", READING, f"Languages that they read: {_listing(done.reader_languages, LANGUAGES)}.")  # fmt: skip
    unknown = done.n_readers - done.n_recorded
    if unknown:
        who = f"Of {counted(unknown, 'reader')}" if done.n_recorded else "Of the readers"
        yield Clause("readers_unknown", READING, f"{who} specialty and languages are not recorded [to fill in].", is_blank=True)  # fmt: skip
    yield Clause("readers_chosen", READING, "[to fill in: how the physicians were chosen, trained and paid]", is_blank=True)  # fmt: skip


_WHY_NOT_BLIND = {
    NotBlind.EXPOSED: "by readers who had seen others' verdicts on the conversation",
    NotBlind.ROLE: "by leads or researchers of the study",
    "": "as the imported files say",
}


def _not_blind(reasons: dict[str, int]) -> str:
    n = sum(reasons.values())
    why = ", ".join(f"{n_reads:,} {_WHY_NOT_BLIND.get(reason, reason)}" for reason, n_reads in reasons.items())
    return f"A further {counted(n, 'first read')} {_was(n)} not blind and {'enters' if n == 1 else 'enter'} no estimate: {why}."


def _blinding(done: Facts) -> str:
    if not done.n_blind:
        return "The imported files do not say whether these reads were blind."
    every = "Each of these first reads" if done.not_blind else "Every first read"
    share = every if done.n_blind == done.n_reads else f"{done.n_blind:,} of the first reads"
    verb, pronoun, reader = (
        ("was", "it was", "its reader") if done.n_blind in (1, done.n_reads) else ("were", "they were", "their readers")
    )
    rest = "" if done.n_blind == done.n_reads else " Of the others the imported files do not say."
    return f"{share} {verb} blind: until {pronoun} locked, {reader} did not see the judge's verdict.{rest}"


def _guideline(by_version: Mapping[int, int]) -> str:
    """First reads by the guideline that their reader had at hand.

    >>> _guideline({0: 3, 1: 1, 2: 40})
    'First reads by version of the written guideline: 1 with version 1, 40 with version 2, 3 without a recorded version.'
    """
    if not any(by_version):
        return "For no first read is a version of a written guideline recorded."
    said = [f"{n:,} with version {number}" for number, n in by_version.items() if number]
    without = by_version.get(0, 0)
    return f"First reads by version of the written guideline: {', '.join([*said, *([f'{without:,} without a recorded version'] if without else [])])}."


def _drawing(done: Facts) -> Iterator[Clause]:
    if done.n_reads:
        told = {name: SELECTIONS[Selection(name)] if name else "whose selection is not recorded" for name in done.by_selection}  # fmt: skip
        if len(told) > 1:
            said = listed(f"{n:,} {told[name]}" for name, n in done.by_selection.items())
            text = f"Of the {counted(done.n_reads, 'first read')}, {said} were made."
        elif "" in told:
            text = "How the items were selected is not recorded."
        else:
            text = f"All first reads were made {next(iter(told.values()))}."
        yield Clause("selection", SELECTION, text, is_blank=set(done.by_selection) == {""})
        yield Clause("sample_size", SELECTION, "[to fill in: how the number of reads was chosen]", is_blank=True)
    for drawn in done.drawn:
        how = "by a plan of inclusion probabilities" if drawn.by_plan else "at random"
        yield Clause(
            "drawings",
            SELECTION,
            f"{counted(drawn.n_drawn, 'response')} of {drawn.n_population:,} {_was(drawn.n_drawn)} drawn {how} (seed {drawn.seed}, "
            f"{_chance(drawn.lowest, drawn.highest)}); {drawn.n_read:,} of them {_was(drawn.n_read)} read, in random order.",
        )
    if done.brought:
        yield Clause(
            "drawn_elsewhere",
            SELECTION,
            f"{counted(done.n_brought, 'read')} came with a file that states how probable it was to draw their items ({_chance(*done.brought)}); "
            "the seed is not recorded.",
        )
    if done.n_missing:
        yield Clause(
            "missing_reads",
            SELECTION,
            f"Of {counted(done.n_wanted, 'assigned read')} of a response, {done.n_missing:,} {'has' if done.n_missing == 1 else 'have'} not been made.",
        )
    if len(done.flow):
        yield Clause("flow", SELECTION, "The flow of examples, responses, items and reads is shown in flow.svg and counted in flow.csv.")  # fmt: skip


def _chance(lowest: float, highest: float) -> str:
    """Inclusion probabilities in words.

    >>> _chance(0.25, 0.25), _chance(0.05, 0.8)
    ('inclusion probability .25', 'inclusion probabilities .05 to .80')
    """
    low, high = (f"{value:.2f}".removeprefix("0") for value in (lowest, highest))
    return f"inclusion probability {low}" if low == high else f"inclusion probabilities {low} to {high}"


def _between(done: Facts) -> Iterator[Clause]:
    known = {row["coefficient"]: row for row in done.agreement.to_dict(orient="records")}
    values = [
        f"{words} {decimal(row['value'])} [{decimal(row['low'])}, {decimal(row['high'])}]{_general(row)}"
        for name, words in COEFFICIENTS.items()
        if (row := known.get(name)) and not math.isnan(row["value"]) and not math.isnan(row["low"])
    ]
    if values:
        yield Clause(
            "agreement",
            BETWEEN,
            f"Between physicians, on items with two reads or more, with intervals for these physicians on further conversations: {listed(values)}.",
        )
    if done.n_conflicting:
        who = f" by {counted(done.n_adjudicators, 'adjudicator')}" if done.n_adjudicated else ""
        share = share_words(done.n_adjudicated, done.n_conflicting, done.n_adjudicated / done.n_conflicting)
        verb = _was(done.n_adjudicated)
        said = (
            f"First reads differed on {counted(done.n_conflicting, 'item')}, of which {share} {verb} adjudicated{who}."
        )
        yield Clause("settled", BETWEEN, said)


def _general(row: Mapping[Any, Any]) -> str:
    """The interval for physicians in general, where there is one."""
    low = row.get("general_low", math.nan)
    return "" if math.isnan(low) else f" (for physicians in general [{decimal(low)}, {decimal(row['general_high'])}])"


def _estimating(done: Facts) -> Iterator[Clause]:
    yield Clause("score", ANALYSIS, SCORE)
    spec = done.analysis
    if done.n_estimated:
        yield Clause("estimator", ANALYSIS, ESTIMATOR)
        yield Clause(
            "specification",
            ANALYSIS,
            f"Analysed were the responses for {spec['evaluation']}{_part(spec)} with the labels of {listed(spec['judges'])}"
            f"{'; an adjudicated label took the place of the reads' if spec['settled'] else ''}"
            f"{'; examples were weighted to the themes of the full benchmark' if spec['weighted'] else ''}.",
        )
        yield Clause("claim", ANALYSIS, done.claim)
    if done.n_compared > 1:
        yield Clause("multiplicity", ANALYSIS, f"p values of {done.n_compared:,} paired comparisons of models were adjusted by Holm's method.")  # fmt: skip
    elif done.n_compared:
        yield Clause("multiplicity", ANALYSIS, "One pair of models was compared; its p value needs no adjustment.")
    yield from _stating(done)


def _on_levels(done: TriageFacts) -> Iterator[Clause]:
    """Cases, panels, who read levels, and physicians' reads of levels."""
    if not done.n_cases:
        return
    kinds = listed(f"{done.kinds[kind]:,} {words}" for kind, words in KINDS.items() if kind in done.kinds)
    yield Clause("triage_cases", TRIAGE, f"Triage was studied on {counted(done.n_cases, 'case')}: {kinds}.")
    if done.n_votes:
        yield Clause(
            "triage_panels",
            TRIAGE,
            f"{counted(done.n_voted, 'case')} came with {counted(done.n_votes, 'vote')} of physicians on the level that the case needs.",
        )
    if done.models:
        asked = listed(f"{done.formats[word]:,} {words}" for word, words in FORMATS.items() if word in done.formats)
        yield Clause(
            "triage_answers",
            TRIAGE,
            f"{counted(len(done.models), 'model')} gave {counted(sum(done.models.values()), 'response')} to them ({_listing(done.models)}): {asked}.",
        )
    if done.levels:
        yield Clause("triage_levels", TRIAGE, f"Levels were read out of the responses by {_listing(done.levels)}.")
    if done.n_reads:
        what = f"{counted(done.n_read, 'response')} {'gives' if done.n_read == 1 else 'give'}"
        yield Clause("triage_reads", TRIAGE, _levels_read(done.n_readers, what, done.n_reads))
    if done.n_case_reads:
        what = f"{counted(done.n_cases_read, 'case')} {'needs' if done.n_cases_read == 1 else 'need'}"
        yield Clause("triage_case_reads", TRIAGE, _levels_read(done.n_case_readers, what, done.n_case_reads))


def _levels_read(n_readers: int, what: str, n_reads: int) -> str:
    return f"{counted(n_readers, 'physician')} read blind the level that {what} ({counted(n_reads, 'first read')})."


def _part(spec: Mapping[str, Any]) -> str:
    return f", part {spec['subset']}," if spec["subset"] else ""


def _stating(done: Facts) -> Iterator[Clause]:
    """What was stated before, and what was changed since reads existed."""
    if not done.stated:
        yield Clause("not_stated", ANALYSIS, "No analysis was stated beforehand; these are the usual choices.", is_blank=True)  # fmt: skip
        return
    newest = done.stated[0]
    if newest.spec.primary:
        first, second = newest.spec.primary
        margin = "" if newest.spec.margin is None else f", with a margin of {newest.spec.margin:g} of the corrected score"  # fmt: skip
        yield Clause("primary", ANALYSIS, f"The primary comparison is {first} with {second}{margin}.")
    oldest = done.stated[-1]
    yield Clause("stated", ANALYSIS, f"The analysis was first stated on {oldest.stated_at:%Y-%m-%d}, {_before(oldest.n_reads_before)}.")  # fmt: skip
    for later, earlier in zip(done.stated[:-1], done.stated[1:], strict=True):
        if later.n_reads_before:
            yield Clause(
                "deviations",
                ANALYSIS,
                f"On {later.stated_at:%Y-%m-%d}, {_before(later.n_reads_before)}, it was changed: {_changes(earlier, later)}.",
            )
    if done.otherwise:
        yield Clause("otherwise", ANALYSIS, f"What is computed here differs from it in {listed(done.otherwise)}.")


def _before(n: int) -> str:
    return f"when {counted(n, 'first read')} existed" if n else "before the first read"


def _changes(earlier: StatedAnalysis, later: StatedAnalysis) -> str:
    before, after = plain(earlier.spec), plain(later.spec)
    names = [name for name in after if before[name] != after[name]]
    return listed(FIELDS.get(name, name.replace("_", " ")) for name in names)


def software() -> str:
    """Which versions made the numbers."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Software: Overread {version('overread')} on Python {platform.python_version()} with {packages}."
