from __future__ import annotations

import yaml

from lossratio.topology import NIC_MODELS, NicModel, load_topology


def test_the_tag_is_that_of_csit():
    assert NIC_MODELS["mellanox-cx7veat"].tag == "nic_mellanox-cx7veat"


def test_a_lab_states_the_limits_of_unknown_models(tmp_path):
    data = {
        "format": "lossratio-topology/1",
        "name": "lab",
        "nics": {"Acme-100G": {"max_frame_rate": "90 Mpps", "max_bit_rate": "100 Gbps"}},
        "nodes": {
            "TG": {
                "type": "TG",
                "host": "tg",
                "generator": {"kind": "afpacket"},
                "interfaces": {
                    "a": {"name": "e0", "link": "cable", "model": "acme-100g"},
                    "b": {"name": "e1", "link": "cable", "model": "intel-x710"},
                    "c": {"name": "e2", "link": "other", "model": "unheard-of"},
                    "d": {"name": "e3", "link": "other"},
                },
            }
        },
    }
    file = tmp_path / "lab.yaml"
    file.write_text(yaml.safe_dump(data))
    topology = load_topology(file)
    (own, known), (unknown, untold) = (topology.links()[link] for link in ("cable", "other"))
    assert topology.nic_model(own) == NicModel("acme-100g", 90e6, 100e9)
    assert topology.nic_model(known) == NIC_MODELS["intel-x710"]
    assert topology.nic_model(unknown) is None
    assert topology.nic_model(untold) is None
