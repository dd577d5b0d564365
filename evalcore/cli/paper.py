"""What a paper needs besides the numbers, by the command line."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evalcore.cli.console import Db, Json, actor, hidden, out, print_json, study, write_whole
from evalcore.stats.wording import counted


def methods(
    checklist: Annotated[
        bool,
        typer.Option(
            "--checklist", help="Where each item of the reporting guidelines stands in the bundle, or that it is blank."
        ),
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Write the methods of a paper from what was done in the study.

    With --json an object: paragraph; clauses, each with key, section, text and is_blank; and the facts that they were written from. With --checklist and
    --json: the rows of the bundle's checklist.csv.
    """
    from evalcore.export import bundle as bundling
    from evalcore.export import methods as written
    from evalcore.export import tables as export_tables

    with study(db) as engine:
        export_tables.check(engine, actor(engine))
        done = written.facts(engine)
    if checklist:
        texts, tables = written.documents(done, bundling.FILES)
        if as_json:
            print_json(tables["checklist"].to_dict(orient="records"))
        else:
            out.print(texts["checklist.md"], markup=False)
    elif as_json:
        clauses = [asdict(clause) for clause in written.clauses(done)]
        print_json({"paragraph": written.paragraph(done), "clauses": clauses, "facts": written.as_dict(done)})
    else:
        out.print(written.paragraph(done), markup=False)


def bundle(path: Path, db: Db = None) -> None:
    """Write one zip file of all that the numbers of a paper rest on.

    In it: labels, verdicts and scores; corrected scores and differences of the stated analysis, what missing reads could change, and agreement, each
    with its codebook; the analysis, the methods, a checklist, the flow and a manifest of hashes.
    """
    from evalcore.export import bundle as bundling
    from evalcore.export import tables as export_tables

    with study(db) as engine:
        who = actor(engine)
        export_tables.check(engine, who)
        content, n_rows = bundling.bundle(engine, blind=hidden(engine, who))
        write_whole(path, content)
        export_tables.record(engine, actor=who, what="bundle", file_format="zip", n_rows=n_rows)
    out.print(f"{path}: {counted(n_rows, 'label')} with codebook, methods and manifest")
