"""The errors of Overread. Each message says where, what came and what was expected; pages and commands show it as it is."""


class OverreadError(Exception):
    """Anything that went wrong and that a reader can do something about."""


class DatabaseFault(Exception):
    """The database itself failed: somebody else locks it, or it is away, full or read-only. The act may be tried again as it was.

    No `OverreadError`: who answers those says something about the study, which is not known here.

    Attributes:
        reason: The driver's own words, on one line.
    """

    def __init__(self, sentence: str, reason: str) -> None:
        self.reason = reason
        super().__init__(sentence)


class ReadOnly(DatabaseFault):
    """The study lies on media that cannot be written, or on a standby server: it can be read, and nothing is kept of that."""


class NotAllowed(OverreadError):
    """A rule of `policies` forbids the act; the message is the sentence that the screen shows."""


class AlreadyChanged(OverreadError):
    """Somebody else was first: the verdict that was to be superseded has been superseded already."""


class NotFound(OverreadError):
    """A name or number that nothing in the study carries."""


class ExportError(OverreadError):
    """What was asked for cannot be written."""


class DownloadError(OverreadError):
    """The official file did not arrive, or did not arrive whole."""


class ImportFailed(OverreadError):
    """A file was refused whole.

    Attributes:
        faults: One sentence a fault, `file line N: field: what came, what was expected`; the first 20.
        n_faults: How many there were in all, at least `len(faults)`.
    """

    def __init__(self, faults: list[str], n_faults: int | None = None) -> None:
        self.faults = faults
        self.n_faults = max(len(faults), n_faults or 0)
        super().__init__("\n".join(faults))


class RowFault(OverreadError):
    """One row that cannot be read: `field: what came, what was expected`. The importer adds file and line."""


class JudgeReplyInvalid(OverreadError):
    """A judge's reply that is not what was asked for: the message says what came. It is never a verdict."""


class RunRefused(OverreadError):
    """A run cannot be started or gone on with as asked for."""
