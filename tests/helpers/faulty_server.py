"""A model behind HTTP on this machine, which is slow, limited, and fails now and then."""

import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError

import numpy as np


class FaultyServer:
    """Answers POST requests with the outputs of `model`; a context manager.

    Each request waits `latency` seconds. `faults` are what goes wrong with the first requests, one
    after the other (None: nothing):

    - a number: this status instead of an answer, with `Retry-After` if `retry_after` is given;
    - "truncated": the body ends in its middle; "short": a row is missing; "wide": rows have another
      entry; "nan": the last row is NaN;
    - "late": the answer comes after `late` seconds.

    `paid` counts, for each row, how often a right answer was sent. `calls` are the times and faults
    of all requests, `most_running` the most at the same time.
    """

    def __init__(
        self,
        model: Callable[[Any], Any],
        faults: Sequence[Any] = (),
        latency: float = 0.0,
        late: float = 1.0,
        retry_after: str | None = None,
    ) -> None:
        self.model, self.latency, self.late, self.retry_after = model, latency, late, retry_after
        self.faults, self.lock = list(faults), threading.Lock()
        self.calls: list[tuple[float, Any]] = []
        self.paid: Counter[bytes] = Counter()
        self.running, self.most_running = 0, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.handle(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

            def handle_error(self, *_):
                """The client is gone."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def handle(self, request):
        rows = np.array(json.loads(request.rfile.read(int(request.headers["Content-Length"]))))
        with self.lock:
            fault = self.faults.pop(0) if self.faults else None
            self.calls.append((time.monotonic(), fault))
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        time.sleep(self.late if fault == "late" else self.latency)
        outputs = np.asarray(self.model(rows), dtype=float)
        with self.lock:
            self.running -= 1
            if fault in (None, "late"):
                self.paid.update(row.tobytes() for row in rows)
        if fault == "nan":
            outputs[-1] = np.nan
        elif fault == "short":
            outputs = outputs[:-1]
        elif fault == "wide":
            outputs = np.stack([outputs, outputs], axis=1)
        body = b"" if isinstance(fault, int) else json.dumps(outputs.tolist()).encode()
        request.send_response(fault if isinstance(fault, int) else 200)
        request.send_header("Content-Length", str(len(body)))
        if isinstance(fault, int) and self.retry_after is not None:
            request.send_header("Retry-After", self.retry_after)
        request.end_headers()
        request.wfile.write(body[: len(body) // 2] if fault == "truncated" else body)

    @property
    def n_paid_twice(self):
        """The right answers that were sent for rows that had one."""
        return self.paid.total() - len(self.paid)

    def ask(self, rows):
        """Be the client: the outputs of rows, (n, D)."""
        body = json.dumps(np.asarray(rows).tolist()).encode()
        try:
            with urllib.request.urlopen(self.url, body, timeout=30) as reply:
                return np.array(json.loads(reply.read()))
        except HTTPError as error:
            error.close()
            raise

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
