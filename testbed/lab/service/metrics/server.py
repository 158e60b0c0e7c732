"""HTTP for one lab's metrics, as prometheus-client writes them: imported only in the process that serves.

Clients may be anybody on this machine, and none of them is news of the lab: nothing about a client is logged. Each has
one deadline for the whole of its request and answer, and only so many are served at once.

Changes when scrapes are answered otherwise.
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


_Connection = socket.socket | tuple[bytes, socket.socket]  # as socketserver has it; of TCP it is the first
_Address = object


class Server(ThreadingMixIn, WSGIServer):
    """Serves what prometheus-client makes of each look, on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, look: Callable[[], Scrape]) -> None:
        host, port = listening.getsockname()
        super().__init__((host, port), _Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self._until: dict[_Connection, float] = {}  # when each is hung up on
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(_application(look))

    def process_request(self, request: _Connection, client_address: _Address) -> None:
        """Answer it in a thread; hang up where there are too many already."""
        if len(self._until) >= AT_ONCE:
            self.shutdown_request(request)
            return
        self._until[request] = time.monotonic() + WHOLE_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: _Connection) -> None:
        """Close the connection: it is through."""
        self._until.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Hang up on who takes too long; called after each connection, and every half second."""
        now = time.monotonic()
        for connection, end in list(self._until.items()):
            if now > end and isinstance(connection, socket.socket):
                with suppress(OSError):  # it is gone
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: _Connection, client_address: _Address) -> None:
        """Say nothing: a client went away."""


class _Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of a request."""

    def get_stderr(self) -> io.StringIO:
        """Where the traceback of an answer that failed goes: nowhere, as a client can bring that about. It gets 500."""
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
    """A lab as prometheus-client collects it."""

    def __init__(self, look: Callable[[], Scrape]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """Every family with its samples."""
        for family, found in samples(self._look()):
            yield _metric(family, found)


def _metric(family: Family, found: Iterable[Sample]) -> Metric:
    kind = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    made = kind(family.name, family.help, labels=family.labels)
    for labels, value in found:
        made.add_metric(labels, float(value))
    return made
