"""What an import of an inspect_ai log says beside its counts, in sentences."""

from collections import Counter
from dataclasses import dataclass, field

from evalcore.importing.formats.inspect_logs import Known, LeftOut
from evalcore.importing.formats.inspect_scores import Says
from evalcore.importing.formats.options import Options
from evalcore.stats.wording import counted
from evalcore.study.schema import Format

MAX_NAMED = 20
"""So many scores are told of one by one."""


@dataclass
class Told:
    """Counts of samples.

    Attributes:
        left_out: Samples that are no responses, by why.
        formats: Samples by the format of their case; None: of examples.
        taken: Of scores: name, what it says, whose it is.
        passed: Of scores whose content is not read here: name, what it says.
        repeated: Of scores by a judge whose first score counts already.
        n_unread: Items of rubrics that are neither true nor false.
        n_parts: Samples with parts of their input that are no text.
    """

    left_out: Counter[LeftOut | None] = field(default_factory=Counter)
    formats: Counter[Format | None] = field(default_factory=Counter)
    taken: Counter[tuple[str, Says, str]] = field(default_factory=Counter)
    passed: Counter[tuple[str, Says]] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    n_unread: int = 0
    n_parts: int = 0

    def sentences(self, known: Known, options: Options, n_samples: int) -> list[str]:
        """All that is to be said, in the order in which it matters."""
        return [
            *_run(known, n_samples),
            *(
                f"{counted(n, 'sample')} {why}: left out, and never taken for an empty answer"
                for why, n in self.left_out.items()
                if why and n
            ),
            *_model(known, options),
            *(
                f"{counted(n, 'answer to a case', 'answers to cases')}, in the format {word}"
                for word, n in self.formats.items()
                if word is not None
            ),
            *self._scores(),
            *(
                [f"{counted(self.n_unread, 'criterion', 'criteria')} without true or false: no verdict"]
                if self.n_unread
                else []
            ),
            *(
                [
                    f"{counted(self.n_parts, 'input')} with parts that are no text: each stands as its kind in brackets, such as [image]"
                ]
                if self.n_parts
                else []
            ),
        ]

    def _scores(self) -> list[str]:
        lines = [
            f"score {name!r} of {counted(n, 'sample')}: taken as {says}, by the judge {judge!r}"
            for (name, says, judge), n in self.taken.items()
        ]
        lines += [
            f"score {name!r} of {counted(n, 'sample')}: passed over, {_why(says)}"
            for (name, says), n in self.passed.items()
        ]
        lines += [
            f"score {name!r} of {counted(n, 'sample')}: passed over, as an earlier score of the same is by the same judge"
            for name, n in self.repeated.items()
        ]
        more = len(lines) - MAX_NAMED
        return lines if more <= 0 else [*lines[:MAX_NAMED], f"and {counted(more, 'score')} more"]


def _run(known: Known, n_samples: int) -> list[str]:
    lines = []
    if known.status != "success":
        lines.append(f"The run behind this log did not end well: its status is {known.status[:40]!r}")
    missing = (known.n_planned or 0) - n_samples
    if missing > 0:
        are = "is" if missing == 1 else "are"
        lines.append(f"{missing:,} of the {known.n_planned:,} samples that the run was to ask {are} not in the log")
    return lines


def _model(known: Known, options: Options) -> list[str]:
    if options.model == known.full_model or not known.model:
        return []
    return [f"model {known.full_model!r} of the log: here {options.model!r}"]


def _why(says: Says) -> str:
    if says is Says.LEVEL:
        return "as it holds a level of care and the sample is of no case of triage"
    if says is Says.VERDICTS:
        return "as it holds verdicts on criteria and the sample is of a case of triage"
    return f"as it holds {says}"
