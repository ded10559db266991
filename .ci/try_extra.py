"""Import our packages where one extra alone is installed: `python try_extra.py dask distributed`.

The arguments are the packages of the extra.
"""

import importlib
import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path

HOSTS = {"shapley_adapters": (), "shap_ext": ("shap",), "captum_ext": ("captum", "torch")}


def main(packages):
    """Import each of our packages whose hosts are here; print these, and the extra's versions."""
    imported = []
    for name, hosts in HOSTS.items():
        if all(importlib.util.find_spec(host) for host in hosts):
            package = importlib.import_module(name)
            assert Path(sys.prefix) in Path(package.__file__).parents, package.__file__
            imported.append(name)
    installed = [f"{name} {version(name)}" for name in packages]
    print(f"imported {', '.join(imported)}; installed {', '.join(installed)}")


main(sys.argv[1:])
