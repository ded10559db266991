"""Public names, parameters and defaults, as users rely on them.

`tests/public_signatures.txt` holds them. Type checkers and editors read those of the classes that
are built of estimators in a stub of each host. Who changes one on purpose writes the files anew,
with `python tests/test_public_signatures.py`, and a line of the CHANGELOG.
"""

import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "tests" / "public_signatures.txt"
OWN = ("captum_ext", "shap_ext", "shapley_adapters")
STUBS = ("captum_ext.attributions", "shap_ext.explainers")
TYPES = {
    "CausalEdges": "shapley_adapters.graphs.causal_graph",
    "CausalOrder": "shapley_adapters.graphs.causal_graph",
    "Cooperators": "shapley_adapters.cooperators.choices",
    "GraphLike": "shapley_adapters.graphs.reading",
    "HierarchyLike": "shapley_adapters.hierarchies.reading",
}


def test_public_signatures_are_those_of_the_snapshot():
    before, after = SNAPSHOT.read_text("utf-8").splitlines(), signatures()
    gone = [line for line in before if line not in after]
    new = [line for line in after if line not in before]
    assert (gone, new) == ([], []), (
        "Public signatures changed. If that is meant, say so in CHANGELOG.md and run "
        "python tests/test_public_signatures.py."
    )


@pytest.mark.parametrize("package", STUBS)
def test_stubs_have_the_classes_that_are_built_of_estimators(package):
    path, text = stub(package)
    assert path.read_text("utf-8") == text, "Run python tests/test_public_signatures.py."


def test_the_version_is_stated_once():
    import shapley_adapters

    packages = [__import__(name) for name in OWN]
    assert {package.__version__ for package in packages} == {shapley_adapters.__version__}
    for page in ("CITATION.cff", "docs/citation.md", "docs/versions.md"):
        assert shapley_adapters.__version__ in (ROOT / page).read_text("utf-8")


def test_provisional_names_are_public():
    page = (ROOT / "docs" / "versions.md").read_text("utf-8")
    provisional = re.findall(
        r"`([\w.]+)`", page.partition("**Provisional**")[2].partition("\n\n")[0]
    )
    names = {line.partition("(")[0] for line in signatures()}
    assert provisional
    assert [name for name in provisional if not any(f"{own}.{name}" in names for own in OWN)] == []


def signatures():
    """Return a line for each public name, with its parameters and their defaults."""
    return [f"{path}{parameters(value)}" for path, value in public_values()]


def public_values():
    """Yield the path and the value of each public name and method of the three packages."""
    seen = set()
    for name in OWN:
        yield from of_package(__import__(name), name, seen)


def of_package(package, path, seen):
    for name in sorted(package.__all__):
        value = getattr(package, name)
        if isinstance(value, types.ModuleType):
            yield from of_package(value, f"{path}.{name}", seen)
        else:
            yield f"{path}.{name}", value
            if inspect.isclass(value):
                yield from of_class(value, f"{path}.{name}", seen)


def of_class(kind, path, seen):
    """Yield the methods of a class; those that several classes share, for the first of them."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        function = getattr(member, "__func__", member)
        is_own = (getattr(function, "__module__", None) or "").startswith(OWN)
        if name.startswith("_") or not is_own or not callable(function) or function in seen:
            continue
        seen.add(function)
        yield f"{path}.{name}", function


def parameters(value):
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = signature.replace(
        parameters=[
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
        ],
        return_annotation=inspect.Signature.empty,
    )
    return re.sub(
        r"(?:CPUDispatcher\()?<(?:function|class) '?([\w.]+)'?(?: at 0x\w+)?>\)?", r"\1", str(plain)
    )


def stub(name_of_package):
    """Return the path and the text of what type checkers see of the classes of a package."""
    package = importlib.import_module(name_of_package)
    public = {name: getattr(package, name) for name in sorted(package.__all__)}
    built = {name: one for name, one in public.items() if one.__module__ == name_of_package}
    base = built[min(built)].__base__
    origins = {name: one.__module__ for name, one in public.items() if name not in built}
    origins |= {base.__name__: base.__module__}
    origins |= {"write_constructor": "shapley_adapters.constructors"}
    classes = []
    for name, kind in built.items():
        options = {n: t for n, t in inspect.get_annotations(kind).items() if isinstance(t, str)}
        summary, *_ = kind.__doc__.splitlines()
        fields = [f"    {option}: {annotation} = ..." for option, annotation in options.items()]
        classes += ["@write_constructor", f"class {name}({base.__name__}):"]
        classes += [f'    """{summary}"""', "", *fields, *[""] * bool(fields)]
        aliases = set(re.findall(r"\w+", " ".join(options.values()))) & set(TYPES)
        origins |= {alias: TYPES[alias] for alias in aliases}
    lines = ['"""Written by tests/test_public_signatures.py, for type checkers and editors."""']
    here = ""
    for module in sorted(set(origins.values()), key=lambda one: (one.startswith(OWN[:2]), one)):
        names = ", ".join(sorted(name for name, origin in origins.items() if origin == module))
        shown = module.removeprefix(name_of_package)
        lines += [""] * (here != shown[0])  # between other packages and this one
        lines += [f"from {shown} import {names}"]
        here = shown[0]
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in public), "]", "", *classes]
    return Path(str(package.__file__)).with_suffix(".pyi"), "\n".join(lines)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    for path, text in map(stub, STUBS):
        path.write_text(text, encoding="utf-8")
    SNAPSHOT.write_text("\n".join(signatures()) + "\n", encoding="utf-8")
