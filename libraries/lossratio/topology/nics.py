"""NIC models, and the most that their ports can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class NicModel:
    """What one port of a NIC of some model can do at most, in each direction.

    Attributes:
        name: The model's name, e.g. ``Intel-E810CQ``.
        max_frame_rate: Frames per second, of whatever size; None: only the bit rate limits it.
        max_bit_rate: Bits per second on the wire (layer 1); None: only the frame rate limits it.
    """

    name: str
    max_frame_rate: float | None
    max_bit_rate: float | None

    @property
    def tag(self) -> str:
        """The tag of tests on this NIC in FD.io CSIT's taxonomy, e.g. ``nic_intel-e810cq``."""
        return f"nic_{self.name.lower()}"


def _models(*models: NicModel) -> Mapping[str, NicModel]:
    return MappingProxyType({model.name.lower(): model for model in models})


NIC_MODELS = _models(
    NicModel("Intel-X520-DA2", 14_880_952, 10e9),
    NicModel("Intel-X710", 14_880_952, 10e9),
    NicModel("Intel-XL710", 18_750_000, 24.5e9),
    NicModel("Intel-XXV710", 18_750_000, 24.5e9),
    NicModel("Intel-E810XXV", 29_000_000, 24.5e9),
    NicModel("Intel-E822CQ", 29_000_000, 24.5e9),
    NicModel("Intel-E823C", 29_000_000, 24.5e9),
    NicModel("Intel-E810CQ", 58_500_000, 100e9),
    NicModel("Mellanox-CX556A", 148_809_523, 100e9),
    NicModel("Mellanox-CX6DX", 148_809_523, 100e9),
    NicModel("Mellanox-CX7VEAT", 297_619_046, 200e9),
    NicModel("Cavium-A063-100G", 195_312_500, 100e9),
    NicModel("Amazon-Nitro-50G", 1_500_000, 10e9),
    NicModel("Amazon-Nitro-100G", 3_000_000, 10e9),
    NicModel("Amazon-Nitro-200G", 6_000_000, 16e9),
    NicModel("virtual", 14_880_952, 100e6),
)
"""Models by their name in lower case, with the limits that FD.io CSIT measures within, so that numbers compare."""
