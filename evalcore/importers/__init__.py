"""One file a format. To add one: a module with NAME, TITLE, COLUMNS, recognises and read, and its line in FORMATS."""

from types import ModuleType

from evalcore.importers import healthbench_examples, judge_verdicts, meta_eval, simple_evals, verdict_table

FORMATS: dict[str, ModuleType] = {
    module.NAME: module for module in (healthbench_examples, simple_evals, meta_eval, judge_verdicts, verdict_table)
}
"""Every format by its name, in the order in which a file's content is compared with them."""
