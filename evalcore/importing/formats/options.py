"""What a person says about a file beside the file itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What cannot be read out of the rows.

    Attributes:
        dataset: Name of the data set that the examples belong to, e.g. healthbench.
        subset: Part of it, e.g. hard.
        model: Who wrote the responses, where the file does not say.
        judge: Who graded them, where the file does not say.
    """

    dataset: str = "healthbench"
    subset: str | None = None
    model: str | None = None
    judge: str | None = None

    @property
    def evaluation(self) -> str:
        """The data set with its part: what a response was made for.

        >>> Options(subset="hard").evaluation
        'healthbench_hard'
        """
        return f"{self.dataset}_{self.subset}" if self.subset else self.dataset
