"""A local Ray of two actors: what they translate is what one engine does, also where one is killed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

os.environ["RAY_AUTH_MODE"] = "disabled"
ray = pytest.importorskip("ray", reason="needs the extra dragoman[ray], which is too large for dragoman[dev]")
pytestmark = pytest.mark.filterwarnings("ignore")

from dragoman.cli import main  # noqa: E402
from dragoman.jobs.errors import JobError  # noqa: E402
from dragoman.ray import translate  # noqa: E402
from dragoman.ray.corpus import CorpusJob  # noqa: E402
from dragoman_server.offline.in_process import open_in_process  # noqa: E402

BUNDLE = Path(__file__).parents[3] / "models" / "de-en" / "1"
LINES = [f"Der Mann hat {number} Hunde." for number in range(90)]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def expected() -> list[str]:
    with open_in_process(
        str(BUNDLE),
        beam_size=None,
        length_penalty=None,
        segmentation="sentence",
        device="cpu",
        precision="auto",
    ) as translator:
        return [text for text, _ in translator.translate(LINES)]


def actors() -> list[int]:
    """The processes of those that translate."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::") and b"MapWorker" in command:
            found.append(int(path.parent.name))
    return found


class Killer:
    """Kills an actor once the first part is done."""

    def __init__(self) -> None:
        self.killed: list[int] = []
        self.parts = 0

    def on_start(self, *, parts: int, done: int) -> None:
        pass

    def on_part(self) -> None:
        self.parts += 1
        if not self.killed and (found := actors()):
            os.kill(found[0], signal.SIGKILL)
            self.killed.append(found[0])


def test_a_dataset_gains_its_translations_in_order(expected: list[str]) -> None:
    dataset = ray.data.from_items([{"text": line, "number": at} for at, line in enumerate(LINES)])
    rows = translate(dataset, bundle=BUNDLE, actors=2, batch_rows=10).take_all()
    assert [row["number"] for row in rows] == list(range(len(LINES)))
    assert [row["translation"] for row in rows] == expected


def test_nothing_is_lost_or_doubled_where_an_actor_is_killed(tmp_path: Path, expected: list[str]) -> None:
    source, output = tmp_path / "in.de", tmp_path / "out.en"
    source.write_text("".join(f"{line}\n" for line in LINES))
    killer = Killer()
    summary = CorpusJob(source, output, bundle=BUNDLE, part_texts=5, actors=2).run(killer)
    assert killer.killed
    assert summary.texts == len(LINES)
    assert output.read_text().splitlines() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.de", "out.en"]


class Stopper(Killer):
    """Ends the job after some parts."""

    def on_part(self) -> None:
        self.parts += 1
        if self.parts == 3:
            raise KeyboardInterrupt


def test_a_job_that_was_stopped_goes_on_and_another_s_parts_are_refused(
    tmp_path: Path, expected: list[str]
) -> None:
    import pyarrow
    import pyarrow.parquet

    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"n": range(len(LINES)), "text": LINES}), source)

    def job(part_texts: int = 10) -> CorpusJob:
        return CorpusJob(source, output, bundle=BUNDLE, part_texts=part_texts, actors=2)

    with pytest.raises(KeyboardInterrupt):
        job().run(Stopper())
    assert len(list((tmp_path / "out.parquet.parts").glob("*.out"))) >= 3
    with pytest.raises(JobError, match="part_texts was 10 and is 20"):
        job(20).run(Stopper())
    observer = Stopper()
    observer.parts = 100
    job().run(observer)
    assert observer.parts <= 106
    table = pyarrow.parquet.read_table(output)
    assert table.column("n").to_pylist() == list(range(len(LINES)))
    assert table.column("translation").to_pylist() == expected


def test_the_command_says_what_failed(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "Guten Morgen."}\nnonsense\n')
    ray.shutdown()
    ran = CliRunner().invoke(
        main, ["translate-corpus", "--bundle", str(BUNDLE), "--actors", "1", str(source), str(output)]
    )
    assert ran.exit_code == 3, ran.output
    assert "2 texts, of which 1 failed" in ran.output
    assert "Good morning." in output.read_text()
