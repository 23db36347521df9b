"""One client of several servers: calls go round, pass over who is away or not serving, and come back."""

import asyncio
import time
from collections.abc import Callable

import grpc
import pytest
import trustme
from click.testing import CliRunner
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2
from tests.clients.conftest import ScriptedServer, Servers, certified_server

from dragoman import AsyncClient, Client, InvalidRequestError, OverloadedError, UnavailableError
from dragoman.cli import main
from dragoman.connection import route
from dragoman.connection.route import read_route

RETRY_INFO = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=3))
DE_EN = {"source": "de", "target": "en"}


def addresses(servers: Servers) -> list[str]:
    return [each.address for each in servers]


def num_calls(servers: Servers) -> list[int]:
    """How many calls each has had since this was asked last."""
    counts = [len(each.servicer.requests) for each in servers]
    for each in servers:
        each.servicer.requests.clear()
    return counts


def call_until(client: Client, servers: Servers, is_so: Callable[[list[int]], bool]) -> list[int]:
    """Translates until the counts of a dozen calls are as they should be; no call may fail meanwhile."""
    until = time.monotonic() + 20
    while True:
        num_calls(servers)
        for _ in range(12):
            assert client.translate(["eins"], **DE_EN)[0].text == "EINS"
        counts = num_calls(servers)
        if is_so(counts) or time.monotonic() > until:
            return counts
        time.sleep(0.05)


def test_calls_go_round_all_servers_of_a_list(servers: Servers) -> None:
    with Client(addresses(servers)) as client:
        assert call_until(client, servers, lambda counts: counts == [4, 4, 4]) == [4, 4, 4]


def test_a_server_that_goes_fails_no_call_and_is_used_again_when_it_is_back(servers: Servers) -> None:
    with Client(",".join(addresses(servers))) as client:
        call_until(client, servers, all)
        servers[1].stop()
        assert call_until(client, servers, lambda counts: counts == [6, 0, 6]) == [6, 0, 6]
        servers[1].start()
        assert all(call_until(client, servers, all))


def test_a_server_that_does_not_serve_gets_no_call(servers: Servers) -> None:
    with Client(addresses(servers)) as client:
        call_until(client, servers, all)
        servers[0].health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        assert call_until(client, servers, lambda counts: not counts[0]) == [0, 6, 6]
        servers[0].health.set("", health_pb2.HealthCheckResponse.SERVING)
        assert all(call_until(client, servers, all))


@pytest.mark.parametrize("is_full", [False, True])
def test_a_call_that_one_server_turns_away_is_made_at_another(servers: Servers, is_full: bool) -> None:
    scripted = servers[0].servicer
    with Client(addresses(servers)) as client:
        call_until(client, servers, all)
        if is_full:
            scripted.max_queue = 0
        else:
            scripted.failures.extend([servers[0].status("UNAVAILABLE", "it drains")] * 100)
        for _ in range(6):
            assert client.translate(["zwei"], **DE_EN)[0].text == "ZWEI"
    assert scripted.requests if is_full else len(scripted.failures) < 100


def test_tries_end_where_every_server_turns_a_call_away(servers: Servers) -> None:
    with Client(addresses(servers)) as client:
        for each in servers:
            each.servicer.failures.extend([each.status("UNAVAILABLE", "it drains")] * 100)
        with pytest.raises(UnavailableError, match="it drains"):
            client.models()
        assert sum(100 - len(each.servicer.failures) for each in servers) == 5


def test_where_none_can_be_called_the_error_names_them_all_and_why(servers: Servers) -> None:
    servers[1].stop()
    servers[2].stop()
    servers[0].health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    names = addresses(servers)
    with Client(names) as client, pytest.raises(UnavailableError) as caught:
        client.translate(["eins"], **DE_EN)
    message = str(caught.value)
    assert message.startswith(f"no server of {', '.join(names)} can be called: ")
    assert f"{names[0]}: it is starting or stopping" in message
    for each in names[1:]:
        assert f"ipv4:{each}: " in message.partition("called: ")[2]
    assert message.count("Connection refused") == 2
    servers[1].start()
    servers[2].start()


def test_the_asyncio_client_and_its_streams_go_round_too(servers: Servers) -> None:
    async def run() -> list[int]:
        async with AsyncClient(addresses(servers)) as client:
            for _ in range(100):
                await client.translate(["eins"], **DE_EN)
                if all(each.servicer.requests for each in servers):
                    break
            async for result in client.translate_stream([(0, "zwei")], **DE_EN):
                assert result.translation is not None
                assert result.translation.text == "ZWEI"
            return num_calls(servers)

    assert all(asyncio.run(run()))


def test_the_command_takes_several_with_commas(servers: Servers) -> None:
    servers[0].stop()
    given = ["translate", "--server", ", ".join(addresses(servers)), "--from", "de", "--to", "en", "eins"]
    ran = CliRunner().invoke(main, given)
    assert (ran.exit_code, ran.stdout) == (0, "EINS\n")
    servers[0].start()


def test_a_name_for_several_is_balanced_and_looked_up_by_grpc(server: ScriptedServer) -> None:
    port = server.address.rpartition(":")[2]
    with Client(f"dns:///localhost:{port}") as client:
        assert client.translate(["eins"], **DE_EN)[0].text == "EINS"
        assert server.address in map(str, client.servers())
    assert read_route(f"dns:///localhost:{port}", None).is_balanced


def test_one_of_the_servers_is_called_alone_over_its_own_connection(servers: Servers) -> None:
    with Client(addresses(servers)) as client:
        assert [str(each) for each in client.servers()] == addresses(servers)
        with client.at(client.servers()[2]) as alone:
            for _ in range(3):
                alone.translate(["eins"], **DE_EN)
    assert num_calls(servers) == [0, 0, 3]


def test_each_of_a_list_is_a_server_of_its_own_however_it_is_written() -> None:
    for one in ("localhost:50051", "ipv4:127.0.0.1:50051"):
        assert not read_route(one, None).is_balanced
    assert read_route(["localhost:50051"], None) == read_route("localhost:50051", None)
    for given, targets in (
        ("a.invalid:1", ["a.invalid:1"]),
        ("unix:/run/dragoman", ["unix:/run/dragoman"]),
        ("ipv4:127.0.0.1:1,127.0.0.1:2", ["ipv4:127.0.0.1:1", "ipv4:127.0.0.1:2"]),
        ("127.0.0.1:1,127.0.0.1:2", ["127.0.0.1:1", "127.0.0.1:2"]),
        ("dns:127.0.0.1:1", ["ipv4:127.0.0.1:1"]),
        ("dns://8.8.8.8/127.0.0.1:1", ["ipv4:127.0.0.1:1"]),
    ):
        assert [each.target for each in read_route(given, None).servers()] == targets
    with pytest.raises(InvalidRequestError, match="'somewhere' has no port"):
        read_route("dns:///somewhere", None).servers()


def test_addresses_of_both_kinds_are_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"a": [(2, "10.0.0.1")], "b": [(10, "fd00::1"), (2, "10.0.0.2")]}
    addresses = {
        host: [(family, 1, 6, "", (address, 0)) for family, address in each] for host, each in found.items()
    }
    monkeypatch.setattr(route.socket, "getaddrinfo", lambda host, _port, **_: addresses[host])
    assert read_route("a:1,b:2", None).target == "ipv6:[::ffff:10.0.0.1]:1,[fd00::1]:2,[::ffff:10.0.0.2]:2"
    assert read_route("a:1,a:1", None).target == "ipv4:10.0.0.1:1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "no address is given"),
        (["localhost:1", "localhost"], "'localhost' has no port"),
        (["localhost:1", "grpcs://localhost:2"], "all must be reached over TLS or none"),
        (["localhost:1", "dns:///localhost:2"], "can't stand in a list"),
        ("localhost:1,", "'' has no port"),
        (["127.0.0.1:1", "nowhere.invalid:2"], r"'nowhere\.invalid'.*dns:///"),
    ],
    ids=["none", "no port", "mixed", "scheme", "end", "unknown"],
)
def test_lists_that_make_no_sense_are_refused(given: str | list[str], message: str) -> None:
    with pytest.raises((InvalidRequestError, UnavailableError), match=message):
        Client(given)


def test_several_over_tls_have_certificates_for_the_name_of_the_first() -> None:
    authority = trustme.CA()
    roots = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    with certified_server(authority, "localhost") as one, certified_server(authority, "localhost") as other:
        ports = [each.address.rpartition(":")[2] for each in (one, other)]
        given = "grpcs://" + ",".join(f"localhost:{port}" for port in ports)
        with Client(given, credentials=roots) as client:
            assert all(call_until(client, [one, other], all))
        with Client(f"grpcs://dns:///localhost:{ports[0]}", credentials=roots) as client:
            by_number = next(place for place in client.servers() if place.target.startswith("ipv4:"))
            with client.at(by_number) as alone:
                assert alone.translate(["eins"], **DE_EN)[0].text == "EINS"
        with (
            Client(addresses([one, other]), credentials=roots) as client,
            pytest.raises(UnavailableError, match="Hostname Verification Check failed"),
        ):
            client.translate(["eins"], **DE_EN)


def test_where_none_has_room_each_is_tried_once_and_the_caller_told_when(servers: Servers) -> None:
    with Client(addresses(servers)) as client:
        call_until(client, servers, all)
        full = servers[0].status("RESOURCE_EXHAUSTED", "the queue is full", RETRY_INFO)
        for each in servers:
            each.servicer.failures.extend([full] * 10)
        with pytest.raises(OverloadedError) as caught:
            client.translate(["eins"], **DE_EN)
        assert caught.value.retry_after_seconds == 3
        assert sum(10 - len(each.servicer.failures) for each in servers) == 3
