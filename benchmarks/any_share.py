"""How many parameters of each package are annotated as Any, read from the sources.

A parameter counts as Any where its annotation is Any, a union with Any, or an alias of these. Parts
such as `Callable[..., Any]` or `list[Any]` do not count. Fields that `write_constructor` turns into
arguments are parameters, too, and so are those of stubs. Run in the repository, or with `--root` of
another checkout:

    python benchmarks/any_share.py
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = {
    "shapley_adapters": "adapters/shapley_adapters",
    "shap_ext": "shap_ext",
    "captum_ext": "captum_ext",
}


def parameters(tree: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield where each parameter stands, its name, and its annotation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            spec = node.args
            variadic = [one for one in (spec.vararg, spec.kwarg) if one is not None]
            for one in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *variadic]:
                if one.arg not in ("self", "cls"):
                    yield f"{node.lineno}: {node.name}({one.arg})", one.annotation
        if isinstance(node, ast.ClassDef) and _is_built_of_fields(node):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and "init=False" not in ast.unparse(line):
                    yield f"{line.lineno}: {node.name}({ast.unparse(line.target)})", line.annotation


def _is_built_of_fields(node: ast.ClassDef) -> bool:
    return any(ast.unparse(one) == "write_constructor" for one in node.decorator_list)


def aliases_of_any(trees: list[ast.Module]) -> set[str]:
    """Return the names of aliases that are Any, or a union with Any, under another name."""
    found = {"Any"}
    definitions = {
        ast.unparse(node.target): node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
    }
    while True:
        more = {name for name, value in definitions.items() if is_any(value, found)} - found
        if not more:
            return found
        found |= more


def is_any(annotation: ast.expr | None, names_of_any: set[str]) -> bool:
    """Return whether an annotation is Any as a whole, or a union with it."""
    if annotation is None:
        return True
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return is_any(ast.parse(annotation.value, mode="eval").body, names_of_any)
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left, names_of_any) or is_any(annotation.right, names_of_any)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in (
        "Union",
        "Optional",
    ):
        inside = annotation.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        return any(is_any(part, names_of_any) for part in parts)
    return ast.unparse(annotation).removeprefix("typing.") in names_of_any


def main() -> None:
    """Print the share of each package, and the parameters themselves with `--list`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--list", action="store_true", help="name every parameter that is Any")
    parser.add_argument("--most", type=float, default=1.0, help="end with an error above this")
    options = parser.parse_args()
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for folder in PACKAGES.values()
        for path in sorted((options.root / folder).rglob("*.py*"))
        if path.suffix in (".py", ".pyi")
    }
    names_of_any = aliases_of_any(list(trees.values()))
    is_exceeded = False
    for package, folder in PACKAGES.items():
        n_parameters, untyped = 0, []
        for path, tree in trees.items():
            if path.is_relative_to(options.root / folder):
                for where, annotation in parameters(tree):
                    n_parameters += 1
                    if is_any(annotation, names_of_any):
                        untyped.append(f"{path.relative_to(options.root)}:{where}")
        share = len(untyped) / max(n_parameters, 1)
        print(f"{package}: {len(untyped)} of {n_parameters} parameters are Any ({share:.1%})")
        is_exceeded |= share > options.most
        if options.list:
            print(*untyped, sep="\n")
    sys.exit(is_exceeded)


if __name__ == "__main__":
    main()
