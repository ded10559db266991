"""How the pictures of the tutorials are saved."""

from sphinx_gallery.scrapers import matplotlib_scraper


def save_figures(block, block_vars, gallery_conf):
    """Save the open figures with all their labels, which plots of shap draw beside the figure."""
    return matplotlib_scraper(block, block_vars, gallery_conf, bbox_inches="tight")
