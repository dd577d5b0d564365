"""How far physicians agree with one another. A section of the Judges page."""

import hashlib
import hmac
import math
import secrets
from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.judges import agreement as words
from evalcore.judges.agreement import (
    GROUPINGS,
    MIN_ITEMS,
    MIN_RATERS,
    OF_TWO_CATEGORIES,
    OVERALL,
    SHOWN,
    agreement,
    labels_of,
    most_labels,
    pair_agreement,
)
from evalcore.judges.figures import pair_matrix
from evalcore.rubric.data import RubricData
from evalcore.stats.agreement_sums import Coefficient
from evalcore.stats.wording import counted
from evalcore.study.policies import allows, check_can_see_audit
from evalcore.study.schema import Viewer
from pages.shared import filters, html, judges_choice, routes, tables, theme

MOST_RATERS, LEAST_SHARE = 15, 0.25
"""Raters in the matrix; and the share of its pairs that must have a criterion in common, or it would be a page of holes."""
KINDS = {"Theme": "theme", "Axis": "axis", "Category": "cluster", "Category of the conversation": "category"}
"""What agreement is shown by, and the tag that says it."""
YOU = "You"
NOTHING_READ = "No two physicians have read the same criterion blind yet. Give the responses a second reader, or import first reads of several physicians."
FOOT = (
    "From physicians' blind first reads, as they were locked, of criteria that two or more have labelled; reads that somebody chose to make are left "
    "out, and nothing is weighted by how it was drawn. 95 % intervals by the jackknife. For these raters it leaves out one conversation at a time; "
    "for raters in general, of whom these are a sample, one conversation and one rater at a time (two-way clustering), from "
    f"{MIN_RATERS} effective raters on: 1 / sum of squared shares of the labels. There is none with fewer than five conversations, where every "
    "conversation gives the same value, or where the value hangs on one of them. Where nearly all labels are the same, Krippendorff's alpha and "
    "kappa are low or undefined however much people agree: read them beside Gwet's AC1. With met and not met, weighted, ordinal and plain forms of a "
    "coefficient are the same number. Cohen's kappa of all together is Conger's; Fleiss' kappa, of a pair, is Scott's pi. Bounds: the lowest and "
    "highest percent agreement, whatever each cannot assess had been; of the other coefficients none are given."
)


@st.cache_resource(show_spinner=False)
def _secret() -> bytes:
    """Orders readers whose names are not shown; known to this process alone, so that nobody can work the order out from the names."""
    return secrets.token_bytes(16)


def shown_names(raters: Sequence[str], judges: Iterable[str], viewer: Viewer, secret: bytes) -> dict[str, str]:
    """What each rater is called on this viewer's screen, in the order in which they are listed.

    Who may read the audit trail sees names. Anybody else sees You, and others as Reader 1, Reader 2, ... in an order that the names do not give away.
    """
    known = set(judges)
    found = {name: name for name in raters if name in known}
    readers = [name for name in raters if name not in known]
    if allows(check_can_see_audit, viewer):
        short = [html.reader_name(name) for name in readers]
        return found | dict(zip(readers, short if len(set(short)) == len(short) else readers, strict=True))
    own = [name for name in readers if name == viewer.name]
    others = [name for name in readers if name != viewer.name]
    others.sort(key=lambda name: hmac.digest(secret, name.encode(), hashlib.sha256))
    return found | dict.fromkeys(own, YOU) | {name: f"Reader {n}" for n, name in enumerate(others, start=1)}


Judges = tuple[str, ...]
Names = tuple[tuple[str, str], ...]
"""Raters in their order, each with the name that the viewer sees."""


def named(labels: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """The labels with raters by the names that the viewer sees, in their order."""
    return labels.assign(rater=labels["rater"].cat.reorder_categories(list(names)).cat.rename_categories(names))


def cells(rows: pd.DataFrame, prefix: str = words.THESE) -> list[str]:
    """Each value with its interval; a dash where there is no value."""
    return [
        words.coefficient_words(row["coefficient"], row["value"], row[f"{prefix}low"], row[f"{prefix}high"])
        for row in rows.to_dict(orient="records")
    ]


def pooled_table(overall: pd.DataFrame, who: str) -> None:
    """The coefficients of all raters together, for these and for raters in general, with bounds where somebody could not assess."""
    between = [
        words.bounds_words(row["coefficient"], row["bound_low"], row["bound_high"])
        for row in overall.to_dict(orient="records")
    ]
    in_general = overall["general_low"].notna().any()
    reasons = overall["general_reason" if in_general else "reason"]
    tables.show(
        {
            "All together": [words.NAMES[Coefficient(name)] for name in overall["coefficient"]],
            **({f"For {who} in general": cells(overall, words.GENERAL)} if in_general else {}),
            f"For these {who}": cells(overall),
            **({"Bounds, by cannot assess": between} if overall["n_cannot_assess"].any() else {}),
            "Without an interval because": reasons,
        },
        key="agreement_pooled",
        alt="Coefficients of agreement of all raters together",
        optional=("Without an interval because",),
    )


def wide(rows: pd.DataFrame, keys: dict[str, str], key: str, alt: str, *, prefix: str = words.THESE) -> None:
    """A row a group or pair, a column a coefficient; below it why intervals are missing, each reason once."""
    by = list(keys)
    counts = rows.drop_duplicates(by).set_index(by)
    spread = (
        rows.assign(words=cells(rows, prefix))
        .pivot(index=by, columns="coefficient", values="words")
        .reindex(counts.index)
    )
    tables.show(
        {
            **{title: counts.index.get_level_values(column) for column, title in keys.items()},
            **{words.HEADS[Coefficient(name)]: spread[name] for name in dict.fromkeys(rows["coefficient"])},
            "Criteria": counts["n_items"],
            "Conversations": counts["n_examples"],
            "Cannot assess": counts["n_cannot_assess"],
        },
        key=key,
        alt=alt,
        optional=("Cannot assess",),
        names=("Rater", "and rater"),
    )
    missing = rows.loc[rows[f"{prefix}low"].isna()].drop_duplicates(by)[f"{prefix}reason"].value_counts(sort=False)
    if len(missing):
        said = "; ".join(f"{counted(n, 'row')}: {why}" for why, n in missing.items())
        st.html(html.quiet(f"Without an interval, {said}."))


def matrix(by_pair: pd.DataFrame, kept: list[str], n_raters: int) -> None:
    """The coefficient that is chosen, for each two raters; not where most of them have no criterion in common.

    Args:
        kept: The raters to show, in their order.
    """
    inside = by_pair.loc[by_pair["rater_1"].isin(kept) & by_pair["rater_2"].isin(kept)]
    n_met, n_pairs = inside[["rater_1", "rater_2"]].drop_duplicates().shape[0], math.comb(len(kept), 2)
    if n_met < LEAST_SHARE * n_pairs:
        st.html(
            html.quiet(
                f"Of the {n_pairs:,} pairs of the {len(kept)} raters with the most labels, {n_met:,} have a criterion in common: too few to draw. "
                "The table has every pair, those with most criteria first."
            )
        )
        return
    chosen = st.segmented_control(
        "By pair",
        [Coefficient(name) for name in dict.fromkeys(by_pair["coefficient"])],
        default=Coefficient.AC1,
        required=True,
        format_func=words.NAMES.__getitem__,
        key="agreement_shown",
        bind="query-params",
    )
    rows = inside.loc[inside["coefficient"].eq(chosen)]
    missing = rows["value"].isna()
    shown = rows.assign(
        shown=[words.value_words(row["coefficient"], row["value"]) for row in rows.to_dict(orient="records")],
        words=[f"{cell} {why}" if gone else cell for cell, why, gone in zip(cells(rows), rows["reason"], missing, strict=True)],
        small=rows["n_items"].lt(MIN_ITEMS),
    )  # fmt: skip
    st.plotly_chart(
        pair_matrix(shown, kept, ink=theme.ink()),
        config={"displayModeBar": False},
        key="agreement_matrix",
        width="content",
        alt="Agreement of each two raters",
    )
    few = f"Grey: fewer than {MIN_ITEMS} criteria that both have labelled." if shown["small"].any() else ""
    part = f"The {MOST_RATERS} raters of {n_raters:,} with the most labels; the table has every pair."
    if said := " ".join(sentence for sentence in (few, part if n_raters > MOST_RATERS else "") if sentence):
        st.html(html.quiet(said))


def kinds(groups: pd.DataFrame, prefix: str, whom: str) -> None:
    """Agreement by the kind of criterion that is chosen."""
    known = [name for name, tag in KINDS.items() if groups["grouping"].eq(tag).any()]
    if not known:
        return
    st.subheader("By kind of criterion", anchor=False)
    chosen = st.segmented_control(
        "By", known, default=known[0], required=True, key="agreement_by", label_visibility="collapsed"
    )
    rows = groups.loc[groups["grouping"].eq(KINDS[chosen or known[0]])]
    wide(
        rows.assign(group=rows["group"].map(filters.plain)),
        {"group": chosen or known[0]},
        f"agreement_groups_{chosen}",
        "Agreement by kind of criterion",
        prefix=prefix,
    )
    st.html(html.quiet(f"95 % intervals for {whom}."))


def _raters(rubric_data: RubricData, judges: Judges) -> list[str]:
    return [str(name) for name in labels_of(rubric_data, judges=judges)["rater"].cat.categories]


def _measured(
    rubric_data: RubricData, judges: Judges, names: Names, coefficients: tuple[Coefficient, ...]
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Agreement pooled and by group, and by pair, of raters by the names that the viewer sees; and those with the most labels."""
    labels = named(labels_of(rubric_data, judges=judges), dict(names))
    pooled, by_pair = (
        agreement(labels, by=GROUPINGS, coefficients=coefficients),
        pair_agreement(labels, coefficients=coefficients),
    )
    return pooled, by_pair, most_labels(labels, MOST_RATERS)


def show(viewer: Viewer, row: DeltaGenerator) -> None:
    """How far physicians agree: all together, by pair, by group, and what cannot assess could change."""
    known = judges_choice.computed(judges_choice.names, viewer)
    with_judges = known and row.toggle("Count judges as raters", key="agreement_judges", bind="query-params")
    judges = tuple(known) if with_judges else ()
    more_coefficients = row.toggle("More coefficients", key="agreement_all", bind="query-params")
    raters = judges_choice.computed(_raters, viewer, judges)
    names = tuple(shown_names(raters, judges, viewer, _secret()).items())
    pooled, by_pair, most = judges_choice.computed(
        _measured, viewer, judges, names, OF_TWO_CATEGORIES if more_coefficients else SHOWN
    )
    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    if not overall["n_items"].any():
        st.html(html.notice(NOTHING_READ))
        st.page_link(routes.STUDY, label="Go to Study", icon=":material/database:")
        return
    who = "raters" if judges else "physicians"
    prefix, whom = words.population(overall, who)
    first, *more = words.finding(overall, who)
    st.html(html.finding(first))
    st.html(html.items(more))
    pooled_table(overall, who)
    if by_pair.groupby(["rater_1", "rater_2"]).ngroups > 1:
        matrix(by_pair, most, len(names))
    wide(
        by_pair.sort_values("n_items", ascending=False, kind="stable") if len(names) > MOST_RATERS else by_pair,
        {"rater_1": "Rater", "rater_2": "and rater"},
        "agreement_pairs",
        "Agreement of each two raters",
    )
    kinds(pooled.loc[pooled["grouping"].ne(OVERALL) & pooled["n_items"].gt(0)], prefix, whom)
    st.html(html.foot(FOOT))
