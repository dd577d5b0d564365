"""How judges do against physicians, and how far physicians agree with one another, by the command line."""

from typing import Annotated

import pandas as pd
from typer import Option

from evalcore.cli import console
from evalcore.stats.wording import counted

ALL_JUDGES = "all"
JUDGE = "This judge; again for another. Default: every judge of the study, and their jury."
GROUPS = "Groups of sensitivity and specificity: some of overall, sign, axis, theme, language."
BY = "Some of overall, theme, axis, category, cluster, joined by commas."
RATERS = "Judges to count as raters too: names joined by commas, or all. Default: physicians alone."
COEFFICIENTS = "Names joined by commas. Default: agreement, ac1, alpha_nominal."
EVERY_ONE = "All coefficients that differ from one another with two categories."


def judges(
    judge: Annotated[list[str] | None, Option(help=JUDGE)] = None,
    by: Annotated[str, Option(help=GROUPS)] = "overall,sign,axis,theme,language",
    min_pairs: Annotated[int, Option(min=0, help="Physicians with more pairs than this enter the percentile.")] = 50,
    jury: Annotated[bool, Option("--jury/--no-jury", help="Add the judges' majority and mean.")] = True,
    reads: console.ReadsIn = None,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """How well judges say what physicians say: balanced F1 as in HealthBench's meta-evaluation, percentile, sensitivity, specificity.

    Each blind first read is a pair with the judge's label. Drawn reads enter, weighted by one over the probability with which their item was drawn; --reads
    all shows every one, unweighted. Intervals are 95 %, clustered by example.

    With --json an object with the lists balanced_f1, percentiles and error_rates, the object jury, reads (drawn or all), n_reads (how many enter) and
    selection, a sentence on how they came to be made. Counts are not weighted, shares are. What has no value is null.
    balanced_f1, a row a rater and group: rater_kind (judge, physicians: all together, physician), rater, grouping (overall or category), group, n_pairs,
    n_items, n_examples, n_both, n_rater_only, n_other_only, n_neither (pairs met by whom), share_met, share_met_by_others, precision_met, recall_met,
    f1_met, precision_not_met, recall_not_met, f1_not_met, balanced_f1 with low, high (jackknife), all in 0..1, and undefined: why there is no balanced F1.
    percentiles, a row a judge and group: judge, grouping (overall or theme), group, n_pairs, balanced_f1 (of a theme: the mean of its categories, weighted
    by pairs), n_physicians, n_physicians_left_out, lowest, q25, median, q75, highest (of physicians), percentile in 0..100 with its interval percentile_low,
    percentile_high (over physicians; null with fewer than 10 of them).
    error_rates, a row a judge and group: judge, grouping, group, n_pairs, n_examples, weighted (pairs count differently), n_met, n_met_right, sensitivity,
    sensitivity_low, sensitivity_high, n_not_met, n_not_met_right, specificity, specificity_low, specificity_high.
    jury (null with one judge): n_judges, n_items, n_decided, n_unanimous, n_tied, n_open.
    """
    import msgspec

    from evalcore.judges import quality as metric
    from evalcore.judges import record as judge_reads
    from evalcore.stats import majority as juries

    wanted, which = console.some_of("--by", by, metric.ERROR_GROUPINGS), console.reads_in(reads)
    rubric_data = console.rubric_data_of(db)
    chosen = list(dict.fromkeys(judge or rubric_data.judges))
    for name in chosen:
        console.one_of("--judge", name, rubric_data.judges)
    rubric_data = rubric_data.by(chosen)
    firsts = judge_reads.assessed(rubric_data.reads)
    shown = which or judge_reads.usual_reads(firsts)
    quality = metric.balanced_f1(rubric_data, jury=jury, reads=shown)
    values = metric.standings(quality, metric.theme_of_categories(rubric_data.items))
    ranks = metric.percentiles(values, min_pairs=min_pairs)
    errors = metric.error_rates(rubric_data, by=wanted, jury=jury, reads=shown)
    is_jury = jury and len(rubric_data.voters) >= juries.MIN_JUDGES
    decided = juries.decisions(rubric_data.judged[rubric_data.voters]) if is_jury else None
    selection = judge_reads.reads_words(firsts, shown)
    if as_json:
        tables = {"balanced_f1": quality, "percentiles": ranks, "error_rates": errors}
        console.print_json(
            {name: console.records(table) for name, table in tables.items()}
            | {"jury": decided and msgspec.to_builtins(decided), "reads": shown.value}
            | {"n_reads": len(judge_reads.weighted_reads(firsts, shown)), "selection": selection}
        )
        return
    if not quality["rater_kind"].eq(metric.JUDGE).any():
        console.say("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
        return
    console.say(selection, *(metric.finding(quality, ranks, name, min_pairs=min_pairs) for name in chosen))
    groups = quality.loc[quality["rater_kind"].ne(metric.PHYSICIAN)]
    listed, n_bare = _worth_listing(groups)
    console.show(metric.f1_columns(listed, ranks))
    if n_bare:
        bare = f"{counted(n_bare, 'row has', 'rows have')} a value and no interval"
        console.say(f"{bare}, since too few conversations hold both labels: --json lists them.")
    console.say(*metric.undefined_words(groups))
    console.show(metric.error_columns(errors))
    if decided:
        console.say(juries.words(decided))


def _worth_listing(quality: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Rows with an interval, and what is pooled in any case; and how many have a value alone."""
    valued = quality.loc[quality["balanced_f1"].notna()]
    listed = valued.loc[valued["low"].notna() | valued["grouping"].eq("overall")]
    return listed, len(valued) - len(listed)


def agreement(
    by: Annotated[str, Option(help=BY)] = "overall,theme,axis,category",
    judges: Annotated[str | None, Option(help=RATERS)] = None,
    coefficients: Annotated[str | None, Option(help=COEFFICIENTS)] = None,
    everything: Annotated[bool, Option("--all", help=EVERY_ONE)] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """How far physicians agree with one another on the criteria that they have read blind, together and by pair.

    First reads count, as they were locked, and none that somebody chose to read. There are two intervals: for these physicians, leaving out one example at a
    time; and for physicians in general, of whom these are a sample, leaving out one example and one reader at a time, from three effective readers on.
    Coefficients: agreement (share), ac1 (Gwet), alpha_nominal (Krippendorff); with --all also kappa (Cohen; of all raters together Conger) and fleiss_kappa;
    by name kappa_linear, kappa_quadratic, alpha_ordinal, alpha_interval, ac2_linear, ac2_quadratic, which with met and not met equal the plain ones.

    With --json an object of two lists. `pooled`: one row a group and coefficient: grouping (overall, theme, axis, category or cluster), group, coefficient,
    value (at most 1); low, high, se (95 %, these raters) and reason (why one of them is null, else empty); general_low, general_high, general_se,
    general_reason (raters in general); bound_low and bound_high (of percent agreement: the lowest and highest value whatever each cannot assess had been;
    else null); n_items (with two labels or more), and on these n_labels, n_examples, n_raters, n_effective_raters; n_cannot_assess (labels). `by_pair`: the
    same for each two raters, but for raters in general: rater_1 and rater_2 in the place of grouping and group.
    """
    from evalcore.judges import agreement as metric
    from evalcore.judges.record import OVERALL
    from evalcore.stats.agreement_sums import Coefficient

    groupings = console.some_of("--by", by, metric.GROUPINGS)
    wanted: tuple[Coefficient, ...] = metric.OF_TWO_CATEGORIES if everything else metric.SHOWN
    if coefficients is not None:
        wanted = tuple(map(Coefficient, console.some_of("--coefficients", coefficients, list(Coefficient))))
    rubric_data = console.rubric_data_of(db)
    named = [] if judges is None else rubric_data.judges
    if judges not in (None, ALL_JUDGES):
        named = console.some_of("--judges", judges, rubric_data.judges)
    labels = metric.labels_of(rubric_data, judges=named)
    pooled = metric.agreement(labels, by=groupings, coefficients=wanted)
    by_pair = metric.pair_agreement(labels, coefficients=wanted)
    if as_json:
        console.print_json({"pooled": console.records(pooled), "by_pair": console.records(by_pair)})
        return
    if by_pair.empty:
        nothing = "No criterion has been read blind by two physicians yet"
        console.say(f"{nothing}: assign items to two readers, or import their first reads.")
        return
    whom = "raters" if named else "physicians"
    shown = pooled.loc[pooled["n_items"].gt(0)]
    for prefix, title in ((metric.GENERAL, f"{whom} in general"), (metric.THESE, f"these {whom}")):
        if not shown[f"{prefix}reason"].eq(metric.TOO_FEW_RATERS).all():
            console.say(f"95 % intervals for {title}")
            console.show(metric.columns(shown, {"group": "Group"}, prefix=prefix))
    console.say(f"By pair, for these {whom}")
    console.show(metric.columns(by_pair, {"rater_1": "Rater", "rater_2": "and rater"}))
    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    for row in overall.loc[overall["bound_low"].notna() & overall["n_cannot_assess"].gt(0)].to_dict(orient="records"):
        between = metric.bounds_words(row["coefficient"], row["bound_low"], row["bound_high"])
        could_not = counted(row["n_cannot_assess"], "label was", "labels were")
        name = metric.NAMES[row["coefficient"]].lower()
        console.say(f"\n{could_not} cannot assess; whatever each had been, {name} over all reads is {between}.")
    console.say(*metric.reasons(overall))
