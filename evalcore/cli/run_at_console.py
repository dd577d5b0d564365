"""A run as somebody at a terminal sees it: what it would take, how far it is, how it ended, and with which exit status."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress as Bars, TextColumn

from evalcore.cli.console import actor, err, grid, out, print_json, say, show, some_of
from evalcore.cli.run import FAILURES
from evalcore.runs import acts, queries
from evalcore.runs.asking import Stop, on_interrupt
from evalcore.runs.cluster import check, work_on_cluster
from evalcore.runs.model_client import ModelClient
from evalcore.runs.queries import Progress
from evalcore.runs.spec import ChatRequest, Reply, RunSpec, key_of
from evalcore.runs.summary import about_words, cost_words, cut_off_words, dollars, duration, title_of, told
from evalcore.runs.worker import Worked, work
from evalcore.stats.wording import counted
from evalcore.study.db import Engine, reading
from evalcore.study.frames import records
from evalcore.study.schema import Outcome, RunKind, RunState

LINE_SECONDS = 5.0  # where nobody watches a bar, how far the run is comes as a line so often
INTERRUPTED, FAILED = 130, 1  # exit statuses: after Ctrl-C, as shells have it; of a run that did not come to its end
COST = "would bring the cost above"  # words of the reason for which a run stops at its cost
MAX_LINES, MAX_REASON = 40, 80
WHOLE = ("response_id", "criterion_id", "position", "status")  # pandas has them as decimals where one is missing


@dataclass(frozen=True)
class Ended:
    """How working on a run went; `at`: how it stands, None where the database does not answer; `again`: how to go on, in words."""

    worked: Worked
    at: Progress | None
    n_cut_off: int
    is_interrupted: bool
    again: str

    @property
    def exit_status(self) -> int:
        """130 after Ctrl-C, 1 where a rule or somebody else stopped the run, 0 where nothing was left to ask, failures or not."""
        if self.is_interrupted:
            return INTERRUPTED
        is_stopped = self.worked.reason is not None or self.worked.state is RunState.STOPPED
        return FAILED if is_stopped or self.at is None else 0

    @property
    def is_done(self) -> bool:
        """Nothing of the run is left to ask."""
        return self.exit_status == 0 and self.worked.state is RunState.DONE

    def sentences(self) -> list[str]:
        """What was done, and how the run stands."""
        said, at, run_id = self.worked.sentences(), self.at, self.worked.run_id
        if at is None:
            return said
        if not self.worked.outcomes and self.is_done:
            said[0] = "Nothing is left to ask."
        failed = f", {at.n_failed:,} failed" if at.n_failed else ""
        left = f", {at.n_open:,} open" if at.n_open else ""
        took = f"{at.calls.prompt_tokens:,} tokens in, {at.calls.completion_tokens:,} out; {cost_words(at.calls)}"
        said.append(f"Run {run_id} as a whole: {at.n_answered:,} of {at.n_questions:,} answered{failed}{left}; {took}.")
        if self.n_cut_off:
            said.append(cut_off_words(self.n_cut_off))
        if at.n_failed:
            shows = f"`overread runs --failures {run_id}` shows what failed"
            said.append(f"{shows}, `overread runs --retry {run_id}` asks it again.")
        return said

    def last_words(self) -> str:
        """Why it stopped, what is saved and how to go on; empty where the run came to its end."""
        if self.exit_status == 0:
            return ""
        reason = "interrupted" if self.is_interrupted else self.worked.reason or "the database does not answer"
        words = f"Run {self.worked.run_id} stopped: {printable(reason).rstrip('.')}."
        if self.at is None:
            return f"{words} Resume with {self.again}."
        saved = f"Saved: {self.at.n_answered:,} of {self.at.n_questions:,} answers."
        if not self.at.n_open:
            return f"{words} {saved} Nothing is left to ask."
        higher = ", with a higher --max-cost" if not self.is_interrupted and COST in reason else ""
        return f"{words} {saved} Resume with {self.again}{higher}."

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: `Worked.as_dict`, how it ended, and how the run stands."""
        whole = None
        if self.at is not None:
            names = ("n_questions", "n_answered", "n_failed", "n_open")
            whole = {name: getattr(self.at, name) for name in names} | {"n_cut_off": self.n_cut_off}
        return self.worked.as_dict() | {"interrupted": self.is_interrupted, "whole": whole}


def plan_of(engine: Engine, spec: RunSpec, *, concurrency: int, quiet: bool, **bounds: Any) -> dict[str, Any]:
    """What a run would ask, cost and take, as JSON has it; printed as a table, too; the bounds as `acts.start` takes them."""
    acts.check_bounds(spec, concurrency=concurrency, **bounds)
    with reading(engine) as session:
        planned = acts.plan(session, spec)
    seconds = planned.seconds(concurrency)
    if not quiet:
        at_once = f"{counted(concurrency, 'question')} at once"
        time_words = "unknown: nobody has asked it yet" if seconds is None else f"{duration(seconds)}, {at_once}"
        source = f"as {counted(planned.n_before, 'question')} before" if planned.n_before else "by the lengths of texts"
        rows = {
            "asked": f"{spec.model.api_model} at {spec.model.base_url}",
            "prompt": spec.prompt_version,
            "questions in all": f"{planned.n_all:,}",
            "there already": f"{planned.n_there:,}",
            "failed before (see --retry)": f"{planned.n_failed:,}" if planned.n_failed else "",
            "to ask": f"{planned.n_missing:,}",
            "tokens": f"{planned.prompt_tokens:,} in, {planned.completion_tokens:,} out ({source})",
            "cost": dollars(planned.cost),
            "time": time_words,
        }
        say(f"{title_of(spec.model.name, spec.kind, spec.dataset)} (dry run)")
        table = grid(["", ""], [row for row in rows.items() if row[1]])
        table.show_header = False
        out.print(table)
    return asdict(planned) | {"seconds": seconds}


def run_through(engine: Engine, spec: RunSpec, *, quiet: bool, cluster: str | None = None, **bounds: Any) -> Ended:
    """Start a run, or the same run again, and work on it, here or on a cluster; the bounds as `acts.start` takes them."""
    if cluster is None:
        key_of(spec.model)  # before anything is written; a cluster's workers have their own environment
    else:
        check(engine, cluster)
    run_id = acts.start(engine, spec, actor=actor(engine), **bounds)
    return go(engine, run_id, quiet=quiet, cluster=cluster)


def go(
    engine: Engine, run_id: int, *, quiet: bool, cluster: str | None = None, again: str = "the same command"
) -> Ended:
    """Work on a run here, or spread it over a cluster, with a bar or with lines, until it ends or Ctrl-C is pressed; then say how it went."""
    with reading(engine) as session:
        row = queries.run(session, run_id)
    stop, title = Stop(), title_of(row.spec.model.name, row.kind, row.spec.dataset)
    with on_interrupt(stop), _shown(title) as shown:
        if cluster is not None:
            how: dict[str, Any] = {"address": cluster, "actor": actor(engine), "progress": lambda at: shown(at, 0)}
            worked = work_on_cluster(engine, run_id, stop=stop, **how)
        else:
            key = key_of(row.spec.model)
            client = _Counting(row.spec.model, concurrency=row.concurrency, key=key)

            def tell(at: Progress) -> None:
                shown(at, client.n_in_flight if stop.is_asked and not stop.is_urgent else 0)

            worked = work(engine, run_id, key=key, stop=stop, progress=tell, client=client)
    at, n_cut = None, 0
    if worked.n_left is not None:
        with reading(engine) as session:
            at, n_cut = queries.progress(session, run_id), queries.n_cut_off(session, run_id)
    ended = Ended(worked, at, n_cut, stop.is_asked, again)
    say(*([] if quiet else ended.sentences()))
    if ended.last_words():  # last, where errors go, also beside JSON
        err.print(ended.last_words(), markup=False)
    return ended


class _Counting(ModelClient):
    n_in_flight = 0

    async def ask(self, request: ChatRequest) -> Reply:
        self.n_in_flight += 1
        try:
            return await super().ask(request)
        finally:
            self.n_in_flight -= 1


@contextmanager
def _shown(words: str) -> Iterator[Callable[[Progress, int], None]]:
    """A bar where somebody looks, else a line now and then. It is told how far the run is, and how many questions it still waits for after Ctrl-C."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}", markup=False))
    with Bars(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        task, printed, is_ending = bars.add_task(escape(words), total=None, told=""), time.monotonic(), False

        def show(at: Progress, n_waited_for: int) -> None:
            nonlocal printed, is_ending
            if n_waited_for and not is_ending:
                is_ending = True
                err.print(f"finishing {n_waited_for:,} in flight (Ctrl-C again to stop at once)")
            processes = [f"{at.n_workers:,} processes"] if at.n_workers > 1 else []
            line = " · ".join([*told(at), *processes])
            bars.update(task, completed=at.n_asked, total=at.n_questions, told=line)
            if bars.disable and time.monotonic() - printed >= LINE_SECONDS:
                printed = time.monotonic()
                err.print(f"{words}: {line}", markup=False)

        yield show


def printable(text: str) -> str:
    r"""Words from a server on one line, and nothing in them that a terminal would obey.

    >>> printable("over\nloaded \x1b[31m")
    'over loaded �[31m'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


def list_(engine: Engine, *, as_json: bool) -> None:
    """Every run, newest first."""
    with reading(engine) as session:
        table = queries.listed(session)
    rows = records(table)
    if as_json:
        print_json(rows)
        return
    if not rows:
        say("No runs yet: see `overread judge --help`")
        return
    reasons = [f": {printable(row['reason'])[:MAX_REASON]}" if row["reason"] else "" for row in rows]
    show(
        {
            "run": table["run_id"].astype(str),
            "asks": [printable(title_of(row["name"], RunKind(row["kind"]), row["dataset"])) for row in rows],
            "state": [row["state"] + reason for row, reason in zip(rows, reasons, strict=True)],
            "answered": [f"{row['n_answered']:,} of {row['n_questions']:,}" for row in rows],
            "failed": table["n_failed"],
            "open": table["n_open"],
            "cost": [None if row["cost"] is None else dollars(row["cost"]) for row in rows],
            "processes": table["n_workers"],
            "begun": [f"{row['created_at']:%Y-%m-%d %H:%M}" for row in rows],
        }
    )


def list_failures(engine: Engine, run_id: int, *, as_json: bool) -> None:
    """What failed in a run, and why."""
    who = actor(engine)
    with reading(engine) as session:
        n_failed = queries.progress(session, run_id).n_failed
    rows = records(acts.failures(engine, who, run_id, most=n_failed if as_json else MAX_LINES))
    for row in rows:
        row |= {name: None if row[name] is None else int(row[name]) for name in WHOLE}
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"Nothing failed in run {run_id}.")
        return
    show(
        {
            "conversation": [row["prompt_id"] for row in rows],
            "about": [", ".join(about_words(row)) for row in rows],
            "outcome": [row["outcome"] for row in rows],
            "HTTP": [row["status"] for row in rows],
            "why": [printable(row["error"] or "") for row in rows],
        }
    )
    if n_failed > len(rows):
        say(f"and {n_failed - len(rows):,} more; --json has all of them, with the raw replies")


def retry(engine: Engine, run_id: int, words: Iterable[str], *, as_json: bool) -> None:
    """Ask again here what ended so."""
    outcomes = [Outcome(word) for word in some_of("--outcome", ",".join(words), FAILURES)]
    with reading(engine) as session:
        key_of(queries.run(session, run_id).spec.model)  # it is there
    n = acts.retry(engine, run_id, actor=actor(engine), outcomes=outcomes)
    if not as_json:
        say(f"Asked again in run {run_id}: {counted(n, 'question')}." if n else f"Run {run_id}: nothing to ask again.")
    if n:
        work_on(engine, run_id, as_json=as_json, more={"n_retried": n})
    elif as_json:
        print_json({"run": run_id, "n_retried": 0})


def resume(engine: Engine, run_id: int, *, max_cost: float | None, as_json: bool) -> None:
    """Resume here a run that was stopped."""
    with reading(engine) as session:
        row = queries.run(session, run_id)
    key_of(row.spec.model)  # it is there
    most = row.max_cost if max_cost is None else max_cost
    bounds: dict[str, Any] = {"concurrency": row.concurrency, "max_cost": most, "max_failures": row.max_failures}
    acts.start(engine, row.spec, actor=actor(engine), **bounds)
    work_on(engine, run_id, as_json=as_json)


def stop(engine: Engine, run_id: int, *, as_json: bool) -> None:
    """Stop a run, wherever it is worked on."""
    acts.stop(engine, run_id, actor=actor(engine))
    with reading(engine) as session:
        at = queries.progress(session, run_id)
    if as_json:
        print_json({"run": run_id, "n_workers": at.n_workers})
        return
    finish = f"; {at.n_workers:,} processes finish what is in flight" if at.n_workers else ""
    again = f" Resume with `overread runs --resume {run_id}`." if at.n_open else ""
    say(f"Run {run_id} is {at.state}{finish}.{again}")


def work_on(engine: Engine, run_id: int, *, as_json: bool, more: dict[str, Any] | None = None) -> None:
    """Work on a run here; `more` stands beside it in the JSON."""
    ended = go(engine, run_id, quiet=as_json, again=f"`overread runs --resume {run_id}`")
    if as_json:
        print_json(ended.as_dict() | (more or {}))
    raise typer.Exit(ended.exit_status)
