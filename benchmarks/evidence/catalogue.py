"""All items, in the order of the papers."""

from importlib import import_module

from .items import Item

_MODULES = "shear shear_criteo neighbours simshap_tables simshap_iris simshap_images poster"

ITEMS: list[Item] = [
    item for name in _MODULES.split() for item in import_module(f".{name}", __package__).ITEMS
]
