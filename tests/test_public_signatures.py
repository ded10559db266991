"""Public names, parameters and defaults, as users rely on them.

`tests/public_signatures.txt` holds them. Type checkers and editors read those of the classes that
are built of estimators and aggregators, and of the functions that are built of criteria, in stubs
of each host. Who changes one on purpose writes the files anew, with
`python tests/test_public_signatures.py`, and a line of the CHANGELOG.
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
STUBS = (
    *("captum_ext.aggregates", "captum_ext.attributions", "captum_ext.criteria"),
    *("shap_ext.aggregates", "shap_ext.criteria", "shap_ext.explainers"),
)


def test_public_signatures_are_those_of_the_snapshot():
    before, after = SNAPSHOT.read_text("utf-8").splitlines(), signatures()
    gone = [line for line in before if line not in after]
    new = [line for line in after if line not in before]
    assert (gone, new) == ([], []), (
        "Public signatures changed. If that is meant, say so in CHANGELOG.md and run "
        "python tests/test_public_signatures.py."
    )


@pytest.mark.parametrize("package", STUBS)
def test_stubs_have_the_classes_and_functions_that_are_built(package):
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
    """Return the path and the text of what type checkers see of the classes of a package.

    Its imports are written by hand; a new alias in the type of an option needs one.
    """
    package = importlib.import_module(name_of_package)
    path = Path(str(package.__file__)).with_suffix(".pyi")
    public = sorted(package.__all__)
    by_hand = path.read_text("utf-8").partition("__all__")[0]
    lines = [f"{by_hand}__all__ = [", *(f'    "{name}",' for name in public), "]"]
    for name in public:
        kind = getattr(package, name)
        if inspect.isfunction(kind) and kind.__globals__ is not vars(package):
            lines += function_in_stub(kind) if kind.__module__ == name_of_package else []
            continue
        if "_option_names" not in vars(kind):
            continue  # is not built of an estimator
        options = inspect.signature(kind).parameters
        summary, *_ = kind.__doc__.splitlines()
        lines += ["", f"class {name}({kind.__base__.__name__}):", f'    """{summary}"""', ""]
        own = inspect.get_annotations(kind)
        lines += [f"    {option}: {own[option]}" for option in own if option in options]
        arguments = [f"    {argument}" for argument in arguments_in_stub(options.values())]
        lines += ["    def __init__(", "        self,", *arguments, "    ) -> None: ..."]
    return path, "\n".join([*lines, ""])


def function_in_stub(function):
    signature, (summary, *_) = inspect.signature(function), function.__doc__.splitlines()
    arguments = arguments_in_stub(signature.parameters.values())
    end = f") -> {signature.return_annotation}:"
    return ["", f"def {function.__name__}(", *arguments, end, f'    """{summary}"""']


def arguments_in_stub(parameters):
    arguments = [
        f"    {one.name}: {one.annotation}{'' if one.default is one.empty else ' = ...'},"
        for one in parameters
    ]
    n_by_position = sum(one.kind is not one.KEYWORD_ONLY for one in parameters)
    return (
        arguments[:n_by_position]
        + ["    *,"] * (n_by_position < len(arguments))
        + [*arguments[n_by_position:]]
    )


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    for path, text in map(stub, STUBS):
        path.write_text(text, encoding="utf-8")
    SNAPSHOT.write_text("\n".join(signatures()) + "\n", encoding="utf-8")
