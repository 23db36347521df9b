"""A file job and servers that go away, are full, or refuse."""

import json
import threading
import time
from dataclasses import replace

import pytest
from google.protobuf import duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from tests.clients.jobs.running import DE_EN, Listener, cut_short, numbered, resume, run, write

from dragoman import Client, UnavailableError
from dragoman.jobs import JobError
from dragoman.settings import MAX_STREAM_TEXT_BYTES


@pytest.mark.parametrize("code", [code_pb2.CANCELLED, code_pb2.ABORTED])
def test_a_stream_that_the_server_ends_is_tried_again(client, server, tmp_path, code):
    source, output = write(tmp_path, "a\nb\n")
    server.servicer.failures.append(status_pb2.Status(code=code))
    listener = Listener()
    run(client, source, output, listener=listener)
    assert output.read_text() == "A\nB\n"
    assert len(listener.waits) == 1


def test_server_that_goes_away_is_waited_for(client, server, tmp_path):
    source, output = write(tmp_path, numbered(300))
    server.servicer.disconnects.extend([100, 0, 50])
    listener = Listener()
    run(client, source, output, listener=listener, window=8)
    assert output.read_text() == numbered(300, "ZEILE")
    assert listener.lines == 300
    assert listener.waits


def test_server_that_is_started_again_is_found(client, server, tmp_path):
    source, output = write(tmp_path, numbered(300))
    server.servicer.delay_seconds = 0.003
    restarter = threading.Thread(target=lambda: (server.stop(), time.sleep(0.3), server.start()))
    run(client, source, output, listener=Listener(restarter.start), window=8)
    restarter.join()
    assert output.read_text() == numbered(300, "ZEILE")


@pytest.mark.parametrize("model", [None, "de-en"])
def test_a_job_has_one_model_whatever_is_served_meanwhile(client, server, tmp_path, model):
    # What fails, last before the job is cut short, is of no model.
    source, output = write(tmp_path, "a\n" * 9 + "!INTERNAL boom\n" + "a\n" * 90)
    settings = replace(DE_EN, model=model)
    server.servicer.disconnects.extend([10, 20])

    class Publisher(Listener):
        def on_wait(self, error, seconds):
            server.servicer.versions.append("2")

    with pytest.raises(UnavailableError):
        run(client, source, output, settings, window=8, patience_seconds=0)
    server.servicer.versions.append("2")
    run(client, source, output, settings, listener=Publisher(), window=8)
    assert output.read_text() == "A\n" * 9 + "\n" + "A\n" * 90
    assert [config.model for config in server.servicer.configs] == [model or "", "de-en/1", "de-en/1"]


def test_a_server_that_is_started_again_without_the_jobs_model_does_not_go_on(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 100)
    server.servicer.disconnects.append(40)

    class Publisher(Listener):
        def on_wait(self, error, seconds):
            server.servicer.versions = ["2"]

    # Within a run, and in one that goes on.
    for _ in range(2):
        with pytest.raises(JobError, match=r"no longer has de-en/1.*--restart.*--model") as caught:
            run(client, source, output, listener=Publisher(), window=8)
        assert "there is no model 'de-en/1'" in str(caught.value)
        assert not output.exists()
    server.servicer.versions = ["1", "2"]
    assert resume(client, source, output) == 40
    assert {config.model for config in server.servicer.configs} == {"", "de-en/1"}


def test_a_job_of_before_its_model_was_noted_goes_on(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 100)
    cut_short(client, server, source, output)
    progress = tmp_path / "out.progress.json"
    entry = json.loads(progress.read_text())
    assert entry["checkpoint"].pop("model") == "de-en/1"
    progress.write_text(json.dumps(entry))
    run(client, source, output)
    assert output.read_text() == "A\n" * 100
    assert [config.model for config in server.servicer.configs] == ["", ""]


def test_overloaded_line_is_tried_again(client, server, tmp_path):
    source, output = write(tmp_path, "a\nb\nc\n")
    delay = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=750_000_000))
    server.servicer.overloads["b"] = server.status("RESOURCE_EXHAUSTED", "queue is full", delay)
    listener = Listener()
    summary = run(client, source, output, listener=listener)
    assert output.read_text() == "A\nB\nC\n"
    assert summary.failed == 0
    assert listener.waits == [0.75]


def test_silence_before_a_failure_costs_no_patience(client, server, tmp_path):
    source, output = write(tmp_path, "a\n")
    server.servicer.delay_seconds = 0.4
    server.servicer.disconnects.append(0)
    listener = Listener()
    run(client, source, output, listener=listener, patience_seconds=0.3)
    assert output.read_text() == "A\n"
    assert len(listener.waits) == 1


def test_messages_get_smaller_where_the_server_takes_no_longer_ones(small_message_server, tmp_path):
    lines = [f"zeile {number} ".ljust(12_000 if number in (50, 51, 99) else 800) for number in range(100)]
    source, output = write(tmp_path, "\n".join(lines))
    with Client(small_message_server.address) as client:
        summary = run(client, source, output)
    assert (summary.lines, summary.failed) == (100, 3)
    assert output.read_text().split("\n") == ["" if len(line) > 10_000 else line.upper() for line in lines]
    records = [json.loads(record) for record in summary.errors.read_text().splitlines()]
    assert [record["line"] for record in records] == [51, 52, 100]
    assert {record["status"] for record in records} == {"RESOURCE_EXHAUSTED"}
    assert "too long for the server" in records[0]["message"]


def test_one_long_line_leaves_the_messages_after_it_as_large_as_before(small_message_server, tmp_path):
    files = write(tmp_path, "\n".join(["a" * 12_000, *["ja"] * 400]))
    with Client(small_message_server.address) as client:
        assert run(client, *files).failed == 1
    assert len(small_message_server.servicer.messages) < 100


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("item.text: has 11 characters, and a text", "the line's text has 11 characters, and a text"),
        ("item.text: the sentence at characters 0 to 9", "the sentence at characters 0 to 9"),
        ("a batch: item.text: has", "a batch: item.text: has"),
    ],
)
def test_what_the_server_tells_of_a_text_is_told_of_the_line(client, server, tmp_path, message, told):
    server.servicer.overloads["a"] = server.status("INVALID_ARGUMENT", message)
    summary = run(client, *write(tmp_path, "a\n"))
    assert json.loads(summary.errors.read_text())["message"] == told


def test_line_over_the_transports_limit_fails_alone(client, tmp_path):
    longest = "a" * MAX_STREAM_TEXT_BYTES
    source, output = write(tmp_path, f"eins\n{longest}\n{longest}a\nzwei\n")
    summary = run(client, source, output)
    assert output.read_text() == f"EINS\n{longest.upper()}\n\nZWEI\n"
    assert (summary.lines, summary.failed) == (4, 1)
    record = json.loads(summary.errors.read_text())
    assert (record["line"], record["status"]) == (3, "INVALID_ARGUMENT")
    told = f"the line's text has {len(longest) + 1} bytes; at most {MAX_STREAM_TEXT_BYTES} can travel in "
    assert record["message"] == told + "one message"
    assert record["text"] == longest + "a"
