"""Who may do what, when, and see what: a `check_...` raises the sentence that also explains the disabled button; `visible_verdicts` is the one door."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from evalcore.errors import AlreadyChanged, NotAllowed, OverreadError, refuse
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import Ask, RaterKind, ReadingMode, ReadingState, Role, Viewer

if TYPE_CHECKING:
    import pandas as pd

LEAD = frozenset({Role.LEAD})
READERS = frozenset({Role.REVIEWER, Role.ADJUDICATOR})
STUDY = frozenset({Role.RESEARCHER, Role.LEAD})


def _takes(wanted: frozenset[Role], act: str) -> Callable[[Viewer], None]:
    def check(viewer: Viewer) -> None:
        if not viewer.roles & wanted:
            who = listed([f"{role}s" for role in sorted(wanted)])
            own = [f"{'an' if role is Role.ADJUDICATOR else 'a'} {role}" for role in sorted(viewer.roles)]
            held = f"are {listed(own)}" if own else "have no role"
            refuse(f"Only {who} can {act}; you {held} in this study.", NotAllowed)

    return check


check_can_give_verdict = _takes(READERS, "give verdicts")
check_can_read = _takes(READERS, "read assigned responses")
check_can_adjudicate = _takes(frozenset({Role.ADJUDICATOR}), "adjudicate")
check_can_export = _takes(frozenset(Role), "export")
check_can_import = _takes(STUDY, "import")
check_can_mend = _takes(STUDY, "withdraw imports, mark broken responses and change names")
check_can_see_audit = _takes(STUDY, "read the audit trail")
check_can_set_families = _takes(STUDY, "change the table of families")
check_can_set_meaning = _takes(STUDY, "say what a confidence refers to")
check_can_split = _takes(STUDY, "split conversations into sets for judges")
check_can_state_analysis = _takes(STUDY, "state the analysis")
check_can_freeze = _takes(LEAD, "freeze the study or open it again")
check_can_delete = _takes(LEAD, "delete the study")
check_can_add_people = _takes(LEAD, "add people")
check_can_follow = _takes(STUDY, "follow the study with a program")
check_can_make_keys = _takes(LEAD, "make and revoke keys")
check_can_assign = _takes(LEAD, "assign reading")
check_can_import_reads_of = _takes(LEAD, "import reads of people with an account")
"""The lead answers for reads that were made elsewhere and come under the name of somebody with an account."""
check_can_answer = _takes(LEAD, "answer readers' lines")
check_can_run = _takes(LEAD, "start and stop runs")
"""It costs money, and brings answers and verdicts in."""
check_can_see_replies = _takes(LEAD, "read the replies to questions that failed")
"""What a judge said where its reply could not be read may still tell its verdict."""
check_can_set_triage = _takes(LEAD, "change the triage settings")


def check_can_give_practice(viewer: Viewer, ask: Ask, mode: ReadingMode) -> None:
    """A practice round is read blind, as what follows it, and is held against one settled label a criterion."""
    check_can_assign(viewer)
    if ask is not Ask.RUBRIC:
        msg = (
            "A practice round is for criteria alone: physicians' levels of care may lie one apart and both stand, so there is no one label to "
            "compare with."
        )
        raise NotAllowed(msg)
    if mode is ReadingMode.OPEN:
        refuse("A practice round is for blind reads: this study shows the judge's verdict from the start.", NotAllowed)


def check_can_amend(viewer: Viewer, *, is_cancelled: bool) -> None:
    """A lead changes an assignment as long as it goes on."""
    check_can_assign(viewer)
    if is_cancelled:
        refuse("This assignment was cancelled. Assign anew what is still to be read.", AlreadyChanged)


def check_can_practise(viewer: Viewer, chosen: Collection[int], response_id: int) -> None:
    """One practises on the responses (`chosen`) that were set apart for oneself, since feedback shows what others settled."""
    check_can_read(viewer)
    if response_id not in chosen:
        refuse(f"Response {response_id} is not set apart for your practice.", NotAllowed)


def check_has_practised(n_left: int) -> None:
    """Where the lead wants it, practice comes before the first real response of an assignment."""
    if n_left:
        msg = f"Practise first: {counted(n_left, 'practice response waits', 'practice responses wait')} for you in Review."
        raise NotAllowed(msg)


def check_is_first(n_people: int) -> None:
    """Whoever comes first makes themselves the first person; all others are added by a lead."""
    if n_people:
        refuse("Somebody is in this study already. Ask a lead to add you on the Study page.", NotAllowed)


def check_can_settle(viewer: Viewer, readers: Collection[str]) -> None:
    """An adjudicator settles only what others have read: `readers` are the names of those with a verdict on the response."""
    check_can_adjudicate(viewer)
    if viewer.name in readers:
        refuse("You have read this response yourself: somebody else has to settle it.", NotAllowed)


def check_can_mark(viewer: Viewer, reader: int, state: ReadingState) -> None:
    """Drafts are made by their reader (a person_id) alone, and until the first read is locked."""
    check_own(viewer, reader)
    if state is not ReadingState.READING:
        msg = "This read was submitted already, in another tab or by a second press. Nothing was saved twice."
        raise AlreadyChanged(msg)


def check_is_open(*, is_skipped: bool, is_freed: bool) -> None:
    """What a reader has skipped waits for a lead, and what a lead has taken back is in nobody's hands: nothing is said of either."""
    if is_freed:
        msg = "A lead has taken this response back: its assignment was cancelled, or handed to another reader. Your marks are kept; open Review for the next."
        raise AlreadyChanged(msg)
    if is_skipped:
        msg = "You have skipped this response, maybe in another tab. It waits for the lead, who can return it to you."
        raise AlreadyChanged(msg)


def check_is_returnable(*, is_skipped: bool, is_theirs: bool, has_place: bool) -> None:
    """A lead gives a response back that its reader has skipped, as long as it is still asked of them and others have not taken its place."""
    if not is_skipped:
        refuse("This response is not skipped any more: the reader has it already.", AlreadyChanged)
    if not is_theirs:
        msg = "The assignment of this response was cancelled, or handed to another reader: it cannot be returned. Close the thread instead."
        raise NotAllowed(msg)
    if not has_place:
        msg = "As many others as were wanted have read this response, or are reading it: it cannot be returned. Close the thread instead."
        raise NotAllowed(msg)


def check_can_decide(viewer: Viewer, reader: int, state: ReadingState) -> None:
    """Keep or revise: by the reader alone, once the first read is locked and the judge may be shown."""
    check_can_reveal(viewer, reader, state)
    if state is ReadingState.LOCKED:
        msg = "Ask for the judge's verdict first: until then nothing of it is shown, and a slip can be corrected."
        raise NotAllowed(msg)


def check_can_reveal(viewer: Viewer, reader: int, state: ReadingState) -> None:
    """See the judge's verdict: the reader alone, once the first read is locked."""
    check_own(viewer, reader)
    if state is ReadingState.READING:
        refuse("The judge's verdict is shown once your first read is submitted.", NotAllowed)


def check_can_slip(viewer: Viewer, reader: int, state: ReadingState, *, has_seen: bool, has_gone_on: bool) -> None:
    """Say that a key was hit by mistake: the reader alone, from the lock until they see what anybody else says or answer something else."""
    check_own(viewer, reader)
    if state is ReadingState.READING:
        refuse("This read is not locked yet: give the other answer instead.", NotAllowed)
    if has_seen or state is ReadingState.REVEALED:
        msg = "You have seen what others say of this response, so this is no slip any more. Change your label instead: both stay."
        raise NotAllowed(msg)
    if state is ReadingState.DONE and has_gone_on:
        msg = "You have answered another response since. Change your label in My reads instead: both stay."
        raise NotAllowed(msg)


def check_own(viewer: Viewer, reader: int, _state: ReadingState | None = None) -> None:
    """A read is its reader's alone."""
    check_can_read(viewer)
    if viewer.person_id != reader:
        refuse("This read belongs to somebody else.", NotAllowed)


def visible_verdicts(verdicts: "pd.DataFrame", viewer: Viewer | None, blind: Collection[int]) -> "pd.DataFrame":
    """The one door to verdicts (rows with example_id, rater and rater_kind).

    Of conversations that wait for the viewer (`blind`: `adjudication.hidden_examples`) only the viewer's own are seen; without a viewer not even those.
    """
    open_ = ~verdicts["example_id"].isin(list(blind))
    if viewer is None:
        return verdicts.loc[open_]
    return verdicts.loc[open_ | (verdicts["rater"].eq(viewer.name) & verdicts["rater_kind"].eq(RaterKind.REVIEWER))]


def check_can_open(viewer: Viewer, example_id: int, blind: Collection[int]) -> None:
    """A conversation with its verdicts is open to everybody but those who are to read it blind, or to settle it."""
    if example_id in blind:
        msg = f"This conversation waits for your {own_act(viewer)}, {viewer.name}: its verdicts are shown once you have submitted it."
        raise NotAllowed(msg)


def own_act(viewer: Viewer) -> str:
    """What a conversation that is hidden from somebody may wait for, in words: "first read", of adjudicators "first read or settlement"."""
    return "first read or settlement" if allows(check_can_adjudicate, viewer) else "first read"


def reason(check: Callable[..., None], viewer: Viewer, *what: object) -> str:
    """Why the viewer may not, as a sentence; empty where there is no reason."""
    try:
        check(viewer, *what)
    except OverreadError as refusal:
        return str(refusal)
    return ""


def allows(check: Callable[..., None], viewer: Viewer, *what: object) -> bool:
    """Whether the viewer may, by the rule that `check` enforces."""
    return not reason(check, viewer, *what)
