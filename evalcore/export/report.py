"""A report of the study as one HTML file that opens without a network: findings, figures and tables as the pages have them, with the methods beside them.

Nobody is named, no conversation is quoted. What the file shows is escaped; of its scripts only the two that are written here may run.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any, TypeAlias

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from evalcore.calibration import confidence, figures as calibration_figures, queries as calibration_queries
from evalcore.calibration.reliability import error_columns
from evalcore.export import methods
from evalcore.figures.colours import INK, colour_of
from evalcore.figures.frames import inked
from evalcore.judges import agreement, figures as judge_figures, quality, record as judge_record
from evalcore.judges.record import CATEGORY, OVERALL
from evalcore.rubric import figures as rubric_figures, finding, queries as rubric_queries
from evalcore.rubric.data import RubricData
from evalcore.rubric.results import ComputedAnalysis, compute, evaluations, primary_words, stated_words
from evalcore.study import contents
from evalcore.study.analysis import Analysis
from evalcore.study.audit.trail import trail_head
from evalcore.study.db import Engine, reading
from evalcore.study.tables import now
from evalcore.triage import bases, figures as triage_figures, predictions, setting_queries, words as triage_words
from evalcore.triage.data import TriageData
from evalcore.triage.queries import load as load_triage
from evalcore.triage.settings import METRICS, TriageSettings

WHAT = "Findings, figures and tables as the pages have them, with the methods, as one HTML file that opens without a network."
FIRST = ("Responses", "Judge", "Readers", "Selection")  # sections of the methods that stand before the numbers
LAST = ("Software", "To fill in")
RATES = ("exact", "under", "over", "missed_emergencies")  # of triage, of all models: the page Triage has the others
NO_BREAK = "\u00a0"
_INTERVAL = re.compile(r"\[[^]]*\]")
_Part: TypeAlias = str | go.Figure
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif"


def report(engine: Engine, *, blind: frozenset[int] = frozenset(), at: datetime | None = None) -> bytes:
    """The file. `blind`: conversations that wait for the viewer's own first read: nothing on them is in it. `at`: what it says of when it was made."""
    with reading(engine) as session:
        known = rubric_queries.load(session).without(blind)
        settings = setting_queries.load(session)
        triage_data = load_triage(session).without(blind)
        stated, head = contents.stated_analysis(session), trail_head(session)[1]
        is_judged = bool(evaluations(known)["judges"].map(len).any())
        done = compute(session, rubric_data=known) if is_judged else None
        models = contents.models(session)
        meanings = setting_queries.confidence_meanings(session)
        said = calibration_queries.stated(session, blind=blind)
        sure = said, calibration_queries.beside_reads(session, said, blind=blind)
    held = confidence.held_against_reads(triage_data, meanings, *sure, known)
    facts = methods.facts(engine, blind=blind, found=done)
    texts = methods.by_section(facts)
    flow = methods.documents(facts)[0].get("flow.svg", "")
    colours = colour_of(models)
    sections: dict[str, list[_Part]] = {
        "How the study was done": [
            *_said(texts, FIRST),
            *([_Html(f'<div class="wide flow">{flow}</div>')] if flow else []),
        ]
    }
    if done is not None:
        sections["Models"] = [*_models(done, colours), *_said(texts, ["Analysis"])]
        sections["Judges against physicians"] = list(_judges(known, done.results.spec.judges))
    sections["Agreement between physicians"] = [*_agreement(known), *_said(texts, ["Agreement between physicians"])]
    sections["Calibration of judges"] = list(_calibration(held))
    if triage_data.samples.shape[0]:
        spec = Analysis() if stated is None else stated.spec
        sections["Levels of care"] = [*_triage(triage_data, spec, settings), *_said(texts, ["Triage"])]
    sections["How this report was made"] = [
        _HOW,
        *_said(texts, LAST),
        f"Last hash of the audit trail: {head}" if head else "",
    ]
    made = at or now()
    line = f"Made on {made:%Y-%m-%d %H:%M} UTC with Overread {version('overread')}."
    return _page(line, {title: parts for title, parts in sections.items() if any(parts)})


_HOW = (
    "The numbers are those of the pages Models, Judges, Calibration and Triage for the analysis that the study states, or the usual one. Intervals are 95 % "
    "and clustered by conversation; what it holds for is said beside it. A dash stands where there is no value."
)


class _Html(str):
    """A part of the page, whose words are escaped already."""

    __slots__ = ()


def _finding(sentence: str) -> _Html:
    """The sentence that a section comes to."""
    return _Html(f'<p dir="auto" class="finding">{escape(sentence)}</p>' if sentence else "")


def _said(texts: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    yield from (texts[name] for name in names if texts.get(name))


def _models(done: ComputedAnalysis, colours: Mapping[str, str]) -> Iterator[_Part]:
    numbers = done.results
    yield stated_words(done.stated, done.otherwise)
    if numbers.scores.empty or not numbers.scores["n_items"].any():
        return
    scores = finding.best_first(numbers.scores)
    yield _finding(numbers.finding)
    yield from primary_words(numbers, done.stated)
    if numbers.scores["enough"].any():
        yield f"{numbers.because} {numbers.means}".strip()
    if beyond := finding.unreached_words(scores):
        yield beyond
    lacks = ("corrected: " + scores["needed"]).where(scores["n_items"].gt(0), f"no response is {finding.UNLABELLED}")
    yield rubric_figures.forest(scores.assign(needs=lacks.mask(scores["enough"].astype(bool), "")), colours)
    title = "Score of each model by the judge only, by physicians only, and corrected"
    yield _table(title, finding.score_columns(scores))
    if scores["n_read"].any():
        yield _table("Corrected scores by claim", finding.claim_columns(numbers.claims, scores))
        yield finding.claim_notes(numbers.where)
    if not numbers.differences.empty:
        pairs = finding.leader_first(numbers.differences, None)
        yield rubric_figures.differences(pairs, corrected=True)
        yield _table("Differences of the corrected scores", finding.pair_columns(pairs))
        yield finding.rank_words(numbers.ranks)


def _judges(rubric_data: RubricData, judges: Iterable[str]) -> Iterator[_Part]:
    measured = quality.balanced_f1(rubric_data)
    if not measured["rater_kind"].eq(quality.JUDGE).any():
        yield "No physician has read blind what the judges have labelled."
        return
    standings = quality.standings(measured, quality.theme_of_categories(rubric_data.items))
    ranks = quality.percentiles(standings, min_pairs=quality.MIN_PAIRS)
    for judge in judges:
        yield _finding(quality.finding(measured, ranks, judge, min_pairs=quality.MIN_PAIRS))
    yield judge_record.reads_words(judge_record.assessed(rubric_data.reads), None)
    pooled = measured.loc[measured["grouping"].eq(OVERALL) & measured["rater_kind"].ne(quality.PHYSICIAN)]
    yield _table("Balanced F1 over all criteria", quality.f1_columns(pooled, ranks))
    for judge in judges:
        sides = quality.side_by_side(measured.loc[measured["grouping"].eq(CATEGORY)], judge)
        drawn = sides.loc[sides["judge_low"].notna() | sides["physicians_low"].notna()] if len(sides) else sides
        if len(drawn):
            yield judge_figures.by_category(drawn.assign(category=drawn["category"].str.replace("_", " ")), judge)
    errors = quality.error_rates(rubric_data)
    yield _table("Sensitivity and specificity", quality.error_columns(errors.loc[errors["grouping"].eq(OVERALL)]))


def _agreement(rubric_data: RubricData) -> Iterator[_Part]:
    pooled = agreement.agreement(agreement.labels_of(rubric_data), coefficients=agreement.SHOWN)
    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    if not overall["n_items"].any():
        return
    first, *more = agreement.finding(overall, "physicians")
    yield _finding(first)
    yield from more
    columns = agreement.pooled_columns(overall, "physicians")
    yield _table("Coefficients of agreement of all physicians together", columns)


def _calibration(held: Mapping[str, confidence.Held]) -> Iterator[_Part]:
    """How far judges' confidences are borne out by physicians' reads."""
    for name, one in held.items():
        said = confidence.held_words({name: one})
        yield from map(_finding, said)
        errors = one.calibrated.errors.loc[one.calibrated.errors["n"].gt(0)]
        if errors.empty:
            continue
        groups = errors["group"].astype(str)
        if not one.is_drawn:
            yield "No read of these was drawn, so all count: they hold for what was read."
        bins = one.calibrated.reliability.assign(panel="", series=one.calibrated.reliability["group"].astype(str))
        titles = {"x_title": "Confidence that the label is right", "y_title": "Right, by physicians (share)"}
        shown = bins.loc[bins["series"].isin(groups)]
        yield calibration_figures.reliability(shown, {"": ""}, colour_of(groups), {}, **titles)
        unit, _ = confidence.UNITS[name]
        columns = {"Judge": groups, "Labels": errors["n"].map("{:,}".format), **error_columns(errors)}
        yield _table(f"Confidence of judges in a {unit} against physicians", columns)


def _triage(triage_data: TriageData, spec: Analysis, settings: TriageSettings) -> Iterator[_Part]:
    judges = predictions.usual_judges(triage_data) | bases.stated_judges(triage_data, spec)
    if not judges:
        return
    found = predictions.joined(triage_data, predictions.predictions(triage_data, judges))
    matrices = bases.matrices(bases.LevelsBy(bases.Basis.JUDGE, triage_data, found))
    if not matrices.rates["value"].notna().any():
        return
    first, *more = triage_words.findings(bases.with_cases(matrices.rates))
    yield _finding(first)
    yield from more
    who = ", ".join(f"{word} by {name}" for word, name in judges.items())
    yield f"Levels of answers as read by judges ({who}): the intervals leave out how often these are wrong."
    yield triage_figures.overview(matrices.cells)
    wanted = [name for name in RATES if name in settings.metrics and matrices.rates["measure"].eq(name).any()]
    of = triage_words.by_model(matrices.rates)
    columns = {"Model": [model for model, _ in of], "Format": [word for _, word in of]}
    for name in wanted:
        columns[METRICS[name]] = [triage_words.rate_words(row[name]) if name in row else "" for row in of.values()]
    yield _table("Rates of all models", columns)


def _table(caption: str, columns: Mapping[str, Any]) -> _Html:
    names = [name for name, cells in columns.items() if any(str(cell) for cell in cells)]
    heads = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in names)
    rows = zip(*(columns[name] for name in names), strict=True)
    cells = ("".join(f'<td dir="auto">{escape(_cell(cell))}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return _Html(
        f'<div class="wide"><table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(value: object) -> str:
    words = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return _INTERVAL.sub(lambda found: found[0].replace(" ", NO_BREAK), words)


def _page(line: str, sections: Mapping[str, Iterable[_Part]]) -> bytes:
    drawn: list[dict[str, Any]] = []
    parts = []
    for title, content in sections.items():
        parts.append(f"<section><h2>{escape(title)}</h2>")
        for part in content:
            if isinstance(part, go.Figure):
                font = {"family": _FONT, "size": 13, "color": INK}
                figure = inked(part).update_layout(template=go.layout.Template(), font=font)
                height = int(figure.layout.height or 360)
                parts.append(
                    f'<div class="wide"><div class="figure" id="figure-{len(drawn)}" style="height:{height}px"></div></div>'
                )
                drawn.append(json.loads(figure.to_json()))
            elif part:
                parts.append(part if isinstance(part, _Html) else f'<p dir="auto">{escape(part)}</p>')
        parts.append("</section>")
    folder = files("evalcore.export")
    style, draw = (folder.joinpath(f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    scripts = [get_plotlyjs(), draw] if drawn else []
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {allowed or chr(39) + 'none' + chr(39)}"
    data = json.dumps(drawn).replace("<", "\\u003c")
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>Report of the study</title><style>{style}</style></head><body><main>',
            f'<h1>Report of the study</h1><p class="quiet">{escape(line)}</p>',
            *parts,
            f'</main><script type="application/json" id="figures">{data}</script>',
            *(f"<script>{one}</script>" for one in scripts),
            "</body></html>\n",
        )
    ).encode()
