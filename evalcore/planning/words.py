"""A plan in words, tables and a curve, for the screen and the command line."""

import math

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY
from evalcore.figures.frames import LEGEND
from evalcore.planning import pilot_estimates
from evalcore.planning.pilot_estimates import Target, detectable
from evalcore.planning.sample_size import IMPORTANCE, MOST_READERS, UNIFORM, Answer, Needed
from evalcore.rubric.drawings import Goal
from evalcore.stats.intervals import NO_VALUE, percent_words
from evalcore.stats.wording import counted
from evalcore.study.analysis import PHYSICIANS_WORDS
from evalcore.study.schema import Claim, Physicians

CLAIM_WORDS = {
    (claim, physicians): f"{on}, for {whom}"
    for claim, on in ((Claim.BENCHMARK, "on this benchmark"), (Claim.NEW_EXAMPLES, "on new examples too"))
    for physicians, whom in PHYSICIANS_WORDS.items()
}
SOURCE_WORDS = {  # of a source of error its name, and what makes it less
    pilot_estimates.EXAMPLES: ("Examples differ", "more examples"),
    pilot_estimates.UNITS: ("The judge misses more on one response than on another", "more responses read"),
    pilot_estimates.READERS: ("One physician is stricter than another", "more physicians"),
    pilot_estimates.REST: ("A physician is not equally strict on every response", "more reads, first or second"),
}
OPTION_WORDS = {
    pilot_estimates.NOW: "As it stands",
    pilot_estimates.MORE_RESPONSES: "More responses by the same physicians",
    pilot_estimates.MORE_READERS: "More responses by twice as many physicians",
    pilot_estimates.SECOND_READS: "Second reads of the same responses",
}
DESIGN_WORDS = {UNIFORM: "drawn with equal chances", IMPORTANCE: "drawn by importance"}
FEW_HOURS, TWICE = 10, 2
SINGLE = 1.5  # criteria a unit: with fewer, criteria were drawn one by one
# the colours: 3:1 and more on paper and on slate
LINES = {UNIFORM: ("equal chances", "#4482c4", "dash"), IMPORTANCE: ("by importance", "#a8741f", "solid")}
CURVE_PIXELS = 300
WIDEST = 8  # times the width that is wanted, of the curve: the first few responses would press the rest flat
FEW_UNITS, ROOM = 10, 1.12


def width_words(target: Target, half_width: float) -> str:
    """Half a width as the number itself is said: points of a score, percentage points of a share."""
    if math.isinf(half_width):
        return "not known at all"
    return f"±{100 * half_width:.1f} percentage points" if target.goal is Goal.JUDGE_ERROR else f"±{half_width:.3f}"


def holds_words(target: Target) -> str:
    """What its interval holds for; nothing of a judge's errors, which have one claim."""
    return "" if target.goal is Goal.JUDGE_ERROR else CLAIM_WORDS[target.claim, target.physicians]


def amount_words(target: Target, needed: Needed) -> str:
    """How much has to be read."""
    criteria = counted(needed.n_items, "criterion", "criteria")
    if target.goal is Goal.DIFFERENCE:
        criteria = f"{counted(needed.n_responses, 'response')}, {criteria}"
        return f"{counted(needed.n_units, 'further example')} with both models' responses ({criteria})"
    return f"{counted(needed.n_units, 'further response')} ({criteria})"


def units_words(target: Target) -> str:
    """What is drawn: responses, or examples with both models' responses."""
    return "examples" if target.goal is Goal.DIFFERENCE else "responses"


def counted_units(target: Target, n: int, which: str = "") -> str:
    """How many of them, e.g. "1 further response"."""
    return counted(n, f"{which} {units_words(target)[:-1]}".strip())


def finding(found: Answer) -> str:
    """How much has to be read, in a sentence."""
    target = found.target
    wanted = width_words(target, target.within)
    if target.goal is Goal.JUDGE_ERROR:
        what = f"the share of labels on which {target.judges[0]} is wrong"
    elif target.goal is Goal.DIFFERENCE:
        what = f"the corrected difference between {target.models[0]} and {target.models[1]}"
    else:
        what = f"{target.models[0]}'s corrected score"
    holds = f" {holds_words(target)}".rstrip()
    if not found.n_units:
        return "There is nothing to read for this: no response can be scored and has every chosen judge's label on all its criteria."
    alike, important = found.designs[UNIFORM], found.designs[IMPORTANCE]
    if target.power is not None:
        wanted = f"{target.within:.3f} with {100 * target.power:.0f} % power, which takes an interval of {width_words(target, target.half_width)}"
    if not alike.reachable:
        return _beyond_reading(found, what, holds, wanted)
    if not alike.n_units:
        now = width_words(target, found.half_width_now)
        enough = "" if target.power is None else f", enough to find a difference of {wanted}"
        done = f"with what is read and assigned, the 95 % interval of {what} is expected to be"
        return f"Nothing more has to be read: {done} {now}{holds}{enough}."
    by_chance, by_importance = amount_words(target, alike), amount_words(target, important)
    either = f"{by_chance} {DESIGN_WORDS[UNIFORM]}, or {by_importance} {DESIGN_WORDS[IMPORTANCE]}"
    reached = f"known within {wanted}" if target.power is None else f"found where it is {wanted}"
    return f"Physicians have to read {by_chance if by_chance == by_importance else either}. Then {what} is {reached}{holds}."


def _beyond_reading(found: Answer, what: str, holds: str, wanted: str) -> str:
    target, readers = found.target, found.variances.readers
    still = f"would still be {width_words(target, found.half_width_all)}"
    whole = f"with every response read, the 95 % interval of {what}"
    if not readers.in_general:
        why = ", since one of several physicians reads each response, and nobody knows what the others would say. Second reads tell"
        if target.claim is Claim.NEW_EXAMPLES or target.goal is Goal.JUDGE_ERROR:
            why = ", since it has to hold for new examples too. That takes more examples"
        return f"Reading alone will not do: {whole}{holds} {still}, not {wanted}{why}."
    if math.isnan(readers.of_readers):
        read = counted(len(found.components.loads), "physician")
        return f"How far physicians differ is not known: {read} {'has' if len(found.components.loads) == 1 else 'have'} read here, and it takes at least 2."
    few = f"With {counted(readers.n, 'physician')} no number of reads reaches {wanted} {holds_words(target)}"
    if found.n_readers_needed is not None:
        return f"{few}; {found.n_readers_needed:,} do. By {readers.n:,}, {whole} {still}."
    most = width_words(target, found.variances.half_width(found.variances.n_free, UNIFORM, n_readers=MOST_READERS))
    more = " That takes more examples." if target.claim is Claim.NEW_EXAMPLES else ""
    return f"Reading alone will not do: {whole}{holds} {still} by these {counted(readers.n, 'physician')}, and {most} by {MOST_READERS}, not {wanted}.{more}"


def claims_words(found: Answer) -> str:
    """What the same reads would give for the other population of physicians; empty where there is none."""
    target, table = found.target, found.claims
    rows = table.loc[table["claim"].eq(target.claim) & table["physicians"].ne(target.physicians)]
    if rows.empty:
        return ""
    row = rows.iloc[0]
    other = CLAIM_WORDS[target.claim, Physicians(row["physicians"])]
    if not math.isfinite(row["half_width"]):
        return f"What the same reads would give {other} cannot be told: fewer than 2 physicians have read."
    return f"The same reads are expected to give {width_words(target, row['half_width'])} {other}."


def detectable_words(found: Answer, power: float) -> str:
    """The least difference that the reads can find with this power; empty for another goal, or without reads."""
    if found.target.goal is not Goal.DIFFERENCE or not math.isfinite(found.half_width_now):
        return ""
    least = detectable(found.half_width_now, power)
    difference = f"a true difference of {least:.3f} {holds_words(found.target)}"
    found_words = f"{difference} would be found with {100 * power:.0f} % power"
    also = "non-inferiority with that margin would be shown as often where the two are truly alike"
    return f"With what is read and assigned, {found_words}; {also}."


def components_words(found: Answer) -> str:
    """What could not be told of the variance components, and what came out below 0."""
    parts = found.components
    if found.target.goal is Goal.JUDGE_ERROR:
        return ""
    if not parts.is_known:
        return "Too few drawn items have been read to divide the error by its sources."
    units = "responses" if parts.n_items > SINGLE else "criteria"
    sentences = [
        f"Estimated from {counted(parts.n_reads, 'read')} of {parts.n_units:,} {units} by {counted(len(parts.loads), 'physician')}; "
        f"{parts.n_double:,} of the {units} have two readers or more."
    ]
    if math.isnan(parts.of_units):
        sentences.append("Without second readers the judge's misses count as the reader's own error.")
    if math.isnan(parts.of_readers):
        sentences.append("One physician alone does not show how far physicians differ.")
    names = (SOURCE_WORDS[name][0] for name in parts.clipped)
    return " ".join([*sentences, *(f"“{name}” was estimated below 0 by chance and is set to 0." for name in names)])


def components_table(parts: pilot_estimates.Components) -> dict[str, list[str]]:
    """What the standard error on new examples, for physicians in general, is made of, one row a source."""
    sources = pd.Series(parts.sources())
    shares = sources / (sources.sum() or math.nan)
    return {
        "Source": [SOURCE_WORDS[name][0] for name in sources.index],
        "Its part of the standard error": [error_words(math.sqrt(value)) for value in sources],
        "Share of the variance": [percent_words(share) for share in shares],
        "Less with": [SOURCE_WORDS[name][1] for name in sources.index],
    }


def error_words(error: float) -> str:
    """A standard error of a score; a dash and why where it is NaN."""
    return f"{NO_VALUE} (cannot be told)" if math.isnan(error) else f"{error:.4f}"


def options_words(table: pd.DataFrame, target: Target, amount: str) -> str:
    """What the next reads (`amount`: "the next 100 hours") should go to, by `options`; empty where unknown."""
    known = table.loc[table["standard_error"].notna()]
    errors = {str(name): float(error) for name, error in zip(known["option"], known["standard_error"], strict=True)}
    n_reads = {str(name): int(n) for name, n in zip(known["option"], known["n_reads"], strict=True)}
    now = errors.pop(pilot_estimates.NOW, None)
    if now is None or not errors:
        return ""
    best = min(errors, key=errors.__getitem__)
    if round(errors[best], 4) >= round(now, 4):
        return f"Nothing that {amount} could be spent on makes the standard error less than {now:.4f} {holds_words(target)}."
    names = {name: f"{OPTION_WORDS[name][0].lower()}{OPTION_WORDS[name][1:]}" for name in errors}
    less, fewer = "", [name for name in errors if n_reads[name] < n_reads[best] and errors[name] < now]
    if fewer:
        name = min(fewer, key=errors.__getitem__)
        less = f" {counted(n_reads[name], 'read')} spent on {names[name]} would bring it to {errors[name]:.4f}."
    return (
        f"{amount[0].upper()}{amount[1:]} should help most if spent on {names[best]} ({n_reads[best]:,} can be made). The expected "
        f"standard error then falls from {now:.4f} to {errors[best]:.4f} {holds_words(target)}.{less}"
    )


def basis_words(found: Answer) -> str:
    """Where the expectations come from."""
    basis, n = found.pilot.basis, f"{found.pilot.n_reads:,}"
    if basis is pilot_estimates.Basis.ASSUMED:
        right = f"{100 * pilot_estimates.ASSUMED_ACCURACY:.0f} %"
        return (
            f"Too little has been read to measure anything here: this assumes a judge that is right on {right} of the criteria, "
            f"and errors on one response that are alike (correlation {pilot_estimates.ASSUMED_CORRELATION})."
        )
    words = {
        pilot_estimates.Basis.DRAWN: f"Estimated from {n} criteria that were drawn and read blind.",
        pilot_estimates.Basis.NOT_DRAWN: f"Estimated from {n} criteria that were read blind, though not all of them were drawn: this is a guess.",
        pilot_estimates.Basis.OTHERS: f"Estimated from {n} criteria of responses of all models, since too few of these were read.",
    }
    few = f" That is a pilot: below {pilot_estimates.PILOT_READS} the answer may still change as more is read."
    return words[basis] + (few if found.pilot.n_reads < pilot_estimates.PILOT_READS else "")


def so_far_words(found: Answer) -> str:
    """What has been read, and what waits."""
    read = f"{found.n_responses_read:,} of {found.n_responses:,} responses ({found.n_items_read:,} of {found.n_items:,} criteria) are drawn and read"
    waits = f", {found.n_responses_waiting:,} more are assigned and wait" if found.n_responses_waiting else ""
    if not math.isfinite(found.half_width_now):
        return f"{read}."
    now = width_words(found.target, found.half_width_now)
    return f"{read}{waits}; with these the interval is expected to be {now}."


def often_words(times: float) -> str:
    """How often beside something else, by the ratio itself and not by rounded figures."""
    percent = round(100 * (times - 1))
    if not percent:
        return "as often as"
    if times >= TWICE:
        return f"{times:.1f} times as often as"
    return f"{abs(percent)} % {'more' if percent > 0 else 'less'} often than"


def disagreement_words(found: Answer) -> str:
    """What it does to a drawing by importance that judges disagree."""
    judges = found.disagreement
    if not judges.n_items:
        return (
            "No two judges have labelled these criteria, nor one judge twice, so a draw by importance goes by points alone; "
            "it would take more of what judges disagree on."
        )
    labelled = f"{judges.n_items:,} criteria that two judges or more, or one judge several times, have labelled"
    if judges.n_disagreed in (0, judges.n_items):
        how = "disagree" if judges.n_disagreed else "agree"
        return f"Judges {how} on all of the {labelled}, so it makes no difference to a drawing."
    disagree = f"Judges disagree on {judges.n_disagreed:,} of the {labelled}"
    if math.isnan(judges.times):
        return f"{disagree}."
    return f"{disagree}: a draw by importance takes these {often_words(judges.times)} those on which they agree."


def hours_words(hours: float | None, n_readers: int, seconds: float | None) -> str:
    """How long the reading takes."""
    if hours is None or seconds is None:
        return "No reading has been timed yet, so hours cannot be told."
    each = "one reader each" if n_readers == 1 else f"{n_readers} readers each"
    return f"About {hours_short(hours)} of reading in all, with {each}: a criterion takes {seconds:.0f} seconds, as measured."


def hours_short(hours: float | None) -> str:
    """A time for a cell of a table."""
    if hours is None:
        return f"{NO_VALUE} (not timed yet)"
    if hours < 1:
        return f"{60 * hours:.0f} minutes"
    return f"{hours:,.0f} hours" if hours >= FEW_HOURS else f"{hours:.1f} hours"


def narrowing(table: pd.DataFrame, *, within: float, units: str, axis: str, tick_format: str) -> go.Figure:
    """How the interval narrows with reading, a line a design (`sample_size.curve`), and how narrow it is wanted."""
    figure = go.Figure()
    for design, (name, colour, dash) in LINES.items():
        rows = table.loc[table["design"].eq(design)]
        line, shown = {"color": colour, "width": 2.5, "dash": dash}, "%{x:,} " + units + ", " + name
        hover = shown + ": ±%{y:" + tick_format + "}<extra></extra>"
        drawn = {"x": rows["n_units"], "y": rows["half_width"], "mode": "lines"}
        figure.add_scatter(**drawn, name=name, line=line, hovertemplate=hover)
    wanted = {"annotation_text": "wanted", "annotation_position": "top right"}
    figure.add_hline(y=within, line={"color": GREY, "width": 1, "dash": "dot"}, **wanted)
    whole = {"dtick": 1} if table["n_units"].max() <= FEW_UNITS else {}
    figure.update_xaxes(title=f"Further {units} read", gridcolor=FAINT, rangemode="tozero", tickformat=",", **whole)
    top = min(max([within, *table["half_width"]]) * ROOM, WIDEST * within)
    figure.update_yaxes(title=axis, gridcolor=FAINT, range=[0, top], tickformat=tick_format, automargin=True)
    figure.update_layout(height=CURVE_PIXELS, margin={"l": 8, "r": 8, "t": 32, "b": 40}, legend=LEGEND, dragmode=False)
    return figure
