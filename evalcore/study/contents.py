"""What the study holds: people, models, judges, counts, its stated analysis, its table of families."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, bindparam, case, cast, exists, func, or_, select
from sqlmodel import Session, SQLModel, col, select as select_rows

from evalcore.stats.wording import counted, listed
from evalcore.study import analysis, families, lookups, schema, tables
from evalcore.study.analysis import StatedAnalysis
from evalcore.study.frames import ITEM_BASE, frame, is_judge, is_read, not_superseded, numbers
from evalcore.study.tables import TABLES, AnySelect

if TYPE_CHECKING:
    import pandas as pd


def study_key(session: Session) -> str | None:
    """The random name of this database; None before the first start."""
    key: str | None = session.connection().execute(select(TABLES["study"].c.key)).scalar()
    return key


def rules(session: Session) -> schema.Rules:
    """What the study has chosen; the defaults before the first start."""
    row = session.get(tables.Study, 1)
    if row is None:
        return schema.Rules()
    same = {name: getattr(row, name) for name in schema.Rules.__struct_fields__ if name != "mode"}
    return schema.Rules(mode=schema.ReadingMode(row.reading_mode), **same)


def guideline(session: Session, version: int | None = None) -> tables.Guideline | None:
    """A version of what readers are told, the newest by default; None where there is none."""
    statement = select_rows(tables.Guideline).order_by(col(tables.Guideline.version).desc())
    if version is not None:
        statement = statement.where(tables.Guideline.version == version)
    return session.exec(statement.limit(1)).first()


def people(session: Session, *, everybody: bool = False) -> list[schema.Viewer]:
    """Who is active in the study, by name; `everybody`: those who are not let in any more as well."""
    person = TABLES["person"]
    rows = session.connection().execute(select(person).order_by(person.c.name))
    return [_viewer(row) for row in rows if everybody or row.active]


def person(session: Session, person_id: int) -> schema.Viewer | None:
    """One person; None where there is none of this number, or they are not let in any more."""
    return let_in(session.connection().execute(_of_number(), {"person_id": person_id}).first())


@cache  # it is asked in every act; to build it takes longer than to ask
def _of_number() -> AnySelect:
    person = TABLES["person"]
    return select(person).where(person.c.id == bindparam("person_id"))


def let_in(row: Any) -> schema.Viewer | None:
    """The person of a row of the table; None without one, or where they are not let in any more."""
    return _viewer(row) if row is not None and row.active else None


def _viewer(row: Any) -> schema.Viewer:
    return schema.Viewer(
        person_id=row.id or 0,
        name=row.name,
        roles=frozenset(map(schema.Role, json.loads(row.roles))),
        specialties=tuple(json.loads(row.specialties)),
        languages=tuple(json.loads(row.languages)),
    )


def judges(session: Session) -> list[str]:
    """Judges by the number of their verdicts on criteria, most first; behind them those that have read levels of care alone."""
    from evalcore.study import snapshot  # noqa: PLC0415 - most commands need no columns

    rater, verdict = TABLES["rater"].c, TABLES["verdict"].c
    of_criteria, of_levels = snapshot.n_labels(session)
    has_said = or_(rater.id.in_(of_criteria | of_levels), exists().where(verdict.rater_id == rater.id))
    found: dict[str, tuple[int, int]] = {}
    for number, name in session.connection().execute(select(rater.id, rater.name).where(is_judge(), has_said)):
        before = found.get(name, (0, 0))
        found[name] = before[0] + of_criteria[number], before[1] + of_levels[number]
    return sorted(found, key=lambda name: (-found[name][0], -sum(found[name]), name))


def models(session: Session, hidden: frozenset[int] = frozenset()) -> list[str]:
    """Models by name; without those that are known only from conversations that may not be seen."""
    statement = select_rows(tables.Model.name).order_by(tables.Model.name)
    if hidden:
        seen = select(col(tables.Response.model_id)).where(col(tables.Response.example_id).not_in(list(hidden)))
        statement = statement.where(col(tables.Model.id).in_(seen))
    return list(session.exec(statement))


def counts(session: Session, hidden: frozenset[int] = frozenset()) -> dict[str, int]:
    """Rows of the study: examples, criteria, responses, models, judges, reviewers, judge_verdicts, physician_verdicts; cases of examples, samples of responses.

    Physicians (reviewers) and their verdicts are counted without conversations that may not be seen: how many stand there moves with every read that is
    revised. A judge counts once, its repeats not at all; the parser and the rules of triage are no judges.
    """
    from evalcore.study import snapshot  # noqa: PLC0415 - most commands need no columns

    def of(table: type[SQLModel]) -> Any:
        return select(func.count()).select_from(table)

    standing = of(tables.Verdict).where(not_superseded(), col(tables.Verdict.label).is_not(None))
    of_physicians = standing.where(is_read(tables.Verdict))
    readers = select(func.count(col(tables.Verdict.rater_id).distinct())).where(is_read(tables.Verdict))
    if hidden:
        open_ = col(tables.Verdict.example_id).not_in(list(hidden))
        of_physicians, readers = of_physicians.where(open_), readers.where(open_)
    is_asked = col(tables.Rater.name).not_in((schema.PARSER, schema.RULES))
    judges = select(func.count(col(tables.Rater.name).distinct())).where(is_judge(), is_asked)
    statements = {
        "examples": of(tables.Example),
        "criteria": of(tables.Criterion),
        "responses": of(tables.Response),
        "cases": of(tables.AcuityCase),
        "samples": of(tables.Response).where(
            col(tables.Response.dataset).in_([word.evaluation for word in schema.Format])
        ),
        "models": of(tables.Model),
        "judges": judges,
        "reviewers": readers,
        "physician_verdicts": of_physicians,
    }
    found = {name: int(session.connection().execute(each).scalar_one()) for name, each in statements.items()}
    own = numbers(session, select(TABLES["rater"].c.id).where(is_judge()))
    return found | {"judge_verdicts": sum(n_of[number] for n_of in snapshot.n_labels(session) for number in own)}


def holdings(counts: Mapping[str, int]) -> str:
    """Responses to conversations, and answers to cases of triage; what is not there is not named."""
    n_others, n_cases = counts["examples"] - counts["cases"], counts["cases"]
    n_responses, by = counts["responses"] - counts["samples"], f" of {counted(counts['models'], 'model')}"
    has_others = n_others > 0 or not n_cases
    parts = [f"{counted(n_responses, 'response')}{by} to {counted(n_others, 'conversation')}"] if has_others else []
    if n_cases:
        by = "" if parts else by
        of_cases = counted(n_cases, "case of triage", "cases of triage")
        parts.append(f"{counted(counts['samples'], 'answer')}{by} to {of_cases}")
    return listed(parts)


def readers(session: Session, hidden: frozenset[int] = frozenset()) -> "pd.DataFrame":
    """One row a physician who has read anything that may be seen, most first: reader, n_items, n_responses, n_cases, last_at, as in `reference.totals`."""
    verdict = TABLES["verdict"].c
    subject = func.coalesce(verdict.response_id, -verdict.example_id)  # a case itself is read without a response
    item = cast(subject, BigInteger) * ITEM_BASE + func.coalesce(verdict.criterion_id, 0)
    of_case = case((verdict.response_id.is_(None), verdict.example_id))
    mine = select(col(tables.Rater.id)).where(col(tables.Rater.kind) == schema.RaterKind.REVIEWER)
    own = (
        select(
            verdict.rater_id,
            func.count(func.distinct(item)).label("n_items"),
            func.count(func.distinct(verdict.response_id)).label("n_responses"),
            func.count(func.distinct(of_case)).label("n_cases"),
            func.max(verdict.created_at).label("last_at"),
        )
        .where(
            verdict.rater_id.in_(mine),  # joined by name, all reads would be walked once a reader
            verdict.label.is_not(None),
            verdict.stage != schema.Stage.ADJUDICATED,
            is_read(verdict),
            not_superseded(),
        )
        .group_by(verdict.rater_id)
    )
    if hidden:
        own = own.where(verdict.example_id.not_in(list(hidden)))
    counted = own.subquery()
    columns: list[Any] = [col(tables.Rater.name).label("reader"), *counted.c[1:]]
    statement = select(*columns).join(counted, counted.c.rater_id == col(tables.Rater.id))
    return frame(session, statement.order_by(counted.c.n_items.desc(), col(tables.Rater.name)))


def choices(session: Session) -> dict[str, list[str]]:
    """What the filters offer: datasets, subsets, themes, categories, axes, languages, sources of cases, and tags of `TASK_TAGS`; each sorted."""
    columns = {
        "dataset": tables.Example.dataset,
        "subset": tables.ExampleSubset.subset,
        "theme": tables.Example.theme,
        "category": tables.Example.category,
        "axis": tables.Criterion.axis,
        "language": tables.Example.language,
        "source": tables.AcuityCase.source,
    }
    offered = {
        name: sorted(filter(None, session.connection().execute(select(column).distinct()).scalars()))  # type: ignore[call-overload]
        for name, column in columns.items()
    }
    tagged = task_tags(session)
    return offered | {kind: sorted(tagged[kind].dropna().unique()) for kind in schema.TASK_TAGS}


def task_tags(session: Session) -> "pd.DataFrame":
    """The tags of the examples of HealthBench Professional: example_id, and a column of each of `TASK_TAGS` (None: untagged)."""
    example, part = TABLES["example"].c, TABLES["example_subset"].c
    members = select(part.example_id).where(part.subset == schema.PROFESSIONAL)
    found = frame(session, select(example.id.label("example_id"), example.tags).where(example.id.in_(members)))
    tags = [tuple(json.loads(text)) for text in found.pop("tags")]
    import pandas as pd  # noqa: PLC0415 - acts and many commands need no table

    named = {
        kind: pd.Series([schema.tag(one, kind) for one in tags], index=found.index, dtype=object)
        for kind in schema.TASK_TAGS
    }
    return found.assign(**named)


def stated_analysis(session: Session) -> StatedAnalysis | None:
    """The newest statement; None where nothing was stated, so that every choice is the usual one."""
    return next(iter(stated_analyses(session, limit=1)), None)


def stated_analyses(session: Session, limit: int | None = None) -> list[StatedAnalysis]:
    """Every version, or so many, newest first."""
    rows: Any = TABLES["analysis"]
    statement = select(*rows.c).order_by(rows.c.version.desc()).limit(limit)
    return [
        StatedAnalysis(
            row.version, _called(session, analysis.of_json(row.text)), row.stated_by, row.stated_at, row.n_reads_before
        )
        for row in session.connection().execute(statement)
    ]


def _called(session: Session, spec: analysis.Analysis) -> analysis.Analysis:
    """A statement with the names that its judges, models and data set have now; stored, it keeps those that it was made with."""
    new = lookups.new_names(session)
    return replace(
        spec,
        evaluation=spec.evaluation and new.get(("evaluation", spec.evaluation), spec.evaluation),
        judges=tuple(dict.fromkeys(new.get(("judge", judge), judge) for judge in spec.judges)),
        primary=spec.primary
        and (
            new.get(("model", spec.primary[0]), spec.primary[0]),
            new.get(("model", spec.primary[1]), spec.primary[1]),
        ),
    )


def own_families(session: Session) -> list[tuple[str, str]]:
    """The study's own pairs of pattern and family, in their order; empty where it has not written one."""
    rows = TABLES["model_family"].c
    found = session.connection().execute(select(rows.pattern, rows.family).order_by(rows.place))
    return [(row.pattern, row.family) for row in found]


def family_table(session: Session) -> list[tuple[str, str]]:
    """The study's own table, else the one that comes with Overread."""
    return own_families(session) or families.default()
