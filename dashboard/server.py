"""The dashboard's server. It answers requests from this machine alone, and its pages make no request to another machine.

`warpladder app` starts it by `serve`; under `streamlit run dashboard/app.py` Streamlit starts what `app.py` sets up.
Both take their options from `.streamlit/config.toml` beside `app.py`.
"""

import contextlib
import gc
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pandas as pd
import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import delta_generator, runtime
from streamlit.file_util import get_static_dir

from warpladder.dashboard.ui.pages import HOME
from warpladder.dashboard.views import FORMER, VIEWS
from warpladder.errors import Error

APP: Final = Path(__file__).resolve().parent / "app.py"
#: The default address to listen on.
HERE: Final = "127.0.0.1"
PORT: Final = 8501
#: Ports from 8501 on that are tried.
_PORTS: Final = 100
#: The names of this machine in a URL. A request with another name comes from a page of another site.
NAMES: Final = frozenset({"localhost", HERE, "[::1]"})
# Texts as objects of Python and not of Arrow: frames of a thousand rows, as pages have, take rows in a fourth less time.
pd.set_option("mode.string_storage", "python")

#: Modules that the first page imports, and which take seconds to load. Plotly is read when the first chart is drawn.
_FIRST: Final = ("pandas", "plotly.graph_objects")
#: Modules with cached functions, which ask for Streamlit's runtime when they are loaded.
_CACHED: Final = ("warpladder.dashboard.ui.widgets",)
_WARM_UP: Final = "warm-up"
#: Streamlit's logger of calls outside of a page.
_OF_PAGES: Final = "streamlit.runtime.scriptrunner_utils.script_run_context"
_PATIENCE_S: Final = 30.0
_STEP_S: Final = 0.05
#: The first parts of addresses of files.
_FOLDERS: Final = frozenset({"_stcore", "media", "component", "static", "app", "ours"})
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(:[0-9]{1,5})?", re.IGNORECASE)


class Guard:
    """Answers only requests from pages of this server, and keeps these pages from requests to other servers.

    A request must have one Host, from `names`, with any port, because ports may be forwarded. An Origin must be that host, so
    that a page of another site or port cannot open a WebSocket. Streamlit would ask an outside service for this machine's
    address where an Origin is not the Host; such a request does not reach it.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = NAMES) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if refusal := self._refusal(headers):
            await PlainTextResponse(f"{refusal}\n", status_code=403)(scope, receive, send)
            return
        if page := _page_above(scope["path"], headers):
            await RedirectResponse(page)(scope, receive, send)
            return
        policy = _policy(headers["host"])

        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["content-security-policy"] = policy
            await send(message)

        await self._app(scope, receive, send_with_policy)

    def _refusal(self, headers: Headers) -> str:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None or match[1].lower() not in self._names:
            return f"This dashboard answers to {', '.join(sorted(self._names))}. For another name start it with --address."
        if any(origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins):
            return "This dashboard answers its own pages only, not those of another site."
        return ""


def _page_above(path: str, headers: Headers) -> str:
    """Where to lead a browser that asks for a page below a page, such as `/ladder/x`; empty for other requests.

    Streamlit would serve its own page there, which looks for its server below that address and waits for ever.
    """
    first, *rest = path.strip("/").split("/")
    leads = bool(rest) and headers.get("sec-fetch-dest") == "document" and first not in _FOLDERS
    return f"/{quote(first)}" if leads else ""


def _policy(host: str) -> str:
    """The policy for a page: it may load from this server and open its WebSocket, and no other site may frame it.

    Plotly needs `eval` for its WebGL code.
    """
    return (
        f"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws://{host} wss://{host} data: blob:; "
        "frame-ancestors 'self'"
    )


async def _to_page(request: Request) -> RedirectResponse:
    """The page that has the contents of a former one. The first page has `/` as its address."""
    page, section = FORMER.get(request.url.path.strip("/"), (HOME, ""))
    query = "&".join(filter(None, (f"section={section}" if section else "", request.url.query)))
    return RedirectResponse(f"/{'' if page == HOME else page}{f'?{query}' if query else ''}")


#: What each page loads in addition to Streamlit's own files, and before them: one history entry a page, a focus that is seen,
#: readable captions. Streamlit has no option for these; `bind="query-params"` of its widgets would say nothing about values
#: that it drops. A page with charts asks for Plotly, 4.7 MB, at once; the other pages load it when they are idle, for the page
#: that comes next.
_HEAD: Final = (
    f'<script src="./ours/page.js" data-plotly="./ours/plotly.js?{version("plotly")}"{{at_once}}></script>'
    '<link rel="stylesheet" href="./ours/page.css" />'
)
_OF_TEXT: Final = ("", "trust", "timeline")


async def _page(request: Request) -> HTMLResponse:
    """Streamlit's page with what is ours in its head."""
    head = _HEAD.format(at_once="" if request.url.path.strip("/") in _OF_TEXT else " data-at-once")
    html = (Path(get_static_dir()) / "index.html").read_text(encoding="utf-8").replace("<head>", f"<head>{head}", 1)
    html = html.replace("<title>Streamlit</title>", "<title>Warpladder</title>", 1)
    return HTMLResponse(html, headers={"Cache-Control": "no-cache"})


async def _plotly(request: Request) -> Response:
    """Plotly, as files and pictures of charts have it. Its address has its version."""
    from plotly.offline import get_plotlyjs  # takes long

    return Response(get_plotlyjs(), media_type="text/javascript", headers={"Cache-Control": "max-age=31536000, immutable"})


#: Routes in addition to Streamlit's routes.
ROUTES: Final = (
    *(Route(f"/{name}", _to_page) for name in (HOME, *FORMER)),
    *(Route(f"/{name}", _page) for name in ("", *(view.name for view in VIEWS[1:]))),
    Route("/ours/plotly.js", _plotly),
    Mount("/ours", StaticFiles(directory=APP.parent / "static")),
)


def middleware(*further: str) -> list[Middleware]:
    """The guard, before all of Streamlit; `further` are more names for this machine than `NAMES`."""
    return [Middleware(Guard, names=NAMES | {name.lower() for name in further})]


def refuse_other_addresses() -> None:
    """End the process where Streamlit was told, by an option or a variable, to listen on more than this machine."""
    address = st.get_option("server.address")
    if address not in (HERE, "localhost", "::1"):
        print(
            f"Warpladder does not listen on {address or 'every address'}: anyone who reaches it can read every run. "
            "If that is meant, start it with: warpladder app --address ADDRESS",
            file=sys.stderr,
        )
        sys.exit(2)


def warm_up() -> None:
    """Load what the first page needs while the browser starts: the libraries, the list of runs, and the figures of Home.

    It runs beside the server. A page that comes meanwhile waits for the parts that it needs.
    """
    # Before its first element, Streamlit reads the source of every module to tell whether someone types in a console: 0.2 s.
    delta_generator._use_warning_has_been_displayed = True
    # Streamlit warns of each cached call outside of a page; these calls are meant to be so.
    logging.getLogger(_OF_PAGES).addFilter(lambda record: record.threadName != _WARM_UP)
    threading.Thread(target=_load, name=_WARM_UP, daemon=True).start()


def _load() -> None:
    # Whatever fails here, the page meets and tells. At the end of the process no thread can be started any more.
    with contextlib.suppress(Exception):
        for name in _FIRST:
            import_module(name)
        end = time.monotonic() + _PATIENCE_S
        while not runtime.exists():  # the caches of pages belong to it
            if time.monotonic() > end:
                return
            time.sleep(_STEP_S)
        for name in _CACHED:
            import_module(name)
        from warpladder.dashboard import ahead

        ahead.compute()
        ahead.draw()
        # Streamlit looks for garbage after each click, which takes 0.15 s with all that is loaded until here. None of it is garbage.
        gc.collect()
        gc.freeze()


def serve(
    data_dirs: Sequence[Path], address: str = HERE, port: int | None = None, *, run: str = "", browser: bool = False
) -> None:
    """Start the dashboard and return when it is stopped.

    Args:
        data_dirs: folders of runs, before this machine's and those that ship.
        address: the address to listen on. The host in a URL must be this address or a name of this machine.
        port: None for 8501, or the next one that is free.
        run: the id of a run whose address is printed; empty for none.
        browser: whether a browser is opened there.

    Raises:
        Error: the address is not this machine's, or the port is taken.
    """
    try:
        _listening(address, port or 0).close()
    except OSError as error:
        reason = f"cannot be listened on ({error.strerror}); choose another --port or --address"
        raise Error(f"{address}:{port or PORT}: {reason}") from error
    name = f"[{address}]" if ":" in address else address
    shown = "localhost" if address == HERE else name
    if run:
        port = port or _next_free(address)
        page = f"http://{shown}:{port}/?run={quote(run)}"
        print(f"{run}: {page}", flush=True)
        # In a terminal of another machine, a browser of text would open.
        seen = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
        if browser and seen:
            threading.Thread(target=_open, args=(address, port, page), daemon=True).start()
    options: dict[str, Any] = {"server.address": address, "browser.serverAddress": shown, "browser.gatherUsageStats": False}
    if port is not None:
        options["server.port"] = port
    # The pages read the same arguments as under `streamlit run dashboard/app.py -- --data-dir FOLDER`.
    sys.argv = [str(APP), *(part for folder in data_dirs for part in ("--data-dir", str(folder.resolve())))]
    warm_up()
    # Until here the signal ends the process; Streamlit ends its server at it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        st.App(APP, middleware=middleware(name), routes=ROUTES).run(config=options)


def _open(address: str, port: int, page: str) -> None:
    """Open a browser at a page as soon as the server answers."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            webbrowser.open(page)
            return
        time.sleep(_STEP_S)


def _next_free(address: str) -> int:
    """The first port from 8501 on that can be listened on, as Streamlit finds it."""
    for port in range(PORT, PORT + _PORTS):
        with contextlib.suppress(OSError), _listening(address, port):
            return port
    return PORT


def _listening(address: str, port: int) -> socket.socket:
    """A socket that has an address and a port. Raises OSError."""
    attempt = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        attempt.bind((address, port))
    except OSError:
        attempt.close()
        raise
    return attempt
