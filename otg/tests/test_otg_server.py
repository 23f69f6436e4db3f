"""The server of the Open Traffic Generator without frames: which configurations and requests it takes."""

import json
import threading

import pytest
import snappi
from otg_parts import STATE, Generator, ask, serving
from waiting import PATIENCE, wait_until

from lossratio.traffic import AgentRefusalError
from lossratio.trials import DirectionCounters
from lossratio_otg.flows import MOST_FLOWS
from lossratio_otg.models import checked

PORTS = [{"name": "a", "location": "tg0"}, {"name": "b", "location": "tg1"}]
ETHERNET = {"choice": "ethernet", "ethernet": {}}


@pytest.fixture
def server(monkeypatch):
    with serving(monkeypatch) as server:
        yield server


def flow(name="f", **fields):
    tx_rx = {"choice": "port", "port": {"tx_name": "a", "rx_names": ["b"]}}
    return {"name": name, "tx_rx": tx_rx, "packet": [ETHERNET], **fields}


def configure(server, *flows, **fields):
    return ask(server, "POST", "/config", {"ports": PORTS, "flows": list(flows), **fields})


def test_snappi_itself_reads_the_answers(server):
    api = snappi.api(location=f"http://127.0.0.1:{server.server_port}", version_check=True)
    config = api.config()
    config.ports.port(name="a", location="tg0").port(name="b", location="tg1")
    made = config.flows.flow(name="f")[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "a", ["b"]
    made.packet.ethernet().ipv4().udp()
    assert api.set_config(config).warnings == []
    assert api.get_config().serialize() == config.serialize()
    request = api.metrics_request()
    request.port.port_names = ["b"]
    assert [(port.name, port.frames_rx) for port in api.get_metrics(request).port_metrics] == [("b", 0)]
    assert "lossratio" in api.get_version().app_version


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"captures": [{"name": "c", "port_names": ["a"], "filters": [{"choice": "custom"}]}]},
            "captures[0].filters: this is not supported",
        ),
        (
            {"captures": [{"name": "c", "port_names": ["a"], "format": "pcapng"}]},
            "captures[0].format: 'pcapng' is not supported; possible: pcap",
        ),
        ({"captures": [{"name": "c", "port_names": ["x"]}]}, "captures[0].port_names: there is no port 'x'"),
        ({"devices": [{"name": "d"}]}, "devices: this is not supported"),
        ({"nonsense": 1}, "nonsense: this is not supported"),
        ({"ports": [{"name": [[[{}]]]}]}, "ports[0].name: its lists and objects are nested in more than 3 levels"),
        (
            {"flows": [flow(rate={"choice": "percentage", "percentage": 10.0})]},
            "flows[0].rate.percentage: give a percentage above 0, and the port's 'speed' in 'layer1'",
        ),
        (
            {"flows": [flow(size={"choice": "random", "random": {}})]},
            "flows[0].size.choice: 'random' is not supported; possible: fixed",
        ),
        (
            {"flows": [flow(duration={"choice": "burst", "burst": {}})]},
            "flows[0].duration.choice: 'burst' is not supported",
        ),
        (
            {"flows": [flow(duration={"choice": "continuous", "continuous": {"gap": 100}})]},
            "flows[0].duration.continuous.gap: '100' is not supported; possible: 12",
        ),
        (
            {"flows": [flow(tx_rx={"choice": "device", "device": {"tx_names": ["a"], "rx_names": ["b"]}})]},
            "flows[0].tx_rx.choice: 'device' is not supported; possible: port",
        ),
        (
            {"flows": [flow(tx_rx={"choice": "port", "port": {"tx_name": "a", "rx_names": ["a", "b"]}})]},
            "flows[0].tx_rx.port.rx_names: there are 2, but at most one port can receive a flow",
        ),
        (
            {"flows": [flow(tx_rx={"choice": "port", "port": {"tx_name": "x", "rx_names": ["b"]}})]},
            "flows[0].tx_rx.port.tx_name: there is no port 'x'",
        ),
        ({"flows": [flow(metrics={"timestamps": True})]}, "flows[0].metrics.timestamps: 'True' is not supported"),
        (
            {"flows": [flow(packet=[{"choice": "ethernet", "ethernet": {"pfc_queue": {}}}])]},
            "flows[0].packet[0].ethernet.pfc_queue: this is not supported",
        ),
        ({"flows": [flow(), flow()]}, "flows: two of them have the same name"),
        ({"flows": [flow(str(number)) for number in range(MOST_FLOWS + 1)]}, "flows: at most 16 are supported, not 17"),
        (
            {"flows": [flow(metrics={"enable": True, "latency": {"enable": True}})]},
            "flows[0].metrics.latency: latency can be measured only for flows that end by themselves (fixed_packets",
        ),
        (
            {
                "flows": [
                    flow(size={"choice": "weight_pairs", "weight_pairs": {"custom": [{"size": 64, "weight": 0.5}]}})
                ]
            },
            "flows[0].size.weight_pairs.custom[0].weight: it must be a whole number",
        ),
        (
            {"ports": [{"name": "a", "location": "eth0"}]},
            "ports[0].location: there is no port 'eth0'; there are tg0, tg1",
        ),
        ({"flows": [flow(rate={"choice": "pps", "pps": -5})]}, "Invalid -5 format, expected uint64"),
        ({"flows": {"name": "f"}}, "flows: it must be a list"),
    ],
)
def test_what_is_not_supported_is_an_error_with_its_name(server, fields, error):
    status, answer = ask(server, "POST", "/config", {"ports": PORTS, **fields})
    assert (status, answer["code"], answer["kind"]) == (400, 400, "validation")
    assert error in answer["errors"][0]
    assert ask(server, "GET", "/config") == (200, {})


@pytest.mark.parametrize(
    ("kind", "field", "number"),
    [
        *(("fixed_seconds", "seconds", text) for text in ("1e999", "1e308", "604801", "0", "1e-400")),
        ("fixed_packets", "packets", "604801000"),
    ],
)
def test_flows_with_an_end_last_a_week_at_most(server, kind, field, number):
    lasting = {"choice": kind, kind: {field: 777}}
    text = json.dumps({"ports": PORTS, "flows": [flow(duration=lasting)]}).replace("777", number)
    status, answer = ask(server, "POST", "/config", text.encode())
    assert (status, answer["errors"]) == (
        400,
        [f"flows[0].duration.{kind}.{field}: flows must last longer than 0 s, and at most 604,800 s"],
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        *(
            ({"size": {"choice": "fixed", "fixed": size}}, "flows[0].size.fixed: it must be 64 to 65,535 bytes")
            for size in (0, 10, 63, 65_536, 4_294_967_295)
        ),
        (
            {"size": {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": [{"size": 40}]}}},
            "flows[0].size.weight_pairs.custom[0].size: it must be 64 to 65,535 bytes",
        ),
        (
            {"packet": [ETHERNET, {"choice": "ipv6", "ipv6": {}}, {"choice": "tcp", "tcp": {}}]},
            "flows[0].size.fixed: it must be 86 to 65,535 bytes",
        ),
        ({"size": None}, "flows[0].size: it must be an object"),
        ({"size": {"choice": "weight_pairs"}}, "flows[0].size.weight_pairs.custom: 1 to 32 sizes are supported, not 0"),
        ({"rate": {"choice": "pps", "pps": 1 << 63}}, "flows[0].rate.pps: it must be 1 to 10,000,000,000"),
    ],
)
def test_sizes_and_rates_out_of_range_are_named(server, fields, error):
    status, answer = configure(server, flow(**fields))
    assert (status, answer["kind"]) == (400, "validation")
    assert answer["errors"][0].startswith(error)


def test_what_the_generator_cannot_send_is_a_mistake_of_the_request(server, monkeypatch):
    def refuse(*_):
        raise AgentRefusalError("Frames of 9000 bytes do not go through tg0.", "unsupported")

    monkeypatch.setattr(Generator, "configure", refuse)
    status, answer = configure(server, flow())
    assert (status, answer["errors"]) == (400, ["flows: Frames of 9000 bytes do not go through tg0."])


@pytest.mark.whole
@pytest.mark.parametrize(
    ("contents", "error"),
    [
        ({"ports": [{"name": str(number)} for number in range(40_000)]}, "ports: at most 64 are supported, not 40000"),
        ({"devices": [{"vxlan": [{}] * 60}] * 60}, "devices: this is not supported"),
        (dict.fromkeys(map(str, range(100))), "0: this is not supported"),
        ({"flows": [flow(packet=[ETHERNET] * 9)]}, "flows[0].packet: at most 8 are supported, not 9"),
    ],
)
def test_what_a_request_has_is_checked_before_the_models_look_at_it(server, monkeypatch, contents, error):
    looked_at = []
    monkeypatch.setattr("lossratio_otg.flows.checked", lambda kind, data: looked_at.append(kind) or checked(kind, data))
    status, answer = ask(server, "POST", "/config", contents)
    assert status == 400
    assert error in answer["errors"][0]
    assert not looked_at


@pytest.mark.whole
def test_values_of_all_fields_are_bounded_together(server):
    counter = {"choice": "increment", "increment": {"start": 1, "step": 2, "count": 1 << 16}}
    headers = [ETHERNET, {"choice": "ipv6", "ipv6": {"flow_label": counter}}]
    headers.append({"choice": "tcp", "tcp": {"seq_num": counter, "ack_num": counter}})
    status, answer = configure(
        server, *(flow(str(number), packet=headers, size={"choice": "fixed", "fixed": 128}) for number in range(6))
    )
    assert (status, answer["errors"]) == (
        400,
        ["flows: their fields list more than 1,048,576 values; use fewer, or fields that count up by 1"],
    )


def sent(server, monkeypatch, *counters):
    """Starts flows that have these counters in the end, and waits for it; returns the answer to the start."""
    monkeypatch.setattr("lossratio_otg.runs.Run._send", lambda _: [(counted, None) for counted in counters])
    answer = ask(server, "POST", "/control/state", STATE["start"])
    wait_until(lambda: not server.tester._runs)
    return answer


def test_frames_that_were_not_sent_are_warnings_of_the_next_answer(server, monkeypatch):
    counters = DirectionCounters("f", 100, 60, 58, 40), DirectionCounters("g", 9, 9, 7, generator_drop_frames=2)
    configure(server, flow(), flow("g"))
    assert sent(server, monkeypatch, *counters) == (200, {"warnings": []})
    warnings = ["f: 40 of 100 frames were not sent (40 %)", "g: 2 frames were dropped inside the generator"]
    assert ask(server, "POST", "/control/state", STATE["stop"]) == (200, {"warnings": warnings})
    assert ask(server, "POST", "/control/state", STATE["stop"]) == (200, {"warnings": []})
    sent(server, monkeypatch, counters[0])
    assert configure(server, flow())[1]["warnings"] == warnings[:1]
    sent(server, monkeypatch, counters[0])
    assert sent(server, monkeypatch) == (200, {"warnings": warnings[:1]})


@pytest.mark.parametrize("name", ["\x1b[2J\x07", "a\r\nb", "\x9b1A", "\u202eelif"])
def test_a_name_moves_nothing_on_the_operators_terminal(server, monkeypatch, capsys, name):
    assert configure(server, flow(name))[0] == 200
    sent(server, monkeypatch, DirectionCounters(name, 100, 60, 60, 40))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    assert "40 of 100 frames were not sent" in line


def test_of_several_clients_that_start_flows_at_once_one_does(server, monkeypatch):
    running = threading.Event()
    monkeypatch.setattr("lossratio_otg.runs.Run._send", lambda run: running.wait(PATIENCE) and [])
    assert configure(server, flow())[0] == 200
    found = []
    clients = [
        threading.Thread(target=lambda: found.append(ask(server, "POST", "/control/state", STATE["start"])[0]))
        for _ in range(4)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert sorted(found) == [200, 409, 409, 409]
    assert configure(server, flow())[0] == 409
    running.set()
    wait_until(lambda: configure(server, flow())[0] == 200)


def test_fields_that_change_nothing_are_warnings(server):
    options = {"port_options": {"location_preemption": True}}
    layer1 = [{"name": "l", "port_names": ["a"], "speed": "speed_10_gbps", "media": "fiber", "mtu": 1500}]
    status, answer = configure(server, options=options, layer1=layer1)
    assert status == 200
    named = {warning.partition(":")[0] for warning in answer["warnings"]}
    ignored = {"layer1[0].media", "layer1[0].mtu", "layer1[0].promiscuous"}
    assert named == {*ignored, "options.port_options.location_preemption"}


@pytest.mark.parametrize(
    ("speed", "size", "rate"),
    [
        ("speed_1_gbps", {"choice": "fixed", "fixed": 64}, 148_809.52),
        ("speed_100_fd_mbps", {"choice": "fixed", "fixed": 1518}, 812.743823),
        (
            "speed_10_gbps",
            {
                "choice": "weight_pairs",
                "weight_pairs": {
                    "choice": "custom",
                    "custom": [{"size": 64, "weight": 1}, {"size": 1518, "weight": 1}],
                },
            },
            154_130.7028,
        ),
    ],
)
def test_a_percentage_is_of_the_line_rate_of_layer_1(server, speed, size, rate):
    layer1 = [{"name": "l", "port_names": ["a"], "speed": speed}]
    share = {"choice": "percentage", "percentage": 10.0}
    assert configure(server, flow(rate=share, size=size), layer1=layer1, captures=[])[0] == 200
    assert server.tester._flows[0].rate == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(
    ("request_", "status", "error"),
    [
        (("POST", "/config", b"{"), 400, "not JSON"),
        (("POST", "/config", b"[" * 200_000), 400, "not JSON"),
        (("POST", "/config", b"NaN"), 400, "NaN is not a number"),
        (("POST", "/config", b"\xff\xfe"), 400, "not JSON"),
        (("POST", "/config", b"1" * 5000), 400, "not JSON"),
        (("POST", "/config", b"[]"), 400, "the request: it must be an object"),
        (("POST", "/config", b'{"ports": null}'), 400, "ports: it must be a list"),
        (
            ("POST", "/control/state", b'{"choice": "traffic"}'),
            400,
            "traffic.flow_transmit.state: it must be start or stop",
        ),
        (("POST", "/monitor/metrics", b'{"choice": "bgpv4"}'), 400, "choice: 'bgpv4' is not supported"),
        (("POST", "/monitor/metrics", b'{"choice": "port", "port": {"port_names": ["x"]}}'), 400, "port.port_names"),
        (
            ("POST", "/control/state", b'{"choice": "port", "port": {"choice": "link"}}'),
            400,
            "port.choice: 'link' is not supported; possible: capture",
        ),
        (("POST", "/control/state", b'{"choice": "port"}'), 400, "port.capture.state: it must be start or stop"),
        (("POST", "/control/capture", b'{"state": "start", "port_names": ["b"]}'), 400, "'b' has no capture"),
        (
            ("POST", "/monitor/capture", b'{"port_name": "a"}'),
            400,
            "port_name: 'a' has no capture (port_names of captures)",
        ),
        (("POST", "/monitor/capture", b"{}"), 400, "CaptureRequest: "),
        (("PATCH", "/config", b"{}"), 404, "PATCH /config is not supported"),
        (("POST", "/control/action", b"{}"), 404, "possible: GET /capabilities/version"),
        (("GET", "/../../etc/passwd"), 404, "is not supported"),
        (("DELETE", "/config"), 404, "is not supported"),
    ],
)
def test_hostile_requests_are_refused(server, request_, status, error):
    answered, answer = ask(server, *request_)
    assert answered == status
    assert error in answer["errors"][0]


@pytest.mark.parametrize(
    ("earlier", "contents", "path", "contents_of_today"),
    [
        ("/control/transmit", {"state": "start"}, "/control/state", STATE["start"]),
        (
            "/control/capture",
            {"state": "stop", "port_names": ["a"]},
            "/control/state",
            {"choice": "port", "port": {"choice": "capture", "capture": {"state": "stop", "port_names": ["a"]}}},
        ),
        ("/results/metrics", {"choice": "port"}, "/monitor/metrics", {"choice": "port"}),
        ("/results/capture", {"port_name": "a"}, "/monitor/capture", {"port_name": "a"}),
    ],
)
def test_requests_of_earlier_models_get_the_same_answers(server, earlier, contents, path, contents_of_today):
    configure(server, captures=[{"name": "c", "port_names": ["a"]}])
    answers = [ask(server, "POST", path, contents_of_today), ask(server, "POST", earlier, contents)]
    assert answers[0] == answers[1]
    assert answers[0][0] in {200, 400}


def test_flows_are_sent_together_if_they_last_equally_long(server):
    lasts = {"choice": "fixed_packets", "fixed_packets": {"packets": 500}}
    slow, fast = ({"choice": "pps", "pps": rate} for rate in (500, 1000))
    latency = {"enable": True, "latency": {"enable": True}}
    second = {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1.0}}
    status, _ = configure(
        server,
        *(flow(name, duration=lasts, rate=slow) for name in "ab"),
        flow("c", duration=lasts, rate=fast),
        flow("d", duration=lasts, rate=slow, metrics=latency),
        flow("e", duration=second, rate=slow),
        flow("f"),
    )
    assert status == 200
    groups = [[each.direction.name for each in generator.flows] for generator in server.tester._generators]
    assert groups == [["a", "b"], ["c"], ["d"], ["e"], ["f"]]


def test_the_kernels_generator_leaves_nothing_for_captures(server):
    captures = [{"name": "c", "port_names": ["a"]}]
    server.tester._kind = "auto"
    configure(server, flow())
    configure(server, flow(), captures=captures)
    assert [generator.kind for generator in server.tester._generators] == ["afpacket"]
    configure(server, flow())
    assert [generator.kind for generator in server.tester._generators] == ["auto"]
    server.tester._kind = "xdp"
    status, answer = configure(server, flow(), captures=captures)
    assert (status, answer["errors"][0][:40]) == (400, "captures: the generator xdp cannot captu")


def test_a_flow_that_nobody_receives_has_no_count_of_what_arrived(server):
    configure(server, flow(tx_rx={"choice": "port", "port": {"tx_name": "a"}}))
    _, answer = ask(server, "POST", "/monitor/metrics", {"choice": "flow"})
    (metric,) = answer["flow_metrics"]
    assert metric["frames_tx"] == "0"
    assert not {"frames_rx", "bytes_rx", "port_rx"} & metric.keys()


def test_nothing_starts_without_a_configuration(server):
    status, answer = ask(server, "POST", "/control/state", STATE["start"])
    assert (status, answer["errors"][0]) == (
        400,
        "traffic.flow_transmit.state: there are no flows to start; send a configuration first",
    )
