"""Checks by one word: `nox` while you work, `nox -s full` before you submit."""

import nox

nox.options.sessions = ["quick"]
nox.options.reuse_existing_virtualenvs = True

EVERYTHING = "test,text-and-images,amortized,graph-networks,criteria,arrow"
"""The extras of the README's test command."""


@nox.session
def quick(session: nox.Session) -> None:
    """Run lint, types and the fast tests of the core, in about two minutes once it is installed."""
    session.install("-q", "-c", "constraints.txt", "-e", f".[{EVERYTHING},lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("pytest", "-q", "-n", "2", "-m", "not slow", "tests/core", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Report the share of our lines that fast tests run: all of them, or those that are named."""
    session.install("-q", "-c", "constraints.txt", "-e", f".[{EVERYTHING},coverage]")
    session.run("coverage", "erase")
    options = ["-q", "-n", "2", "-m", "not slow", *session.posargs]
    session.run("coverage", "run", "-m", "pytest", *options)
    session.run("coverage", "combine", "-q")
    session.run("coverage", "report")


@nox.session(venv_backend="none")
def full(session: nox.Session) -> None:
    """Run what continuous integration runs."""
    session.run("bash", ".ci/run", external=True)
