"""`warpladder list`, `runs` and `summary`: what can be recorded, what has been recorded, and what a run says."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpladder.commands.common import (
    data_dir_option,
    data_dirs_option,
    folders,
    format_option,
    names_and_files,
    take_up,
    workloads_argument,
)
from warpladder.dashboard.text.formats import TABLE_OR_JSON, Form, TableOrJson, json_text
from warpladder.data.files import one_line
from warpladder.screen import print_lines, print_text

if TYPE_CHECKING:
    from warpladder.data import store
    from warpladder.workloads.api import Workload


@click.command("list")
@workloads_argument
@format_option("list", TABLE_OR_JSON)
def list_command(workloads: Sequence[str], form: TableOrJson) -> None:
    """List workloads, their variants and their cases.

    WORKLOAD: workloads by name, or your Python files that declare one. Default: every workload of the project.
    """
    from warpladder.workloads import registry

    found = registry.load_all(*names_and_files(workloads))
    if form == "json":
        print_text(json_text([_facts(workload) for workload in found]))
    else:
        print_lines((line for workload in found for line in _listed(workload)), indent=" " * 10)


def _facts(workload: "Workload") -> dict[str, Any]:
    """A workload for programs."""
    of_variant = ("name", "title", "kind", "role", "precision", "draft")
    return {
        **{name: getattr(workload, name) for name in ("name", "title", "baseline", "draft")},
        "variants": [
            {**{name: getattr(each, name) for name in of_variant}, "configs": [dict(config) for config in each.configs]}
            for each in workload.variants
        ],
        "cases": [{"name": each.name, "sets": each.sets, "params": dict(each.params)} for each in workload.cases],
    }


def _listed(workload: "Workload") -> Iterator[str]:
    from warpladder.workloads.api import format_params

    yield f"{workload.name}: {workload.title}{' (draft)' if workload.draft else ''}"
    for variant in workload.variants:
        configs = " ".join(f"[{format_params(config)}]" for config in variant.configs if config)
        title = f"{variant.title}{' (draft)' if variant.draft else ''}"
        kinds = f"{variant.kind:8} {variant.role:9} {variant.precision:7}"
        yield f"  variant {variant.name:28} {kinds} {title} {configs}".rstrip()
    for case in workload.cases:
        yield f"  case    {case.name:28} {','.join(case.sets)}"


@click.group("runs", invoke_without_command=True)
@click.option(
    "--with",
    "words",
    multiple=True,
    metavar="WORD",
    help="Only runs with this word in a column or in the note; repeat it for several.",
)
@format_option("list", TABLE_OR_JSON)
@data_dir_option
@click.pass_context
def runs_command(context: click.Context, words: Sequence[str], form: TableOrJson, data_dir: Path) -> None:
    """List the runs; delete one, rename it or note something.

    It lists the runs that ship with the project, and those in the data folder.
    """
    from warpladder.data import store

    if context.invoked_subcommand:
        context.obj = data_dir
        return
    take_up(data_dir)
    every, bad = store.list_runs([store.RECORDED, data_dir])
    notes = store.notes([data_dir])
    lines = {run.path: _line(run, notes.get(run.path, "")) for run in every}
    good = [run for run in every if all(word.lower() in lines[run.path].lower() for word in words)]
    if form == "json":
        told = ("run_id", "label", "kind", "device_name", "cpu_name", "warpladder_version")
        rows = [
            {
                **{name: run.info.get(name) for name in told},
                "started_at": run.info["started_at"].isoformat(),
                "note": notes.get(run.path),
                "path": str(run.path),
            }
            for run in good
        ]
        print_text(json_text(rows))
    else:
        print_lines(lines[run.path] for run in good)
    for broken in bad:
        print(one_line(f"{broken.name}  cannot be opened: {broken.reason}"), file=sys.stderr)


@runs_command.command("delete")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.pass_obj
def delete_command(data_dir: Path, runs: Sequence[str]) -> None:
    """Delete runs of the data folder, for good.

    RUN: its id, label or folder.
    """
    from warpladder.data import store

    found = {run.path: run for run in (store.find_run(name, [data_dir]) for name in runs)}  # all, before one is deleted
    for run in found.values():
        store.delete(run)
        print(one_line(f"deleted {run.run_id}"))


@runs_command.command("rename")
@click.argument("run", metavar="RUN")
@click.argument("label", metavar="LABEL")
@click.pass_obj
def rename_command(data_dir: Path, run: str, label: str) -> None:
    """Give a run of the data folder another label.

    RUN: its id, label or folder. LABEL: the new one.
    """
    from warpladder.collectors.core.new_runs import check_label
    from warpladder.data import store

    check_label(label)
    found = store.find_run(run, [data_dir])
    store.rename(found, label)
    print(one_line(f"{found.run_id}  {label}"))


@runs_command.command("note")
@click.argument("run", metavar="RUN")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.pass_obj
def note_command(data_dir: Path, run: str, words: Sequence[str]) -> None:
    """Keep words beside a run of the data folder, to find it with `runs --with` and in the dashboard; without a word, the note goes.

    RUN: its id, label or folder. WORD: such as before-tiling.
    """
    from warpladder.data import store

    found, text = store.find_run(run, [data_dir]), " ".join(words)
    store.set_note(found, text)
    print(one_line(_line(found, text)))


def _line(run: "store.Run", note: str) -> str:
    """A run in a list: its id, title and note. The title of a run without a label begins with its id."""
    name = "" if run.title.startswith(run.run_id) else run.run_id
    return "  ".join(filter(None, (name, run.title, note)))


@click.command("summary")
@click.argument("run", default="", metavar="[RUN]")
@format_option("answer")
@click.option(
    "--all", "every", is_flag=True, help="Every variant and the best at every size, and each finding on a line of its own."
)
@data_dirs_option
def summary_command(run: str, form: Form, every: bool, data_dirs: Sequence[str]) -> None:
    """Print the answer of a run, as `record` does at its end.

    You see which variants win, what failed, and what was distrusted; of an imported profile where its time goes; of a job also which rank
    is late.

    RUN: its id, label or folder. Default: the newest run of the data folder.
    """
    from warpladder.commands import ending
    from warpladder.data import store

    places = folders(data_dirs)
    newest = places[: len(data_dirs) or 1]
    if not run and not (own := store.list_runs(newest)[0]):
        raise store.StoreError(
            f"{newest[0]}: has no run yet; warpladder record FILE.py makes one, or name one of warpladder runs"
        )
    opened = store.find_run(run, places) if run else own[0]
    for reason in opened.left_out.values():
        print(one_line(f"left out: {reason}"), file=sys.stderr)
    ending.report(opened.path, form, sizes=every or len(opened.table("cases")["workload"].unique()) == 1, every=every)
