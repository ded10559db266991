"""Look at the built pages with a browser: Chromium, as `pip install PyQt6-WebEngine` brings it.

    python docs/check_in_browser.py docs/_build/html

Every page is loaded once. No page scrolls sideways at any of WIDTHS. Code can be read in both
themes. Images and formulas are drawn, and the console has no errors. Each of SEARCHES finds a page
that answers. The bytes of the heaviest pages are printed, as sent to a new reader, and the time
until their first paint, after other pages were read. Prints one line for each fault, and fails if
there is any.
"""

import argparse
import contextlib
import gzip
import json
import os
import sys
import threading
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox --disable-gpu")  # root, servers

from PyQt6.QtCore import QTimer, QUrl
from PyQt6.QtWebEngineCore import QWebEnginePage, QWebEngineSettings
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

WIDTHS = [320, 360, 480, 768, 1024, 1280, 1600]
# Of the many pages of single names, which have one template: least room, alone and by the sidebar.
WIDTHS_OF_NAMES = [320, 1024]
# What is searched, and pages that answer: one of them is among the first three results.
SEARCHES = {
    "error bars": ["budgets_and_error_bars.html"],
    "superpixel": ["gallery/texts_images_graphs/image_superpixels.html"],
    "polars": ["questions.html"],
    "async": ["remote_models.html"],
}
MAX_SECONDS = 600
COMPRESSED = {".html", ".css", ".js", ".svg"}  # as servers of pages do


@cache
def read(path: Path) -> bytes:
    """Return the bytes of a file as a server sends them."""
    content = path.read_bytes()
    return gzip.compress(content) if path.suffix in COMPRESSED else content


class Server(SimpleHTTPRequestHandler):
    """Sends files compressed, and an empty page for the script at `/`."""

    protocol_version = "HTTP/1.1"  # keeps connections
    disable_nagle_algorithm = True  # which holds each small answer back for 40 ms

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if self.path == "/":
            self.send(b"<!doctype html><title>Check</title><body>", "text/html", compressed=False)
        elif path.is_file():
            self.send(read(path), self.guess_type(path), path.suffix in COMPRESSED)
        else:
            self.send_error(404)

    def send(self, content: bytes, kind: str, compressed: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=3600")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the browser left the page
            super().handle()

    def log_message(self, *_arguments) -> None:
        """Print nothing."""


class Checks(QWebEnginePage):
    """Runs the script, and collects what it and the pages write to the console."""

    def __init__(self, address: str, widths: dict[str, list[int]], view: QWebEngineView) -> None:
        super().__init__(view)
        self.now_loading = ""
        self.faults: list[str] = []
        self.bytes: dict[str, int] = {}  # of each page with all that it loads, as sent
        script = Path(__file__).with_suffix(".js").read_text("utf-8")
        call = f"checkAll({json.dumps(widths)}, {json.dumps(SEARCHES)})"
        self.loadFinished.connect(lambda _: self.runJavaScript(f"{script}\n{call};"))
        self.load(QUrl(address))

    def javaScriptConsoleMessage(self, level, message, line, source) -> None:  # noqa: N802, Qt's
        kind, _, content = message.partition(" ")
        match kind:
            case "loading":
                self.now_loading = content
            case "fault":
                self.faults.append(f"{self.now_loading}: {content}")
            case "weight":
                self.bytes[self.now_loading] = int(content)
            case "paint":
                milliseconds = float(content)
                print(
                    f"{self.now_loading}: {self.bytes[self.now_loading] / 1000:.0f} kB, "
                    f"first paint after {milliseconds:.0f} ms"
                )
            case "ended":
                QTimer.singleShot(0, QApplication.quit)  # after this call has returned
            case _ if level != self.JavaScriptConsoleMessageLevel.InfoMessageLevel:
                self.faults.append(f"{self.now_loading}: the console says {message!r}")


def serve(folder: Path) -> str:
    """Serve the files of `folder` on this machine, and return the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    widths = {page: WIDTHS_OF_NAMES if page.startswith("api/of_") else WIDTHS for page in pages}

    application = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.resize(max(WIDTHS) + 100, 1000)
    checks = Checks(serve(folder), widths, view)
    checks.settings().setAttribute(QWebEngineSettings.WebAttribute.ShowScrollBars, False)
    view.setPage(checks)
    view.show()
    QTimer.singleShot(MAX_SECONDS * 1000, lambda: application.exit(1))
    if application.exec():
        checks.faults.append(f"{checks.now_loading}: not all pages were seen in {MAX_SECONDS} s")

    print("\n".join(checks.faults) or f"{len(checks.bytes)} pages look right in the browser.")
    sys.stdout.flush()
    os._exit(bool(checks.faults))  # Python would delete Qt's objects in an order that crashes


if __name__ == "__main__":
    main()
