"""The server for programs that write kernels, in sessions of the client that the SDK of the protocol has."""

import sys
from pathlib import Path
from typing import Any, Final

import pytest

from warpladder.commands import mcp

anyio = pytest.importorskip("anyio")

BENCH: Final = """
import numpy as np
import warpladder

bench = warpladder.Benchmark("sums", n=[{n}], tolerance={tolerance})


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, dtype=np.float32)


@bench.variant(baseline=True)
@bench.reference
def loop(x):
    return np.array([sum(float(each) * float(each) for each in x)], x.dtype)


@bench.variant
def mine(x):
    {body}
"""
SLOW: Final = "return np.array([sum([each * each for each in x.astype(np.float64)])], x.dtype)"
FAST: Final = "return np.array([np.dot(x, x)], x.dtype)"
REMEMBERED: Final = "return mine.__dict__.setdefault('kept', np.array([np.dot(x, x)], x.dtype))"


def _write(path: Path, body: str, tolerance: str = "1e-4") -> str:
    path.write_text(BENCH.format(n=2000, body=body, tolerance=tolerance))
    return str(path)


def _sdk() -> Any:
    """The SDK, which takes a second to import: workers without these tests need not wait for it."""
    return pytest.importorskip("mcp")


async def _called(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def test_every_tool_has_types_for_what_it_takes_and_gives(tmp_path: Path) -> None:
    async def session() -> None:
        async with _sdk().Client(mcp.server(tmp_path)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"record", "compare", "why", "machine_code", "trace_findings"}
            for tool in tools.values():
                assert tool.description and tool.output_schema and "next" in tool.output_schema["properties"]
            assert set(tools["compare"].input_schema["required"]) == {"a", "b"}

    anyio.run(session)


def test_what_cannot_be_done_is_an_error_of_the_tool_with_what_to_do(tmp_path: Path) -> None:
    async def session() -> None:
        async with _sdk().Client(mcp.server(tmp_path)) as client:
            for tool, arguments, says in (
                ("record", {"file": str(tmp_path / "none.py")}, "give the path of a Python file"),
                ("why", {"run": "none"}, "none"),
                ("compare", {"a": "none", "b": "none"}, "none: no such run; known runs:"),
            ):
                result = await client.call_tool(tool, arguments)
                assert result.is_error and says in str(result.content[0]), result.content

    anyio.run(session)


@pytest.mark.thorough
def test_a_session_records_reads_why_and_improves_a_function_and_is_refused_when_it_cheats(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"

    async def session() -> None:
        server = _sdk().StdioServerParameters(
            command=sys.executable, args=["-m", "warpladder", "mcp", "--data-dir", str(tmp_path / "runs"), "--limit", "120"]
        )
        transport = pytest.importorskip("mcp.client.stdio").stdio_client(server, errlog=sys.__stderr__)
        async with _sdk().Client(transport) as client:

            async def recorded(body: str, **given: str) -> dict[str, Any]:
                return await _called(client, "record", file=_write(file, body, **given), seconds=0.3)

            before = await recorded(SLOW)
            assert before["passed"] and {each["variant"] for each in before["scores"]} == {"loop", "mine"}

            why = await _called(client, "why", run=before["run"])
            assert why["limits"] and all(each["percent_of_floor"]["value"] < 100 for each in why["limits"])

            after = await recorded(FAST)
            (score,) = (each for each in after["scores"] if each["variant"] == "mine")
            assert after["passed"] and score["verdict"] == "faster" and score["speedup"]["low"] > 10

            verdict = await _called(client, "compare", a=before["run"], b=after["run"])
            (cell,) = (each for each in verdict["cells"] if each["variant"] == "mine")
            assert verdict["passed"] and cell["verdict"] == "faster" and cell["ratio"]["high"] < 0.5

            cheat = await recorded(REMEMBERED)
            (score,) = (each for each in cheat["scores"] if each["variant"] == "mine")
            assert not cheat["passed"] and score["refused"].startswith("wrong_result") and score["speedup"] is None
            assert "mine is refused" in cheat["next"]
            verdict = await _called(client, "compare", a=after["run"], b=cheat["run"])
            assert not verdict["passed"] and any("wrong" in each for each in verdict["reasons"])

            lenient = await recorded("return np.array([0.5 * np.dot(x, x)], x.dtype)", tolerance="0.9")
            verdict = await _called(client, "compare", a=after["run"], b=lenient["run"])
            assert not verdict["passed"] and any("tolerance" in each for each in verdict["reasons"])

    anyio.run(session)


@pytest.mark.thorough
def test_a_variant_that_does_not_end_is_ended_and_one_that_asks_for_the_network_has_none(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"

    async def session() -> None:
        async with _sdk().Client(mcp.server(tmp_path / "runs", limit_s=15)) as client:
            result = await client.call_tool("record", {"file": _write(file, "import time; time.sleep(1000)")})
            assert result.is_error and "ended after 15 s" in str(result.content[0])
        async with _sdk().Client(mcp.server(tmp_path / "runs")) as client:
            asks = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
            found = await _called(client, "record", file=_write(file, asks), seconds=0.1)
            (score,) = (each for each in found["scores"] if each["variant"] == "mine")
            assert "unreachable" in score["refused"].lower() or not mcp._isolating()

    anyio.run(session)
