"""List the versions whose pages are in a folder: `python list_versions.py FOLDER`.

Writes FOLDER/versions.js, which the pages of all versions read, and FOLDER/index.html, which leads
to the newest version.
"""

import json
import sys
from pathlib import Path

from packaging.version import Version

START = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={0}/index.html">
<title>shapley-ext</title>
<a href="{0}/index.html">shapley-ext {0}</a>
"""


def main(folder: Path) -> None:
    """Write both files."""
    names = [page.parent.name for page in folder.glob("*/index.html")]
    versions = sorted(names, key=Version, reverse=True)
    (folder / "versions.js").write_text(f"const VERSIONS = {json.dumps(versions)};\n", "utf-8")
    (folder / "index.html").write_text(START.format(versions[0]), "utf-8")
    print(f"Versions: {', '.join(versions)}")


main(Path(sys.argv[1]))
