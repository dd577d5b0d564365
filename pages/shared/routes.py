"""Every address of the dashboard, once: the script that a link or a button opens."""

START, HELP_NAME = "overview", "help"


def script(name: str) -> str:
    """The script of a page, as Streamlit takes it: beside app.py."""
    return f"pages/{name}/page.py"


def title(name: str) -> str:
    """What the navigation calls a page."""
    return name.replace("_", " ").capitalize()


REVIEW, MY_READS, BROWSE, ADJUDICATE = map(script, ("review", "my_reads", "browse", "adjudicate"))
MODELS, JUDGES, TRIAGE, CALIBRATION = map(script, ("models", "judges", "triage", "calibration"))
OVERVIEW, STUDY, EXPORT, AUDIT, HELP = map(script, ("overview", "study", "export", "audit", HELP_NAME))
