"""HTTP server of one lab's metrics, formatted by prometheus-client: imported only in the process that serves.

Any local user may be a client, and clients are no events of the lab: nothing about a client is logged. Each client
has one deadline for its whole request and answer, and their number is limited.

Changes when scrapes are answered differently.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hpn.testbed.errors import HpnError
from hpn.testbed.lab.service.metrics.exporter import PATH
from hpn.testbed.lab.service.metrics.families import Family, Kind
from hpn.testbed.lab.service.metrics.samples import Sample, Scrape, samples

WHOLE_S = 10.0  # from a client's connection to the last byte of its answer
AT_ONCE = 32  # clients; Prometheus is one


_Connection = socket.socket | tuple[bytes, socket.socket]  # socketserver's type; for TCP it is the first
_Address = object


class Server(ThreadingMixIn, WSGIServer):
    """Server of prometheus-client's output for each scrape, on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, look: Callable[[], Scrape]) -> None:
        host, port = listening.getsockname()
        super().__init__((host, port), _Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self._until: dict[_Connection, float] = {}  # deadline of each connection
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(_application(look))

    def process_request(self, request: _Connection, client_address: _Address) -> None:
        """Answer a client in a thread; disconnect it if there are too many already."""
        if len(self._until) >= AT_ONCE:
            self.shutdown_request(request)
            return
        self._until[request] = time.monotonic() + WHOLE_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: _Connection) -> None:
        """Close a finished connection."""
        self._until.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Disconnect clients past their deadline; called after each connection, and every half second."""
        now = time.monotonic()
        for connection, end in list(self._until.items()):
            if now > end and isinstance(connection, socket.socket):
                with suppress(OSError):  # already closed
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: _Connection, client_address: _Address) -> None:
        """Say nothing: a client went away."""


class _Quiet(WSGIRequestHandler):
    """Request handler that logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def get_stderr(self) -> io.StringIO:
        """Discard the traceback of a failed answer, which a client can provoke; the client gets 500."""
        return io.StringIO()


Respond = Callable[[str, list[tuple[str, str]]], object]


def _application(look: Callable[[], Scrape]) -> Callable[[dict[str, str], Respond], Iterable[bytes]]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(look))
    serve = make_wsgi_app(registry)

    def application(environ: dict[str, str], respond: Respond) -> Iterable[bytes]:
        if environ.get("PATH_INFO") not in (PATH, "/"):
            respond("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"metrics are at {PATH}\n".encode()]
        try:
            served: Iterable[bytes] = serve(environ, respond)
            return served
        except (HpnError, OSError) as error:
            respond("503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"{error}\n".encode()]

    return application


class _Collector(Collector):
    """Adapter of a lab to prometheus-client."""

    def __init__(self, look: Callable[[], Scrape]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its samples."""
        for family, found in samples(self._look()):
            yield _metric(family, found)


def _metric(family: Family, found: Iterable[Sample]) -> Metric:
    kind = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    made = kind(family.name, family.help, labels=family.labels)
    for labels, value in found:
        made.add_metric(labels, float(value))
    return made
