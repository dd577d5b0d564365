"""Responses and the verdicts on them: joined with their examples and criteria, compared with what the study holds, then written."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any

import msgspec

from evalcore.errors import RowFault
from evalcore.importing import examples
from evalcore.importing.context import (
    COMPARED,
    CriterionRef,
    GivenExample,
    GivenVerdict,
    Graded,
    ImportContext,
    RowWriter,
    is_own,
)
from evalcore.importing.formats.values import refuse
from evalcore.study import lookups
from evalcore.study.schema import Example, Message, RaterKind, Verdict
from evalcore.study.store import bring

Key = tuple[int, int, int, str]  # response, criterion, rater, stage
Labels = dict[int, tuple[str | None, str | None]]  # label and explanation by criterion
Earlier = tuple[int, tuple[object, ...], str | None]  # a verdict's number, what it says, and the file that it came from
GRADED_TWICE = (
    "criterion: expected it once for a response and judge, got it again with another grade or reason; "
    "sample_index tells equal answers apart"
)
of_response = attrgetter("text", "model", "evaluation", "sample_index", "completion_id")
_SAID = tuple(name for name in Verdict.__struct_fields__ if name in GivenVerdict.__struct_fields__)
_said = attrgetter(*_SAID)
_compared = attrgetter(*COMPARED)
_compared_in = itemgetter(*COMPARED)


class KnownResponse(msgspec.Struct, eq=False, gc=False):
    """A response of the study, or one about to be added (without a number yet)."""

    model: str
    dataset: str
    sample_index: int
    text: str
    completion_id: str | None
    sent_messages: str | None = None
    n_criteria: int | None = None
    finish_reason: str | None = None
    made_on: str | None = None
    number: int | None = None
    takers: set[str] = set()  # judges whose rows were found to be this one, while it has no number


class Joined(msgspec.Struct, eq=False, gc=False):
    """A row of the file with what it belongs to; `criteria` are those of its verdicts, None where there is no such one."""

    record: Graded
    example: examples.KnownExample
    criteria: list[examples.KnownCriterion | None]
    response: KnownResponse | None = None


class GradedRows(RowWriter):
    """Takes examples, and responses with verdicts on criteria."""

    batch = 200
    most_kept = 0  # criteria whose examples are kept for later batches

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._options, self._source_hash = context.options, context.report.source_hash
        self._examples = examples.Examples(context, most_kept=self.most_kept)
        self._own: set[tuple[int, int, int]] = set()
        self._met: set[int] = set()  # responses of the study that a row of this file has been matched with
        self._taken: defaultdict[str, set[int]] = defaultdict(set)  # by judge, those whose row is found by its text

    def add(self, rows: Sequence[Graded | GivenExample]) -> None:
        """Join one batch and, if nothing in the file was wrong so far, write it. A row that contradicts the study is a fault."""
        groups: defaultdict[str, list[Graded]] = defaultdict(list)
        given: list[GivenExample] = []
        for row in rows:
            if isinstance(row, GivenExample):
                given.append(row)
                continue
            row = self._called(self._prepared(row))  # noqa: PLW2901 - filled in
            groups[row.dataset or self._options.dataset].append(row)
            self._report.ungraded += row.n_ungraded
            for verdict in row.verdicts:
                if verdict.confidence is not None and verdict.rater_kind is RaterKind.JUDGE:
                    self._report.confident(verdict.rater)
        for dataset in dict.fromkeys([*([self._options.dataset] if given else []), *groups]):
            records = groups[dataset]
            of_dataset = given if dataset == self._options.dataset else []
            prompt_ids = {record.prompt_id for record in records} | {row.example.prompt_id for row in of_dataset}
            self._examples.load(dataset, prompt_ids)
            for row in of_dataset:  # before the responses: a line may bring an example and a response to it
                with self._faults.caught(row.line):
                    self._examples.add_row(row.example, row.line)
            joined: list[Joined] = []
            for record in records:
                try:  # as `Faults.caught`, which costs as much as the rest of a row of a long table
                    if (found := self._find_example(record)) is not None:
                        joined.append(found)
                except RowFault as fault:
                    self._faults.add(str(fault), record.line)
            if self._faults.count:
                continue
            known = {found.example.number for found in joined if found.example.number is not None}
            self._examples.flush()
            self._find_responses(joined, known)
            if self._faults.count:
                continue
            joined = [found for found in joined if found.response is not None]
            fresh = self._write_responses(joined)
            self._bulk.await_index(self._write_verdicts(joined, fresh))

    def _prepared(self, row: Graded) -> Graded:
        """The row with what its format finds out about it."""
        return row

    def _called(self, row: Graded) -> Graded:
        """The row with the names that the study has for what it names."""
        if not self._context.has_new_names:
            return row
        called = {name: self._context.called(name, getattr(row, name)) for name in ("dataset", "model", "evaluation")}
        if all(getattr(row, name) == now for name, now in called.items()):
            return row
        return msgspec.structs.replace(row, **called)

    def _find_example(self, record: Graded) -> Joined | None:
        example = self._examples.known.get(record.prompt_id)
        if (
            record.messages is not None
            and (record.rubric or record.scored_rubric)
            and (example is None or example.partial or not record.scored_rubric)
        ):
            # a physician's row brings one criterion, which is added only where the example has none of its cluster
            clusters = (ref.cluster for ref in record.criteria[:1] if not record.scored_rubric)
            is_there = example and any(_of_cluster(cluster, example) for cluster in clusters)
            if not is_there:
                given = record.prompt_id, record.messages, record.rubric, record.tags
                told = Example(*given, canary=record.canary, provisional=True)
                example = self._examples.add(told)
        if example is None:
            self._report.no_partner(record.line, f"example {record.prompt_id!r} is not in the study")
            return None
        partners = examples.match(record.rubric, example.rubric)
        if record.messages is not None and (record.rubric or record.scored_rubric):  # enough for an example
            example.is_brought = True
            for partner in filter(None, partners):
                partner.is_brought = True
        # a result may carry tags that a rebuilt examples file lacks
        if record.scored_rubric and examples.complete(record.rubric, partners):
            example.changed = True
        return Joined(record, example, [self._criterion(ref, record, example, partners) for ref in record.criteria])

    def _criterion(
        self,
        wanted: CriterionRef,
        record: Graded,
        example: examples.KnownExample,
        partners: Sequence[examples.KnownCriterion | None],
    ) -> examples.KnownCriterion | None:
        if record.scored_rubric and wanted.row is not None:
            partner = partners[wanted.row]
            if partner is None:
                expected, text = f"a criterion of prompt_id {record.prompt_id!r}", record.rubric[wanted.row].text[:60]
                refuse(f"rubric_items[{wanted.row}].criterion", expected, repr(text))
            return partner
        if record.is_row_of_table and wanted.row is not None:
            criterion = partners[wanted.row]
        elif wanted.position is not None:
            criterion = next((c for c in example.rubric if c.position == wanted.position), None)
        else:
            criterion = _of_cluster(wanted.cluster, example)
            alike = [c for c in example.rubric if c.text == wanted.text]
            if criterion is None and len(alike) == 1:
                criterion = alike[0]
        if criterion is None and wanted.row is not None:
            criterion = partners[wanted.row]
        if criterion is None:
            why = f"{wanted} is not in the rubric of {record.prompt_id!r}, or is there twice"
            self._report.no_partner(record.line, why)
        return criterion

    def _find_responses(self, joined: Sequence[Joined], known: Collection[int]) -> None:
        held: defaultdict[int, list[KnownResponse]] = defaultdict(list)
        models: set[Any] = {row.record.model for row in joined}
        statement = lookups.RESPONSES if None in models else lookups.RESPONSES_OF
        for stored in lookups.tuples(self._session, statement, known, models=models):
            example, number, dataset, sample_index, text, completion_id, model = stored
            response = KnownResponse(model, dataset, sample_index, text, completion_id, number=number)
            held[example].append(response)
        self._find_graded_alike(joined, held)
        before: Joined | None = None
        for row in joined:
            record = row.record
            if before is not None and before.response is not None and _speaks_again(before, row):
                row.response = before.response
                continue
            before = row
            with self._faults.caught(record.line):
                responses = held[row.example.number or 0]
                row.response = row.response or self._partner(record, responses)
                if row.response is not None:
                    self._count_known(row.response)
                    if record.text is not None and row.response.number is not None:  # else the row speaks of it
                        bring(self._session, "response", [row.response.number])
                elif record.text is not None:
                    row.response = self._new_response(row, responses)
                    responses.append(row.response)
                elif any(criterion is not None for criterion in row.criteria):
                    by_id, by_model = f"completion_id {record.completion_id!r}", f"model {record.model!r}"
                    wanted = by_id if record.completion_id else by_model
                    self._report.no_partner(record.line, f"no response of {wanted} to example {record.prompt_id!r}")
                if row.response is not None and record.scored_rubric and record.sample_index is None:
                    self._take(row.response, record)

    def _find_graded_alike(self, joined: Sequence[Joined], held: dict[int, list[KnownResponse]]) -> None:
        """Equal answers of a run are told apart by their verdicts first, so that a file in another order adds nothing."""
        choices: list[tuple[Joined, list[KnownResponse]]] = []
        for row in joined:
            if row.record.scored_rubric and row.record.sample_index is None and row.record.verdicts:
                alike = self._alike(row.record, held[row.example.number or 0])
                if len(alike) > 1:
                    choices.append((row, alike))
        labels: defaultdict[tuple[int, int], Labels] = defaultdict(dict)
        numbers = {response.number or 0 for _, alike in choices for response in alike}
        for stored in lookups.rows(self._session, lookups.STANDING, numbers):
            said = stored["label"], stored["explanation"]
            labels[stored["response_id"], stored["rater_id"]][stored["criterion_id"]] = said
        for row, alike in choices:
            verdicts = row.record.verdicts
            rater = self._context.rater(verdicts[0].rater_kind, verdicts[0].rater)
            wanted = {
                criterion.number or 0: (str(given.label), given.explanation)
                for given, criterion in zip(verdicts, row.criteria, strict=True)
                if criterion is not None
            }
            free = [one for one in alike if self._is_free(one, row.record)]
            same = (one for one in free if one.number and labels.get((one.number, rater)) == wanted)
            row.response = next(same, None)
            if row.response is not None:
                self._take(row.response, row.record)
                self._count_known(row.response)

    def _alike(self, record: Graded, responses: Sequence[KnownResponse]) -> list[KnownResponse]:
        """Responses that a row may speak of by its text, those of its own name first."""
        name = record.completion_id
        wanted = (record.model, record.evaluation or self._options.evaluation, record.text)
        alike = [one for one in responses if (one.model, one.dataset, one.text) == wanted]
        if record.is_row_of_table:
            alike = [one for one in alike if None in (name, one.completion_id) or one.completion_id == name]
        else:
            alike = [one for one in alike if self._is_free(one, record)]
        return sorted(alike, key=lambda one: one.completion_id != name) if name else alike

    def _is_free(self, response: KnownResponse, record: Graded) -> bool:
        """Whether no row with this judge, or without one, was found to be this response by its text."""
        judge = _judge_of(record)
        return judge not in response.takers and response.number not in self._taken[judge]

    def _take(self, response: KnownResponse, record: Graded) -> None:
        judge = _judge_of(record)
        if response.number is None:
            response.takers.add(judge)
        else:
            self._taken[judge].add(response.number)

    def _partner(self, record: Graded, responses: Sequence[KnownResponse]) -> KnownResponse | None:
        """The response that a row speaks of. A run's k-th equal answer is the study's k-th, since ids of equal texts collide."""
        if (record.scored_rubric or record.is_row_of_table) and record.sample_index is None:
            return next(iter(self._alike(record, responses)), None)
        fitting = list(responses)
        is_placed = record.text is not None and record.sample_index is not None
        for name, wanted in (
            ("completion_id", None if is_placed else record.completion_id),
            ("model", record.model),
            ("sample_index", record.sample_index),
            ("dataset", record.evaluation),
        ):
            if wanted is not None:
                fitting = [response for response in fitting if getattr(response, name) == wanted]
        if record.text is not None:
            if fitting and all(response.text != record.text for response in fitting):
                which, hint = f"completion_id {record.completion_id!r}", ""
                if is_placed or not record.completion_id:
                    which = f"sample {record.sample_index} of model {record.model!r} to {record.prompt_id!r}"
                    hint = "; fill in Model to give the answers of another run a name of their own"
                refuse("completion", f"the text imported before for {which}", f"another{hint}")
            return next((response for response in fitting if response.text == record.text), None)
        if len(fitting) > 1 and record.evaluation is None:
            fitting = [response for response in fitting if response.dataset == self._options.evaluation] or fitting
        if len(fitting) > 1:
            came = "nothing" if record.sample_index is None else record.sample_index
            expected = f"sample_index, model or completion_id to tell which, since {len(fitting)} responses fit"
            refuse("sample_index", expected, came)
        return fitting[0] if fitting else None

    def _count_known(self, response: KnownResponse) -> None:
        if response.number is not None and response.number not in self._met:
            self._met.add(response.number)
            self._report.responses_known += 1

    def _new_response(self, row: Joined, responses: Sequence[KnownResponse]) -> KnownResponse:
        record, example = row.record, row.example
        model, dataset = record.model or "", record.evaluation or self._options.evaluation
        taken = [r.sample_index for r in responses if (r.model, r.dataset) == (model, dataset)]
        messages = record.sent or record.messages
        sent = examples.as_stored(messages) if messages is not None else None
        self._report.responses_new += 1
        if example.provisional:
            self._report.responses_without_example += 1
        else:
            self._report.responses_joined += 1
            if messages is not None and sent != example.messages:
                plain = [message for message in messages if message.role not in ("system", "developer")]
                if examples.as_stored(plain) == example.messages:
                    self._report.prompts_with_system_message += 1
                else:
                    self._report.prompts_other += 1
        return KnownResponse(
            model=model,
            dataset=dataset,
            sample_index=max(taken, default=-1) + 1 if record.sample_index is None else record.sample_index,
            text=record.text or "",
            completion_id=record.completion_id,
            sent_messages=None if sent == example.messages else sent,
            n_criteria=(len(record.rubric) or None) if record.scored_rubric else None,
            finish_reason=record.finish_reason,
            made_on=record.made_on,
        )

    def _write_responses(self, joined: Sequence[Joined]) -> dict[int, list[str]]:
        fresh: dict[int, tuple[KnownResponse, examples.KnownExample]] = {}
        for row in joined:
            if row.response is not None and row.response.number is None:
                fresh[id(row.response)] = (row.response, row.example)
        models = self._context.models({response.model for response, _ in fresh.values()})
        rows = []
        for response, example in fresh.values():
            values = msgspec.structs.asdict(response)
            del values["number"], values["takers"]
            values["dataset"] = self._context.stored("evaluation", response.dataset)
            rows.append({"example_id": example.number or 0, "model_id": models[values.pop("model")], **values})
        numbers = self._bulk.insert("response", rows)
        self._met.update(numbers)
        texts: dict[int, list[str]] = {}
        for (response, _), number in zip(fresh.values(), numbers, strict=True):
            response.number = number
            for judge in response.takers:
                self._taken[judge].add(number)
            sent: list[Message] = examples.turns(response.sent_messages) if response.sent_messages else []
            texts[number] = [response.text, *(turn.content for turn in sent)]
        return texts

    def _write_verdicts(self, joined: Sequence[Joined], fresh: Mapping[int, list[str]]) -> list[tuple[int, list[str]]]:
        """Write what is new; gives the texts to be indexed: of a new response (`fresh`) with its explanations, any other explanation alone."""
        examples: dict[int, int] = {}
        alone: list[tuple[int, list[str]]] = []
        earlier = self._earlier(joined, fresh)
        new: dict[Key, Verdict] = {}
        checked = 0
        for row in joined:
            example_id = row.example.number or 0
            response_id = row.response.number or 0 if row.response is not None else 0
            examples[response_id] = example_id
            for place, (given, criterion) in enumerate(zip(row.record.verdicts, row.criteria, strict=True)):
                if criterion is None:
                    continue
                rater_id = self._context.rater(given.rater_kind, given.rater)
                key = (response_id, criterion.number or 0, rater_id, given.stage or "")
                pending, before = new.get(key), earlier.get(key)
                said_before = _compared(pending) if pending is not None else before[1] if before is not None else None
                if said_before is not None and said_before == _compared(given):
                    self._report.verdicts_known += 1
                    if before is not None and pending is None:
                        bring(self._session, "verdict", [before[0]])
                    continue
                if row.record.is_row_of_table and (pending is not None or (before and before[2] == self._source_hash)):
                    self._faults.add(GRADED_TWICE, row.record.lines[place] if row.record.lines else row.record.line)
                    continue
                if rater_id != checked or self._own:
                    self._context.check_rater(rater_id, 0, has_own=key[:3] in self._own)
                    checked = rater_id
                if pending is not None:  # the file itself revises it: the first has to have its number
                    self._bulk.verdicts(list(new.values()))
                    new, earlier = {}, self._earlier(joined, ())
                    before = earlier[key]
                item = {"example_id": example_id, "response_id": response_id, "criterion_id": key[1]}
                new[key] = verdict_of(self._context, given, **item, rater_id=rater_id, supersedes=before and before[0])
                if given.explanation and response_id in fresh:
                    fresh[response_id].append(given.explanation)
                elif given.explanation:
                    alone.append((example_id, [given.explanation]))
        self._bulk.verdicts(list(new.values()))
        return [*((examples[number], texts) for number, texts in fresh.items()), *alone]

    def _earlier(self, joined: Sequence[Joined], fresh: Collection[int]) -> dict[Key, Earlier]:
        responses = {row.response.number or 0 for row in joined if row.response is not None}
        rows = lookups.rows(self._session, lookups.STANDING, responses.difference(fresh))
        self._own = {(row["response_id"], row["criterion_id"], row["rater_id"]) for row in rows if is_own(row)}
        return {
            (row["response_id"], row["criterion_id"], row["rater_id"], row["stage"]): (
                row["id"],
                _compared_in(row),
                row["source_hash"],
            )
            for row in rows
        }


def verdict_of(context: ImportContext, given: GivenVerdict, *, supersedes: int | None, **item: Any) -> Verdict:
    """A given verdict on an item (`example_id`, `response_id`, `criterion_id`, `rater_id`) as it is stored, counted."""
    context.report.verdicts_new += supersedes is None
    context.report.verdicts_superseding += supersedes is not None
    item.update(zip(_SAID, _said(given), strict=True))
    at = datetime.fromisoformat(given.read_at) if given.read_at else context.at
    return Verdict(**item, created_at=at, supersedes=supersedes)


def _speaks_again(before: Joined, row: Joined) -> bool:
    """Whether two rows of a table, which has one for each criterion, are of one response."""
    is_one = row.example is before.example and row.record.is_row_of_table and not row.record.scored_rubric
    return is_one and before.record.is_row_of_table and of_response(before.record) == of_response(row.record)


def _judge_of(record: Graded) -> str:
    return record.verdicts[0].rater if record.verdicts else ""


def _of_cluster(cluster: str | None, example: examples.KnownExample) -> examples.KnownCriterion | None:
    if cluster is None:
        return None
    alike = [criterion for criterion in example.rubric if examples.cluster_of(criterion) == cluster]
    return alike[0] if len(alike) == 1 else None
