"""All items, in the order of the papers."""

from . import (
    neighbours,
    poster,
    shapr,
    shear,
    shear_criteo,
    simshap_images,
    simshap_iris,
    simshap_tables,
)

ITEMS = (
    *shear.ITEMS,
    *shear_criteo.ITEMS,
    *neighbours.ITEMS,
    *simshap_tables.ITEMS,
    *simshap_iris.ITEMS,
    *simshap_images.ITEMS,
    *poster.ITEMS,
    *shapr.ITEMS,
)
