"""What runs and ran, by the command line: see it, stop it, go on with it, try again what failed."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from evalcore.cli.console import Db, Json, actor, grid, out, print_json, records, study
from evalcore.cli.run import show
from evalcore.errors import OverreadError
from evalcore.study.run_words import Outcome, RunKind

if TYPE_CHECKING:
    import pandas as pd

MAX_LINES = 40
MAX_REASON = 80
FAILURES = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.ANSWERED)


def runs(  # noqa: PLR0913, PLR0917 - what can be done with a run
    failures: Annotated[int | None, typer.Option(metavar="ID", help="What failed in a run, and why.")] = None,
    retry: Annotated[int | None, typer.Option(metavar="ID", help="Ask again here what failed in a run.")] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            help=f"With --retry: only what ended so: {', '.join(FAILURES)}; may be repeated.", show_default=False
        ),
    ] = None,
    resume: Annotated[int | None, typer.Option(metavar="ID", help="Go on here with a run that was stopped.")] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="With --resume: stop before it costs more US dollars; default: as before.", show_default=False
        ),
    ] = None,
    stop: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Stop a run, wherever it is worked on: what is in flight is finished."),
    ] = None,
    work: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Work on a run that is open, beside others that do; as pages start it."),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """List what runs and ran; or do something with one run.

    --json: a list, newest first, one object a run: run_id, kind (respond, triage, judge), name, dataset, prompt_version, state (open, stopped, done),
    reason (why it was stopped, or null), n_questions, n_answered, n_failed, n_open, cost (US dollars, null: unknown), max_cost, n_workers
    (processes that work on it now), started_by, created_at, ended_at. With --failures a list, one object a question: question_id, example_id,
    prompt_id, response_id, model (whose response was judged), criterion_id, position, criterion, format, sample_index, repeat, outcome, status
    (HTTP), error, reply (raw, or null), attempts (of the last call), n_calls, n_tries, at. With --retry, --resume and --work as `overread respond` has it,
    --retry with n_retried. With --stop: run, n_workers (that finish what is in flight).
    """
    acts = {"--failures": failures, "--retry": retry, "--resume": resume, "--stop": stop, "--work": work}
    chosen = [name for name, run_id in acts.items() if run_id is not None]
    if len(chosen) > 1:
        msg = f"expected one of them, got {' and '.join(chosen)}"
        raise OverreadError(msg)
    if outcome and retry is None:
        msg = "--outcome: expected it with --retry, got it alone"
        raise OverreadError(msg)
    if max_cost is not None and resume is None:
        msg = "--max-cost: expected it with --resume, got it alone"
        raise OverreadError(msg)
    with study(db) as engine:
        if failures is not None:
            _failures(engine, failures, as_json=as_json)
        elif retry is not None:
            _retry(engine, retry, outcome or FAILURES, as_json=as_json)
        elif resume is not None:
            _resume(engine, resume, max_cost=max_cost, as_json=as_json)
        elif stop is not None:
            _stop(engine, stop, as_json=as_json)
        elif work is not None:
            _go(engine, work, as_json=as_json)
        else:
            _list(engine, as_json=as_json)


def _list(engine: Engine, *, as_json: bool) -> None:
    from evalcore.runs.queries import listed
    from evalcore.study.db import reading

    with reading(engine) as session:
        table = listed(session)
    if as_json:
        print_json(records(table))
    elif table.empty:
        out.print("No runs yet: see `overread judge --help`")
    else:
        columns = ("run", "asks", "state", "answered", "failed", "open", "cost", "processes", "begun")
        out.print(grid(columns, map(_line, records(table))))


def _line(row: dict[str, Any]) -> list[str]:
    from evalcore.cli.run_at_console import printable
    from evalcore.runs.telling import dollars, title_of

    reason = f": {printable(row['reason'])[:MAX_REASON]}" if row["reason"] else ""
    return [
        str(row["run_id"]),
        printable(title_of(row["name"], RunKind(row["kind"]), row["dataset"])),
        row["state"] + reason,
        f"{row['n_answered']:,} of {row['n_questions']:,}",
        f"{row['n_failed']:,}",
        f"{row['n_open']:,}",
        "–" if row["cost"] is None else dollars(row["cost"]),
        f"{row['n_workers']:,}",
        f"{row['created_at']:%Y-%m-%d %H:%M}",
    ]


def _failures(engine: Engine, run_id: int, *, as_json: bool) -> None:
    from evalcore import runs as acts
    from evalcore.cli.run_at_console import printable
    from evalcore.runs import queries
    from evalcore.runs.telling import about_words
    from evalcore.study.db import reading

    who = actor(engine)
    with reading(engine) as session:
        queries.run(session, run_id)  # there is one
        n_failed = sum(n for outcome, n in queries.outcomes(session, run_id).items() if outcome in FAILURES)
    if as_json:
        print_json(_failed(acts.failures(engine, who, run_id, most=n_failed)))
        return
    rows = _failed(acts.failures(engine, who, run_id, most=MAX_LINES))
    if not rows:
        out.print(f"Nothing failed in run {run_id}.")
        return
    lines = (
        [
            row["prompt_id"],
            ", ".join(about_words(row)),
            row["outcome"],
            str(row["status"] or "–"),
            printable(row["error"] or ""),
        ]
        for row in rows
    )
    out.print(grid(("conversation", "about", "outcome", "HTTP", "why"), lines))
    if n_failed > len(rows):
        out.print(f"and {n_failed - len(rows):,} more; --json has all of them, with the raw replies")


def _failed(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """Rows with whole numbers where a column that has gaps holds fractions."""
    whole = ("response_id", "criterion_id", "position", "status")
    return [row | {name: None if row[name] is None else int(row[name]) for name in whole} for row in records(table)]


def _retry(engine: Engine, run_id: int, said: "list[str] | tuple[str, ...]", *, as_json: bool) -> None:
    from evalcore import runs as acts

    unknown = sorted(set(said) - set(FAILURES))
    if unknown:
        msg = f"--outcome: expected some of {', '.join(FAILURES)}, got {', '.join(unknown)}"
        raise OverreadError(msg)
    _check_key(engine, run_id)
    n = acts.retry(engine, run_id, actor=actor(engine), outcomes=[Outcome(word) for word in said])
    if not as_json:
        out.print(f"{n:,} questions of run {run_id} are asked again." if n else f"Run {run_id}: nothing to ask again.")
    if n:
        _go(engine, run_id, as_json=as_json, more={"n_retried": n})
    elif as_json:
        print_json({"run": run_id, "n_retried": 0})


def _resume(engine: Engine, run_id: int, *, max_cost: float | None, as_json: bool) -> None:
    from evalcore import runs as acts
    from evalcore.runs import queries
    from evalcore.study.db import reading

    _check_key(engine, run_id)
    with reading(engine) as session:
        found = queries.run(session, run_id)
    most = found.max_cost if max_cost is None else max_cost
    acts.start(
        engine,
        found.spec,
        actor=actor(engine),
        concurrency=found.concurrency,
        max_cost=most,
        max_failures=found.max_failures,
    )
    _go(engine, run_id, as_json=as_json)


def _stop(engine: Engine, run_id: int, *, as_json: bool) -> None:
    from evalcore import runs as acts
    from evalcore.runs import queries
    from evalcore.study.db import reading

    acts.stop(engine, run_id, actor=actor(engine))
    with reading(engine) as session:
        at = queries.progress(session, run_id)
    if as_json:
        print_json({"run": run_id, "n_workers": at.n_workers})
        return
    finish = f"; {at.n_workers:,} processes finish what is in flight" if at.n_workers else ""
    again = f" Go on by `overread runs --resume {run_id}`." if at.n_open else ""
    out.print(f"Run {run_id} is {at.state}{finish}.{again}")


def _check_key(engine: Engine, run_id: int) -> None:
    from evalcore.runs import queries
    from evalcore.runs.known_models import key_of
    from evalcore.study.db import reading

    with reading(engine) as session:
        key_of(queries.run(session, run_id).spec.model)


def _go(engine: Engine, run_id: int, *, as_json: bool, more: dict[str, Any] | None = None) -> None:
    from evalcore.cli.run_at_console import go

    gone = go(engine, run_id, again=f"`overread runs --resume {run_id}`")
    show(gone, quiet=as_json)
    if as_json:
        print_json(gone.as_dict() | (more or {}))
    raise typer.Exit(gone.exit_status)
