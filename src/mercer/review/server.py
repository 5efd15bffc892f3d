"""The page of a review, on 127.0.0.1 only: who has the token of its address may decide.

Nothing is loaded from outside; requests that name another host, or come without the token, are
refused, so that no other page in the browser can decide.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

from mercer.errors import MercerError
from mercer.review.reviewer import Question, Reviewer, StaleError, as_json

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_app(reviewer: Reviewer, title: str, token: str, finish: Callable[[], None]) -> Any:
    """Make the application: the page, and what it asks for.

    ``title`` is what is reviewed, ``token`` what every request must give; ``finish`` is called when
    the page says that the review is over.
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    page = resources.files("mercer.review").joinpath("page.html").read_text(encoding="utf-8")

    def is_allowed(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), token.encode())

    async def show(request: Request) -> Response:
        if not is_allowed(request.query_params.get("token")):
            words = "This page needs the whole address that mercer review printed, with its token."
            return PlainTextResponse(words, 403, _HEADERS)
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return HTMLResponse(
            page.replace("__NONCE__", nonce),
            headers={**_HEADERS, "Content-Security-Policy": policy},
        )

    def state(question: Question | None, problem: str = "") -> dict[str, Any]:
        return {
            "title": title,
            "classes": list(reviewer.labels.classes),
            "question": as_json(question),
            "progress": reviewer.progress(),
            "problem": problem,
        }

    def guarded(
        work: Callable[[dict[str, Any]], Question | None],
    ) -> Callable[[Request], Awaitable[Response]]:
        """Answer with the state after some work; what cannot be done is said beside it."""

        def done(given: dict[str, Any]) -> tuple[dict[str, Any], int]:
            try:
                return state(work(given)), 200
            except StaleError as error:
                return state(reviewer.question(), str(error)), 409
            except (MercerError, KeyError, TypeError) as error:
                return state(reviewer.question(), str(error)), 400

        async def answer(request: Request) -> Response:
            if not is_allowed(request.headers.get("x-mercer-token")):
                return JSONResponse({"problem": "the token is missing or wrong"}, 403, _HEADERS)
            given: Any = {}
            if request.method == "POST":
                try:
                    given = await request.json()
                except ValueError:
                    given = None
                if not isinstance(given, dict):
                    return JSONResponse({"problem": "this is no request"}, 400, _HEADERS)
            content, status = await run_in_threadpool(done, given)
            return JSONResponse(content, status, _HEADERS)

        return answer

    def decide(given: dict[str, Any]) -> Question | None:
        return reviewer.decide(given["row"], given["action"], given.get("label"), given["position"])

    def end(given: dict[str, Any]) -> Question | None:
        finish()
        return None

    return Starlette(
        routes=[
            Route("/", show),
            Route("/state", guarded(lambda given: reviewer.question())),
            Route("/decide", guarded(decide), methods=["POST"]),
            Route(
                "/undo", guarded(lambda given: reviewer.undo(given["position"])), methods=["POST"]
            ),
            Route("/finish", guarded(end), methods=["POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )


class ReviewServer:
    """A server on a free port of 127.0.0.1; ``address`` is what to open."""

    def __init__(self, reviewer: Reviewer, title: str, port: int = 0) -> None:
        import uvicorn

        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.listen()  # a browser may come before `run` does: it waits, unrefused
        except OSError:
            self._socket.close()
            raise
        token = secrets.token_urlsafe(16)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}/?token={token}"
        self.is_finished = False
        app = make_app(reviewer, title, token, self._finish)
        config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._server.config.timeout_graceful_shutdown = 10  # seconds of answers under way

    def _finish(self) -> None:
        self.is_finished = True
        self._server.should_exit = True

    def run(self) -> None:
        """Serve until the page says that it is over, or Ctrl-C or SIGTERM."""
        with contextlib.suppress(KeyboardInterrupt):
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End `run` from another thread."""
        self._server.should_exit = True
