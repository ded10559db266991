"""Import our packages where one extra alone is installed: `python try_extra.py dask`."""

import importlib
import importlib.util
import sys
from pathlib import Path

HOSTS = {"shapley_adapters": (), "shap_ext": ("shap",), "captum_ext": ("captum", "torch")}


def main(extra):
    """Import each package whose hosts are here, and name them."""
    imported = []
    for name, hosts in HOSTS.items():
        if all(importlib.util.find_spec(host) for host in hosts):
            package = importlib.import_module(name)
            assert Path(sys.prefix) in Path(package.__file__).parents, package.__file__
            imported.append(f"{name} {package.__version__}")
    print(f"Python {sys.version.split()[0]}, [{extra}]: {', '.join(imported)}")


main(sys.argv[1])
