"""Headers of the Open Traffic Generator's models: fields with their defaults, and profiles that need other headers."""

from itertools import pairwise

import pytest
import snappi
from at_least_one import at_least_one

from lossratio.errors import TrafficError
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio_otg.headers import HEADERS
from lossratio_otg.written_packets import write_packet

PAIR = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))


@pytest.mark.parametrize("kind", HEADERS)
def test_defaults_are_those_of_the_models(kind):
    header = getattr(snappi, f"Flow{kind.capitalize()}")()
    for path, field in at_least_one(HEADERS[kind].fields):
        # Without an offset of its data, a TCP header would not be one: there the models' default is zero.
        if "." in path or field.computed == "checksum" or path == "data_offset":
            continue
        pattern = getattr(header, path)
        value = getattr(pattern, "value", None) if field.computed != "length" else 0
        if pattern.choice == "auto" and field.computed == "next":
            value = field.notation.write(field.default)
        assert field.notation.read(value) == field.default, path


def test_fields_of_a_header_follow_each_other_and_fill_it():
    for kind, model in at_least_one(HEADERS.items()):
        fields = [field for field in model.header.fields if not field.is_joint]
        assert all(one.start + one.bits == other.start for one, other in pairwise(fields)), kind
        assert fields[-1].start + fields[-1].bits == 8 * model.header.length


@pytest.mark.parametrize("name", ["ethip4vxlan-ip4base", "ethip6-ip6scale2m-rnd", "ethip4-tcp-connections"])
def test_profiles_that_the_models_cannot_express_are_refused(name):
    profile = load_profile(name, frame_size=128)
    frames = make_configuration(profile, [PAIR], settle_time=0.0).directions[0].frames
    with pytest.raises(TrafficError, match="profile"):
        write_packet(frames, "02:00:00:00:00:01", "02:00:00:00:00:02")
