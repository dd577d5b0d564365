"""What Adjudicate shows as HTML: the item in question, what each reader says, the judge's verdict, a criterion at fault."""

from collections.abc import Iterable
from typing import Any

from evalcore.reading.adjudication import Question, Reader
from evalcore.reading.adjudication_queries import Said
from evalcore.reading.conflicts import SENTENCES, Reason
from evalcore.reading.sheets import Given, Sheet
from evalcore.study.schema import Acuity, CannotReason, Cause, ConflictCause, ErrorKind, Severity, Stage
from pages.review.html import QUESTIONS
from pages.shared import html
from pages.shared.keys import CAUSES, LEVELS, REASONS, SEVERITIES

CONFLICT_CAUSES = {
    ConflictCause.READER_SLIPPED: "One reader slipped",
    ConflictCause.CRITERION_AMBIGUOUS: "Criterion ambiguous",
    ConflictCause.CONTEXT_MISSING: "Context missing",
    ConflictCause.CLINICAL_DISAGREEMENT: "True clinical disagreement",
    ConflictCause.CRITERION_WRONG: "Criterion wrong",
}
KINDS = {ErrorKind.OMISSION: "the answer omits something", ErrorKind.COMMISSION: "the answer says what it should not"}
FAULTS = {
    "n_settled_wrong": "wrong, by adjudicators",
    "n_settled_ambiguous": "ambiguous, by adjudicators",
    "n_readers_wrong": "wrong, by readers",
    "n_readers_ambiguous": "ambiguous, by readers",
    "n_readers_unclear": "unclear, by readers",
}


def label(value: str | None) -> str:
    """A label with its mark, or a level of care in words."""
    if value in set(Acuity):
        return f'<span class="or-label or-level">{html.escaped(LEVELS[Acuity(value)])}</span>'
    return html.label(value)


def texts(sheet: Sheet, *, as_markdown: bool) -> str:
    """The conversation and the response, whose model is hidden. One element, so that the next one begins at its top."""
    answer = ""
    if sheet.response is not None:
        answer = html.response("The response", "its model is hidden", sheet.response, as_markdown=as_markdown)
    return f'<div class="or-case">{html.conversation(sheet.messages, as_markdown=as_markdown)}{answer}</div>'


def reads(asked: Question, place: int, n_questions: int) -> str:
    """The item in hand with what each reader says on it. One element, so that the next one begins at its top."""
    return (
        f'<div class="or-case-reads" tabindex="0">{question(asked, place, n_questions)}{readers(asked.readers)}</div>'
    )


def question(asked: Question, place: int, n_questions: int) -> str:
    """The item in hand with the reasons why it is in question."""
    number = f"<b>{place + 1} of {n_questions} in question here</b>" if n_questions > 1 else ""
    why = "".join(f"<span>{html.escaped(SENTENCES[Reason(reason)])}</span>" for reason in asked.reasons)
    settled = "<span>You have settled this</span>" if asked.settled else ""
    head = f'<div class="or-why-here">{number}{why}{settled}</div>'
    if asked.criterion is None:
        return f'{head}<p class="or-asked">{html.escaped(QUESTIONS[asked.ask])}</p>'
    tags = [tag.replace("_", " ") for tag in (asked.criterion.axis, asked.criterion.cluster and "consensus") if tag]
    return head + html.criterion(asked.criterion.position, asked.criterion.text, asked.criterion.points, tags)


def readers(given: Iterable[Reader]) -> str:
    """What each reader says, first read before later ones. No names."""
    return "".join(
        f'<div class="or-reader"><h3>Reader {reader.number}</h3>'
        f"{''.join(_said(said, before) for said, before in zip(reader.said, (None, *reader.said), strict=False))}</div>"
        for reader in given
    )


def _said(said: Said, before: Said | None) -> str:
    words = [] if said.stage is Stage.FIRST else [html.STAGES[said.stage]]
    if said.stage is Stage.REVISED and before is not None and before.label == said.label:
        words = ["kept after the judge was shown"]
    if said.reason:
        words.append(REASONS[CannotReason(said.reason)].lower())
    if said.cause:
        words.append(CAUSES[Cause(said.cause)].lower())
    if said.severity:
        words.append(f"error {SEVERITIES[Severity(said.severity)].lower()}")
    if said.error_kind:
        words.append(KINDS[ErrorKind(said.error_kind)])
    if said.right_for_wrong_reason:
        words.append("right verdict for the wrong reason")
    about = f"<small>{html.escaped(' · '.join(words))}</small>" if words else ""
    note = f'<div class="or-why">{html.verbatim(said.explanation)}</div>' if said.explanation else ""
    return f'<div class="or-verdict or-read"><div>{label(said.label)} {about}</div>{note}</div>'


def judge(name: str | None, judged: Given | None) -> str:
    """The judge's verdict, once it was asked for."""
    if name is None or judged is None:
        return '<div class="or-verdict or-stamp">No judge has labelled this.</div>'
    why = html.verbatim(judged.explanation) if judged.explanation else "no explanation given"
    none = "" if judged.explanation else " or-none"
    return (
        f'<div class="or-verdict or-judge"><div><span class="or-who">The judge, <span dir="auto">{html.escaped(name)}</span></span> '
        f'{label(judged.label)}</div><div class="or-why{none}">{why}</div></div>'
    )


def missing(words: Iterable[str]) -> str:
    """What a settlement still needs."""
    wanted = list(words)
    return f'<span class="or-stamp">{html.escaped("still needed: " + ", ".join(wanted) if wanted else "")}</span>'


def top(place: str, saved: str) -> str:
    """Where one is, and when the last settlement was stored."""
    stamp = f'<span class="or-stamp or-saved" role="status">{html.escaped(saved)}</span>' if saved else ""
    return f'<div class="or-settling-top"><h1>{html.escaped(place)}</h1>{stamp}</div>'


def fault(row: dict[str, Any]) -> str:
    """A criterion at fault: its text, how often it was called so, and in which words; nobody is named."""
    counts = [f"{row[name]}× {words}" for name, words in FAULTS.items() if row[name]]
    parts = [
        html.criterion(int(row["position"]), row["criterion"], row["points"], [str(row["prompt_id"])]),
        html.chips(counts),
    ]
    for name, who in (("rationales", "Adjudicators"), ("notes", "Readers")):
        if row[name]:
            parts.append(f'<div class="or-fault-words"><h3>{who}</h3>{html.items(str(row[name]).splitlines())}</div>')
    return f'<section class="or-fault">{"".join(parts)}</section>'
