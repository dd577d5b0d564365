"""What each exported column means, and of which kind it is. The tables have exactly the columns of `codebook.csv`, in its order."""

import csv
from importlib.resources import files

CODEBOOK: dict[str, list[tuple[str, str]]] = {}
"""Table name to pairs of column and meaning."""
DTYPES: dict[str, dict[str, str]] = {}
"""Table name to the kinds of its columns, also where nothing is in them; a column that is not named here is text."""

for _row in csv.DictReader(files(__package__).joinpath("codebook.csv").read_text(encoding="utf-8").splitlines()):
    CODEBOOK.setdefault(_row["table"], []).append((_row["column"], _row["meaning"]))
    DTYPES.setdefault(_row["table"], {}).update({_row["column"]: _row["kind"]} if _row["kind"] else {})
