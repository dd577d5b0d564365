"""A run as somebody at a terminal sees it: what it would take, how far it is, how it ended, and with which exit status."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from sqlalchemy import Engine

from evalcore.cli.console import err
from evalcore.runs import Planned, Stop, Worked, on_interrupt, queries, work
from evalcore.runs import telling as runs_telling
from evalcore.runs.cluster import work_on_cluster
from evalcore.runs.known_models import key_of
from evalcore.runs.model_client import ModelClient
from evalcore.runs.queries import Progress, n_cut_off
from evalcore.runs.telling import cost_words, cut_off_words, dollars, duration, title_of
from evalcore.study.db import reading
from evalcore.study.run_words import ChatRequest, Reply, RunSpec, RunState
from evalcore.study.schema import Viewer

LINE_SECONDS = 5.0
"""Where nobody watches a bar, how far the run is comes as a line so often."""
INTERRUPTED, FAILED = 130, 1
"""Exit statuses: after Ctrl-C, as shells have it; and of a run that did not come to its end."""
COST = "would bring the cost above"
"""Words of the reason for which a run stops at its cost."""
SAME_COMMAND = "the same command"


@dataclass(frozen=True)
class Gone:
    """How working on a run went.

    Attributes:
        at: The run as it stands; None where the database does not answer any more.
        n_cut_off: Answers of the run that are not whole.
        again: How to go on, in words.
    """

    worked: Worked
    at: Progress | None
    n_cut_off: int = 0
    is_interrupted: bool = False
    again: str = SAME_COMMAND

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
        said = self.worked.sentences()
        if self.at is None:
            return said
        if not self.worked.outcomes and self.is_done:
            said[0] = "Nothing is left to ask."
        run_id = self.worked.run_id
        said.append(f"Run {run_id} as a whole: {self._whole(self.at)}.")
        if self.n_cut_off:
            said.append(cut_off_words(self.n_cut_off))
        if self.at.n_failed:
            said.append(
                f"`overread runs --failures {run_id}` shows what failed, `overread runs --retry {run_id}` asks it again."
            )
        return said

    def last_words(self) -> str:
        """Why it stopped, what is saved and how to go on; empty where the run came to its end."""
        if self.exit_status == 0:
            return ""
        reason = "interrupted" if self.is_interrupted else self.worked.reason or "the database does not answer"
        words = f"Run {self.worked.run_id} stopped: {printable(reason).rstrip('.')}."
        if self.at is None:
            return f"{words} Go on by {self.again}."
        saved = f"Saved: {self.at.n_answered:,} of {self.at.n_questions:,} answers."
        if not self.at.n_open:
            return f"{words} {saved} Nothing is left to ask."
        higher = ", with a higher --max-cost" if not self.is_interrupted and COST in reason else ""
        return f"{words} {saved} Go on by {self.again}{higher}."

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: `Worked.as_dict`, how it ended, and how the run stands."""
        whole = None
        if self.at is not None:
            whole = {
                "n_questions": self.at.n_questions,
                "n_answered": self.at.n_answered,
                "n_failed": self.at.n_failed,
                "n_open": self.at.n_open,
                "n_cut_off": self.n_cut_off,
            }
        return self.worked.as_dict() | {"interrupted": self.is_interrupted, "whole": whole}

    def _whole(self, at: Progress) -> str:
        failed = f", {at.n_failed:,} failed" if at.n_failed else ""
        left = f", {at.n_open:,} open" if at.n_open else ""
        tokens = f"{at.prompt_tokens:,} tokens in, {at.completion_tokens:,} out"
        return f"{at.n_answered:,} of {at.n_questions:,} answered{failed}{left}; {tokens}; {cost_words(at)}"


def go(engine: Engine, run_id: int, *, again: str = SAME_COMMAND) -> Gone:
    """Work on a run here, with a bar or with lines, until it ends or Ctrl-C is pressed.

    Raises:
        NotFound: There is no such run.
        RunRefused: The key is not in the environment, or the run cannot be asked by this version.
    """
    with reading(engine) as session:
        found = queries.run(session, run_id)
    key, stop = key_of(found.spec.model), Stop()
    client = _Counting(found.spec.model, concurrency=found.concurrency, key=key)
    with on_interrupt(stop), _shown(title(found.spec)) as show:

        def tell(at: Progress) -> None:
            show(at, client.n_in_flight if stop.is_asked and not stop.is_urgent else 0)

        worked = work(engine, run_id, key=key, stop=stop, progress=tell, client=client)
    at, n_cut = None, 0
    if worked.n_left is not None:
        with reading(engine) as session:
            at, n_cut = queries.progress(session, run_id), n_cut_off(session, run_id)
    return Gone(worked, at, n_cut, stop.is_asked, again)


def go_on_cluster(engine: Engine, run_id: int, *, address: str, actor: Viewer) -> Gone:
    """Spread a run over a cluster, with a bar or with lines here, until it ends or Ctrl-C is pressed.

    Raises:
        NotFound: There is no such run.
        RunRefused: As `cluster.work_on_cluster`.
    """
    with reading(engine) as session:
        found = queries.run(session, run_id)
    stop = Stop()
    with on_interrupt(stop), _shown(title(found.spec)) as show:
        worked = work_on_cluster(
            engine, run_id, address=address, actor=actor, stop=stop, progress=lambda at: show(at, 0)
        )  # fmt: skip
    with reading(engine) as session:
        at, n_cut = queries.progress(session, run_id), n_cut_off(session, run_id)
    return Gone(worked, at, n_cut, stop.is_asked)


class _Counting(ModelClient):
    """Knows how many questions are in flight."""

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
            bars.update(task, completed=at.n_asked, total=at.n_questions, told=told(at))
            if bars.disable and time.monotonic() - printed >= LINE_SECONDS:
                printed = time.monotonic()
                err.print(f"{words}: {told(at)}", markup=False)

        yield show


def title(spec: RunSpec) -> str:
    """A run in a few words."""
    return title_of(spec.model.name, spec.kind, spec.dataset)


def told(at: Progress) -> str:
    """How far a run is, on one line."""
    return " · ".join([*runs_telling.told(at), *([f"{at.n_workers:,} processes"] if at.n_workers > 1 else [])])


def plan_rows(planned: Planned, spec: RunSpec, *, concurrency: int) -> list[tuple[str, str]]:
    """What a run would ask, cost and take, as the lines of a table."""
    seconds = planned.seconds(concurrency)
    failed = [("failed before (see --retry)", f"{planned.n_failed:,}")] if planned.n_failed else []
    source = f"as {planned.n_before:,} questions before" if planned.n_before else "by the lengths of texts"
    return [
        ("asked", f"{spec.model.api_model} at {spec.model.base_url}"),
        ("prompt", spec.prompt_version),
        ("questions in all", f"{planned.n_all:,}"),
        ("there already", f"{planned.n_there:,}"),
        *failed,
        ("to ask", f"{planned.n_missing:,}"),
        ("tokens", f"{planned.prompt_tokens:,} in, {planned.completion_tokens:,} out ({source})"),
        ("cost", dollars(planned.cost)),
        (
            "time",
            "unknown: nobody has asked it yet"
            if seconds is None
            else f"{duration(seconds)}, {concurrency:,} questions at once",
        ),
    ]


def plan_dict(planned: Planned, *, concurrency: int) -> dict[str, Any]:
    """The same as JSON has it."""
    return asdict(planned) | {"seconds": planned.seconds(concurrency)}


def printable(text: str) -> str:
    r"""Words from a server on one line, and nothing in them that a terminal would obey.

    >>> printable("over\nloaded \x1b[31m")
    'over loaded �[31m'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))
