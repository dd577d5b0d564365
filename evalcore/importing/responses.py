"""Responses: joined with their examples and criteria, and with the responses that the study holds."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand
from evalcore.importing.examples import Examples, KnownExample, as_stored, turns
from evalcore.importing.formats.records import CriterionRef, GivenVerdict, Graded, Options
from evalcore.importing.known_responses import Joined, KnownResponse
from evalcore.importing.rubrics import KnownCriterion, complete, match, tag_columns
from evalcore.importing.verdicts import Verdicts
from evalcore.study import lookups
from evalcore.study.schema import Example, Message


class Responses:
    """Joins batches of graded responses with the study."""

    def __init__(self, hand: Hand, examples: Examples, options: Options) -> None:
        self._session = hand.session
        self._bulk = hand.bulk
        self._examples = examples
        self._options = options
        self._report = hand.report
        self._faults = hand.faults
        self._verdicts = Verdicts(hand)
        self._models: dict[str, int] = {}
        self._met: set[int] = set()  # responses of the study that a row of this file has been matched with

    def add(self, batch: Sequence[Graded]) -> None:
        """Join one batch and, if nothing in the file was wrong so far, write it. A row that contradicts the study is a fault."""
        groups: defaultdict[str, list[Graded]] = defaultdict(list)
        for record in batch:
            groups[record.dataset or self._options.dataset].append(record)
        for dataset, records in groups.items():
            self._add(dataset, records)

    def _add(self, dataset: str, records: Sequence[Graded]) -> None:
        self._examples.load(dataset, {record.prompt_id for record in records})
        joined: list[Joined] = []
        for record in records:
            with self._faults.caught(record.line):
                if (found := self._find_example(record)) is not None:
                    joined.append(found)
        if self._faults.count:
            return
        known = {found.example.number for found in joined if found.example.number is not None}
        self._examples.flush()
        self._find_responses(joined, known)
        if self._faults.count:
            return
        joined = [found for found in joined if found.response is not None]
        fresh = self._write_responses(joined)
        self._bulk.await_index(self._verdicts.write(joined, fresh=fresh))

    def _find_example(self, record: Graded) -> Joined | None:
        example = self._examples.known.get(record.prompt_id)
        if (
            record.messages is not None
            and (record.rubric or record.scored_rubric)
            and (example is None or example.partial or not record.scored_rubric)
        ):
            example = self._add_provisional(record, example)
        if example is None:
            self._report.no_partner(record.line, f"example {record.prompt_id!r} is not in the study")
            return None
        partners = match(record.rubric, example.rubric)
        if record.scored_rubric and complete(
            record.rubric, partners
        ):  # a result may carry tags that a rebuilt examples file lacks
            example.changed = True
        return Joined(record, example, [self._criterion(v, record, example, partners) for v in record.verdicts])

    def _add_provisional(self, record: Graded, example: KnownExample | None) -> KnownExample:
        """What a row tells of its example: the prompt and the criteria.

        A physician's row (no scored rubric) brings one criterion, which is added only where the example has none of its cluster.
        """
        if (
            example is not None
            and not record.scored_rubric
            and _of_cluster(record.verdicts[0].criterion.cluster, example)
        ):
            return example
        given = Example(
            prompt_id=record.prompt_id,
            messages=record.messages or (),
            rubric=record.rubric,
            canary=record.canary,
            provisional=True,
        )
        return self._examples.add(given)

    def _criterion(
        self,
        verdict: GivenVerdict,
        record: Graded,
        example: KnownExample,
        partners: Sequence[KnownCriterion | None],
    ) -> KnownCriterion | None:
        wanted = verdict.criterion
        if record.scored_rubric and wanted.row is not None:
            found = partners[wanted.row]
            if found is None:
                text = record.rubric[wanted.row].text[:60]
                msg = f"rubric_items[{wanted.row}].criterion: expected a criterion of prompt_id {record.prompt_id!r}, got {text!r}"
                raise RowFault(msg)
            return found
        found = _named(wanted, example)
        if found is None and wanted.row is not None:
            found = partners[wanted.row]
        if found is None:
            self._report.no_partner(
                record.line, f"{wanted} is not in the rubric of {record.prompt_id!r}, or is there twice"
            )
        return found

    def _find_responses(self, joined: Sequence[Joined], known: Collection[int]) -> None:
        """Give each row its response, the study's or a new one; only examples that were `known` before can have one."""
        held: defaultdict[int, list[KnownResponse]] = defaultdict(list)
        for row in lookups.responses_to(self._session, known):
            response = KnownResponse(
                row["model"], row["dataset"], row["sample_index"], row["text"], row["completion_id"], number=row["id"]
            )
            held[row["example_id"]].append(response)
        runs = [found for found in joined if found.record.scored_rubric and found.record.sample_index is None]
        self._find_graded_alike(runs, held)
        for found in joined:
            with self._faults.caught(found.record.line):
                responses = held[found.example.number or 0]
                found.response = found.response or self._partner(found.record, responses)
                if found.response is not None:
                    self._count_known(found.response)
                elif found.record.text is not None:
                    found.response = self._new_response(found, responses)
                    responses.append(found.response)
                elif any(criterion is not None for criterion in found.criteria):
                    record = found.record
                    wanted = (
                        f"completion_id {record.completion_id!r}" if record.completion_id else f"model {record.model!r}"
                    )
                    self._report.no_partner(record.line, f"no response of {wanted} to example {record.prompt_id!r}")

    def _find_graded_alike(self, runs: Sequence[Joined], held: dict[int, list[KnownResponse]]) -> None:
        """Equal answers of a run are told apart by their verdicts first, so that a file in another order adds nothing."""
        choices: list[tuple[Joined, list[KnownResponse]]] = []
        for found in runs:
            alike = self._alike(found.record, held[found.example.number or 0])
            if len(alike) > 1:
                choices.append((found, alike))
        graded = self._verdicts.labels_on({response.number or 0 for _, alike in choices for response in alike})
        for found, alike in choices:
            wanted = self._verdicts.labels_of(found)
            free = (
                r
                for r in alike
                if r.number not in self._met and graded.get((r.number or 0, wanted.rater)) == wanted.labels
            )
            found.response = next(free, None)
            if found.response is not None and found.response.number is not None:
                self._met.add(found.response.number)
                self._report.responses_known += 1

    def _alike(self, record: Graded, responses: Sequence[KnownResponse]) -> list[KnownResponse]:
        return [
            response
            for response in responses
            if (response.model, response.dataset, response.text)
            == (record.model, self._options.evaluation, record.text)
            and response.number is not None
            and response.number not in self._met
        ]

    def _partner(self, record: Graded, responses: Sequence[KnownResponse]) -> KnownResponse | None:
        """The response that a row speaks of. A run's k-th equal answer is the study's k-th, since ids of equal texts collide."""
        if record.scored_rubric and record.sample_index is None:
            return next(iter(self._alike(record, responses)), None)
        found = list(responses)
        for name, wanted in (
            ("completion_id", record.completion_id),
            ("model", record.model),
            ("sample_index", record.sample_index),
            ("dataset", record.evaluation),
        ):
            if wanted is not None:
                found = [response for response in found if getattr(response, name) == wanted]
        if record.text is not None:
            if found and all(response.text != record.text for response in found):
                which = (
                    f"completion_id {record.completion_id!r}"
                    if record.completion_id
                    else f"sample {record.sample_index} of model {record.model!r} to {record.prompt_id!r}"
                )
                hint = "" if record.completion_id else "; --model gives the answers of another run a name of their own"
                msg = f"completion: expected the text imported before for {which}, got another{hint}"
                raise RowFault(msg)
            return next((response for response in found if response.text == record.text), None)
        if len(found) > 1 and record.evaluation is None:
            found = [response for response in found if response.dataset == self._options.evaluation] or found
        if len(found) > 1:
            came = "nothing" if record.sample_index is None else record.sample_index
            expected = "sample_index, model or completion_id to tell which"
            msg = f"sample_index: expected {expected}, since {len(found)} responses fit, got {came}"
            raise RowFault(msg)
        return found[0] if found else None

    def _count_known(self, response: KnownResponse) -> None:
        if response.number is not None and response.number not in self._met:
            self._met.add(response.number)
            self._report.responses_known += 1

    def _new_response(self, found: Joined, responses: Sequence[KnownResponse]) -> KnownResponse:
        record, example = found.record, found.example
        model, dataset = record.model or "", record.evaluation or self._options.evaluation
        taken = [r.sample_index for r in responses if (r.model, r.dataset) == (model, dataset)]
        messages = record.sent or record.messages
        sent = as_stored(messages) if messages is not None else None
        self._report.responses_new += 1
        if example.provisional:
            self._report.responses_without_example += 1
        else:
            self._report.responses_joined += 1
            if messages is not None and sent != example.messages:
                self._count_other_prompt(messages, example)
        return KnownResponse(
            model=model,
            dataset=dataset,
            sample_index=max(taken, default=-1) + 1 if record.sample_index is None else record.sample_index,
            text=record.text or "",
            completion_id=record.completion_id,
            sent_messages=None if sent == example.messages else sent,
            n_criteria=(len(record.rubric) or None) if record.scored_rubric else None,
        )

    def _count_other_prompt(self, messages: Sequence[Message], example: KnownExample) -> None:
        plain = [message for message in messages if message.role not in ("system", "developer")]
        if as_stored(plain) == example.messages:
            self._report.prompts_with_system_message += 1
        else:
            self._report.prompts_other += 1

    def _write_responses(self, joined: Sequence[Joined]) -> dict[int, list[str]]:
        """Write the new responses. Returns their texts by their numbers, for the index."""
        fresh: dict[int, tuple[KnownResponse, KnownExample]] = {}
        for found in joined:
            if found.response is not None and found.response.number is None:
                fresh[id(found.response)] = (found.response, found.example)
        self._name_models({response.model for response, _ in fresh.values()})
        rows = [response.row(example.number or 0, self._models[response.model]) for response, example in fresh.values()]
        numbers = self._bulk.insert("response", rows)
        self._met.update(numbers)
        for (response, _), number in zip(fresh.values(), numbers, strict=True):
            response.number = number
        return {response.number or 0: _searchable(response) for response, _ in fresh.values()}

    def _name_models(self, names: set[str]) -> None:
        unknown = names - self._models.keys()
        self._models |= lookups.model_ids(self._session, unknown)
        missing = sorted(unknown - self._models.keys())
        numbers = self._bulk.insert("model", [{"name": name} for name in missing])
        self._models |= dict(zip(missing, numbers, strict=True))


def _searchable(response: KnownResponse) -> list[str]:
    sent = turns(response.sent_messages) if response.sent_messages else []
    return [response.text, *(turn.content for turn in sent)]


def _of_cluster(cluster: str | None, example: KnownExample) -> KnownCriterion | None:
    """The one criterion of a cluster; None where there are several or none."""
    if cluster is None:
        return None
    found = [criterion for criterion in example.rubric if tag_columns(criterion.tags)[2] == cluster]
    return found[0] if len(found) == 1 else None


def _named(wanted: CriterionRef, example: KnownExample) -> KnownCriterion | None:
    if wanted.position is not None:
        return next((c for c in example.rubric if c.position == wanted.position), None)
    if (found := _of_cluster(wanted.cluster, example)) is not None:
        return found
    alike = [criterion for criterion in example.rubric if criterion.text == wanted.text]
    return alike[0] if len(alike) == 1 else None
