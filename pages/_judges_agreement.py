"""How far physicians agree with one another. A section of the Judges page."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from evalcore.metrics import agreement_words as words
from evalcore.metrics.agreement import GROUPINGS, MIN_ITEMS, OF_TWO_CATEGORIES, OVERALL, agreement, pair_agreement
from evalcore.metrics.agreement_labels import labels_of, most_labels
from evalcore.metrics.agreement_sums import Coefficient
from evalcore.metrics.dawid_skene import dawid_skene
from evalcore.opinions import Opinions
from evalcore.plots.agreement import pair_matrix
from evalcore.plots.colours import INK_ON_PAPER, INK_ON_SLATE
from evalcore.policies import can_see_audit
from evalcore.schema import Viewer
from pages import _filters, _text

HEADER_PIXELS, ROW_PIXELS, MAX_TABLE = 38, 35, 560
MOST_RATERS = 20
IN_WIDE_TABLES = (Coefficient.AGREEMENT, Coefficient.KAPPA, Coefficient.ALPHA_NOMINAL, Coefficient.AC1)
YOU = "You"
NOTHING_READ = "No two physicians have read the same criterion blind yet. Give the responses a second reader, or import first reads of several physicians."
FOOT = (
    "From physicians' blind first reads, as they were locked, of criteria that two or more have labelled; reads that somebody chose to make are left "
    "out, and nothing is weighted by how it was drawn. 95 % intervals leave out one conversation at a time, t with one degree of freedom less than "
    "conversations; there is none with fewer than five, where every conversation gives the same value, or where the value hangs on one of them. "
    "With met and not met, weighted, ordinal and plain forms of a coefficient are the same number. Cohen's kappa of all together is Conger's; "
    "Fleiss' kappa, of a pair, is Scott's pi. Where nearly all labels are the same, kappa is low or undefined however much people agree: read it "
    "beside Gwet's AC1. Between: the coefficient with all of cannot assess taken as met, and all as not met."
)
EXPLORED = (
    "Exploration, not a finding. Dawid and Skene's model (1979) guesses the label behind the readers' labels, and how often each reader says met of "
    "what it takes for met and for not met. It takes errors that readers share for truth and is surer than it should be. No number elsewhere uses it."
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
    if can_see_audit(viewer):
        short = [_text.reader_name(name) for name in readers]
        return found | dict(zip(readers, short if len(set(short)) == len(short) else readers, strict=True))
    own = [name for name in readers if name == viewer.name]
    others = [name for name in readers if name != viewer.name]
    others.sort(key=lambda name: hmac.digest(secret, name.encode(), hashlib.sha256))
    return found | dict.fromkeys(own, YOU) | {name: f"Reader {n}" for n, name in enumerate(others, start=1)}


def named(labels: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """The labels with raters by the names that the viewer sees, in their order."""
    return labels.assign(rater=labels["rater"].cat.reorder_categories(list(names)).cat.rename_categories(names))


def cells(rows: pd.DataFrame) -> list[str]:
    """Each value with its interval; a dash with the reason where there is none."""
    return [
        words.coefficient_words(row["coefficient"], row["value"], row["low"], row["high"])
        + (f" {row['reason']}" if missing else "")
        for row, missing in zip(rows.to_dict(orient="records"), rows["value"].isna(), strict=True)
    ]


def table(columns: dict[str, object], key: str, n_rows: int, alt: str) -> None:
    """A table as high as its rows, up to a limit."""
    st.dataframe(columns, key=key, hide_index=True, height=min(HEADER_PIXELS + ROW_PIXELS * n_rows, MAX_TABLE), alt=alt)


def pooled_table(overall: pd.DataFrame) -> None:
    """All coefficients of all raters together, with bounds."""
    between = [
        words.bounds_words(row["coefficient"], row["bound_low"], row["bound_high"])
        for row in overall.to_dict(orient="records")
    ]
    table(
        {
            "All together": [words.NAMES[Coefficient(name)] for name in overall["coefficient"]],
            "Value and 95 % interval": cells(overall),
            "Between, by cannot assess": between,
            **({"Without an interval because": overall["reason"]} if overall["reason"].any() else {}),
        },
        "agreement_pooled",
        len(overall),
        "Coefficients of agreement of all raters together",
    )


def wide(rows: pd.DataFrame, keys: dict[str, str], key: str, alt: str) -> None:
    """A row a group or pair, a column a coefficient."""
    by = list(keys)
    counts = rows.drop_duplicates(by).set_index(by)
    spread = rows.assign(words=cells(rows)).pivot(index=by, columns="coefficient", values="words").reindex(counts.index)
    table(
        {
            **{title: counts.index.get_level_values(column) for column, title in keys.items()},
            **{words.NAMES[Coefficient(name)]: spread[name] for name in IN_WIDE_TABLES},
            "Criteria": counts["n_items"],
            "Conversations": counts["n_examples"],
            "Cannot assess": counts["n_cannot_assess"],
        },
        key,
        len(counts),
        alt,
    )


def matrix(labels: pd.DataFrame, by_pair: pd.DataFrame) -> None:
    """The coefficient that is chosen, for each two raters."""
    kept = most_labels(labels, MOST_RATERS)
    chosen = st.segmented_control(
        "By pair",
        OF_TWO_CATEGORIES,
        default=Coefficient.KAPPA,
        required=True,
        format_func=words.NAMES.__getitem__,
        key="agreement_shown",
        bind="query-params",
    )
    rows = by_pair.loc[
        by_pair["coefficient"].eq(chosen) & by_pair["rater_1"].isin(kept) & by_pair["rater_2"].isin(kept)
    ]
    shown = rows.assign(
        shown=[words.value_words(row["coefficient"], row["value"]) for row in rows.to_dict(orient="records")],
        words=cells(rows),
        small=rows["n_items"].lt(MIN_ITEMS),
    )
    ink = INK_ON_SLATE if st.context.theme.type == "dark" else INK_ON_PAPER
    st.plotly_chart(
        pair_matrix(shown, kept, ink=ink),
        config={"displayModeBar": False},
        key="agreement_matrix",
        width="content",
        alt="Agreement of each two raters",
    )
    n = labels["rater"].nunique()
    few = f"Grey: fewer than {MIN_ITEMS} criteria that both have labelled."
    st.html(
        _text.quiet(
            few
            if n <= MOST_RATERS
            else f"{few} The {MOST_RATERS} raters of {n} with the most labels; the table has every pair."
        )
    )


def habits(labels: pd.DataFrame) -> None:
    """Dawid-Skene, for exploration."""
    with st.expander(
        "Exploration: who differs from whom",
        icon=":material/travel_explore:",
        key="agreement_habits",
        on_change="rerun",
    ) as part:
        if not part.open:
            return
        found = dawid_skene(labels)
        met = found.raters.pivot(index="rater", columns="shared", values="met").reindex(
            found.raters["rater"].drop_duplicates()
        )
        n_labels = found.raters.drop_duplicates("rater")["n_labels"]
        st.html(_text.quiet(EXPLORED))
        table(
            {
                "Rater": met.index,
                "Says met of what is met": [words.value_words(Coefficient.AGREEMENT, share) for share in met["met"]],
                "Says met of what is not met": [
                    words.value_words(Coefficient.AGREEMENT, share) for share in met["not_met"]
                ],
                "Labels": n_labels,
            },
            "agreement_habits_table",
            len(met),
            "How often each rater says met, of what is estimated to be met and not met",
        )
        stopped = "" if found.settled else " The estimate had not settled."
        st.html(
            _text.quiet(
                f"From {found.n_items:,} criteria with two labels or more; 4 labels of agreement and 1 of each other kind are added to every reader.{stopped}"
            )
        )


def show(viewer: Viewer, opinions: Opinions) -> None:
    """How far physicians agree: all together, by pair, by group, and what cannot assess could change."""
    judges = (
        opinions.judges
        if opinions.judges and st.toggle("Count judges as raters", key="agreement_judges", bind="query-params")
        else []
    )
    labels = labels_of(opinions, judges=judges)
    labels = named(labels, shown_names(list(labels["rater"].cat.categories), judges, viewer, _secret()))
    pooled = agreement(labels, by=GROUPINGS)
    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    if not overall["n_items"].any():
        st.html(_text.notice(NOTHING_READ))
        st.page_link("pages/study.py", label="Go to Study", icon=":material/database:")
        return
    first, *more = words.finding(overall, "raters" if judges else "physicians")
    st.html(_text.finding(first))
    st.html(_text.items(more))
    by_pair = pair_agreement(labels)
    if by_pair.groupby(["rater_1", "rater_2"]).ngroups > 1:
        matrix(labels, by_pair)
    pooled_table(overall)
    wide(by_pair, {"rater_1": "Rater", "rater_2": "and rater"}, "agreement_pairs", "Agreement of each two raters")
    groups = pooled.loc[pooled["grouping"].ne(OVERALL) & pooled["n_items"].gt(0)]
    if not groups.empty:
        st.subheader("By kind of criterion", anchor=False)
        wide(
            groups.assign(group=groups["group"].map(_filters.plain)),
            {"grouping": "By", "group": "Group"},
            "agreement_groups",
            "Agreement by theme, axis, category and cluster",
        )
    habits(labels)
    st.html(_text.foot(FOOT))
