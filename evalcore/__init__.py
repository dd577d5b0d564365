"""The evaluation core of Overread: everything that is not screen."""

__version__ = "0.1.0"
