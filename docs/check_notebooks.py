"""Run the notebooks of the five main tasks, and open them by a Jupyter server.

    python docs/check_notebooks.py docs/_build/html

The built pages offer each tutorial as a notebook without outputs. Those of TASKS are replaced by
what they become when they are run. Prints a line for each, and fails if one fails, has no picture,
or is not shown by the server.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).parent
TASKS = {
    "tables": "tables/boosted_trees",
    "texts": "texts_images_graphs/text_through_shap",
    "images": "texts_images_graphs/image_through_shap",
    "language models": "texts_images_graphs/language_model",
    "captum": "texts_images_graphs/text_through_captum",
}
SECONDS_OF_A_CELL = 300
SECONDS_OF_THE_SERVER = 60
TOKEN = "check"
FOLDERS = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]


def run(task: str, pages: Path) -> Path:
    """Run a notebook beside its data, and write it with its outputs into the built pages."""
    source = DOCS / "gallery" / f"{TASKS[task]}.ipynb"
    notebook = nbformat.read(source, as_version=4)
    where = {"metadata": {"path": str(source.parent)}}
    NotebookClient(notebook, timeout=SECONDS_OF_A_CELL, resources=where).execute()
    (path,) = (pages / "_downloads").glob(f"*/{source.name}")
    nbformat.write(notebook, path)
    return path.relative_to(pages)


def answer(address: str) -> str:
    """Return what the server on this machine answers, which may take a while to start."""
    open_directly = build_opener(ProxyHandler({})).open
    for _ in range(10 * SECONDS_OF_THE_SERVER):
        try:
            with open_directly(f"{address}?token={TOKEN}") as reply:
                return reply.read().decode()
        except URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
    raise TimeoutError(address)


def main() -> None:
    pages = Path(sys.argv[1]).resolve()
    os.environ.pop("MPLBACKEND", None)  # so that notebooks show their pictures
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ServerApp.root_dir": pages,
        "ServerApp.port": port,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": TOKEN,
    }
    command = [sys.executable, "-m", "jupyter_server", "--log-level=ERROR"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with subprocess.Popen(command) as server:
        try:
            for task in TASKS:
                started = time.perf_counter()
                path = run(task, pages)
                shown = answer(f"http://127.0.0.1:{port}/nbconvert/html/{path.as_posix()}")
                n_pictures = shown.count("data:image/png")
                seconds = time.perf_counter() - started
                print(f"{task}: {path.name}, {n_pictures} pictures, {seconds:.0f} s", flush=True)
                if not n_pictures:
                    sys.exit(f"{path.name} shows no picture.")
        finally:
            server.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # one's own may be read-only, or have options
        os.environ.update(dict.fromkeys(FOLDERS, folder))
        main()
