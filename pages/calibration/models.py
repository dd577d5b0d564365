"""Models' confidence on clear cases, samples beside panels' votes on ambiguous ones, and routing: three sections."""

import pandas as pd
import streamlit as st

from evalcore.calibration import SEED, case_spread, figures, routing
from evalcore.calibration.confidence import NO_CONFIDENCE, models_confidence, models_findings
from evalcore.figures.colours import colour_of, dash_of
from evalcore.stats.intervals import NO_VALUE, percent_words
from evalcore.stats.wording import counted, decimal
from evalcore.triage.data import Kind
from evalcore.triage.settings import rule_words
from evalcore.triage.words import level_letter
from pages.calibration import confidence
from pages.calibration.confidence import ALL_MODELS, ERRORS_WORDS, of_own, own
from pages.shared import common, html, tables, theme, triage_cases, triage_choice
from pages.shared.triage_choice import FORMATS, Here, Read

BOTH = "both formats"
BY_SHARE, BY_CONFIDENCE = "share of misses to catch", "confidence"
USUAL_THRESHOLD = 0.8
TALLEST = 8
REST = ("Right, of those kept", "Ambiguous cases sent")
"""Columns of routing that stand in a table of their own, since all of them are wider than the page."""
MODELS_FOOT = (
    "Counted are cases with a clear gold and a level. A model's confidence is the one that it states itself (which "
    "the parser reads), else the share of its valid samples that say its most frequent level; of one sample that "
    "share would always be 1, so it counts from two on. What another judge states says how sure the judge is, and "
    "stands under judges' confidence. Bins hold equally many cases, as far as equal confidences allow; models that "
    "stand at one confidence are drawn a little apart. Bars and intervals are 95 %. "
)
AMBIGUOUS_FOOT = (
    "The distance is the squared gap between the model's and the panel's shares, added up over the three cuts between "
    "levels, less what so few votes and samples give by chance: 0 for a model that draws from the same physicians, on "
    "average; single cases may lie below 0. Entropy is 0 where all say one level and 2 bits where all four come "
    "equally often. Concentration is the panel's entropy less the model's: above 0 the model is surer than the "
    "physicians. By chance: what a model that draws from the panel would have, with as many votes and samples. "
    "Intervals are 95 % (t over cases)."
)
ROUTING_FOOT = (
    "A dangerous miss is an emergency (gold D) that is answered with any lower level, or a case with gold C that is "
    "answered A, as on the Triage page. A case goes to a human where the model's confidence lies below the threshold; "
    "a case without a confidence (no level was found, or there is one answer alone and it states none) always goes. "
    "The lines are of all clear cases. {how} Cases sent is the share of the clear cases that go: what it costs. "
    "Right, of those kept: the share of right answers among the cases that stay with the model. Ambiguous cases have "
    "no right answer, so they stand apart. Intervals are 95 % (Wilson). "
)
BY_HALVES = (
    "The threshold is the lowest that catches the wanted share on one half of the cases, drawn at random and the same "
    "for every model; the large marks and the table are of the other half, since on the half that chose it a "
    "threshold looks better than it is."
)
AS_GIVEN = "The large marks and the table are of all cases at the threshold that was set here."


def _model(here: Here) -> str:
    with here.row:
        options = [ALL_MODELS, *here.known.models]
        return str(confidence.one_of("Model", options, "calibration_model", width=180))


def show(here: Here) -> None:
    """How sure each model is of its level against whether it is right."""
    if not here.known.n_kinds[Kind.CLEAR]:
        triage_choice.nothing(
            "No case of this study has a clear gold, so nothing says whether an answer is right. Import cases with a level, or a panel's votes.",
            "Import cases",
        )
        return
    model = _model(here)
    (reliability, errors, _), sources = of_own(here, confidence.source(here), models_confidence)
    reliability, errors, sources = (confidence.of_model(table, model) for table in (reliability, errors, sources))
    if not errors["n"].any():
        sentence = f"{NO_CONFIDENCE} Import several samples of each answer, or confidences."
        triage_choice.nothing(sentence, "Import predictions")
        return
    for sentence in models_findings(errors):
        st.html(html.finding(sentence))
    models = common.read("models")
    drawn = reliability.assign(panel=reliability["format"], series=reliability["model"])
    words = {"x_title": "Confidence", "y_title": "Right (share of the cases)"}
    figure = figures.reliability(drawn, FORMATS, colour_of(models), dash_of(models), **words)
    sources_words = []
    for row in sources.to_dict("records"):
        n_stated, n_shares = row["n_stated"], row["n_shares"]
        said = "stated" if n_stated else "share of samples" if n_shares else NO_VALUE
        both = f"stated ({n_stated:,}), share of samples ({n_shares:,})"
        sources_words.append(both if n_stated and n_shares else said)
    alt = "Share of right answers over the model's confidence, by model and format, with 95 % intervals"
    theme.figure(figure, width="content", key="calibration_models_reliability", alt=alt)
    names = {"Model": list(errors["model"]), "Format": list(errors["format"])}
    more = {"Confidence is": sources_words, "Cases": errors["n"]}
    confidence.errors_tables(errors, names, more, key="calibration_models")
    st.html(html.foot(f"{MODELS_FOOT}{ERRORS_WORDS} Seed {SEED}, for what perfectly calibrated data would give."))


def ambiguous(read: Read, judges: tuple[tuple[str, str], ...], source: str) -> case_spread.OfAmbiguous:
    """As `on_ambiguous`."""
    return case_spread.on_ambiguous(read.triage_data, own(read, source), dict(judges))


def show_ambiguous(here: Here) -> None:
    """How far models' samples lie from panels' votes where physicians do not agree, and the cases."""
    rule = rule_words(here.settings.rule)
    if not here.known.n_kinds[Kind.AMBIGUOUS]:
        st.html(html.finding("No case of this study is ambiguous."))
        sentence = f"A case is ambiguous by {rule}. Import cases with a panel's votes, or change the rule on Study."
        triage_choice.nothing(sentence, "Go to Study")
        return
    spread: case_spread.OfAmbiguous = here.computed(ambiguous, here.chosen.judges, confidence.source(here))
    if spread.summary.empty:
        sentence = f"{case_spread.NO_SPREAD} Import the panels' votes and several samples of each answer."
        triage_choice.nothing(sentence, "Import a file")
    else:
        for sentence in case_spread.spread_findings(spread.summary):
            st.html(html.finding(sentence))
        table = triage_choice.in_order(spread.summary)
        figure = figures.spread(case_spread.from_zero(table), colour_of(common.read("models")))
        alt = "Distances of samples from votes, and the entropies of both beside those by chance, by model and format"
        theme.figure(figure, key="calibration_spread", alt=alt)
        alt = "Samples beside votes by model and format"
        tables.show(case_spread.spread_columns(table), key="calibration_far", names=("Model",), alt=alt)
    st.subheader("Sure where physicians are not", anchor=False)
    _cases(here, spread.cases)
    few = f" {counted(spread.n_few, 'answer')} with one valid sample are left out, since one shows no spread."
    few = few if spread.n_few else ""
    st.html(html.foot(f"Ambiguous: {rule}. {AMBIGUOUS_FOOT}{few} Seed {SEED}."))


def _cases(here: Here, cases: pd.DataFrame) -> None:
    if cases.empty:
        st.html(html.quiet("No ambiguous case has both the votes of a panel and two samples of a model with a level."))
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="calibration_of"):
        models, formats = [ALL_MODELS, *here.known.models], [BOTH, *FORMATS]
        model = confidence.one_of("Model", models, "calibration_of_model", width=180)
        word = confidence.one_of("Format", formats, "calibration_of_format", width=160)
    fits = cases["model"].astype(str).eq(model) | (model == ALL_MODELS)
    fits &= cases["format"].astype(str).eq(word) | (word == BOTH)
    if not fits.any():
        st.html(html.quiet("No ambiguous case with votes has two samples with a level here."))
        return
    listed = with_predictions(here, cases.loc[fits])
    columns = {
        "Case": here.read.triage_data.cases["case_id"].iloc[listed["row"].to_numpy()],
        "Model": listed["model"].astype(str),
        "Format": listed["format"].astype(str),
        "Answers": listed["predicted"].map(level_letter),
        "Confidence": listed["confidence"].map(percent_words),
        "Votes for it": listed["panel_share"].map(percent_words),
        "Panel's entropy": listed["entropy_panel"].map("{:.2f}".format),
        "Model's entropy": listed["entropy_model"].map("{:.2f}".format),
        "Concentration (bits)": listed["concentration"].map(decimal),
    }
    alt = "Ambiguous cases, those first where the model is sure and physicians are not"
    touched = tables.pick(columns, key="calibration_case_list", names=("Model",), tallest=TALLEST, alt=alt)
    st.html(html.quiet("Click a row to see that case alone."))
    listed = listed if touched is None else listed.iloc[[touched]]
    triage_cases.listing(here, listed, key="calibration_cases", notes=panel_notes(listed))


def with_predictions(here: Here, cases: pd.DataFrame) -> pd.DataFrame:
    """Cases of `OfAmbiguous` as rows of predictions, with what was measured of them."""
    found = here.read.found
    mine = found.loc[found["kind"].eq(Kind.AMBIGUOUS)]
    keys = ["row", "model", "format"]
    measured = ["concentration", "entropy_panel", "entropy_model", "panel_share", "confidence"]
    return cases[[*keys, *measured]].merge(mine, on=keys, how="left")


def panel_notes(cases: pd.DataFrame) -> list[str]:
    """What of the panel chose the model's level."""
    shares = zip(cases["panel_share"], cases["predicted"], strict=True)
    return [f"{percent_words(share)} of the panel chose {level_letter(level)}" for share, level in shares]


def show_routing(here: Here) -> None:
    """At which confidence a case would go to a human: the curve of each model, and what the chosen threshold does."""
    model, source = _model(here), confidence.source(here)
    wanted, threshold = None, USUAL_THRESHOLD
    with here.row:
        if confidence.one_of("Choose by", [BY_SHARE, BY_CONFIDENCE], "calibration_by", width=210) == BY_SHARE:
            wanted = confidence.slider("Misses to catch", 0.5, 1.0, routing.WANTED, "calibration_wanted")
        else:
            threshold = confidence.slider("Below this confidence", 0.0, 1.0, threshold, "calibration_threshold")
    lines = of_own(here, source, routing.curves)
    if lines.empty:
        triage_choice.nothing(routing.NOTHING_TO_ROUTE, "Import a file")
        return
    by = (routing.curves, threshold) if wanted is None else (routing.chosen, wanted)
    table = of_own(here, source, *by)
    table = table.assign(undefined="") if wanted is None else table
    lines, table = (confidence.of_model(part, model) for part in (lines, table))
    st.html(html.finding(routing.routing_finding(table, wanted)))
    models = common.read("models")
    figure = figures.routing(lines, table, FORMATS, colour_of(models), dash_of(models))
    alt = "Dangerous misses that are caught over cases that go to a human, as shares, by model and format"
    theme.figure(figure, width="content", key="calibration_routing", alt=alt)
    columns = routing.routing_columns(table)
    if len(columns["Model"]):
        first = {name: column for name, column in columns.items() if name not in REST}
        rest = {name: columns[name] for name in ("Model", "Format", *REST)}
        alt, optional = "What the threshold catches and costs, by model and format", ("Without a confidence",)
        tables.show(first, key="calibration_routing_table", alt=alt, names=("Model",), optional=optional)
        alt = "What stays with the model, and ambiguous cases, by model and format"
        tables.show(rest, key="calibration_routing_rest", alt=alt, names=("Model",))
    confidence.show_reasons(table)
    foot = ROUTING_FOOT.format(how=AS_GIVEN if wanted is None else BY_HALVES)
    st.html(html.foot(foot if wanted is None else f"{foot}Seed {SEED}, for the halves."))
