"""Ask models for answers and judges for verdicts, by the command line."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from evalcore.cli.console import Db, Json, actor, err, grid, out, print_json, study
from evalcore.errors import OverreadError
from evalcore.study.run_words import STREAK
from evalcore.study.schema import CASES

if TYPE_CHECKING:
    from evalcore.cli.run_at_console import Gone
    from evalcore.runs import Planned
    from evalcore.study.run_words import ModelSettings, RunSpec

BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Where the model is, up to and without /chat/completions, e.g. http://127.0.0.1:8000/v1; else as the file of models says.",
        show_default=False,
    ),
]
ApiModel = Annotated[
    str | None,
    typer.Option(help="What the server calls the model; else as the file says, else its name.", show_default=False),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        help="NAME of the environment variable that holds the key; else as the file says. The key itself is never said.",
        show_default=False,
    ),
]
Temperature = Annotated[
    float | None, typer.Option(help="0 to 2; else as the file says, else not sent.", show_default=False)
]
ModelsFile = Annotated[
    Path | None,
    typer.Option(
        "--models-file",
        help="TOML file of the known models; default: models.toml here, else OVERREAD_MODELS.",
        show_default=False,
    ),
]
Concurrency = Annotated[
    int, typer.Option(help="Questions in flight at once, in each process; on a cluster in each of its workers.")
]
MaxFailures = Annotated[int, typer.Option(help="Stop after so many failures in a row, in one process.")]
Limit = Annotated[int | None, typer.Option(help="Ask at most so many questions.", show_default=False)]
MaxCost = Annotated[
    float | None, typer.Option(help="Stop before it costs more US dollars than this.", show_default=False)
]
DataSet = Annotated[
    str | None, typer.Option("--dataset", help="Which, where the study holds several.", show_default=False)
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Spread the run over a Dask cluster: tcp://HOST:PORT of its scheduler, or local:N for N workers here. Needs overread[cluster].",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be asked, and what it would cost; ask and write nothing.")
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What may be said of every run, beside who is asked for what."""

    dataset: DataSet = None
    base_url: BaseUrl = None
    api_model: ApiModel = None
    key_variable: KeyVariable = None
    temperature: Temperature = None
    models_file: ModelsFile = None
    concurrency: Concurrency = 20
    limit: Limit = None
    max_cost: MaxCost = None
    max_failures: MaxFailures = STREAK
    cluster: Cluster = None
    dry_run: DryRun = False
    db: Db = None
    as_json: Json = False

    def model(self, name: str) -> "ModelSettings":
        """How the model of this name is reached and asked."""
        return asked_model(
            name, self.models_file, base_url=self.base_url, api_model=self.api_model, key_variable=self.key_variable,
            temperature=self.temperature,
        )  # fmt: skip


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: in place of its last argument, `options`, an option for each of `Options`."""
    own = [*signature(command).parameters.values()][:-1]
    more = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type) for one in fields(Options)
    ]

    @wraps(command)
    def told(**said: Any) -> None:
        command(options=Options(**{one.name: said.pop(one.name) for one in more}), **said)

    told.__dict__["__signature__"] = Signature([*own, *more])  # what `inspect` goes by, and with it typer
    told.__annotations__ = {one.name: one.annotation for one in (*own, *more)}
    return told


@with_options
def respond(
    model: Annotated[str, typer.Option(help="Who answers, as the study calls it.")],
    samples: Annotated[int, typer.Option(help="Answers to each example.")] = 1,
    *,
    options: Options,
) -> None:
    """Ask a model for its answers to the examples of a data set.

    Each answer is saved as it comes, and only what is missing is asked: the same command goes on with a run that was stopped. Ctrl-C finishes what is in
    flight, Ctrl-C again stops at once; the exit status is then 130. It is 1 where too many failures in a row or the cost stopped the run.

    --json: run, state (open, stopped, done), reason (why it stopped, or null), outcomes (questions that this command ended: answered, unreadable,
    refused, rejected, unreachable), n_calls, prompt_tokens, completion_tokens, cost (US dollars of the run so far, null: unknown), n_left, n_held (of
    these by other processes), n_there (not kept: there by then), n_lost (not saved), levels (what the parser and the rules read, or null),
    interrupted, whole (of the run: n_questions, n_answered, n_failed, n_open, n_cut_off: answers cut off at max_tokens; null: the database does not
    answer).
    With --dry-run: n_all, n_there, n_failed (earlier), n_missing (to ask), prompt_tokens, completion_tokens, cost and seconds (null: unknown),
    seconds_each (of a question), n_before (questions that the expectation is drawn from).
    """
    from evalcore.runs import spec_for
    from evalcore.study.run_words import RunKind

    asked = options.model(model)
    with study(options.db) as engine:
        chosen = options.dataset or only_dataset(engine, to_judge=False)
        ask(engine, spec_for(RunKind.RESPOND, asked, chosen, n_samples=samples, limit=options.limit), options)


@with_options
def judge(
    judge: Annotated[str, typer.Option(help="Who judges, as the study calls it.")],
    models: Annotated[
        str | None, typer.Option(help="Whose responses, joined by commas; default: all models'.", show_default=False)
    ] = None,
    repeat: Annotated[int, typer.Option(help="Verdicts on each item, each by a rater of its own.")] = 1,
    points: Annotated[bool, typer.Option("--points/--no-points", help="Show the judge a criterion's points.")] = True,
    confidence: Annotated[
        bool, typer.Option("--confidence/--no-confidence", help="Ask how probable it is that its label is right.")
    ] = False,
    *,
    options: Options,
) -> None:
    """Ask a judge for its verdict on each criterion of each response; with --dataset acuity, on the level of care that a response recommends.

    Verdicts are saved, and the run goes on and ends, as `overread respond` does. --json: as there.
    """
    from evalcore.runs import spec_for
    from evalcore.study.run_words import RunKind

    asked = options.model(judge)
    of_models = [] if models is None else [name.strip() for name in models.split(",") if name.strip()]
    if models is not None and not of_models:
        msg = "--models: expected names joined by commas, got nothing"
        raise OverreadError(msg)
    with study(options.db) as engine:
        chosen = options.dataset or only_dataset(engine, to_judge=True)
        spec = spec_for(
            RunKind.JUDGE, asked, chosen, of_models=of_models, with_points=points, with_confidence=confidence,
            n_repeats=repeat, limit=options.limit,
        )  # fmt: skip
        ask(engine, spec, options)


def known_file(said: Path | None) -> Path | None:
    """The file of models: what was said, else models.toml in the present folder, else what the environment names; None: there is none."""
    from evalcore.runs.known_models import usual_file

    return said or usual_file()


def asked_model(
    name: str,
    models_file: Path | None,
    *,
    base_url: str | None,
    api_model: str | None,
    key_variable: str | None,
    temperature: float | None,
) -> "ModelSettings":
    """How the model is reached and asked: what the options say, else what the file says.

    Raises:
        RunRefused: Nobody says where it is, or one says something wrong.
    """
    from evalcore.runs.known_models import named

    return named(
        name, path=known_file(models_file), base_url=base_url, api_model=api_model, key_variable=key_variable,
        temperature=temperature,
    )  # fmt: skip


def only_dataset(engine: Engine, *, to_judge: bool) -> str:
    """The data set that is meant where none was named.

    Raises:
        OverreadError: There are several, or none.
    """
    from evalcore.runs import queries
    from evalcore.study.db import reading

    with reading(engine) as session:
        known = queries.datasets(session)
        found = [name for name in known if (queries.models_of(session, name) if to_judge else name != CASES)]
    if not found:
        msg = f"The study has no {'responses to judge' if to_judge else 'examples to answer'}: see `overread import`"
        raise OverreadError(msg)
    if len(found) > 1:
        msg = f"--dataset: the study holds several, say which: {', '.join(found)}"
        raise OverreadError(msg)
    return found[0]


def ask(engine: Engine, spec: "RunSpec", options: Options) -> None:
    """One run from its start to its end, or what it would be."""
    from evalcore.cli.run_at_console import plan_dict

    concurrency, quiet = options.concurrency, options.as_json
    bounds: dict[str, Any] = {
        "concurrency": concurrency,
        "max_cost": options.max_cost,
        "max_failures": options.max_failures,
    }
    if options.dry_run:
        planned = plan_of(engine, spec, quiet=quiet, **bounds)
        if quiet:
            print_json(plan_dict(planned, concurrency=concurrency))
        return
    gone = run_through(engine, spec, quiet=quiet, cluster=options.cluster, **bounds)
    if quiet:
        print_json(gone.as_dict())
    raise typer.Exit(gone.exit_status)


def plan_of(
    engine: Engine,
    spec: "RunSpec",
    *,
    concurrency: int,
    quiet: bool,
    max_cost: float | None = None,
    max_failures: int = STREAK,
) -> "Planned":
    """What a run would be, as a table too."""
    from evalcore.cli.run_at_console import plan_rows, title
    from evalcore.runs import check_bounds, plan
    from evalcore.study.db import reading

    check_bounds(spec, concurrency=concurrency, max_cost=max_cost, max_failures=max_failures)
    with reading(engine) as session:
        planned = plan(session, spec)
    if not quiet:
        out.print(f"{title(spec)} (dry run)", markup=False)
        shown = grid(["", ""], plan_rows(planned, spec, concurrency=concurrency))
        shown.show_header = False
        out.print(shown)
    return planned


def run_through(
    engine: Engine,
    spec: "RunSpec",
    *,
    concurrency: int,
    max_cost: float | None,
    max_failures: int,
    quiet: bool,
    cluster: str | None = None,
) -> "Gone":
    """Start a run, or the same run again, and work on it, here or on a cluster.

    Raises:
        RunRefused: It cannot be started; nothing was written.
    """
    from evalcore.cli.run_at_console import go, go_on_cluster
    from evalcore.runs import start
    from evalcore.runs.known_models import key_of

    if cluster is None:
        key_of(spec.model)  # before anything is written; a cluster's workers have their own environment
    else:
        from evalcore.runs.cluster import check

        check(engine, cluster)
    run_id = start(
        engine, spec, actor=actor(engine), concurrency=concurrency, max_cost=max_cost, max_failures=max_failures
    )
    gone = (
        go(engine, run_id) if cluster is None else go_on_cluster(engine, run_id, address=cluster, actor=actor(engine))
    )
    show(gone, quiet=quiet)
    return gone


def show(gone: "Gone", *, quiet: bool) -> None:
    """How it went; why it stopped and how to go on comes last, where errors go, also beside JSON."""
    for sentence in () if quiet else gone.sentences():
        out.print(sentence, markup=False)
    if gone.last_words():
        err.print(gone.last_words(), markup=False)
