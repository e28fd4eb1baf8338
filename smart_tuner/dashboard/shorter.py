"""A shorter answer on a whole study: without what is repeated for each trial and read by nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.dashboard.answers import gathered

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

REPEATED = re.compile(
    rb', "param_external_pytyp": "[^"\\]*", "distribution": '
    rb'\{"type": "CategoricalDistribution", "choices": '
    rb'\[(?:\{"pytype": "[^"\\]*", "value": "(?:[^"\\]|\\.)*"\}(?:, )?)*\]\}'
)
"""Type and choices of one parameter of one trial. The pages read choices from the list of all
parameters, which has no such type before them; of 209 knobs and 500 trials this is most of it."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A WSGI application before the dashboard that leaves the repeated out of its answers.

    Attributes:
        app: The dashboard.
    """

    app: WSGIApplication

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        status, headers, body = gathered(self.app, environ)
        body = REPEATED.sub(b"", body)
        kept = [(key, value) for key, value in headers if key.lower() != "content-length"]
        start_response(status, [*kept, ("Content-Length", str(len(body)))])
        return [body]
