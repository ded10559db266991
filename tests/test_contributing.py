"""The paths and names in CONTRIBUTING.md, and the links of the README, lead somewhere."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
MAP = re.findall(
    r"^\| [^|]*\? \| (`[^|]+`) \| ([^|]*)\|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE
)


def paths_in(text):
    """Return the words between backticks that look like paths of the repository."""
    words = re.findall(r"`([\w.\-/]+)`", text)
    return {w for w in words if "/" in w or w.endswith((".md", ".txt", ".toml", ".cff", ".yml"))}


def links_of(text):
    links = re.findall(r"\]\(([^)#]+)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    return {link for link in links if "://" not in link}


def test_paths_of_the_guide_exist():
    text = GUIDE.read_text(encoding="utf-8")
    roots = [ROOT, ROOT / "shap_ext", ROOT / "captum_ext"]  # whose folders the guide lists
    paths = paths_in(text) | links_of(text)
    assert len(paths) > 30
    assert {path for path in paths if not any((root / path).exists() for root in roots)} == set()


def test_the_map_names_what_is_there():
    assert len(MAP) >= 15
    for files, name in MAP:
        for file in re.findall(r"`([^`]+)`", files):
            source = (ROOT / file).read_text(encoding="utf-8")
            if name.strip():
                assert re.search(rf"^ *(def|class) {name.strip(' `')}\b", source, re.MULTILINE)


def test_links_of_the_readme_exist():
    """They are relative until the package has an address: an index shows the README elsewhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    links = links_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert bool(links) != ("urls" in project)
    assert {link for link in links if not (ROOT / link).exists()} == set()


def test_pictures_of_the_readme_have_texts():
    pictures = re.findall(r"<img [^>]*>", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert pictures
    assert [picture for picture in pictures if not re.search('alt="[^"]', picture)] == []


def test_each_test_runs_in_continuous_integration():
    """The fast ones by the README's command, the others by the step after it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"<!-- test-command -->\n```sh\n(.*)\n```", readme)
    assert command.endswith('pytest -n 2 -m "not slow"')
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "readme_command test-command" in run
    slow = r"^\.venv/bin/python -m pytest .*-m slow$"
    assert re.search(slow, run, re.MULTILINE)
    assert '-m "not slow or versions"' in run


def test_the_guide_names_the_commands_of_the_readme_and_of_continuous_integration():
    guide = GUIDE.read_text(encoding="utf-8")
    for command in ('python -m pytest -n 2 -m "not slow"', "python -m pytest -n 2 -m slow"):
        assert f"`{command}`" in guide
        assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    words = re.findall(r"^    (\w+)\)", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"`\.ci/run ([a-z]+)", guide)) == set(words)


def test_the_set_ups_install_all_that_the_tests_need():
    """The README's command and the guide's set-up name the same extras, so neither skips more."""
    readme, guide = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")
    )
    (everything,) = re.findall(r'-e "\.\[(.*),lint,coverage\]"', guide)
    assert f'-e ".[{everything}]" && .venv/bin/python -m pytest' in readme
