"""Ask a model about cases of triage, and a judge about what it answered, by the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from typer import Option

from evalcore.cli import run
from evalcore.cli.console import Db, Json, err, print_json, say, some_of, study
from evalcore.errors import OverreadError
from evalcore.study.db import Engine
from evalcore.study.schema import CASES, STREAK, Format

if TYPE_CHECKING:
    from evalcore.cli.run_at_console import Ended
    from evalcore.runs.spec import ModelSettings, RunSpec

PARTS = ("answers", "judged")
JUDGE = "Who judges the conversations afterwards; the file of models says where."
TEMPERATURE = 1.0
"""Samples that are asked for without chance are all alike."""


def triage_run(  # noqa: PLR0913, PLR0917 - what a person may say about a run
    model: Annotated[str, Option(help="Who answers, as the study calls it.")],
    formats: Annotated[str, Option(help="qa, conversation, or both joined by a comma.")] = ",".join(Format),
    samples: Annotated[int, Option(help="Answers to each case and format.")] = 5,
    judge: Annotated[str | None, Option(help=JUDGE)] = None,
    base_url: run.BaseUrl = None,
    api_model: run.ApiModel = None,
    key_variable: run.KeyVariable = None,
    temperature: Annotated[float | None, Option(help="0 to 2; else as the file says, else 1.")] = None,
    models_file: run.ModelsFile = None,
    concurrency: run.Concurrency = 20,
    limit: run.Limit = None,
    max_cost: run.MaxCost = None,
    max_failures: run.MaxFailures = STREAK,
    dry_run: run.DryRun = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Ask a model about cases of triage. At the end the parser and the rules read the levels of its answers, and the judge that was named.

    Answers are saved, and runs go on and end, as `overread respond` says. The judge begins when all answers are there. --limit holds for answers and for
    verdicts, each; --max-cost for both together. --json: answers and judged (null: no judge, or it has not begun), each as `overread respond` has it;
    with --dry-run judged is null as well where there is nothing to judge yet.
    """
    from evalcore.runs import check_asked, check_bounds, queries, spec_for
    from evalcore.runs.known_models import key_of, usual_file
    from evalcore.study.db import reading
    from evalcore.study.schema import RunKind

    wanted = some_of("--formats", formats, [word.value for word in Format])
    said = {"base_url": base_url, "api_model": api_model, "key_variable": key_variable}
    asked = run.asked_model(model, models_file, temperature=temperature, **said)
    if asked.temperature is None:
        asked = msgspec.structs.replace(asked, temperature=TEMPERATURE)
    answers = spec_for(RunKind.TRIAGE, asked, CASES, formats=wanted, n_samples=samples, limit=limit)
    verdicts = None
    if judge is not None:
        judged_by = _judge(judge, models_file or usual_file(), wanted)
        if not dry_run:
            key_of(judged_by)  # it is there
        verdicts = spec_for(RunKind.JUDGE, judged_by, CASES, of_models=[model], limit=limit)
    with study(db) as engine:
        with reading(engine) as session:
            if CASES not in queries.datasets(session):
                msg = "The study has no cases of triage: see `overread import`"
                raise OverreadError(msg)
            # all for which the judge would be refused later, before the first answer is paid for
            if verdicts is not None:
                check_bounds(verdicts, concurrency=concurrency, max_cost=max_cost)
                check_asked(session, verdicts)
        how = {"concurrency": concurrency, "max_cost": max_cost, "max_failures": max_failures, "quiet": as_json}
        if dry_run:
            shown, status = _planned(engine, answers, verdicts, how), 0
        else:
            gone = _gone(engine, answers, verdicts, how)
            shown = {name: None if part is None else part.as_dict() for name, part in zip(PARTS, gone, strict=True)}
            status = max(part.exit_status for part in gone if part is not None)
    if as_json:
        print_json(shown)
    raise typer.Exit(status)


def _judge(name: str, path: Path | None, formats: list[str]) -> "ModelSettings":
    """The judge as the file of models has it.

    Raises OverreadError: it is not known, or nothing is there for it to read.
    """
    from evalcore.runs.known_models import load

    if Format.CONVERSATION not in formats:
        msg = f"--judge: a judge reads conversations, and --formats is {', '.join(formats)}"
        raise OverreadError(msg)
    known = {} if path is None else load(path)
    if name not in known:
        place = "there is no file of models" if path is None else f"{path} has {', '.join(known) or 'no model'}"
        msg = f"--judge: expected a judge whose address is in the file of models, got {name!r}, and {place}"
        raise OverreadError(msg)
    return known[name]


def _planned(
    engine: Engine, answers: "RunSpec", verdicts: "RunSpec | None", how: dict[str, Any]
) -> dict[str, dict[str, Any] | None]:
    """What both runs would be; of the judge's only what can be known: what there is to judge now."""
    from evalcore.cli.run_at_console import plan_of
    from evalcore.runs import queries
    from evalcore.study.db import reading

    of_answers, of_verdicts = plan_of(engine, answers, **how), None
    if verdicts is not None:
        with reading(engine) as session:
            is_answered = answers.model.name in queries.models_of(session, CASES)
        if is_answered:
            of_verdicts = plan_of(engine, verdicts, **how | {"max_cost": None})
        if not how["quiet"] and of_answers["n_missing"]:
            say(f"{verdicts.model.name} judges each conversation more that comes; its cost can be told then.")
    return dict(zip(PARTS, (of_answers, of_verdicts), strict=True))


def _gone(
    engine: Engine, answers: "RunSpec", verdicts: "RunSpec | None", how: dict[str, Any]
) -> "tuple[Ended, Ended | None]":
    """Both runs, one after the other; what the answers cost is no longer there for the judge.

    Raises OverreadError: nothing is left for the judge, or nobody knows what the answers have cost.
    """
    from evalcore.cli.run_at_console import run_through
    from evalcore.runs import spent
    from evalcore.study.db import reading

    first, left = run_through(engine, answers, **how), how["max_cost"]
    if verdicts is None or first.exit_status:
        return first, None
    judge = verdicts.model.name
    if not first.is_done:
        err.print(f"{judge} begins when all answers are there: go on by the same command.", markup=False)
        return first, None
    if left is not None:
        with reading(engine) as session:
            cost = spent(session, first.worked.run_id)
        if cost is None:
            msg = (
                f"max cost: what the answers of {answers.model.name!r} have cost is not known, so what is left for {judge!r} is not; "
                "go on by the same command without --max-cost"
            )
            raise OverreadError(msg)
        if cost >= left:
            msg = f"The answers have cost {cost:g} US dollars: nothing of --max-cost is left for {judge}"
            raise OverreadError(msg)
        left -= cost
    return first, run_through(engine, verdicts, **how | {"max_cost": left})
