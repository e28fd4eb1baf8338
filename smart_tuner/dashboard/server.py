"""Serves the dashboard: reading only, and only to whom it was meant for."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from optuna_dashboard import wsgi
from typing_extensions import override

from smart_tuner.dashboard.answers import STUDY_PATH, Answers
from smart_tuner.dashboard.artifacts import FolderArtifacts
from smart_tuner.dashboard.page import Marked
from smart_tuner.dashboard.shorter import Shortened
from smart_tuner.dashboard.view import StudiesView
from smart_tuner.errors import EnvironmentNotFit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOOPBACK = "127.0.0.1"
USUAL_PORT = 8080
NICENESS = 5
"""A study that is measured on this machine comes first."""

READING = frozenset({"GET", "HEAD"})
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
IMPORTANCES_PATH = re.compile(r"/api/studies/[0-9]+/param_importances/?")
DROPPED = "access-control-allow-origin"
"""A header of artifacts that would let any page in the same browser read logs and reports."""


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """Lets requests through that read, and of those only what names this machine.

    A web page elsewhere can make a browser look up its own name as 127.0.0.1; the Host header
    gives it away.

    Attributes:
        app: The dashboard.
        hosts: Names that a request may be for; empty for any.
    """

    app: WSGIApplication
    hosts: frozenset[str]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        name, _, port = environ.get("HTTP_HOST", "").rpartition(":")
        host = name if port.isdigit() else environ.get("HTTP_HOST", "")
        if self.hosts and host.lower() not in self.hosts:
            return _refused(start_response, "403 Forbidden", "This dashboard is local.")
        if environ["REQUEST_METHOD"] not in READING:
            return _refused(start_response, "403 Forbidden", "This dashboard only reads.")

        def start(status: str, headers: list[tuple[str, str]], *rest: object) -> object:
            kept = [(key, _latin(value)) for key, value in headers if key.lower() != DROPPED]
            kept.append(("X-Content-Type-Options", "nosniff"))
            return start_response(status, kept, *rest)  # type: ignore[arg-type]

        return self.app(environ, start)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Looks:
    """Dashboards that look at the same studies in another way, for single questions.

    Which knobs matter is answered from trials that kept every constraint: a route that is fast
    since it is wrong would count among the best.

    Attributes:
        app: The dashboard.
        looks: The others, by the path that they answer.
    """

    app: WSGIApplication
    looks: Mapping[re.Pattern[str], WSGIApplication]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO", "")
        found = (app for asked, app in self.looks.items() if asked.fullmatch(path))
        return next(found, self.app)(environ, start_response)


def _latin(value: str) -> str:
    """A header as bytes in disguise, which is what WSGI wants; file names may hold any letter."""
    return value.encode("utf-8", "replace").decode("latin-1")


def _refused(start_response: StartResponse, status: str, why: str) -> list[bytes]:
    body = f'{{"reason": "{why}"}}'.encode()
    start_response(
        status, [("Content-Type", "application/json"), ("Content-Length", f"{len(body)}")]
    )
    return [body]


class _Server(ThreadingMixIn, WSGIServer):
    """One thread a request: a browser opens connections that it does not use."""

    daemon_threads = True
    request_queue_size = 64


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    """No line for each request."""

    @override
    def log_message(self, format: str, *args: object) -> None:
        del format, args


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on this host."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def application(view: StudiesView, host: str) -> WSGIApplication:
    """The dashboard over a view of studies.

    Args:
        view: The studies.
        host: Where it will listen; on loopback, only requests for this machine are answered.
    """
    app = wsgi(view, artifact_store=FolderArtifacts(view.folder_of))
    looks = {
        STUDY_PATH: Shortened(app),
        IMPORTANCES_PATH: wsgi(StudiesView(view.root, view, feasible_only=True)),
    }
    hosts = LOCAL_NAMES | {host} if is_loopback(host) else frozenset[str]()
    return ReadOnly(
        Answers(Marked(Looks(app, looks), view.outcomes), view.token), frozenset(hosts)
    )


@contextlib.contextmanager
def serving(root: Path, host: str, port: int | None) -> Iterator[WSGIServer]:
    """A server that is bound, and closed afterwards; ``serve_forever`` makes it answer.

    Args:
        root: A study folder, or one that holds some.
        host: Where to listen.
        port: At which port; ``None`` for the usual one, or any if that is taken.

    Raises:
        UserInputError: There is no study.
        EnvironmentNotFit: The host or port cannot be had.
    """
    view = StudiesView(root)
    view.get_all_studies()
    server = _bound(application(view, host), host, port)
    try:
        yield server
    finally:
        server.server_close()


def _bound(app: WSGIApplication, host: str, port: int | None) -> WSGIServer:
    kind = _Server6 if ":" in host else _Server
    wanted = USUAL_PORT if port is None else port
    try:
        return make_server(host, wanted, app, kind, _Quiet)
    except OSError as error:
        if port is None:
            return _bound(app, host, 0)
        msg = f"Cannot listen on {host} port {port}: {error.strerror}; name another with --port."
        raise EnvironmentNotFit(msg) from None


def url_of(server: WSGIServer) -> str:
    """The address for a browser."""
    host, port = server.server_address[:2]
    name = str(host)
    if name in {"0.0.0.0", "::"}:  # noqa: S104, named for people, not bound to
        name = socket.gethostname()
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def step_back() -> None:
    """Leave the processors to the study that may be measured here."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
