"""Ask models for answers, also to cases of triage, and judges for verdicts; see what runs and ran, stop it, go on with it, try again what failed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from typer import Exit, Option

from evalcore.cli.console import Db, Json, content, err, print_json, say, some_of, study
from evalcore.errors import refuse
from evalcore.study.db import Engine, reading
from evalcore.study.schema import CASES, STREAK, Format, Outcome, RunKind

if TYPE_CHECKING:
    from evalcore.cli.run_at_console import Ended
    from evalcore.runs.spec import ModelSettings, RunSpec

PARTS = ("answers", "judged")
TEMPERATURE = 1.0  # of answers to cases where nobody says another: samples without chance are all alike
FAILURES = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.ANSWERED)


def _said(words: str, *names: str) -> Any:
    return Option(*names, help=words, show_default=False)


BASE_URL = "Where the model is, up to and without /chat/completions, e.g. http://127.0.0.1:8000/v1; else as the file of models says."
API_MODEL = "What the server calls the model; else as the file says, else its name."
KEY = "NAME of the environment variable that holds the key; else as the file says. The key itself is never said."
MODELS_FILE = "TOML file of the known models; default: models.toml here, else OVERREAD_MODELS."
CONCURRENCY = "Questions in flight at once, in each process; on a cluster in each of its workers."
STOP = "Stop a run, wherever it is worked on: what is in flight is finished."
WORK = "Work on a run that is open, beside others that do; as pages start it."
CLUSTER = "Spread the run over a Dask cluster: tcp://HOST:PORT of its scheduler, or local:N for N workers here. Needs overread[cluster]."
JUDGE = "Who judges the conversations afterwards; the file of models says where."
CONFIDENCE = "Ask how probable it is that its label is right."
PROMPT = "A file with a prompt of your own, which names {conversation}, {response} and {criterion}; its version is its name and a hash."
MADE_WITH = "A file of `overread split` that the prompt was made with; repeat for more. judge-check refuses to test it there. What is not said is not known."
DRY_RUN = "Show what would be asked, and what it would cost; ask and write nothing."
OUTCOME = f"With --retry: only what ended so: {', '.join(FAILURES)}; may be repeated."
RESUMED_COST = "With --resume: stop before it costs more US dollars; default: as before."
TEMPERATURE_SAID = "0 to 2; else as the file says, else not sent; of cases of triage else 1."


@dataclass(frozen=True, kw_only=True)
class Options:
    """What may be said of every run, beside who is asked for what."""

    base_url: Annotated[str | None, _said(BASE_URL)] = None
    api_model: Annotated[str | None, _said(API_MODEL)] = None
    key_variable: Annotated[str | None, _said(KEY)] = None
    temperature: Annotated[float | None, _said(TEMPERATURE_SAID)] = None
    models_file: Annotated[Path | None, _said(MODELS_FILE, "--models-file")] = None
    concurrency: Annotated[int, Option(help=CONCURRENCY)] = 20
    limit: Annotated[int | None, _said("Ask at most so many questions.")] = None
    max_cost: Annotated[float | None, _said("Stop before it costs more US dollars than this.")] = None
    max_failures: Annotated[int, Option(help="Stop after so many failures in a row, in one process.")] = STREAK
    dry_run: Annotated[bool, Option("--dry-run", help=DRY_RUN)] = False
    db: Db = None
    as_json: Json = False

    def model(self, name: str) -> "ModelSettings":
        """How the model is reached and asked: what the options say, else what the file says."""
        from evalcore.runs.spec import model_named, models_file

        how = {name: getattr(self, name) for name in ("base_url", "api_model", "key_variable", "temperature")}
        return model_named(name, path=self.models_file or models_file(), **how)

    @property
    def how(self) -> dict[str, Any]:
        """What a run is held to, and whether it prints no words."""
        bounds = {name: getattr(self, name) for name in ("concurrency", "max_cost", "max_failures")}
        return bounds | {"quiet": self.as_json}


Dataset = Annotated[str | None, _said("Which, where the study holds several.", "--dataset")]
Cluster = Annotated[str | None, _said(CLUSTER)]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: in place of its last argument, `options`, an option for each of `Options`."""
    own = [*signature(command).parameters.values()][:-1]
    kind = Parameter.KEYWORD_ONLY
    more = [Parameter(one.name, kind, default=one.default, annotation=one.type) for one in fields(Options)]

    @wraps(command)
    def with_all(**values: Any) -> None:
        command(options=Options(**{one.name: values.pop(one.name) for one in more}), **values)

    with_all.__dict__["__signature__"] = Signature([*own, *more])  # what `inspect` goes by, and with it typer
    with_all.__annotations__ = {one.name: one.annotation for one in (*own, *more)}
    return with_all


@with_options
def respond(
    model: Annotated[str, Option(help="Who answers, as the study calls it.")],
    samples: Annotated[int, Option(help="Answers to each example.")] = 1,
    dataset: Dataset = None,
    cluster: Cluster = None,
    *,
    options: Options,
) -> None:
    """Ask a model for its answers to the examples of a data set.

    Each answer is saved as it comes, and only what is missing is asked: the same command goes on with a run that was stopped. Ctrl-C finishes what is in
    flight, Ctrl-C again stops at once; the exit status is then 130. It is 1 where too many failures in a row or the cost stopped the run.
    """
    _ask(RunKind.RESPOND, model, options, dataset, cluster, n_samples=samples)


@with_options
def judge(  # noqa: PLR0913, PLR0917 - what may be said of a judge
    judge: Annotated[str, Option(help="Who judges, as the study calls it.")],
    models: Annotated[str | None, _said("Whose responses, joined by commas; default: all models'.")] = None,
    repeat: Annotated[int, Option(help="Verdicts on each item, each by a rater of its own.")] = 1,
    points: Annotated[bool, Option("--points/--no-points", help="Show the judge a criterion's points.")] = True,
    confidence: Annotated[bool, Option("--confidence/--no-confidence", help=CONFIDENCE)] = False,
    prompt: Annotated[Path | None, _said(PROMPT)] = None,
    made_with: Annotated[list[Path] | None, _said(MADE_WITH)] = None,
    dataset: Dataset = None,
    cluster: Cluster = None,
    *,
    options: Options,
) -> None:
    """Ask a judge for its verdict on each criterion of each response; with --dataset acuity, on the level of care that a response recommends.

    With --prompt the file's text is the question: each field in braces becomes that part, between lines that carry a mark made for the one call. {points} may
    be named too; of levels of care there is no {criterion}. How the parts are marked and the form of the reply are said before it, as in our own prompt, and
    replies are read as strictly.

    Verdicts are saved, and the run goes on and ends, as `overread respond` does. --json: as there.
    """
    of_models = [] if models is None else [name.strip() for name in models.split(",") if name.strip()]
    if models is not None and not of_models:
        refuse("--models: expected names joined by commas, got nothing")
    about: Any = {"of_models": of_models, "with_points": points, "with_confidence": confidence, "n_repeats": repeat}
    if prompt is not None:
        from evalcore.runs.prompts import own_prompt

        about["own"] = own_prompt(content(prompt), prompt.name)
    _ask(RunKind.JUDGE, judge, options, dataset, cluster, made_with=made_with or (), **about)


def _ask(
    kind: RunKind,
    name: str,
    options: Options,
    dataset: str | None,
    cluster: str | None,
    *,
    made_with: Iterable[Path] = (),
    **about: Any,
) -> None:
    from evalcore.cli.run_at_console import plan_of, run_through
    from evalcore.judges import splits
    from evalcore.runs import queries
    from evalcore.runs.prompts import spec_for

    asked, to_judge = options.model(name), kind is RunKind.JUDGE
    with study(options.db) as engine:
        if not dataset:
            with reading(engine) as session:
                known = queries.datasets(session)
                fitting = [one for one in known if (queries.models_of(session, one) if to_judge else one != CASES)]
            if not fitting:
                msg = f"The study has no {'responses to judge' if to_judge else 'examples to answer'}: see `overread import`"
                refuse(msg)
            if len(fitting) > 1:
                refuse(f"--dataset: the study holds several, say which: {', '.join(fitting)}")
            dataset = fitting[0]
        with reading(engine) as session:
            written = queries.splits_written(session)
        sets = tuple(splits.made_with(content(path), path.name, written) for path in made_with)
        spec = spec_for(kind, asked, dataset, limit=options.limit, made_with=sets, **about)
        if options.dry_run:
            shown, status = plan_of(engine, spec, **options.how), 0
        else:
            ended = run_through(engine, spec, cluster=cluster, **options.how)
            shown, status = ended.as_dict(), ended.exit_status
    if options.as_json:
        print_json(shown)
    raise Exit(status)


@with_options
def triage_run(
    model: Annotated[str, Option(help="Who answers, as the study calls it.")],
    formats: Annotated[str, Option(help="qa, conversation, or both joined by a comma.")] = ",".join(Format),
    samples: Annotated[int, Option(help="Answers to each case and format.")] = 5,
    judge: Annotated[str | None, _said(JUDGE)] = None,
    *,
    options: Options,
) -> None:
    """Ask a model about cases of triage. At the end the parser and the rules read the levels of its answers, and the judge that was named.

    Answers are saved, and runs go on and end, as `overread respond` says. The judge begins when all answers are there. --limit holds for answers and for
    verdicts, each; --max-cost for both together. --json: answers and judged (null: no judge, or it has not begun), each as `overread respond` has it;
    with --dry-run judged is null as well where there is nothing to judge yet.
    """
    from evalcore.runs import acts, queries
    from evalcore.runs.prompts import spec_for
    from evalcore.runs.spec import key_of, models_file

    wanted = some_of("--formats", formats, [word.value for word in Format])
    asked, limit = options.model(model), options.limit
    if asked.temperature is None:
        asked = msgspec.structs.replace(asked, temperature=TEMPERATURE)
    answers = spec_for(RunKind.TRIAGE, asked, CASES, formats=wanted, n_samples=samples, limit=limit)
    verdicts = None
    if judge is not None:
        judged_by = _judge(judge, options.models_file or models_file(), wanted)
        if not options.dry_run:
            key_of(judged_by)  # it is there
        verdicts = spec_for(RunKind.JUDGE, judged_by, CASES, of_models=[model], limit=limit)
    with study(options.db) as engine:
        with reading(engine) as session:
            if CASES not in queries.datasets(session):
                refuse("The study has no cases of triage: see `overread import`")
            # all for which the judge would be refused later, before the first answer is paid for
            if verdicts is not None:
                acts.check_bounds(verdicts, concurrency=options.concurrency, max_cost=options.max_cost)
                acts.check_asked(session, verdicts)
        if options.dry_run:
            shown, status = _planned(engine, answers, verdicts, options.how), 0
        else:
            gone = _gone(engine, answers, verdicts, options.how)
            shown = {name: None if part is None else part.as_dict() for name, part in zip(PARTS, gone, strict=True)}
            status = max(part.exit_status for part in gone if part is not None)
    if options.as_json:
        print_json(shown)
    raise Exit(status)


def _judge(name: str, path: Path | None, formats: list[str]) -> "ModelSettings":
    """The judge as the file of models has it; an `OverreadError` where it is not known, or nothing is there for it to read."""
    from evalcore.runs.spec import known_models

    if Format.CONVERSATION not in formats:
        refuse(f"--judge: a judge reads conversations, and --formats is {', '.join(formats)}")
    known = {} if path is None else known_models(path)
    if name not in known:
        place = "there is no file of models" if path is None else f"{path} has {', '.join(known) or 'no model'}"
        refuse(f"--judge: expected a judge whose address is in the file of models, got {name!r}, and {place}")
    return known[name]


def _planned(engine: Engine, answers: "RunSpec", verdicts: "RunSpec | None", how: dict[str, Any]) -> dict[str, Any]:
    """What both runs would be; of the judge's only what can be known: what there is to judge now."""
    from evalcore.cli.run_at_console import plan_of
    from evalcore.runs import queries

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
    """Both runs, one after the other; what the answers cost, which has to be known, is no longer there for the judge."""
    from evalcore.cli.run_at_console import run_through
    from evalcore.runs import acts

    first, left = run_through(engine, answers, **how), how["max_cost"]
    if verdicts is None or first.exit_status:
        return first, None
    judge = verdicts.model.name
    if not first.is_done:
        err.print(f"{judge} begins when all answers are there: resume with the same command.", markup=False)
        return first, None
    if left is not None:
        with reading(engine) as session:
            cost = acts.spent(session, first.worked.run_id)
        if cost is None:
            refuse(
                f"max cost: what the answers of {answers.model.name!r} have cost is not known, so what is left for {judge!r} is not; "
                "resume with the same command without --max-cost"
            )
        if cost >= left:
            refuse(f"The answers have cost {cost:g} US dollars: nothing of --max-cost is left for {judge}")
        left -= cost
    return first, run_through(engine, verdicts, **how | {"max_cost": left})


def runs(  # noqa: PLR0913, PLR0917 - what can be done with a run
    failures: Annotated[int | None, Option(metavar="ID", help="What failed in a run, and why.")] = None,
    retry: Annotated[int | None, Option(metavar="ID", help="Ask again here what failed in a run.")] = None,
    outcome: Annotated[list[str] | None, _said(OUTCOME)] = None,
    resume: Annotated[int | None, Option(metavar="ID", help="Resume here a run that was stopped.")] = None,
    max_cost: Annotated[float | None, _said(RESUMED_COST)] = None,
    stop: Annotated[int | None, Option(metavar="ID", help=STOP)] = None,
    work: Annotated[int | None, Option(metavar="ID", help=WORK)] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """List what runs and ran; or do something with one run."""
    from evalcore.cli import run_at_console as at_console

    acts = {"--failures": failures, "--retry": retry, "--resume": resume, "--stop": stop, "--work": work}
    chosen = [name for name, run_id in acts.items() if run_id is not None]
    if len(chosen) > 1:
        refuse(f"expected one of them, got {' and '.join(chosen)}")
    if outcome and retry is None:
        refuse("--outcome: expected it with --retry, got it alone")
    if max_cost is not None and resume is None:
        refuse("--max-cost: expected it with --resume, got it alone")
    with study(db) as engine:
        if failures is not None:
            at_console.list_failures(engine, failures, as_json=as_json)
        elif retry is not None:
            at_console.retry(engine, retry, outcome or FAILURES, as_json=as_json)
        elif resume is not None:
            at_console.resume(engine, resume, max_cost=max_cost, as_json=as_json)
        elif stop is not None:
            at_console.stop(engine, stop, as_json=as_json)
        elif work is not None:
            at_console.work_on(engine, work, as_json=as_json)
        else:
            at_console.list_(engine, as_json=as_json)
