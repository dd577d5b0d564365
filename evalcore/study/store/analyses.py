"""The statement of what is analysed, a version at a time."""

from datetime import datetime

from sqlalchemy import func, insert, or_, select
from sqlmodel import Session, col

from evalcore.study import analysis
from evalcore.study.analysis import Analysis
from evalcore.study.schema import RaterKind, Stage
from evalcore.study.store.events import append_event
from evalcore.study.store.written import written
from evalcore.study.tables import TABLES, ExampleSubset, Model, Rater, Response, Verdict, now


def state_analysis(session: Session, spec: Analysis, *, actor: str, at: datetime | None = None) -> int | None:
    """State what is analysed from now on, with the number of blind first reads that exist already. Returns the version; None where nothing changes.

    Args:
        actor: By whom.
        at: When, of an invented study; now by default. The event is of now in any case.

    Raises:
        OverreadError: It is not as `analysis.check` wants it.
    """
    rows, connection = TABLES["analysis"], session.connection()

    def names(column: object) -> list[str]:
        return sorted(connection.execute(select(column).distinct()).scalars())  # type: ignore[call-overload]

    session.flush()
    analysis.check(
        spec,
        evaluations=names(Response.dataset),
        judges=sorted(set(connection.execute(select(Rater.name).where(col(Rater.kind) == RaterKind.JUDGE)).scalars())),  # type: ignore[call-overload]
        subsets=names(ExampleSubset.subset),
        models=names(Model.name),
    )
    last = connection.execute(select(rows.c.version, rows.c.text).order_by(rows.c.version.desc()).limit(1)).first()
    if analysis.of_json(last.text) == spec if last else spec == Analysis():
        return None
    version, n_reads = (last.version if last else 0) + 1, _n_first_reads(session)
    connection.execute(
        insert(rows),
        [{"version": version, "text": analysis.to_json(spec), "stated_by": actor, "stated_at": at or now(), "n_reads_before": n_reads}],
    )  # fmt: skip
    written(session).content("analysis", [version])
    before = analysis.plain(analysis.of_json(last.text) if last else Analysis())
    changed = {name: value for name, value in analysis.plain(spec).items() if before[name] != value}
    append_event(
        session,
        actor=actor,
        action="analysis stated",
        subject=f"version {version}",
        detail={**changed, "reads_before": n_reads},
    )
    return version


def _n_first_reads(session: Session) -> int:
    """Blind first reads of items, of criteria and of levels of care, those that were taken back since among them."""
    rows = select(func.count()).select_from(Verdict).join(Rater)
    blind = or_(col(Verdict.blinded).is_(None), col(Verdict.blinded).is_(True))
    first = rows.where(
        col(Rater.kind) == RaterKind.REVIEWER, col(Verdict.stage) == Stage.FIRST, col(Verdict.supersedes).is_(None), blind
    )  # fmt: skip
    return int(session.connection().execute(first).scalar_one())
