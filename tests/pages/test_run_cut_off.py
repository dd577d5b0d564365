"""Answers that the server cut off at max_tokens: they are kept, and the run says how many they are."""

import json

import msgspec

from evalcore.runs.acts import start
from evalcore.runs.asking import Stop
from evalcore.runs.prompts import spec_for
from evalcore.runs.queries import n_cut_off
from evalcore.runs.worker import work
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Administrator, RunKind
from tests.page_steps import LEAD, said
from tests.run_steps import MET, Scripted
from tests.run_world import begun, judging, responding, settings, study, worked

SAID = "Cut off at max_tokens, or at the server's own limit: {}. For whole ones ask under another name with a higher max_tokens."


class Cutting(Scripted):
    """Every second reply is cut off."""

    async def ask(self, request):
        reply = await super().ask(request)
        return msgspec.structs.replace(reply, finish="length" if len(self.asked) % 2 else "stop")


def counted(small, run_id):
    with reading(small.engine) as session:
        return n_cut_off(session, run_id)


def test_an_answer_that_was_cut_off_is_kept_and_counted(database_url):
    with study(database_url, n_examples=3) as small:
        first = begun(small, responding(limit=1), concurrency=1)
        worked(small, first, client=Scripted("Rest, and"))
        run_id = begun(small, responding(n_samples=2), concurrency=1)
        ended = worked(
            small, run_id, client=Cutting("Rest, and")
        )  # five are left, the first, third and fifth are cut off
        assert (ended.n_answered, ended.n_failed) == (5, 0)
        assert small.one("SELECT count(*) FROM response WHERE text = 'Rest, and'") == 6
        assert (counted(small, first), counted(small, run_id)) == (0, 3)


def test_a_verdict_that_can_be_read_is_whole_wherever_the_reply_was_cut_off(quick_run):
    run_id = begun(quick_run, judging(), concurrency=1)
    assert worked(quick_run, run_id, client=Cutting(MET)).n_answered == 6
    assert counted(quick_run, run_id) == 0


def test_the_page_of_a_run_says_how_many_answers_were_cut_off(demo_study, open_page):
    engine = open_study(demo_study)
    for client, words in ((Scripted("Rest, and"), None), (Cutting("Rest, and"), SAID.format("2 answers"))):
        name = type(client).__name__
        spec = spec_for(
            RunKind.RESPOND, settings(name=name), "overread-demo", limit=3
        )  # the first and third are cut off
        run_id = start(engine, spec, actor=Administrator(name=LEAD), concurrency=1)
        work(engine, run_id, key=None, stop=Stop(), client=client)
        shown = said(open_page(demo_study, "study", LEAD, study_tab="Runs", run=str(run_id)))
        assert f"Answers of {name} to 3 conversations" in shown
        assert words in shown if words else "Cut off" not in shown
    engine.dispose()


def test_commands_say_how_many_answers_were_cut_off(asked, judge):
    assert "Cut off" not in asked("respond", "--model", "Magpie", "--limit", "1")
    judge.told.finish = "length"
    assert SAID.format("2 answers") in asked("respond", "--model", "Magpie")
    found = json.loads(asked("respond", "--model", "Magpie", "--json"))  # of the whole run: nothing is left to ask
    assert (found["whole"]["n_cut_off"], found["n_calls"]) == (2, 0)
