"""Salvages recordings whose process died: writes a run of their finished cases, or removes their files if there are none."""

from pathlib import Path

from warpladder.data.files import one_line
from warpladder.data.names import Source
from warpladder.data.staging import Staging, abandoned
from warpladder.data.words import counted

_UNREACHED = "the recording was cut off before it"


def salvage(data_dir: Path) -> list[str]:
    """Salvage each dead recording of a data folder. Returns a line for each.

    Recordings of living processes are left alone. Files that cannot be read are reported and left.
    """
    lines = []
    for staging in abandoned(data_dir):
        try:
            outcome = _taken_up(data_dir, staging)
        except Exception as error:  # another version, or damage; it must not stop a recording
            outcome = (
                f"could not be taken up ({type(error).__name__}: {' '.join(str(error).split())[:200]}); remove {staging.path}"
            )
        finally:
            staging.release()
        if outcome:
            lines.append(one_line(f"{data_dir}: the recording {staging.run_id} was cut off: {outcome}"))
    return lines


def _taken_up(data_dir: Path, staging: Staging) -> str:
    """Salvage one recording. Returns the message to print; empty for none."""
    # Imported here, because most commands find nothing to salvage.
    from warpladder.collectors.core import journal
    from warpladder.collectors.core.recording import FORMAT, Recording, diagnostic_event
    from warpladder.data.store import RunWriter, StoreError, list_runs

    if not staging.tables.exists():  # killed between the commit and the end
        staging.remove()
        return ""
    for inner in (journal.runs_of(staging), journal.runs_of(staging, "energy")):
        salvage(inner)
    for run in list_runs([journal.runs_of(staging)])[0]:
        writer = RunWriter(data_dir, staging.run_id, staging=staging)
        journal.without_trace(
            run, writer, "the process that reads the trace died, so the trace is lost; device times are those of CUDA events"
        )
        for further in list_runs([journal.runs_of(staging, "energy")])[0]:
            writer.append("energy", further.table("energy"))
        writer.commit(durable=True)
        return f"kept as run {writer.run_id}, without a trace"
    recording = Recording()
    for event, samples in journal.read(staging.path):
        if event["kind"] == "begin" and event["format"] != FORMAT:
            raise StoreError(f"format {event['format']}")
        recording.apply(event, samples)
    if not recording.finished:
        staging.remove()
        return "no case was finished; what it left is removed"
    text = "the recording's process was killed before it was done; the cases that were finished by then are kept"
    recording.apply(diagnostic_event("warning", Source.CUT_OFF, text))
    writer = RunWriter(data_dir, staging.run_id, staging=staging)
    recording.write(writer, _UNREACHED)
    writer.commit(durable=True)
    cases = counted(recording.finished, "case")
    return f"{cases} kept as run {writer.run_id}"
