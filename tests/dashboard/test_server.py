"""The server as the network sees it: started in both ways, from three folders, beside configurations that want it otherwise."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.browser.pages import PATIENCE_MS, ROOT, free_port, wait_until_healthy
from tests.synthetic import made_runs
from warpladder.__main__ import command
from warpladder.data import store

APP = ROOT / "dashboard" / "app.py"
COMMAND = [sys.executable, "-m", "warpladder", "app", "--port"]
STREAMLIT = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.port"]
WAYS = {"command": COMMAND, "streamlit run": STREAMLIT}
#: What a folder, or a home, may hold of Streamlit's that is not ours.
ELSEWHERE = """
[server]
address = "0.0.0.0"
enableCORS = false
enableAgentApi = true
[browser]
gatherUsageStats = true
"""
#: Writes down whom the server's process asks for anything, itself included.
WATCH = """
import os, sys

def tell(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        with open(os.environ["ASKED"], "a") as file:
            print(event, *arguments, file=file)

sys.addaudithook(tell)
"""
ENDPOINTS = (
    "/",
    "/sizes?run=gpu",
    "/home",
    "/_stcore/health",
    "/_stcore/host-config",
    "/_stcore/agent/openapi.json",
    "/media/0.png",
    "/component/plotly.plotly/index.html",
    "/static/js/index.js",
    "/app/static/icon.png",
)
STREAM = "/_stcore/stream"
UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip

# Its servers are started once for all tests of this file.
pytestmark = [pytest.mark.xdist_group("server"), pytest.mark.slow]


@dataclass(frozen=True)
class Server:
    """A dashboard that runs, and the file of what its process asked for."""

    port: int
    asked: Path

    def status(self, path: str, *hosts: str, **headers: str) -> int:
        return self.answer(path, *hosts, **headers).status

    def answer(self, path: str, *hosts: str, **headers: str) -> http.client.HTTPResponse:
        """The head of the answer to a GET with these Host headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_MS / 1000)
        connection.putrequest("GET", path, skip_host=True)
        for host in hosts:
            connection.putheader("Host", host)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        connection.close()
        return response


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a user whose own configuration opens what it can, with one run; every process of it is watched."""
    home, code = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("code")
    configure(home)
    (code / "sitecustomize.py").write_text(WATCH)
    made_runs.write(home / "runs", "gpu", rounds=8)
    return os.environ | {
        "HOME": str(home),
        "ASKED": str(code / "asked"),
        "PYTHONPATH": f"{code}{os.pathsep}{ROOT}",
        "WARPLADDER_DATA_DIR": str(home / "runs"),
    }


def configure(folder: Path) -> None:
    file = folder / ".streamlit" / "config.toml"
    file.parent.mkdir()
    file.write_text(ELSEWHERE)


#: How and where the server is started: in the project, in a folder that has a configuration of its own, and in one that has nothing
#: of ours. `make test` has each way once, and the two folders outside of the project.
STARTS = [
    pytest.param((way, folder), id=f"{way}-{folder}", marks=() if usual else pytest.mark.thorough)
    for way, folder, usual in (
        ("command", "configured", True),
        ("streamlit run", "root", True),
        ("command", "root", False),
        ("streamlit run", "configured", False),
        ("command", "project", False),
        ("streamlit run", "project", False),
    )
]


@pytest.fixture(scope="module", params=STARTS)
def server(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    way, where = request.param
    folder = {"project": ROOT, "root": Path("/")}.get(where) or tmp_path_factory.mktemp("configured")
    if where == "configured":
        configure(folder)
    log = tmp_path_factory.mktemp("server") / "log"
    port, asked = free_port(), log.with_name("asked")
    command = [*WAYS[way], str(port)]
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=folder, env=environment | {"ASKED": str(asked)}, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            wait_until_healthy(f"http://localhost:{port}/_stcore/health", process, log)
            yield Server(port, asked)
        finally:
            process.terminate()


def listening(port: int) -> set[str]:
    """The local addresses, as /proc writes them, of the sockets that listen on a port."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {local.rpartition(":")[0] for _, local, _, state, *_ in lines if state == "0A" and int(local[-4:], 16) == port}


@pytest.mark.sampled(2)
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="listening sockets are read from /proc, which Linux has")
def test_it_listens_on_the_loopback_address_alone(server: Server) -> None:
    assert listening(server.port) == {"0100007F"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["localhost", "LocalHost", "127.0.0.1", "[::1]"])
def test_a_browser_of_this_machine_is_answered_on_any_port(server: Server, name: str) -> None:
    """A port that ssh -L forwards is another one."""
    for host in (name, f"{name}:{server.port}", f"{name}:9000"):
        assert server.status("/_stcore/health", host) == 200
        assert server.status(STREAM, host, **UPGRADE, Origin=f"http://{host}") == 101


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "127.0.0.2",
        "0.0.0.0", "[::]", "localhost:8501:8501", "localhost:", "[localhost]", "localhost.", "192.168.0.1:8501", "localhost/x", "ⅼocalhost",
    ],
)  # fmt: skip
def test_another_host_is_refused_everywhere(server: Server, host: str) -> None:
    sent = host.encode().decode("latin-1")
    for path in ENDPOINTS:
        assert server.status(path, sent) in (400, 403), path
    assert server.status(STREAM, sent, **UPGRADE) in (400, 403)
    assert server.status(STREAM, sent, **UPGRADE, Origin=f"http://{sent}") in (400, 403)


def test_no_host_and_two_of_them_are_refused(server: Server) -> None:
    for hosts in ((), ("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")):
        assert server.status("/_stcore/health", *hosts) in (400, 403)
        assert server.status(STREAM, *hosts, **UPGRADE) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://localhost.evil.example", "http://localhost:1", "http://127.0.0.1", "file://", "http://0.0.0.0"],
)  # fmt: skip
def test_a_page_of_another_site_gets_no_answer_and_nobody_is_asked_about_it(server: Server, origin: str) -> None:
    host = f"localhost:{server.port}"
    assert server.status(STREAM, host, **UPGRADE, Origin=origin) == 403
    assert server.status("/_stcore/health", host, Origin=origin) == 403
    assert outside(server) == []


def test_the_watch_sees_a_process_that_asks_a_server(server: Server, environment: dict[str, str], tmp_path: Path) -> None:
    asks = f"import socket; socket.create_connection(('127.0.0.1', {server.port}))"
    asked = tmp_path / "asked"
    subprocess.run([sys.executable, "-c", asks], env=environment | {"ASKED": str(asked)}, check=True, timeout=60)
    assert f"('127.0.0.1', {server.port})" in asked.read_text()


def outside(server: Server) -> list[str]:
    """What the server's process asked of others."""
    return server.asked.read_text().splitlines() if server.asked.exists() else []


def test_what_a_page_may_load_is_of_this_server(server: Server) -> None:
    policy = server.answer("/", "localhost:9000").headers["Content-Security-Policy"]
    assert "frame-ancestors 'self'" in policy
    sources = {word for part in policy.split(";") for word in part.split()[1:]}
    assert sources == {
        "'self'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:", "ws://localhost:9000", "wss://localhost:9000",
    }  # fmt: skip


def test_the_first_page_answers_under_its_name_too(server: Server) -> None:
    answer = server.answer("/home?run=gpu&x=%26", "localhost")
    assert (answer.status, answer.headers["Location"]) == (307, "/?run=gpu&x=%26")
    assert server.answer("/home", "localhost").headers["Location"] == "/"


def test_the_address_of_a_former_page_leads_to_its_section(server: Server) -> None:
    answer = server.answer("/operators?run=trace&by=shape", "localhost")
    assert (answer.status, answer.headers["Location"]) == (307, "/time?section=operators&run=trace&by=shape")
    assert server.answer("/overview?run=gpu", "localhost").headers["Location"] == "/?run=gpu"


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/machine_code?run=code&machine=difference&variant=v02_shared&a=cudnn", "why"),
        ("/transfers?run=trace&workload=a%26b", "time"),
        ("/collectives?run=job&groups=together", "ranks"),
        ("/critical_path?run=job&iteration=3", "ranks"),
        ("/critical_path", "ranks"),
    ],
)
def test_the_addresses_of_pages_that_became_sections_lead_there_with_their_choices(
    server: Server, address: str, page: str
) -> None:
    section, _, query = address[1:].partition("?")
    answer = server.answer(address, "localhost")
    led = f"/{page}?section={section}{'&' if query else ''}{query}"
    assert (answer.status, answer.headers["Location"]) == (307, led)
    assert server.status(led, "localhost") == 200


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/ladder/x?run=gpu", "/ladder"),
        ("/a%2Fb/c", "/a"),
        ("//evil.example/x", "/evil.example"),
        ("/%0d%0aX: y/z", "/%0D%0AX%3A%20y"),
    ],
)
def test_an_address_below_a_page_leads_to_the_page(server: Server, path: str, to: str) -> None:
    answer = server.answer(path.replace(" ", "%20"), "localhost", **{"Sec-Fetch-Dest": "document"})
    assert (answer.status, answer.headers["Location"]) == (307, to)


def test_files_are_not_led_elsewhere(server: Server) -> None:
    document = {"Sec-Fetch-Dest": "document"}
    assert server.status("/ours/page.js", "localhost", **document) == 200
    assert server.status("/_stcore/health", "localhost", **document) == 200


@pytest.mark.thorough
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_address_that_was_asked_for_is_answered_and_it_ends_without_a_word(
    environment: dict[str, str], tmp_path: Path, how: signal.Signals
) -> None:
    port, log = free_port(), tmp_path / "log"
    command = [*COMMAND, str(port), "--address", "127.0.0.2"]
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            wait_until_healthy(f"http://127.0.0.2:{port}/_stcore/health", process, log)
            assert listening(port) == {"0200007F"}
            process.send_signal(how)
            process.wait(timeout=30)
        finally:
            process.kill()
    said = log.read_text()
    assert f"http://127.0.0.2:{port}" in said
    assert "Traceback" not in said and "ScriptRunContext" not in said and "No runtime" not in said
    assert process.returncode == (0 if how == signal.SIGINT else -how)


def refused(environment: dict[str, str], command: list[str], **further: str) -> str:
    """What a start says that must end with code 2, in one line."""
    done = subprocess.run(command, env=environment | further, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "MemoryCacheStorageManager" not in line]
    return line


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["option", "variable"])
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_streamlit_that_was_told_to_listen_on_more_than_this_machine_is_refused(
    environment: dict[str, str], how: str, address: str
) -> None:
    command = [*STREAMLIT, str(free_port())]
    if how == "option":
        said = refused(environment, [*command, "--server.address", address])
    else:
        said = refused(environment, command, STREAMLIT_SERVER_ADDRESS=address)
    assert f"does not listen on {address}" in said
    assert "warpladder app --address" in said


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """What the command prints in one line where it ends with code 2, before it loads the pages."""

    def loads() -> None:
        raise AssertionError("the server starts")

    monkeypatch.setattr("warpladder.dashboard.server.warm_up", loads)
    monkeypatch.setattr(store, "LOCAL", tmp_path / "none")

    def invoked(*arguments: str) -> str:
        done = CliRunner().invoke(command(), ["app", *arguments])
        assert done.exit_code == 2, done.output
        (line,) = done.stderr.splitlines()
        return line

    return invoked


def test_a_port_that_is_taken_is_one_clear_line(said: Callable[..., str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert said("--port", str(port)) == (
            f"127.0.0.1:{port}: cannot be listened on (Address already in use); choose another --port or --address"
        )


@pytest.mark.parametrize("address", ["203.0.113.9", "no-such-host.invalid"])
def test_an_address_that_is_not_this_machines_is_one_clear_line(said: Callable[..., str], address: str) -> None:
    line = said("--port", str(free_port()), "--address", address)
    assert line.startswith(f"{address}:") and "choose another --port or --address" in line


def test_an_empty_data_dir_is_one_clear_line(said: Callable[..., str]) -> None:
    assert said("--data-dir", "") == '--data-dir "": names no folder; write --data-dir . for the working directory'
