"""What a study has chosen about triage, by the command line: label maps and settings."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from evalcore.cli.console import Db, Json, actor, content, grid, out, print_json, study, write_whole
from evalcore.errors import OverreadError
from evalcore.study.csv_cells import text_of
from evalcore.triage import acts as triage_acts


def label_maps(
    source: Annotated[str | None, typer.Option(help="This source alone, e.g. semigran.")] = None,
    import_: Annotated[
        Path | None,
        typer.Option("--import", help="CSV with the columns label and meaning: the study's own map of --source."),
    ] = None,
    export: Annotated[Path | None, typer.Option(help="Write the map of --source as such a file.")] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Back to the map of --source that comes with Overread.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """List what the labels of each source stand for, and on how many cases they are; or write the study's own map of a source.

    A meaning is a level from A (home) to D (emergency now), a boundary such as C/D, panel (physicians have to decide), or information and a level
    (kept, and never the gold). Cases that were imported before keep what was made of them. With --json a list with one object a source, by
    name: source, is_own (the study's own map), has_map (false: the map of the levels' names counts for it), n_cases, n_otherwise (of
    them imported when their label stood for something else), labels (list of label, meaning, n_cases, n_otherwise), unknown (labels of
    cases that the map does not know: list of label, n_cases).
    """
    from evalcore.study.db import reading
    from evalcore.triage import label_maps as tables
    from evalcore.triage import setting_queries
    from evalcore.triage.label_maps import label_counts

    chosen = _chosen(source, import_, export, reset=reset)
    given = None if import_ is None else tables.parse(text_of(content(import_), import_.name), import_.name)
    with study(db) as engine:
        if given or reset:
            triage_acts.set_label_map(engine, chosen, given or [], actor=actor(engine))
        with reading(engine) as session:
            own, maps_in_force = setting_queries.own_tables(session), setting_queries.tables_of(session)
            labels = setting_queries.labels_of_cases(session)
    counts = label_counts(labels, tables.maps(maps_in_force))
    known = sorted({*maps_in_force, *counts["source"]})
    if chosen and chosen not in known:
        msg = f"--source: expected one of {', '.join(known)}, got {source!r}"
        raise OverreadError(msg)
    if export is not None:
        write_whole(export, tables.to_csv(maps_in_force.get(chosen, maps_in_force[tables.LEVELS])).encode())
    listed = [_described(name, counts, own, maps_in_force) for name in known if chosen in {"", name}]
    if as_json:
        print_json(listed)
        return
    for row in listed:
        whose = "the study's own map" if row["is_own"] else "the map that comes with Overread"
        out.print(f"{row['source']}: {whose if row['has_map'] else 'no map of its own'}", markup=False)
        lines = [(label["label"], label["meaning"], f"{label['n_cases']:,}") for label in row["labels"]]
        lines += [(label["label"], "– (unknown)", f"{label['n_cases']:,}") for label in row["unknown"]]
        out.print(grid(("label", "stands for", "cases"), lines))
        if row["n_otherwise"]:
            out.print(
                f"{row['n_otherwise']:,} of {row['n_cases']:,} cases were imported as something else.", markup=False
            )


def _chosen(source: str | None, import_: Path | None, export: Path | None, *, reset: bool) -> str:
    from evalcore.triage.label_maps import fold

    acts = [
        name
        for name, is_asked in (("--import", import_ is not None), ("--export", export is not None), ("--reset", reset))
        if is_asked
    ]
    if len(acts) > 1:
        msg = f"expected one of {', '.join(acts)}, got {len(acts)}"
        raise OverreadError(msg)
    if acts and not source:
        msg = f"--source: expected the source whose map it is beside {acts[0]}, got nothing"
        raise OverreadError(msg)
    return fold(source or "")


def _described(
    source: str, counts: pd.DataFrame, own: Collection[str], maps_in_force: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Any]:
    """One source as --json has it."""
    from evalcore.triage.label_maps import fold

    mine = counts.loc[counts["source"].eq(source)]
    by_label = {row["label"]: row for row in mine.to_dict(orient="records")}
    nothing = {"n_cases": 0, "n_otherwise": 0}
    table = maps_in_force.get(source)
    rows = table if table is not None else list(zip(mine["written"], mine["meaning"], strict=True))
    labels = [
        {"label": label, "meaning": meaning} | {name: int(by_label.get(fold(label), nothing)[name]) for name in nothing}
        for label, meaning in rows
        if meaning is not None
    ]
    unknown = mine.loc[mine["meaning"].isna()]
    return {
        "source": source,
        "is_own": source in own,
        "has_map": table is not None,
        "n_cases": int(mine["n_cases"].sum()),
        "n_otherwise": int(mine["n_otherwise"].sum()),
        "labels": labels,
        "unknown": [
            {"label": label, "n_cases": int(n)} for label, n in zip(unknown["written"], unknown["n_cases"], strict=True)
        ],
    }


def triage_settings(
    export: Annotated[Path | None, typer.Option(help="Write the settings as a YAML file.")] = None,
    import_: Annotated[
        Path | None,
        typer.Option("--import", help="Take the settings from a YAML file; what it leaves out gets its default."),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the settings that come with Overread.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Show what the study has chosen about triage, or take it from a file: names of levels, formats, metrics, weights, ambiguity.

    Without --json the settings are printed as the YAML file has them. With --json an object: is_own (the study has chosen), level_names (A, B, C,
    D), formats and metrics (lists), weights (under, over), ambiguous (spread_above, uncertainty_above; null: switched off).
    """
    from evalcore.study.db import reading
    from evalcore.triage import setting_queries
    from evalcore.triage import settings as settings_files

    if import_ is not None and reset:
        msg = "expected --reset or a file, got both"
        raise OverreadError(msg)
    given = None
    if import_ is not None:
        given = settings_files.parse(text_of(content(import_), import_.name), import_.name)
    with study(db) as engine:
        if given is not None or reset:
            triage_acts.set_triage_settings(engine, given, actor=actor(engine))
        with reading(engine) as session:
            own, settings = setting_queries.own(session), setting_queries.load(session)
    if export is not None:
        write_whole(export, settings_files.to_yaml(settings).encode())
    if as_json:
        print_json({"is_own": own is not None, **settings_files.plain(settings)})
    elif export is not None:
        out.print(f"{export} written", markup=False)
    else:
        out.print(settings_files.to_yaml(settings).rstrip(), markup=False)
