"""A file of each format to begin with: two invented rows (four of a matrix), which go together in one study, examples and cases first."""

from pathlib import Path

from evalcore.errors import OverreadError
from evalcore.importing.formats import FORMATS
from evalcore.settings import shipped


def template(format_name: str) -> Path:
    """The file of this format; OverreadError: there is no such format."""
    if format_name not in FORMATS:
        msg = f"expected one of the formats {', '.join(FORMATS)}, got {format_name!r}"
        raise OverreadError(msg)
    return next(shipped("data/templates").glob(f"{format_name}.*"))
