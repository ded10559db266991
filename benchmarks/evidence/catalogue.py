"""All items, in the order of the papers."""

from __future__ import annotations

from . import (
    neighbours,
    neighbours_pictures,
    poster,
    shapr,
    shear,
    shear_criteo,
    shear_throughput,
    simshap_figure_2,
    simshap_images,
    simshap_iris,
    simshap_settings,
)

ITEMS = (
    *shear.ITEMS,
    *shear_throughput.ITEMS,
    *shear_criteo.ITEMS,
    *neighbours.ITEMS,
    *neighbours_pictures.ITEMS,
    *simshap_figure_2.ITEMS,
    *simshap_settings.ITEMS,
    *simshap_iris.ITEMS,
    *simshap_images.ITEMS,
    *poster.ITEMS,
    *shapr.ITEMS,
)
