"""A small study with two models and one judge, and the commands of drift run on it."""

import json

import typer
from typer.testing import CliRunner

from evalcore.cli import judging
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import RaterKind, Selection, Stage, Verdict
from tests import world

app = typer.Typer()
app.command("criteria")(judging.criteria)
app.command("drift")(judging.drift)
app.command("self-preference")(judging.self_preference)
app.command("families")(judging.families)
app.command("judge-check")(judging.judge_check)
IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"


def ran(small, *arguments):
    done = CliRunner().invoke(app, [*map(str, arguments), "--db", small.location])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def told(small, *arguments, status=0):
    done = ran(small, *arguments, "--json")
    assert done.exit_code == status, done.stderr
    return json.loads(done.stdout)


def say(small, kind, name, labels, *, stage=Stage.FIRST, models=(0, 1), **more):
    """Somebody's labels on each example's two criteria, the same of each model's response."""
    n_models = 2
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, kind, name)
        given = [
            Verdict(
                example_id=example + 1,
                response_id=small.responses[example * n_models + model],
                criterion_id=small.criteria[example][place],
                rater_id=rater,
                stage=stage,
                label=world.LABELS[labels[2 * example + place]],
                **more,
            )
            for example in range(3)
            for model in models
            for place in range(2)
            if labels[2 * example + place] in world.LABELS
        ]
        store.add_verdicts(session, given, actor="set-up", action="verdicts made")


def read(small, name, labels, **more):
    say(
        small,
        RaterKind.REVIEWER,
        name,
        labels,
        blinded=True,
        selection=Selection.RANDOM,
        inclusion_probability=0.5,
        **more,
    )


def judged(small, name, labels, **more):
    say(small, RaterKind.JUDGE, name, labels, stage=Stage.JUDGE, **more)
