"""Dangerous misses, groups, boundary and ambiguous cases, and flips: sections that lead to single cases."""

import math
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.calibration.case_spread import OfAmbiguous
from evalcore.stats.intervals import interval_words, percent_words, share_words, wilson
from evalcore.stats.wording import chance_words, counted
from evalcore.study.db import reading
from evalcore.study.languages import LANGUAGES
from evalcore.triage import cases as triage_flips, rates as triage_rates
from evalcore.triage.bases import difference_words
from evalcore.triage.cases import DANGEROUS, flip_counts, misses
from evalcore.triage.data import Kind
from evalcore.triage.figures import LETTERS, boundary_answers, by_group as group_figure
from evalcore.triage.queries import told
from evalcore.triage.rates import FEW, by_group, clear_answers
from evalcore.triage.settings import METRICS, rule_words
from evalcore.triage.words import flip_sentence, rate_words, sure_words
from pages.calibration import confidence, models as calibration_models
from pages.shared import common, html, tables, theme, triage_cases, triage_choice, triage_html
from pages.shared.triage_choice import FORMATS, Here, Read

BOTH = "both formats"
MISSES_FOOT = (
    "Counted are cases with a clear gold whose most frequent level lies below it. Order: an emergency answered with "
    "home, then with a doctor within weeks, then within a day or two; then a case for a doctor within a day or two "
    "that is answered with home. Among equals those come first that more of the model's samples agree on. The "
    "response is the first whose own level is the one that counts, else the first with a text; the chips of the "
    "samples say how the others went. To assign a response puts it before physicians, who read it without the judge's "
    "level and without the model's name, among three others that are drawn at random: one single item would tell them "
    "that it is a miss."
)


def queue(read: Read, judges: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    """The dangerous misses of all models, worst first, without their texts."""
    rows = misses(read.triage_data, read.found, judges=dict(judges))
    return rows.loc[rows["rank"].lt(len(DANGEROUS))].reset_index(drop=True)


def at_risk(read: Read) -> pd.DataFrame:
    """Answers to clear cases that need C or D, where a miss would be dangerous: model, format, n."""
    counts, gold, _ = clear_answers(read.found)
    mine = read.found.loc[counts & (gold >= min(needs for needs, _ in DANGEROUS)), ["model", "format"]].astype(str)
    return mine.groupby(["model", "format"]).size().rename("n").reset_index()


def none_missed(sizes: pd.Series) -> str:
    """That no answer is a dangerous miss, and what so few cannot exclude."""
    if sizes.empty:
        return "No case that needs C or D has an answer with a level."
    each = " in each model and format" if len(sizes) > 1 else ""
    most = percent_words(float(wilson(0, sizes.min())[1]))
    answers = f"{counted(int(sizes.sum()), 'answer')} to cases that need C or D"
    return f"In the judges' opinion no dangerous miss in {answers}; that cannot exclude up to {most}{each}."


def show_misses(here: Here) -> None:
    """Cases whose answer asks for less care than they need, the most dangerous first, by model and format."""
    model = here.model(all_models=True)
    with here.row:
        word = triage_choice.one_of("Format", [BOTH, *FORMATS], "triage_of_format", width=160)
    rows = here.computed(queue, here.chosen.judges)
    of = here.computed(at_risk)
    if model is not None:
        rows, of = (table.loc[table["model"].astype(str).eq(model)] for table in (rows, of))
    if word != BOTH:
        rows, of = (table.loc[table["format"].astype(str).eq(word)] for table in (rows, of))
    kinds = []
    for rank, (gold, predicted) in enumerate(DANGEROUS):
        if n := int(rows["rank"].eq(rank).sum()):
            need = "needs" if n == 1 else "need"
            kinds.append(f"{n:,} that {need} {LETTERS[gold - 1]} answered {LETTERS[predicted - 1]}")
    many = f"{counted(len(rows), 'dangerous miss', 'dangerous misses')} in {counted(int(of['n'].sum()), 'answer')} to cases that need C or D"
    st.html(html.finding(f"In the judges' opinion {many}: {', '.join(kinds)}." if kinds else none_missed(of["n"])))
    nothing = "Boundary and ambiguous cases, which have no single gold, are in sections of their own."
    triage_cases.listing(here, rows, key="triage_misses", nothing=nothing)
    st.html(html.foot(MISSES_FOOT))


GROUPINGS = {"Source": "source", "Level": "gold", "Panel": "strength", "Language": "language"}
IN_TABLE = {name: METRICS[name] for name in ("under", "exact", "over", "missed_emergencies")}
GROUPS_FOOT = (
    "Counted are cases with a clear gold and a level. By level, under-triage of A and over-triage of D are "
    "impossible, so their shares are 0 by what they are. Panel: how many votes stand together (unanimous, 4-1, 3-2), "
    "direct where the source's own label is the gold: a clear gold may hide a split panel. Groups of fewer than "
    f"{FEW} cases are grey: their intervals say little. Intervals are 95 % (Wilson), each group by itself; among many "
    "groups some stand out by chance."
)


def grouped(read: Read, grouping: str) -> pd.DataFrame:
    """The rates of every model by one grouping."""
    rates = by_group(read.triage_data, read.found, grouping)
    return rates.loc[rates["measure"].astype(str).isin(list(IN_TABLE))].reset_index(drop=True)


def show_groups(here: Here) -> None:
    """One model's errors by source, level, panel or language, both formats side by side."""
    model = str(here.model())
    with here.row:
        name = st.segmented_control(
            "By", list(GROUPINGS), default=triage_choice.left("triage_by", "Source"), required=True, key="triage_by", bind="query-params"
        )  # fmt: skip
    name = str(name or "Source")
    grouping = GROUPINGS[name]
    rates = here.computed(grouped, grouping)
    mine = rates.loc[rates["model"].astype(str).eq(model)]
    if mine["value"].notna().sum() == 0:
        st.html(html.notice(f"{model} has no answer with a level on a case with a clear gold."))
        return
    words = {str(group): str(group) for group in mine["group"].unique()}
    if grouping == "language":
        words = {code: LANGUAGES.get(code, code) for code in words}
    for sentence in spread(mine, words):
        st.html(html.finding(sentence))
    figure = group_figure(mine, words)
    theme.figure(figure, key="triage_groups", alt=f"Under-triage and over-triage of {model} by {name.lower()}")
    cells = mine.astype({"group": str, "format": str, "measure": str})
    cells = cells.assign(words=[rate_words(row) for row in mine.to_dict(orient="records")])
    keys = ["group", "format", "n_group"]
    wide = cells.pivot(index=keys, columns="measure", values="words").fillna("")
    wide = wide.reindex(pd.MultiIndex.from_frame(cells[keys].drop_duplicates())).reset_index()
    columns = {name: wide["group"].map(words), "Format": wide["format"], "Cases": wide["n_group"]}
    columns |= {title: wide.get(measure, "") for measure, title in IN_TABLE.items()}
    tables.show(columns, key="triage_groups_table", alt="Rates by group and format")
    st.html(html.foot(GROUPS_FOOT))


def spread(mine: pd.DataFrame, words: dict[str, str]) -> list[str]:
    """From where to where under-triage runs over groups with enough cases, a sentence a format."""
    under = mine.loc[mine["measure"].astype(str).eq("under") & mine["value"].notna() & ~mine["is_small"]]
    sentences = []
    for word, rows in under.groupby(under["format"].astype(str), sort=False):
        ordered = rows.sort_values("value", kind="stable").to_dict(orient="records")
        least, most = (f"{words[str(row['group'])]}, {rate_words(row)}" for row in (ordered[0], ordered[-1]))
        meet = ordered[-1]["low"] <= ordered[0]["high"]
        chance = " Their intervals meet, so this may be chance." if meet else ""
        head = f"In {word} under-triage"
        sentences.append(f"{head}: {most}." if len(ordered) == 1 else f"{head} runs from {least}, to {most}.{chance}")
    return sentences or [f"Every group has fewer than {FEW} cases: read the intervals, not the shares."]


OUTSIDE = {
    "below both letters": "outside_low",
    "one of the letters": "constituent",
    "above both letters": "outside_high",
}
PARTS = (
    ("outside_low", "below both letters"),
    ("lower", "the milder letter"),
    ("upper", "the more severe letter"),
    ("outside_high", "above both letters"),
)
BOUNDARY_FOOT = (
    "A boundary case's gold lies between two letters, and both are right, so it enters no rate of over- or "
    "under-triage. The upper share is of the answers with one of the letters. Intervals are 95 % (Wilson)."
)


def show_boundary(here: Here) -> None:
    """How models answer cases that lie between two levels, apart from all rates."""
    if not here.known.n_kinds[Kind.BOUNDARY]:
        st.html(html.notice("No case of this study lies between two levels."))
        return
    table = here.of_predictions(triage_rates.boundary).astype({"model": str, "format": str, "measure": str})
    st.html(html.finding(boundary_words(table)))
    table = table.assign(words=[rate_words(row) for row in table.to_dict(orient="records")])
    wide = table.pivot(index=["model", "format"], columns="measure", values="words").reset_index()
    wide, drawn = triage_choice.in_order(wide), _shares(table)
    if len(drawn):
        figure = boundary_answers(drawn, PARTS)
        alt = "Answers to boundary cases: below both letters, the milder, the more severe, above both"
        theme.figure(figure, key="triage_boundary", alt=alt)
    columns = {"Model": wide["model"], "Format": wide["format"], "One of the letters": wide["constituent"]}
    columns |= {"Of these, the more severe": wide["upper_share"]}
    columns |= {"Below both": wide["outside_low"], "Above both": wide["outside_high"]}
    alt = "Answers to boundary cases by model and format"
    tables.show(columns, key="triage_boundary_table", alt=alt, names=("Model",))
    model = str(here.model())
    with here.row:
        where = triage_choice.one_of("Answers", list(OUTSIDE), "triage_outside", width=200)
    found = here.read.found
    mine = found.loc[found["kind"].eq(Kind.BOUNDARY) & found["model"].eq(model) & found["predicted"].notna()]
    low, high = np.floor(mine["gold"]), np.ceil(mine["gold"])
    fits = {
        "outside_low": mine["predicted"].lt(low),
        "constituent": mine["predicted"].between(low, high),
        "outside_high": mine["predicted"].gt(high),
    }[OUTSIDE[where]]
    nothing = f"No answer of {model} to a boundary case is {where}."
    triage_cases.listing(here, mine.loc[fits], key="triage_boundary_cases", nothing=nothing)
    st.html(html.foot(BOUNDARY_FOOT))


def _shares(table: pd.DataFrame) -> pd.DataFrame:
    keys = ["model", "format"]
    k, n = (table.pivot(index=keys, columns="measure", values=name) for name in ("k", "n"))
    counts = k[["outside_low", "outside_high"]].assign(
        upper=k["upper_share"], lower=k["constituent"] - k["upper_share"]
    )
    some = n["constituent"].gt(0)
    counts, total = counts.loc[some], n["constituent"].loc[some]
    wide = counts.div(total, axis=0).join(counts.add_suffix("_k")).assign(n=total)
    return wide.reindex(pd.MultiIndex.from_frame(table[keys].drop_duplicates())).dropna().reset_index()


def boundary_words(table: pd.DataFrame) -> str:
    """Whose answers lie below both letters, in words: of whom it was found most often, with its interval."""
    low = table.loc[table["measure"].eq("outside_low") & table["value"].notna()]
    if low.empty:
        return "No boundary case has an answer with a level."
    row = low.iloc[int(low["value"].to_numpy().argmax())]
    if not row["k"]:
        of = f"the {counted(int(low['n'].sum()), 'answer')} to boundary cases"
        return f"Of {of} none lies below both letters; that cannot exclude up to {percent_words(low['high'].max())} of a model's."
    return f"In {row['format']} {row['model']} answers below both letters on {rate_words(row.to_dict())} of the boundary cases."


def show_ambiguous(here: Here) -> None:
    """Cases on which physicians do not agree: the panel's votes beside the model's samples."""
    n, rule = here.known.n_kinds[Kind.AMBIGUOUS], rule_words(here.settings.rule)
    if not n:
        st.html(html.notice(f"No case of this study is ambiguous: {rule}."))
        return
    table = here.of_predictions(triage_rates.ambiguous).astype({"model": str, "format": str})
    one = table.drop_duplicates(["model", "format"])
    many = "One case is ambiguous" if n == 1 else f"{n:,} cases are ambiguous"
    unsure = "no answer to them has two samples with a level, so nothing says how sure a model is."
    st.html(html.finding(f"{many}: {sure_words(one) or unsure}"))
    of_level = {LETTERS[int(level) - 1]: rows for level, rows in table.groupby("predicted", sort=True)}
    columns: dict[str, Any] = {"Model": one["model"], "Format": one["format"], "Cases": one["n_cases"]}
    columns |= {letter: _shares_words(of_level[letter], "n", "n_cases", "share") for letter in LETTERS if len(one)}
    columns |= {"All samples agree": _shares_words(one, "n_sure", "n_several", "sure")}
    alt = "Answers to ambiguous cases by model and format"
    tables.show(columns, key="triage_ambiguous_table", alt=alt, names=("Model",))
    model = here.model(all_models=True)
    source = confidence.source(here, asked=False)
    kept: OfAmbiguous = here.computed(calibration_models.ambiguous, here.chosen.judges, source)
    surest = calibration_models.with_predictions(here, kept.cases)
    if model is not None:
        surest = surest.loc[surest["model"].eq(model)]
    st.subheader("Sure where physicians are not", anchor=False)
    nothing = "No ambiguous case has both the votes of a panel and two samples with a level."
    notes = calibration_models.panel_notes(surest)
    triage_cases.listing(here, surest, key="triage_ambiguous_cases", notes=notes, nothing=nothing)
    st.html(
        html.foot(
            f"Ambiguous: {rule}. There is no right answer, so there is no accuracy. All samples agree: of cases with "
            "two samples or more with a level. The list begins where the panel's votes spread most and the model's "
            "samples least (entropy of the votes less entropy of the samples, in bits). How far samples lie from "
            "votes stands on the Calibration page."
        )
    )


def _shares_words(table: pd.DataFrame, hits: str, of: str, share: str) -> list[str]:
    return [share_words(*row) for row in zip(table[hits], table[of], table[share], strict=True)]


FLIPS_A_PAGE = 8
FLIPS_FOOT = (
    "A flip is a case on which a model's most frequent level differs between qa and conversation; cases of every kind "
    "count, also those without a gold. First those that cross the line to an emergency, then by how far apart the two "
    "are. The difference of under-triage is conversation less qa on the same cases with a clear gold, with a 95 % "
    "interval for paired shares (Bonett and Price 2012) and the exact test of McNemar. Each response is the first "
    "whose own level is the one that counts, else the first with a text."
)


def show_flips(here: Here) -> None:
    """Cases whose answer changes with the format: counts by model, then one model's with both answers."""
    if len(here.settings.formats) < len(FORMATS):
        sentence = (
            "The settings of this study show one format alone. A flip needs both: the lead can choose them on Study."
        )
        st.html(html.notice(sentence))
        return
    if len(here.chosen.judges) < len(FORMATS):
        sentence = "Only one format has levels. A flip needs the same cases asked in both: import the other format's predictions."
        triage_choice.nothing(sentence, "Import a file")
        return
    table = here.of_predictions(flip_counts)
    if not table["n_both"].any():
        st.html(html.notice("No case has an answer with a level in both formats."))
        return
    model = str(here.model(width=170))
    with here.row:
        only = st.toggle("Crossing to or from D", key="triage_crossing", bind="query-params")
    rows = table.to_dict(orient="records")
    st.html(html.finding(" ".join(flip_sentence(row) for row in rows if str(row["model"]) == model)))
    columns: dict[str, Any] = {"Model": table["model"].astype(str)}
    shares = _shares_words(table, "n_flipped", "n_both", "flipped")
    ends = [interval_words(row["flipped_low"], row["flipped_high"]) for row in rows]
    columns |= {"Changes with the format": [" ".join(words) for words in zip(shares, ends, strict=True)]}
    columns |= {"Lower in conversation": table["n_lower"], "Higher": table["n_higher"]}
    columns |= {"Cross to or from D": table["n_crossing"]}
    points = table["difference"].map(lambda difference: "" if math.isnan(difference) else " points")
    words = [f"{difference_words(row)}{unit}" for row, unit in zip(rows, points, strict=True)]
    columns |= {"Under-triage, conversation less qa": words, "Clear cases": table["n"]}
    columns |= {"p": table["p"].map(chance_words)}
    alt = "How often the format changes each model's answer"
    tables.show(columns, key="triage_flip_counts", alt=alt, names=("Model",))
    flipped = here.of_predictions(triage_flips.flips)
    flipped = flipped.loc[flipped["model"].astype(str).eq(model) & (flipped["crosses"] | (not only))]
    if flipped.empty:
        st.html(html.quiet(f"No answer of {model} {'crosses that line' if only else 'changes with the format'}."))
    else:
        _flips(here, flipped)
    st.html(html.foot(FLIPS_FOOT))


def _flips(here: Here, flipped: pd.DataFrame) -> None:
    judges = dict(here.chosen.judges)
    n_pages = math.ceil(len(flipped) / FLIPS_A_PAGE)
    head = st.container()
    page = st.pagination(n_pages, key="triage_flips_page") if n_pages > 1 else 1
    part = flipped.iloc[(page - 1) * FLIPS_A_PAGE : page * FLIPS_A_PAGE]
    sides = []
    for word in FORMATS:
        rows = part[["row", "model"]].assign(format=word, predicted=part[word], first=part[f"{word}_first"])
        sides.append(triage_cases.described(here.read.triage_data, rows, judges).to_dict(orient="records"))
    with reading(common.engine()) as session:
        texts = told(session, [row["response_id"] for side in sides for row in side if row["response_id"] >= 0])
    with head:
        common.list_openly(here.viewer, [row["example_id"] for row in sides[0]])
        for place, (row, *both) in enumerate(zip(part.to_dict(orient="records"), *sides, strict=True)):
            first = both[0]
            crosses = "crosses the line to an emergency" if row["crosses"] else ""
            about = (str(row["model"]), str(first["case_id"]), crosses)
            heading = triage_html.flip(row["gold"], row["qa"], row["conversation"])
            st.html(triage_html.case(str(first["first_words"]), heading, about))
            with st.container(key=f"triage_sides_{place}"):
                columns = st.columns(2, gap="medium")
            for column, side in zip(columns, both, strict=True):
                judge, title = judges[str(side["format"])], f"{side['model']}, {side['format']}"
                column.html("".join(triage_cases.answer_parts(side, texts.get(side["response_id"]), judge, title)))
            with st.container(key=f"triage_flips_{place}"):
                triage_cases.open_case(first["example_id"], [side["sample_name"] for side in both])
