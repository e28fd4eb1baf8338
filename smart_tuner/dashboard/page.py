"""What is added to the dashboard's page: outcomes in the list of trials."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.dashboard.answers import gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

SCRIPT_PATH = "/smart-tuner/page.js"
SCRIPT = Path(__file__).with_name("page.js")
OUTCOMES_PATH = re.compile(r"/smart-tuner/outcomes/(?P<study>[0-9]{1,9})")
PAGE_PATH = re.compile(r"/dashboard(/.*)?")
HEAD_END = b"</head>"
TAG = f'<script src="{SCRIPT_PATH}" defer></script>'.encode()


@dataclass(frozen=True, slots=True)
class Marked:
    """A WSGI application before the dashboard that gives its page one more script.

    Attributes:
        app: The dashboard.
        outcomes_of: Outcome in words by trial number, of trials that are not feasible; raises
            ``KeyError`` without such a study.
    """

    app: WSGIApplication
    outcomes_of: Callable[[int], Mapping[int, str]]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO", "")
        if path == SCRIPT_PATH:
            return _said(start_response, "text/javascript", SCRIPT.read_bytes())
        if found := OUTCOMES_PATH.fullmatch(path):
            return self._outcomes(start_response, int(found["study"]))
        if PAGE_PATH.fullmatch(path):
            return self._page(environ, start_response)
        return self.app(environ, start_response)

    def _outcomes(self, start_response: StartResponse, study_id: int) -> Iterable[bytes]:
        try:
            outcomes = self.outcomes_of(study_id)
        except KeyError:
            outcomes = {}
        return _said(start_response, "application/json", json.dumps(outcomes).encode())

    def _page(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # Asked for anew each time: a page kept from another dashboard has no such script.
        for header in ("HTTP_IF_MODIFIED_SINCE", "HTTP_IF_NONE_MATCH"):
            environ.pop(header, None)
        status, headers, body = gathered(self.app, environ)
        body = body.replace(HEAD_END, TAG + HEAD_END, 1)
        kept = [(key, value) for key, value in headers if key.lower() != "content-length"]
        start_response(status, [*kept, ("Content-Length", str(len(body)))])
        return [body]


def _said(start_response: StartResponse, kind: str, body: bytes) -> list[bytes]:
    headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
    start_response("200 OK", [*headers, ("Cache-Control", "no-store")])
    return [body]
