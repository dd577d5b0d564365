"""How far physicians agree with one another. A section of the Judges page."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.judges import agreement as metric
from evalcore.judges.agreement import MIN_ITEMS, MIN_RATERS, agreement, labels_of, pair_agreement
from evalcore.judges.figures import pair_forest
from evalcore.judges.record import OVERALL
from evalcore.rubric.data import RubricData
from evalcore.stats.agreement_sums import Coefficient
from evalcore.stats.wording import counted
from evalcore.study.policies import allows, check_can_see_audit
from evalcore.study.schema import Viewer
from pages.shared import filters, glossary, html, judges_choice, routes, tables, theme

MOST_PAIRS = 30  # in the figure
KINDS = {"Theme": "theme", "Axis": "axis", "Category": "cluster", "Category of the conversation": "category"}
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
    """What each rater is called on this viewer's screen, in order: names for who may read the audit trail, else You and Reader 1, 2, ... by a secret order."""
    known = set(judges)
    names = {name: name for name in raters if name in known}
    readers = [name for name in raters if name not in known]
    if allows(check_can_see_audit, viewer):
        short = [html.reader_name(name) for name in readers]
        return names | dict(zip(readers, short if len(set(short)) == len(short) else readers, strict=True))
    others = [name for name in readers if name != viewer.name]
    others.sort(key=lambda name: hmac.digest(secret, name.encode(), hashlib.sha256))
    names |= {name: YOU for name in readers if name == viewer.name}
    return names | {name: f"Reader {n}" for n, name in enumerate(others, start=1)}


def wide(rows: pd.DataFrame, keys: dict[str, str], key: str, alt: str, *, prefix: str = metric.THESE) -> None:
    """A row a group or pair, a column a coefficient; below it why intervals are missing, each reason once."""
    columns, names = metric.columns(rows, keys, prefix=prefix), ("Rater", "and rater")
    tables.show(columns, key=key, alt=alt, optional=("Cannot assess",), names=names)
    missing = rows.loc[rows[f"{prefix}low"].isna()].drop_duplicates(list(keys))[f"{prefix}reason"]
    if len(missing):
        reasons = "; ".join(f"{counted(n, 'row')}: {why}" for why, n in missing.value_counts(sort=False).items())
        st.html(html.quiet(f"Without an interval, {reasons}."))


def forest(pooled: pd.DataFrame, by_pair: pd.DataFrame, who: str, prefix: str) -> None:
    """The coefficient that is chosen: of all together, and of each two raters, those with most criteria first."""
    options = [Coefficient(name) for name in dict.fromkeys(by_pair["coefficient"])]
    control: dict[str, Any] = {"format_func": metric.NAMES.get, "key": "agreement_shown", "bind": "query-params"}
    chosen = st.segmented_control("By pair", options, default=Coefficient.AC1, required=True, **control) or options[0]
    whole, pairs = (table.loc[table["coefficient"].eq(chosen)] for table in (pooled, by_pair))
    shown = pairs.sort_values("n_items", ascending=False, kind="stable").head(MOST_PAIRS)
    figure = pair_forest(whole, shown, chosen, who=who, prefix=prefix)
    theme.figure(figure, key="agreement_forest", alt=f"{metric.NAMES[chosen]} of all {who} and of each two")
    if shown["n_items"].lt(MIN_ITEMS).any():
        st.html(html.quiet(f"Grey: fewer than {MIN_ITEMS} criteria that both have labelled."))
    if len(pairs) > MOST_PAIRS:
        st.html(html.quiet(f"The {MOST_PAIRS} pairs of {len(pairs):,} with most criteria; the table has every pair."))


def kinds(groups: pd.DataFrame, prefix: str, whom: str) -> None:
    """Agreement by the kind of criterion that is chosen."""
    known = [name for name, tag in KINDS.items() if groups["grouping"].eq(tag).any()]
    if not known:
        return
    st.subheader("By kind of criterion", anchor=False)
    look: dict[str, Any] = {"key": "agreement_by", "label_visibility": "collapsed"}
    chosen = st.segmented_control("By", known, default=known[0], required=True, **look)
    rows = groups.loc[groups["grouping"].eq(KINDS[chosen or known[0]])]
    named, keys = rows.assign(group=rows["group"].map(filters.plain)), {"group": chosen or known[0]}
    wide(named, keys, f"agreement_groups_{chosen}", "Agreement by kind of criterion", prefix=prefix)
    st.html(html.quiet(f"95 % intervals for {whom}."))


def _raters(rubric_data: RubricData, judges: tuple[str, ...]) -> list[str]:
    return [str(name) for name in labels_of(rubric_data, judges=judges)["rater"].cat.categories]


def _measured(
    rubric_data: RubricData,
    judges: tuple[str, ...],
    names: tuple[tuple[str, str], ...],
    coefficients: tuple[Coefficient, ...],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    labels, shown = labels_of(rubric_data, judges=judges), dict(names)
    labels["rater"] = labels["rater"].cat.reorder_categories(list(shown)).cat.rename_categories(shown)
    pooled = agreement(labels, by=metric.GROUPINGS, coefficients=coefficients)
    return pooled, pair_agreement(labels, coefficients=coefficients)


def show(viewer: Viewer, row: DeltaGenerator) -> None:
    """How far physicians agree: all together, by pair, by group, and what cannot assess could change."""
    known = judges_choice.computed(judges_choice.names, viewer)
    with_judges = known and row.toggle("Count judges as raters", key="agreement_judges", bind="query-params")
    judges = tuple(known) if with_judges else ()
    more_coefficients = row.toggle(
        "More coefficients",
        key="agreement_all",
        bind="query-params",
        help=glossary.helps("agreement", "Gwet's AC1, Krippendorff's alpha"),
    )
    raters = judges_choice.computed(_raters, viewer, judges)
    names = tuple(shown_names(raters, judges, viewer, _secret()).items())
    wanted = metric.OF_TWO_CATEGORIES if more_coefficients else metric.SHOWN
    pooled, by_pair = judges_choice.computed(_measured, viewer, judges, names, wanted)
    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    if not overall["n_items"].any():
        st.html(html.notice(NOTHING_READ))
        st.page_link(routes.STUDY, label="Go to Study", icon=":material/database:")
        return
    who = "raters" if judges else "physicians"
    prefix, whom = metric.population(overall, who)
    first, *more = metric.finding(overall, who)
    st.html(html.finding(first))
    st.html(html.items(more))
    if by_pair.groupby(["rater_1", "rater_2"]).ngroups > 1:
        forest(overall, by_pair, who, prefix)
    alt, optional = "Coefficients of agreement of all raters together", ("Why no interval",)
    tables.show(metric.pooled_columns(overall, who), key="agreement_pooled", alt=alt, optional=optional)
    pairs = by_pair.sort_values("n_items", ascending=False, kind="stable")
    keys = {"rater_1": "Rater", "rater_2": "and rater"}
    with st.expander("Each two raters, all coefficients"):
        wide(pairs, keys, "agreement_pairs", "Agreement of each two raters")
    kinds(pooled.loc[pooled["grouping"].ne(OVERALL) & pooled["n_items"].gt(0)], prefix, whom)
    st.html(html.foot(FOOT))
