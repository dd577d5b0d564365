"""A run is planned, started, stopped, its failures tried again; NotFound: there is no such run; RunRefused, with one sentence: it cannot be."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd

from evalcore.judges import queries as jury_queries
from evalcore.runs import item_queries, queries, store
from evalcore.runs.item_queries import Usage
from evalcore.runs.prompts import CONFIDENCE_MEANING, Asker, prompt_version
from evalcore.runs.spec import RunSpec, is_address, known_models, models_file, refuse
from evalcore.settings import settings
from evalcore.study import schema
from evalcore.study.acting import act, allow
from evalcore.study.db import Engine, Session, reading
from evalcore.study.policies import check_can_run, check_can_see_replies
from evalcore.triage.predictions import JURY as MAJORITY
from evalcore.triage.setting_queries import confidence_meanings

MAX_CONCURRENCY, MAX_NAME, MOST_LISTED = 2_000, 200, 20
CHARACTERS_A_TOKEN, N_DRAWN = 4, 100
VERDICT_TOKENS, ANSWER_TOKENS = 120, 600


def start(
    engine: Engine,
    spec: RunSpec,
    *,
    actor: schema.Viewer,
    concurrency: int,
    max_cost: float | None = None,
    max_failures: int = schema.STREAK,
) -> int:
    """Start a run, or the same again with what has no answer yet; `concurrency` and `max_failures` in a row are of each process. Returns its number."""
    check_bounds(spec, concurrency=concurrency, max_cost=max_cost, max_failures=max_failures)
    with reading(engine) as session:
        allow(session, actor, check_can_run)
        if settings().public_url and not isinstance(actor, schema.Administrator):
            # an address typed on a page would be a way into the hospital's network
            path = models_file()
            listed = known_models(path).values() if path else ()
            if spec.model.base_url not in {model.base_url for model in listed}:
                refuse(
                    f"model {spec.model.name!r}: expected an address of the server's file of models, got another one"
                )
        _check(session, spec)
    with act(engine, actor, check_can_run) as session:
        bounds: dict[str, Any] = {"concurrency": concurrency, "max_cost": max_cost, "max_failures": max_failures}
        return store.start_run(session, spec, actor=actor.signature, **bounds)


def stop(engine: Engine, run_id: int, *, actor: schema.Viewer) -> None:
    """Stop a run, wherever its workers are: within seconds they ask nothing more, finish what is in flight, and end."""
    with act(engine, actor, check_can_run) as session:
        store.stop_run(session, run_id, actor=actor.signature, reason=f"{actor.signature} stopped it")


def retry(engine: Engine, run_id: int, *, actor: schema.Viewer, outcomes: Collection[schema.Outcome]) -> int:
    """Have questions that ended so asked again at the next `work`, never answered ones. Returns how many they are."""
    with reading(engine) as session:
        allow(session, actor, check_can_run)
        check_asked(session, queries.run(session, run_id).spec)
    with act(engine, actor, check_can_run) as session:
        return store.retry_questions(session, run_id, actor=actor.signature, outcomes=outcomes)


def failures(engine: Engine, viewer: schema.Viewer, run_id: int, **which: Any) -> pd.DataFrame:
    """What failed in a run with the replies as they came (`runs.queries.failures`), for whoever may see them."""
    with reading(engine) as session:
        allow(session, viewer, check_can_see_replies)
        queries.run(session, run_id)
        return queries.failures(session, run_id, **which)


@dataclass(frozen=True)
class Planned:
    """What a run would ask: n_there have an answer, n_failed are asked again only after `retry`. Tokens and US dollars are expected of n_missing.

    seconds_each: the mean time of a question in flight; n_before: questions that the expectation is drawn from; 0: it is drawn from the lengths of texts.
    """

    n_all: int
    n_there: int
    n_failed: int
    n_missing: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds_each: float | None
    n_before: int

    def seconds(self, concurrency: int) -> float | None:
        """How long it would take with so many questions at once; None before the first call."""
        return None if self.seconds_each is None else self.seconds_each * self.n_missing / concurrency


def plan(session: Session, spec: RunSpec) -> Planned:
    """Count what a run would ask, and what it would cost: by the mean of the tokens that the server counted with this model and prompt.

    Without such: of the question, the characters of up to 100 of the missing ones, 4 to a token; of the answer `VERDICT_TOKENS` or `ANSWER_TOKENS`.
    """
    _check(session, spec)
    n_all, n_there = item_queries.counted(session, spec)
    n_open = n_failed = n_questions = 0
    for before in queries.rows(session, fingerprint=spec.fingerprint):  # one at most
        n_open, n_failed = item_queries.left(session, before.run_id, spec)
        n_questions = queries.counts(session, before.run_id).n_questions
    n_missing = n_all - n_there - n_failed
    if spec.limit is not None:  # on the questions of the run, those that have ended among them
        n_missing = min(n_missing, spec.limit - n_questions + n_open)
    each = expected(session, spec)
    tokens = (round((each.prompt_tokens or 0.0) * n_missing), round((each.completion_tokens or 0.0) * n_missing))
    cost = spec.model.cost(*tokens)
    return Planned(n_all, n_there, n_failed, n_missing, *tokens, cost, each.seconds, each.n_questions)


def expected(session: Session, spec: RunSpec) -> Usage:
    """What a question of a run is expected to take, all its calls together (see `plan`)."""
    before = item_queries.usage_before(session, spec)
    prompt, completion = before.prompt_tokens, before.completion_tokens
    if prompt is None:
        asker, questions = Asker(spec), item_queries.drawn(session, spec, N_DRAWN)
        asked = asker.prepared(session, questions)
        requests = [asker.request(one) for one in asked if one.case]
        n_characters = sum(len(message.content) for request in requests for message in request.messages)
        prompt = n_characters / CHARACTERS_A_TOKEN / len(requests) if requests else 0.0
    if completion is None:
        usual = VERDICT_TOKENS if spec.kind is schema.RunKind.JUDGE else ANSWER_TOKENS
        completion = float(min(usual, spec.model.max_tokens or usual))
    return Usage(before.n_questions, prompt, completion, before.seconds)


def spent(session: Session, run_id: int) -> float | None:
    """US dollars of a run so far; a reply whose tokens the server did not count cost as much as the others on average. None: no cost is known."""
    calls = queries.calls(session, run_id)
    if not calls.n_with_cost:
        return None if calls.n_without_cost else 0.0
    return (calls.cost or 0.0) * (1 + calls.n_without_cost / calls.n_with_cost)


def check_bounds(spec: RunSpec, *, concurrency: int, max_cost: float | None, max_failures: int = schema.STREAK) -> None:
    """Raise RunRefused, with one sentence, where a run cannot be held to these."""
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        refuse(f"concurrency: expected 1 to {MAX_CONCURRENCY:,}, got {concurrency}")
    if max_failures < 1:
        refuse(f"max failures: expected 1 or more, got {max_failures}")
    if max_cost is not None and not max_cost > 0:
        refuse(f"max cost: expected more than 0 US dollars, got {max_cost}")
    if max_cost is not None and not spec.model.has_prices:
        unknown = "has no prices, so what it costs is not known"
        refuse(f"max cost: {spec.model.name!r} {unknown}; set price_in and price_out")


def check_prompt(spec: RunSpec, *, of: str = "") -> None:
    """Raise RunRefused where a run was asked with another prompt than this version of Overread has."""
    version = prompt_version(spec)
    if spec.prompt_version != version:
        msg = f"{of}prompt: expected {version!r}, with which this version of Overread asks, got {spec.prompt_version!r}; start a new run"
        refuse(msg)


def _check(session: Session, spec: RunSpec) -> None:
    check_asked(session, spec)
    known = queries.datasets(session)
    if spec.dataset not in known:
        refuse(f"data set: expected one of {_some(known) or 'none: the study has no examples'}, got {spec.dataset!r}")
    if spec.kind is not schema.RunKind.JUDGE:
        return
    models = queries.models_of(session, spec.dataset)
    kind = "responses with a text in the format conversation" if spec.dataset == schema.CASES else "responses"
    if not models:
        refuse(f"data set: {spec.dataset!r} has no {kind} to judge")
    unknown = sorted(set(spec.of_models) - set(models))
    if unknown:
        refuse(f"models: expected some of {_some(models)}, of which {spec.dataset!r} has {kind}, got {_some(unknown)}")


def check_asked(session: Session, spec: RunSpec) -> None:
    """Raise RunRefused, with one sentence, where this model cannot be asked in this way, whatever the questions are."""
    name, is_triage, is_judge = spec.model.name, spec.kind is schema.RunKind.TRIAGE, spec.kind is schema.RunKind.JUDGE
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        refuse(f"model: expected a name of 1 to {MAX_NAME} printable characters, got {name[:80]!r}")
    if is_judge and name in (schema.PARSER, schema.RULES, MAJORITY):
        refuse(f"judge: expected another name than {name!r}, which is that of a judge that ships with Overread")
    if "@" in spec.model.base_url:  # the address itself is not shown
        instead = "name the variable that holds the key instead"
        refuse(f"base URL of {name!r}: expected no user name or password in it; {instead}")
    if not is_address(spec.model.base_url):
        refuse(f"base URL of {name!r}: expected one such as http://127.0.0.1:8000/v1, got no address")
    for word, number in (("samples", spec.n_samples), ("repeats", spec.n_repeats), ("limit", spec.limit)):
        if number is not None and number < 1:
            refuse(f"{word}: expected 1 or more, got {number}")
    if is_triage and not (spec.formats and set(spec.formats) <= set(schema.Format)):
        refuse(
            f"formats: expected one or both of {', '.join(schema.Format)}, got {', '.join(spec.formats) or 'nothing'}"
        )
    if is_triage != (spec.dataset == schema.CASES) and not is_judge:
        other = "" if is_triage else "another than "
        refuse(f"data set: expected {other}{schema.CASES!r} for {spec.kind}, got {spec.dataset!r}")
    check_prompt(spec)
    _check_as_before(session, spec)
    if not is_judge:
        return
    if any(rater.name == name and rater.version.startswith(schema.JURY) for rater in jury_queries.judges(session)):
        refuse(f"judge: expected another name than {name!r}, which is that of a jury of this study")
    meaning = confidence_meanings(session).get(name, CONFIDENCE_MEANING)
    if spec.with_confidence and meaning is not CONFIDENCE_MEANING:
        refuse(
            f"judge: the study says that the confidence of {name!r} means {meaning.value!r}, and this prompt asks for {CONFIDENCE_MEANING.value!r}; "
            "give this judge another name"
        )


def _check_as_before(session: Session, spec: RunSpec) -> None:
    """Answers of one name come from one model: its earlier runs were asked in the same way."""
    for row in queries.rows(session, name=spec.model.name):
        one = row.spec
        if one.model.asked_how == spec.model.asked_how:
            continue
        if one.prompt_version != spec.prompt_version:  # answers to the same may stand together all the same
            is_same = one.kind is spec.kind and spec.kind is not schema.RunKind.JUDGE and one.dataset == spec.dataset
            if not is_same or (one.kind is schema.RunKind.TRIAGE and not set(one.formats) & set(spec.formats)):
                continue
        # of a run that ended without one answer, as after a typing error, there is nothing to mix up
        if row.state is schema.RunState.OPEN or queries.counts(session, row.run_id).outcomes[schema.Outcome.ANSWERED]:
            refuse(
                f"{spec.model.name!r} was asked otherwise in run {row.run_id} ({_how(one)}), and now with {_how(spec)}; give it another name, "
                "so that its answers are not mixed up"
            )


def _how(spec: RunSpec) -> str:
    model = spec.model
    temperature = "unset" if model.temperature is None else f"{model.temperature:g}"
    return f"{model.api_model}, temperature {temperature}, max_tokens {model.max_tokens or 'unset'}"


def _some(names: list[str]) -> str:
    n_more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {n_more} more" if n_more > 0 else "")
