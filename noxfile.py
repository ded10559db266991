"""Checks by one word: `nox -s quick` while you work, `nox -s full` before you submit."""

import nox

nox.options.sessions = ["quick"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def quick(session: nox.Session) -> None:
    """Run lint, types and the fast tests of the core, in under two minutes."""
    session.install("-c", "constraints.txt", "-e", ".[test,lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("pytest", "-q", "-n", "2", "-m", "not slow", "tests/core", *session.posargs)


@nox.session(venv_backend="none")
def full(session: nox.Session) -> None:
    """Run what continuous integration runs."""
    session.run("bash", ".ci/run", external=True)
