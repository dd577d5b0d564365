"""What a paper needs besides the numbers, by the command line."""

from pathlib import Path

from evalcore.console import Db, Json, actor, out, print_json, study, write_whole


def methods(db: Db = None, as_json: Json = False) -> None:
    """Write the methods paragraph of a paper from what was done in the study.

    With --json an object: paragraph; and the facts that it was written from.
    """
    from evalcore import methods as written

    with study(db) as engine:
        done = written.facts(engine)
    if as_json:
        print_json({"paragraph": written.paragraph(done), "facts": written.as_dict(done)})
    else:
        out.print(written.paragraph(done), markup=False)


def bundle(path: Path, db: Db = None) -> None:
    """Write labels, codebooks, scores, agreement, the methods paragraph and a manifest of hashes into one zip file."""
    from evalcore import bundle as bundling
    from evalcore import export

    with study(db) as engine:
        content, n_rows = bundling.bundle(engine)
        write_whole(path, content)
        export.record(engine, actor=actor(), what="bundle", file_format="zip", n_rows=n_rows)
    out.print(f"{path}: {n_rows:,} labels with codebook, methods and manifest")
