"""What TRex's client makes of packets, streams and their fields, as far as the agent uses it; and its errors."""

from __future__ import annotations

from typing import Any


class TRexError(Exception):
    """As the client of an installation raises it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.msg = message


class STLError(Exception):
    """As trex-stl-lib raises it: it cannot even be printed."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.msg = message

    def __str__(self) -> str:
        raise AttributeError("'list' object has no attribute 'format'")


class Recorded:
    """Anything that the client makes: it remembers what it was made of."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.arguments = arguments
        self.__dict__.update(named)


class STLPktBuilder(Recorded):
    pass


class PacketBuffer(Recorded):
    pass


class STLStream(Recorded):
    flow_stats: Any = None


class STLTXCont(Recorded):
    pass


class STLTXSingleBurst(Recorded):
    pass


class STLFlowLatencyStats(Recorded):
    pass


class STLFlowStats(Recorded):
    pass


class STLVmFlowVar:
    def __init__(
        self, name, init_value=None, min_value=0, max_value=255, size=4, step=1, op="inc", value_list=None,
        split_to_cores=True,
    ):  # fmt: skip
        assert op == "inc"
        assert not split_to_cores
        assert value_list is None or len(value_list) < 1 << 16
        self.name, self.size = name, size
        self.values = value_list or range(min_value, max_value + 1)


class STLVmWrFlowVar(Recorded):
    pass


class STLVmFixIpv4(Recorded):
    pass


class STLVmFixChecksumHw(Recorded):
    pass


class CTRexVmInsFixHwCs:
    L4_TYPE_UDP, L4_TYPE_TCP = 11, 13
