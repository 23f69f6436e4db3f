"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .answers import Answer as Answer, by_traffic as by_traffic
from .checks import (
    CHECK_DURATION as CHECK_DURATION,
    CHECK_LOAD as CHECK_LOAD,
    DeadPathError as DeadPathError,
    check_at_low_rate as check_at_low_rate,
    check_path as check_path,
    few_frames as few_frames,
    frames_of_last_check as frames_of_last_check,
    with_largest_frames as with_largest_frames,
)
from .client import AgentClient as AgentClient, AgentRefusalError as AgentRefusalError
from .configuration import (
    PortPair as PortPair,
    TrafficPort as TrafficPort,
    make_configuration as make_configuration,
    spread_over_flows as spread_over_flows,
)
from .connections import connections_of as connections_of
from .foreign import (
    PROFILE_READERS as PROFILE_READERS,
    convert_profile as convert_profile,
    profile_text as profile_text,
)
from .frame_headers import FrameHeaders as FrameHeaders
from .frame_sizes import (
    RFC2544_FRAME_SIZES as RFC2544_FRAME_SIZES,
    check_frame_size as check_frame_size,
    parse_frame_size as parse_frame_size,
)
from .generators import (
    check_connections as check_connections,
    check_early_verdicts as check_early_verdicts,
    check_sends_streams as check_sends_streams,
    load_generator as load_generator,
    open_generator as open_generator,
    start_agent as start_agent,
)
from .generators.base import Generator as Generator, GeneratorNode as GeneratorNode
from .generators.own import AfPacket as AfPacket
from .headers import SMALLEST_FRAME as SMALLEST_FRAME, Headers as Headers
from .measurer import (
    FALTERING as FALTERING,
    REPEATS as REPEATS,
    TrafficMeasurer as TrafficMeasurer,
    connecting as connecting,
)
from .probe import (
    Arrival as Arrival,
    MarkedFrame as MarkedFrame,
    Marker as Marker,
    smallest_probe as smallest_probe,
    with_room as with_room,
)
from .profile import (
    ProfileFile as ProfileFile,
    TrafficDirection as TrafficDirection,
    TrafficProfile as TrafficProfile,
    address_span as address_span,
)
from .profile_files import (
    load_profile as load_profile,
    mix_names as mix_names,
    profile_descriptions as profile_descriptions,
    profile_names as profile_names,
    read_profile as read_profile,
)
