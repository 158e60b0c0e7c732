"""HTTP for one lab's metrics, as prometheus-client writes them: imported only in the process that serves.

Changes when scrapes are answered otherwise.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from testbed.errors import HpnError
from testbed.lab.service.metrics.exporter import PATH
from testbed.lab.service.metrics.families import Family, Kind
from testbed.lab.service.metrics.samples import Sample, Scrape, samples

_IDLE_S = 10.0  # so long a client may say nothing


class Server(ThreadingMixIn, WSGIServer):
    """Serves what prometheus-client makes of each look, on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, look: Callable[[], Scrape]) -> None:
        host, port = listening.getsockname()
        super().__init__((host, port), _Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(_application(look))


class _Quiet(WSGIRequestHandler):
    """Logs nothing, and waits for no client that says nothing."""

    timeout = _IDLE_S

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the lab's log is for what goes wrong."""


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
