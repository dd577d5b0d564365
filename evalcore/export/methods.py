"""The methods of a paper, written from what was done in the study and not from what was planned: a clause stands only where it has happened."""

import json
import math
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any

import pandas as pd

from evalcore.errors import OverreadError
from evalcore.export import queries
from evalcore.export.reporting import METHODS, Clause, checklist, checklist_page, flow_svg, study_flow
from evalcore.judges.agreement import agreement, labels_of
from evalcore.judges.anchoring import CHANGED, anchoring, effect, effect_words
from evalcore.judges.record import OVERALL
from evalcore.reading import practice_queries, registering
from evalcore.rubric import queries as labels
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.rubric.data import DRAWN, RubricData, first_reads
from evalcore.rubric.results import FIELDS, ComputedAnalysis, compute, weights_of
from evalcore.stats.agreement_sums import Coefficient
from evalcore.stats.intervals import interval_words, share_words
from evalcore.stats.wording import counted, decimal, listed
from evalcore.study import contents, frames, freezing
from evalcore.study.analysis import StatedAnalysis
from evalcore.study.corrections import mending
from evalcore.study.db import Engine, Session, reading
from evalcore.study.frames import records
from evalcore.study.freezing import Version
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import visible_verdicts
from evalcore.study.schema import JURY, Format, NotBlind, RaterKind, RunKind, Selection, Stage, version_and_repeat
from evalcore.triage import queries as triage
from evalcore.triage.data import Kind, TriageData

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
    "availability": "[to fill in: where data and code are available]",
}
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


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was done: responses that somebody has labelled, and blind first reads; "" in a count: a file did not say."""

    evaluations: tuple[str, ...]
    responses: dict[str, int]
    n_sent_otherwise: int  # labelled or not, to which something else than the conversation was sent
    languages: dict[str, int]
    runs: tuple[dict[str, Any], ...]
    judges: dict[str, tuple[str, ...]]  # each that gave labels, with its prompt versions; "" of a file
    repeats: dict[str, int]  # how often each judge was asked again, at most
    n_examples: int
    n_items: int
    n_readers: int
    n_recorded: int  # readers whose profile is in the study
    specialties: dict[str, int]  # how many of these have each
    reader_languages: dict[str, int]
    n_reads: int
    n_read_items: int
    n_cannot_assess: int
    n_read_examples: int
    n_read_twice: int
    dates: tuple[date, date] | None
    by_selection: dict[str, int]
    brought: tuple[float, float] | None  # lowest and highest probability of the n_brought drawn reads of files
    n_brought: int
    n_blind: int  # of which it is recorded that they were
    not_blind: dict[str, int]  # by the reason (`schema.NotBlind`); they are no first reads here
    by_guideline: dict[int, int]  # by the version that the reader had; 0: none recorded
    n_knowing: int
    n_practised: int  # readers who went through a practice round
    n_open: int
    drawn: tuple[dict[str, Any], ...]  # drawings; n_read: with a blind first read by somebody who took it from there
    n_wanted: int  # reads that were assigned here
    n_missing: int  # those of them that were not made
    n_cancelled: int = 0  # those of these whose assignment was cancelled
    n_conflicting: int  # items whose first reads differ
    n_adjudicated: int  # those of them that are settled
    n_adjudicators: int
    agreement: pd.DataFrame
    pull: str  # share of first reads that were changed after the reveal, in words
    n_looks: int  # reads of a criterion that got a second look without the judge's verdict
    effect: str  # what seeing it changes, in words
    triage: dict[str, Any]  # as `triage_facts`
    analysis: dict[str, Any] = field(default_factory=dict)
    claim: str = ""  # what the intervals of the corrected scores hold for, and why, in words
    n_estimated: int = 0
    n_compared: int = 0
    stated: tuple[StatedAnalysis, ...]  # every version of the stated analysis, the newest first
    frozen: tuple[Version, ...] = ()  # every version that was frozen, the oldest first
    otherwise: tuple[str, ...] = ()  # what was computed otherwise than stated
    flow: pd.DataFrame = field(default_factory=pd.DataFrame)  # as `reporting.study_flow`
    broken: dict[str, int] = field(default_factory=dict)  # responses that are in no number, by the reason

    @property
    def n_responses(self) -> int:
        """Responses that somebody has labelled."""
        return sum(self.responses.values())


def facts(engine: Engine, *, blind: frozenset[int] = frozenset(), found: ComputedAnalysis | None = None) -> Facts:
    """What was done, without conversations that wait for the viewer's own first read; `found`: the stated analysis without them, where it is at hand."""
    with reading(engine) as session:
        known = labels.load(session).without(blind)
        judge = contents.rules(session).judge or next(iter(known.judges), None)
        shown = blind_reads(session, judge) if judge else pd.DataFrame()
        made, broken = queries.first_reads(session, blind), mending.broken(session)
        if found is None:
            try:
                found = compute(session, rubric_data=known)
            except OverreadError:  # no judge has labelled what it is to be about
                found = None
        of_session: dict[str, Any] = {
            **_asked(session, known),
            **_readers(session, made),
            **_assigned(session, made, blind),
            **_analysis(session, found, blind),
            "not_blind": queries.not_blind(session, blind),
            "frozen": tuple(freezing.versions(session)),
            "broken": _counts(broken.loc[~broken["example_id"].isin(list(blind)), "reason"]),
            "n_sent_otherwise": queries.n_sent_otherwise(session, blind),
            "triage": triage_facts(triage.load(session).without(blind)),
        }
    if len(shown):
        shown = visible_verdicts(shown.assign(rater_kind=RaterKind.REVIEWER), None, blind)
    seen = effect(shown) if len(shown) else None
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
        by_selection=_counts(reads["selection"].astype(object).fillna("")),
        n_blind=int(reads["blinded"].isin([True]).sum()),
        n_open=int(known.reads["stage"].eq(Stage.OPEN).sum()),
        n_conflicting=int(differing.sum()),
        n_adjudicated=int(differing.index[differing].isin(settled["row"]).sum()),
        n_adjudicators=settled["rater"].nunique(),
        agreement=agreement(labels_of(known)),
        pull=_pull(shown) if len(shown) else "",
        n_looks=int(shown["looked_label"].notna().sum()) if len(shown) else 0,
        effect="" if seen is None else effect_words(seen),
        **of_session,
    )


def _counts(names: pd.Series) -> dict[Any, int]:
    return {name: int(n) for name, n in names.value_counts().sort_index().items() if n}


def _asked(session: Session, known: RubricData) -> dict[str, Any]:
    raters = frames.raters(session)
    raters = raters.loc[raters["rater_kind"].eq(RaterKind.JUDGE) & raters["rater"].isin(known.judges)]
    versions: dict[str, list[str]] = {name: [] for name in known.judges}
    repeats = dict.fromkeys(raters["rater"], 0)
    for name, prompt in zip(raters["rater"], raters["prompt_version"], strict=True):
        own, repeat = version_and_repeat(prompt)
        if repeat == 0:
            versions[name].append(own)
        repeats[name] = max(repeats[name], repeat)
    return {
        "runs": tuple(queries.asked(session)),
        "judges": {name: tuple(own) for name, own in versions.items()},
        "repeats": {name: n for name, n in repeats.items() if n},
    }


def _readers(session: Session, made: pd.DataFrame) -> dict[str, Any]:
    profiles = {person.name: person for person in contents.people(session, everybody=True)}
    known = [profiles[name] for name in sorted(set(made["rater"])) if name in profiles]
    times = pd.to_datetime(made["created_at"], utc=True)
    rounds = practice_queries.progress(session)
    practised = rounds.loc[rounds["n_read"].eq(rounds["n_responses"])]

    specialties = sorted(specialty for person in known for specialty in set(person.specialties))
    codes = sorted(code for person in known for code in set(person.languages))
    return {
        "n_recorded": len(known),
        "specialties": dict(Counter(specialties).most_common()),
        "reader_languages": dict(Counter(codes).most_common()),
        "dates": (times.min().date(), times.max().date()) if len(made) else None,
        "n_knowing": int(made["knows_model"].sum()),
        "n_practised": practised.loc[practised["reader"].isin({person.name for person in known}), "reader"].nunique(),
        "by_guideline": {int(number): n for number, n in _counts(made["guideline_version"].fillna(0)).items()},
    }


def _assigned(session: Session, made: pd.DataFrame, blind: frozenset[int]) -> dict[str, Any]:
    assigned = queries.assigned(session, blind)
    submitted = queries.submitted(session)
    readings = submitted.loc[submitted["selection"].ne(Selection.VOLUNTEERED)]
    by_whom = ["response_id", "person_id"]
    read = readings.merge(made[by_whom].dropna().drop_duplicates().astype("int64"), on=by_whom)
    drawn, registered = [], registering.registered(session)
    for number, tasks in assigned.groupby("assignment_id"):
        of_drawing = read.loc[read["assignment_id"].eq(number), "response_id"]
        n_read = of_drawing[of_drawing.isin(tasks["response_id"])].nunique()
        first, chance = tasks.iloc[0], tasks["inclusion_probability"]
        if n_read and first["selection"] in DRAWN:
            one = {"n_drawn": len(tasks), "n_population": int(first["n_population"]), "n_read": n_read}
            one |= {"by_plan": "plan" in json.loads(first["chosen_by"]), "seed": int(first["seed"])}
            kept = {"registered": registered.get(int(str(number)))}
            drawn.append(one | kept | {"lowest": chance.min(), "highest": chance.max()})
    reads = first_reads(labels.reads(session))
    here = set(zip(readings["response_id"], readings["person_id"], strict=True))
    is_here = [pair in here for pair in zip(reads["response_id"], reads["person_id"], strict=True)]
    brought = ~pd.Series(is_here, index=reads.index, dtype=bool) & ~reads["example_id"].isin(list(blind))
    chances = reads.loc[brought & reads["selection"].isin(DRAWN), "inclusion_probability"].dropna()
    n_locked = assigned["task_id"].map(submitted["task_id"].value_counts()).fillna(0)
    missing = (assigned["n_readers"] - n_locked).clip(lower=0)
    return {
        "drawn": tuple(drawn),
        "n_wanted": int(assigned["n_readers"].sum()),
        "n_missing": int(missing.sum()),
        "n_cancelled": int(missing[assigned["cancelled_at"].notna()].sum()),
        "n_brought": len(chances),
        "brought": (float(chances.min()), float(chances.max())) if len(chances) else None,
    }


def _analysis(session: Session, found: ComputedAnalysis | None, blind: frozenset[int]) -> dict[str, Any]:
    stated = tuple(contents.stated_analyses(session))
    if found is None:
        return {"stated": stated}
    results, spec = found.results, found.results.spec
    enough = results.scores["enough"].astype(bool)
    examples, responses = queries.rubric_examples(session, blind), frames.responses(session)
    there = responses["example_id"].isin(examples["example_id"]) & responses["evaluation"].eq(spec.evaluation or "")
    flow = study_flow(
        found.part,
        examples=examples,
        responses=responses.loc[there],
        assigned=queries.assigned(session, blind),
        enough=list(results.scores.loc[enough, "model"]),
        judges=spec.judges,
        settled=spec.settled,
        weights=weights_of(found.part, spec),
    )
    return {
        "analysis": asdict(spec),
        "claim": " ".join(filter(None, (results.means, results.because))) if enough.any() else "",
        "n_estimated": int(enough.sum()),
        "n_compared": int(results.differences["p"].notna().sum()),
        "stated": stated,
        "otherwise": found.otherwise,
        "flow": flow,
    }


def triage_facts(triage_data: TriageData) -> dict[str, Any]:
    """What was done on levels of care, responses to the cases and blind first reads among it."""
    first = first_reads(triage_data.reads)
    of_case = first["sample"].lt(0)
    reads, case_reads = first.loc[~of_case], first.loc[of_case]
    return {
        "kinds": _counts(triage_data.cases["kind"].astype(str)),
        "n_voted": triage_data.votes["row"].nunique(),  # cases that came with n_votes of physicians
        "n_votes": len(triage_data.votes),
        "formats": _counts(triage_data.samples["format"].astype(str)),
        "models": _counts(triage_data.samples["model"].astype(str)),
        # that each judge has looked at (parser and rules are judges too)
        "levels": {str(name): int(n) for name, n in triage_data.levels.notna().sum().items() if n},
        "n_reads": len(reads),  # of the level of n_read responses
        "n_read": reads["sample"].nunique(),
        "n_readers": reads["rater"].nunique(),
        "n_case_reads": len(case_reads),  # of what n_cases_read cases need
        "n_cases_read": case_reads["row"].nunique(),
        "n_case_readers": case_reads["rater"].nunique(),
    }


def _pull(reads: pd.DataFrame) -> str:
    moved = anchoring(reads, by=[OVERALL])
    changed = moved.loc[moved["movement"].eq(CHANGED)]
    if changed.empty or not changed["n"].iloc[0]:
        return ""
    row = changed.iloc[0]
    return f"{share_words(row['n_moved'], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"


def documents(done: Facts, files: Iterable[str] = ()) -> tuple[dict[str, str], dict[str, pd.DataFrame]]:
    """Texts by file name (methods.md, checklist.md and, where there is a flow, flow.svg) and tables (checklist and flow); `files`: the bundle's others."""
    drawn = {"flow.svg": flow_svg(done.flow)} if len(done.flow) else {}
    whose = {"dataset": done.analysis.get("evaluation"), "judge": " + ".join(done.analysis.get("judges", ()))}
    tables = {"flow": done.flow.assign(**whose)} if len(done.flow) else {}
    where = checklist(clauses(done), {*files, *drawn, *(f"{what}.csv" for what in tables)})
    said = "\n".join(["# Methods\n", *(f"## {name}\n\n{text}\n" for name, text in by_section(done).items())])
    texts = {METHODS: said, "checklist.md": checklist_page(where), **drawn}
    return texts, {"checklist": where, **tables}


def as_dict(done: Facts) -> dict[str, Any]:
    """The facts as JSON takes them."""
    return asdict(done) | {
        "n_responses": done.n_responses,
        "by_guideline": {str(number): n for number, n in done.by_guideline.items()},
        "agreement": records(done.agreement),
        "flow": records(done.flow),
        "dates": None if done.dates is None else [day.isoformat() for day in done.dates],
    }


def paragraph(done: Facts) -> str:
    """The methods in plain sentences, a paragraph a section; what did not happen is not mentioned."""
    return "\n\n".join(by_section(done).values())


def by_section(done: Facts) -> dict[str, str]:
    """The methods, a paragraph a section."""
    texts: dict[str, list[str]] = {}
    for clause in clauses(done):
        texts.setdefault(clause.section, []).append(clause.text)
    return {section: " ".join(these) for section, these in texts.items()}


def clauses(done: Facts) -> list[Clause]:
    """Everything that the methods say, in order."""
    if not done.n_items and not done.triage["kinds"]:
        return [Clause("nothing", "Responses", NOTHING, is_blank=True)]
    of_rubrics: dict[str, Callable[[Facts], _Said]] = {"Responses": _material, "Judge": _judging, "Readers": _reading}
    of_rubrics |= {"Selection": _drawing, "Agreement between physicians": _between, "Analysis": _estimating}
    found = [Clause(key, name, *rest) for name, say in of_rubrics.items() if done.n_items for key, *rest in say(done)]
    found += [Clause(key, "Triage", text) for key, text in _on_levels(done.triage)]
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    ran = f"Overread {version('overread')} on Python {platform.python_version()} with {packages}"
    found.append(Clause("software", "Software", f"Software: {ran}."))
    return found + [Clause(key, "To fill in", text, is_blank=True) for key, text in BLANKS.items()]


_Said = Iterator[tuple[Any, ...]]  # key, text, and whether it is a blank to be filled in


def _material(done: Facts) -> _Said:
    models = ", ".join(f"{name} {n:,}" for name, n in done.responses.items())
    yield (
        "material",
        f"We studied {counted(done.n_responses, 'response')} of {counted(len(done.responses), 'model')} ({models}) to "
        f"{counted(done.n_examples, 'conversation')} ({', '.join(done.evaluations)}): {counted(done.n_items, 'item')}, each one criterion of one response.",
    )
    if done.broken:
        n_broken = sum(done.broken.values())
        why = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in done.broken.items())
        yield (
            "broken",
            f"{counted(n_broken, 'further response')} {_was(n_broken)} broken ({why}) and {_was(n_broken, 'enters', 'enter')} no number.",
        )
    yield "languages", f"Languages of the conversations: {_listing(done.languages, LANGUAGES)}."
    asked: Counter[str] = Counter()
    for run in done.runs:
        if run["kind"] == RunKind.RESPOND and run["name"] in done.responses:
            asked[run["name"]] += run["n_answered"]
            yield (
                "models_asked",
                f"{run['name']} was asked for {counted(run['n_answered'], 'answer')} {_how(run)}, {counted(run['n_samples'], 'answer')} to each conversation; "
                "the conversation alone was sent, without a system prompt of ours.",
            )
    brought = {name: n - asked[name] for name, n in done.responses.items() if n > asked[name]}
    if brought:
        what = f"{counted(sum(brought.values()), 'response')} of {listed(brought)} came with a file"
        lacking = "version of the model, dates, temperature and system prompt are not recorded [to fill in]"
        yield "models_brought", f"{what}: {lacking}.", True
    if n := done.n_sent_otherwise:
        given = f"{counted(n, 'response')} {_was(n)} given to something else than the conversation as it stands here"
        yield "sent_otherwise", f"By their files {given}."


def _how(run: Mapping[str, Any]) -> str:
    heat = "no temperature set" if run["temperature"] is None else f"temperature {run['temperature']:g}"
    long = "" if run["max_tokens"] is None else f", at most {counted(run['max_tokens'], 'token')}"
    until = f"to {run['ended']:%Y-%m-%d}" if run["ended"] is not None else "and goes on"
    return f"as {run['api_model']} from {run['begun']:%Y-%m-%d} {until} ({heat}{long}, prompt {run['prompt_version']})"


def _was(n: int, one: str = "was", several: str = "were") -> str:
    return one if n == 1 else several


def _listing(numbers: Mapping[str, int], words: Mapping[str, str] | None = None) -> str:
    order = sorted(numbers.items(), key=lambda pair: (not pair[0], -pair[1], pair[0]))
    return ", ".join(f"{(words or {}).get(name, name) or 'not known'} {n:,}" for name, n in order)


def _judging(done: Facts) -> _Said:
    if not done.judges:
        return
    judges = f"{counted(len(done.judges), 'judge')} ({', '.join(done.judges)})"
    yield "judges", f"Items were labelled met or not met by {judges}."
    for run in done.runs:
        if run["kind"] == RunKind.JUDGE and run["name"] in done.judges:
            how = f"{_how(run)}, one question an item, with our task as the system prompt"
            yield "judges_asked", f"{run['name']} was asked {how}; {counted(run['n_answered'], 'verdict')} came."
    for name, n in done.repeats.items():
        yield "repeats", f"{name} was asked {counted(n, 'time')} again; repeats are no votes of their own."
    juries = [name for name, versions in done.judges.items() if any(version.startswith(JURY) for version in versions)]
    if juries:
        yield "juries", f"{listed(juries)} {_was(len(juries))} made of other judges' labels by majority."
    brought = [name for name, versions in done.judges.items() if not any(versions)]
    if brought:
        lacking = "version of the model, prompt, dates and temperature are not recorded [to fill in]"
        yield "judges_brought", f"The labels of {listed(brought)} came with a file: {lacking}.", True


def _reading(done: Facts) -> _Said:
    if done.n_reads:
        yield from _blind_reading(done)
    else:
        yield "no_reads", "No physician has read any of them blind.", True
    if done.not_blind:
        n = sum(done.not_blind.values())
        why = ", ".join(f"{k:,} {_WHY_NOT_BLIND.get(reason, reason)}" for reason, k in done.not_blind.items())
        enter = f"{_was(n)} not blind and {_was(n, 'enters', 'enter')} no estimate"
        yield "not_blind", f"A further {counted(n, 'first read')} {enter}: {why}."
    if n := done.n_open:
        enter = f"with the judge's verdict in view {_was(n, 'enters', 'enter')} no estimate"
        yield "open_reads", f"{'A further ' if done.n_reads else ''}{counted(n, 'read')} {enter}."
    if done.pull:
        changed = f"{done.pull} of the first reads were changed by their reader; first reads enter all estimates"
        yield "revealed", f"After the judge's verdict was shown, {changed}."
    if done.n_looks:
        looks = (
            f"{counted(done.n_looks, 'read')} of a criterion, drawn at random, got a second look without its verdict"
        )
        text = f"Before anything of the judge was shown, {looks}."
        yield "second_look", f"{text} {done.effect}" if done.effect else text


_WHY_NOT_BLIND = {
    NotBlind.EXPOSED: "by readers who had seen others' verdicts on the conversation",
    NotBlind.ROLE: "by leads or researchers of the study",
    "": "as the imported files say",
}


def _blind_reading(done: Facts) -> _Said:
    twice = f", {done.n_read_twice:,} of them by two or more" if done.n_read_twice else ""
    lost = f"; {done.n_cannot_assess:,} could not be assessed and {_was(done.n_cannot_assess)} left out"
    yield (
        "reads",
        f"{counted(done.n_readers, 'physician')} read {counted(done.n_read_items, 'item')} of {counted(done.n_read_examples, 'conversation')}{twice} "
        f"({counted(done.n_reads, 'first read')}{lost if done.n_cannot_assess else ''}).",
    )
    if done.dates:
        first, last = done.dates
        yield "read_dates", f"They read {f'on {first}' if first == last else f'from {first} to {last}'}."
    if done.specialties:
        yield "specialties", f"Specialties of the readers: {_listing(done.specialties)}."
    if done.reader_languages:
        yield "reader_languages", f"Languages that they read: {_listing(done.reader_languages, LANGUAGES)}."
    if unknown := done.n_readers - done.n_recorded:
        who = f"Of {counted(unknown, 'reader')}" if done.n_recorded else "Of the readers"
        yield "readers_unknown", f"{who} specialty and languages are not recorded [to fill in].", True
    if n := done.n_practised:
        text = f"{counted(n, 'physician')} went through a practice round with feedback on settled responses, which enters no number."
        yield "practice", text
    yield "readers_chosen", "[to fill in: how the physicians were chosen, trained and paid]", True
    blinding = "The imported files do not say whether these reads were blind."
    if done.n_blind:
        is_every = done.n_blind == done.n_reads
        every = "Each of these first reads" if done.not_blind else "Every first read"
        share = every if is_every else f"{done.n_blind:,} of the first reads"
        verb, pronoun, reader = ("were", "they were", "their readers")
        if is_every or done.n_blind == 1:
            verb, pronoun, reader = ("was", "it was", "its reader")
        rest = "" if is_every else " Of the others the imported files do not say."
        blinding = f"{share} {verb} blind: until {pronoun} locked, {reader} did not see the judge's verdict.{rest}"
    yield "blinding", blinding, not done.n_blind
    if done.n_knowing:
        share = share_words(done.n_knowing, done.n_reads, done.n_knowing / done.n_reads)
        knew = f"of {share} of these first reads the reader said that they knew which model had written the response"
        yield "knows_model", f"The model was not named; {knew}."
    text, has_versions = "For no first read is a version of a written guideline recorded.", any(done.by_guideline)
    if has_versions:
        said = [f"{n:,} with version {number}" for number, n in done.by_guideline.items() if number]
        said += [f"{n:,} without a recorded version" for number, n in done.by_guideline.items() if not number]
        text = f"First reads by version of the written guideline: {', '.join(said)}."
    yield "guideline", text, not has_versions


def _drawing(done: Facts) -> _Said:
    if done.n_reads:
        unknown = "whose selection is not recorded"
        ways = {name: SELECTIONS[Selection(name)] if name else unknown for name in done.by_selection}
        if len(ways) > 1:
            parts = listed(f"{n:,} {ways[name]}" for name, n in done.by_selection.items())
            text = f"Of the {counted(done.n_reads, 'first read')}, {parts} were made."
        elif "" in ways:
            text = "How the items were selected is not recorded."
        else:
            text = f"All first reads were made {next(iter(ways.values()))}."
        yield "selection", text, set(done.by_selection) == {""}
        yield "sample_size", "[to fill in: how the number of reads was chosen]", True
    for drawn in done.drawn:
        n, n_read, chance = drawn["n_drawn"], drawn["n_read"], _chance(drawn["lowest"], drawn["highest"])
        how, queue = "by a plan of inclusion probabilities" if drawn["by_plan"] else "at random", drawn["registered"]
        before = "the queue was frozen before its first read"
        frozen = f"; {before}, on {queue.at:%Y-%m-%d} (SHA-256 {queue.sha256})" if queue else ""
        yield (
            "drawings",
            f"{counted(n, 'response')} of {drawn['n_population']:,} {_was(n)} drawn {how} (seed {drawn['seed']}, {chance}); "
            f"{n_read:,} of them {_was(n_read)} read, in random order{frozen}.",
        )
    if done.brought:
        stated = f"a file that states how probable it was to draw their items ({_chance(*done.brought)})"
        yield "drawn_elsewhere", f"{counted(done.n_brought, 'read')} came with {stated}; the seed is not recorded."
    if n := done.n_missing:
        wanted = f"{counted(done.n_wanted, 'assigned read')} of a response"
        cancelled = f", {done.n_cancelled:,} of these since their assignment was cancelled" if done.n_cancelled else ""
        yield "missing_reads", f"Of {wanted}, {n:,} {_was(n, 'has', 'have')} not been made{cancelled}."
    if len(done.flow):
        yield "flow", "The flow of examples, responses, items and reads is shown in flow.svg and counted in flow.csv."


def _chance(lowest: float, highest: float) -> str:
    low, high = (f"{value:.2f}".removeprefix("0") for value in (lowest, highest))
    return f"inclusion probability {low}" if low == high else f"inclusion probabilities {low} to {high}"


def _between(done: Facts) -> _Said:
    known = {row["coefficient"]: row for row in done.agreement.to_dict(orient="records")}
    values = []
    for name, words in COEFFICIENTS.items():
        row = known.get(name)
        if row is None or math.isnan(row["value"]) or math.isnan(row["low"]):
            continue
        general = row.get("general_low", math.nan)
        beyond = f" (for physicians in general [{decimal(general)}, {decimal(row.get('general_high', math.nan))}])"
        interval = f"[{decimal(row['low'])}, {decimal(row['high'])}]"
        values.append(f"{words} {decimal(row['value'])} {interval}{'' if math.isnan(general) else beyond}")
    if values:
        where = "on items with two reads or more, with intervals for these physicians on further conversations"
        yield "agreement", f"Between physicians, {where}: {listed(values)}."
    if n := done.n_conflicting:
        who = f" by {counted(done.n_adjudicators, 'adjudicator')}" if done.n_adjudicated else ""
        share = share_words(done.n_adjudicated, n, done.n_adjudicated / n)
        adjudicated = f"{share} {_was(done.n_adjudicated)} adjudicated{who}"
        yield "settled", f"First reads differed on {counted(n, 'item')}, of which {adjudicated}."


def _estimating(done: Facts) -> _Said:
    yield "score", SCORE
    spec = done.analysis
    if done.n_estimated:
        yield "estimator", ESTIMATOR
        part = f", part {spec['subset']}," if spec["subset"] else ""
        settled = "; an adjudicated label took the place of the reads" if spec["settled"] else ""
        weighted = "; examples were weighted to the themes of the full benchmark" if spec["weighted"] else ""
        responses = f"the responses for {spec['evaluation']}{part} with the labels of {listed(spec['judges'])}"
        yield "specification", f"Analysed were {responses}{settled}{weighted}."
        yield "claim", done.claim
    if done.n_compared > 1:
        comparisons = f"{done.n_compared:,} paired comparisons of models"
        yield "multiplicity", f"p values of {comparisons} were adjusted by Holm's method."
    elif done.n_compared:
        yield "multiplicity", "One pair of models was compared; its p value needs no adjustment."
    for state in done.frozen:
        yield "frozen", state.sentence
    if not done.stated:
        yield "not_stated", "No analysis was stated beforehand; these are the usual choices.", True
        return

    def before(n: int) -> str:
        return f"when {counted(n, 'first read')} existed" if n else "before the first read"

    newest, oldest = done.stated[0], done.stated[-1]
    if newest.spec.primary:
        margin = newest.spec.margin
        by_margin = "" if margin is None else f", with a margin of {margin:g} of the corrected score"
        yield "primary", f"The primary comparison is {' with '.join(newest.spec.primary)}{by_margin}."
    yield "stated", f"The analysis was first stated on {oldest.stated_at:%Y-%m-%d}, {before(oldest.n_reads_before)}."
    for later, earlier in zip(done.stated[:-1], done.stated[1:], strict=True):
        if later.n_reads_before:
            was, now = asdict(earlier.spec), asdict(later.spec)
            changed = listed(FIELDS.get(name, name.replace("_", " ")) for name in now if was[name] != now[name])
            when = f"On {later.stated_at:%Y-%m-%d}, {before(later.n_reads_before)}"
            yield "deviations", f"{when}, it was changed: {changed}."
    if done.otherwise:
        yield "otherwise", f"What is computed here differs from it in {listed(done.otherwise)}."


def _on_levels(done: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kinds, formats, models = done["kinds"], done["formats"], done["models"]
    if not kinds:
        return
    of_kinds = listed(f"{kinds[kind]:,} {words}" for kind, words in KINDS.items() if kind in kinds)
    yield "triage_cases", f"Triage was studied on {counted(sum(kinds.values()), 'case')}: {of_kinds}."
    if n := done["n_votes"]:
        votes = f"{counted(n, 'vote')} of physicians on the level that the case needs"
        yield "triage_panels", f"{counted(done['n_voted'], 'case')} came with {votes}."
    if models:
        asked = listed(f"{formats[word]:,} {words}" for word, words in FORMATS.items() if word in formats)
        responses = f"{counted(sum(models.values()), 'response')} to them ({_listing(models)})"
        yield "triage_answers", f"{counted(len(models), 'model')} gave {responses}: {asked}."
    if done["levels"]:
        yield "triage_levels", f"Levels were read out of the responses by {_listing(done['levels'])}."
    responses = f"{counted(done['n_read'], 'response')} {_was(done['n_read'], 'gives', 'give')}"
    cases = f"{counted(done['n_cases_read'], 'case')} {_was(done['n_cases_read'], 'needs', 'need')}"
    for key, n_readers, what, n_reads in (
        ("triage_reads", done["n_readers"], responses, done["n_reads"]),
        ("triage_case_reads", done["n_case_readers"], cases, done["n_case_reads"]),
    ):
        if n_reads:
            level = f"the level that {what} ({counted(n_reads, 'first read')})"
            yield key, f"{counted(n_readers, 'physician')} read blind {level}."
