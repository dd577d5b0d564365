"""What is wrong with a file: the first faults in words, and how many there are in all."""

from collections.abc import Iterator
from contextlib import contextmanager

from evalcore.errors import ImportFailed, RowFault

MAX_FAULTS = 20
MAX_COUNTED = 10_000
"""With so many, a file is another than was meant: it is not read to its end."""


class Faults:
    """Collects the faults of one file.

    Attributes:
        count: How many there are; the first `MAX_FAULTS` of them are kept in words.
    """

    def __init__(self, file_name: str, *, row_word: str) -> None:
        self._file_name = file_name
        self._row_word = row_word
        self._sentences: list[str] = []
        self.count = 0

    def add(self, sentence: str, number: int = 0) -> None:
        """Note a fault, of a row where it has a number.

        Raises:
            ImportFailed: There are so many that the file is read no further.
        """
        self.count += 1
        place = f" {self._row_word} {number}" if number else ""
        if len(self._sentences) < MAX_FAULTS:
            self._sentences.append(f"{self._file_name}{place}: {sentence}")
        if self.count >= MAX_COUNTED:
            last = f"{self._file_name}{place}: with {MAX_COUNTED:,} faults it was read no further"
            raise ImportFailed([*self._sentences, last], self.count)

    @contextmanager
    def caught(self, number: int) -> Iterator[None]:
        """Note the fault of a row that the block raises."""
        try:
            yield
        except RowFault as fault:
            self.add(str(fault), number)

    def raise_if_any(self) -> None:
        """Refuse the file.

        Raises:
            ImportFailed: Something was noted.
        """
        if self.count:
            raise ImportFailed(self._sentences, self.count)
