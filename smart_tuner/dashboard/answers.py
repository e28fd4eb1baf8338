"""Answers that are kept for as long as a study looks the same.

The dashboard asks again every few seconds, and puts together anew what it knows of a space of two
hundred knobs: seconds of a processor for a study that ended yesterday.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    Headers = list[tuple[str, str]]

STUDY_PATH = re.compile(r"/api/studies/(?P<study>[0-9]{1,9})/?")
KEPT_BYTES = 128 * 2**20
"""How much is kept in all; the first answer on 209 knobs and 500 trials takes a tenth of it."""

GOOD = "200"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, and to which look of the study."""

    token: object
    status: str
    headers: Headers
    body: bytes


@dataclass(slots=True)
class Answers:
    """A WSGI application before another one.

    Attributes:
        app: Answers what is not kept.
        token_of: What a study looks like, by its number; raises ``KeyError`` without one.
    """

    app: WSGIApplication
    token_of: Callable[[int], object]
    _kept: OrderedDict[str, Answer] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        found = STUDY_PATH.fullmatch(environ.get("PATH_INFO", ""))
        if found is None or environ["REQUEST_METHOD"] != "GET":
            return self.app(environ, start_response)
        key = f"{found['study']}?{environ.get('QUERY_STRING', '')}"
        with self._lock:
            answer = self._answer(key, int(found["study"]), environ)
        start_response(answer.status, answer.headers)
        return [answer.body]

    def _answer(self, key: str, study_id: int, environ: WSGIEnvironment) -> Answer:
        try:
            token = self.token_of(study_id)
        except KeyError:
            token = None
        kept = self._kept.get(key)
        if kept is not None and kept.token == token:
            return kept
        answer = self._asked(token, environ)
        if answer.status.startswith(GOOD) and token is not None:
            self._kept[key] = answer
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and self._size > KEPT_BYTES:
                self._kept.popitem(last=False)
        return answer

    @property
    def _size(self) -> int:
        return sum(len(answer.body) for answer in self._kept.values())

    def _asked(self, token: object, environ: WSGIEnvironment) -> Answer:
        return Answer(token, *gathered(self.app, environ))


def gathered(app: WSGIApplication, environ: WSGIEnvironment) -> tuple[str, Headers, bytes]:
    """Status, headers and whole body of what an application answers."""
    said: list[tuple[str, Headers]] = []

    def start(status: str, headers: Headers, *rest: object) -> None:
        del rest
        said.append((status, headers))

    parts = app(environ, start)  # type: ignore[arg-type]
    body = b"".join(parts)
    if (close := getattr(parts, "close", None)) is not None:
        close()
    status, headers = said[-1]
    return status, headers, body
