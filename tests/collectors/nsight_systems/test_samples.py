"""Real reports by other people, where they are at hand beside the checkout."""

from pathlib import Path

import pytest

from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.trace.model import ReportError
from warpladder.data.store import open_run

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "nsys-samples"
BAD = ("Agtm48+gpu3__nsys_report.sqlite", "not-nsys__net.nsys-rep")

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the reports of other people are not beside this checkout")


@pytest.mark.slow
def test_every_good_report_imports(tmp_path: Path) -> None:
    good = [path for path in sorted(SAMPLES.glob("*.sqlite")) if path.name not in BAD]
    assert len(good) == 16
    for path in good:
        run = open_run(tmp_path / import_report(path, tmp_path, "", None, []))
        assert len(run.table("kernels")) > 0, path.name
        assert run.info["device_name"], path.name


@pytest.mark.parametrize("name", BAD)
def test_both_bad_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReportError, match=r"git-lfs pointer|nvprof"):
        import_report(SAMPLES / name, tmp_path, "", None, [])
