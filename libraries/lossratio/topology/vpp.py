"""How VPP is started on a node: the driver of its cards, its memory, and further sections of its startup.conf."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from lossratio.topology.quantities import ONE_OR_SEVERAL, as_tuple
from lossratio.values import FileModel, Like

MemorySize = Annotated[str, Like(r"^[1-9]\d*[KMG]?$", "a number of bytes, such as 3G", 20)]
"""Bytes as VPP reads them, e.g. ``3G``."""
PageSize = Annotated[
    str,
    Like(
        r"^(default|default-hugepage|[1-9]\d*[KMG])$",
        "'default', 'default-hugepage' or a size, such as 2M",
        20,
    ),
]
"""Size of memory pages as VPP reads it: ``default``, ``default-hugepage``, ``2M``, ``1G``."""
_OURS = {
    "unix": ("nodaemon", "interactive", "runtime-dir", "cli-listen", "pidfile"),
    "cpu": ("main-core", "corelist-workers", "workers", "skip-cores"),
    "socksvr": ("socket-name", "default"),
    "statseg": ("socket-name", "default"),
    "api-segment": ("prefix",),
}
"""Settings that lossratio makes itself, by section: its VPP runs beside any other VPP, and where the frames arrive."""


def _checked_line(line: str) -> str:
    depth = 0
    for letter in line:
        depth += (letter == "{") - (letter == "}")
        if depth < 0 or not letter.isprintable():
            break
    if depth or not line.strip() or not line.isprintable():
        raise ValueError(f"{line!r} is not a line of a section: each '{{' needs a '}}'")
    return line.strip()


SectionLine = Annotated[str, AfterValidator(_checked_line)]
SectionLines = Annotated[tuple[SectionLine, ...], BeforeValidator(as_tuple), ONE_OR_SEVERAL]
"""Lines of one section of startup.conf, or a single line."""


class VppStart(FileModel):
    """How VPP is started on a node."""

    driver: Literal["dpdk", "rdma", "avf"] = "dpdk"
    """How it drives cards: by ``dpdk``, or by its own drivers ``rdma`` (Mellanox cards, which the kernel keeps:
    mlx5_core) or ``avf`` (virtual functions of Intel cards). Interfaces of the kernel have sockets instead."""
    main_heap_size: MemorySize | None = None
    """Size of its main heap, e.g. ``3G``. Default: 3G with cards or more than 200,000 routes, as in CSIT; otherwise
    VPP's."""
    main_heap_page_size: PageSize | None = None
    """Page size of its main heap; CSIT has ``2M``. Default: VPP's, which uses no hugepages."""
    default_hugepage_size: PageSize | None = None
    """Size of hugepages unless another size is given; CSIT has ``2M``. Default: the system's."""
    buffers_per_numa: int | None = Field(default=None, ge=1024, le=100_000_000)
    """Packet buffers on each NUMA node. Default: 107,520 with cards, as in CSIT (twice as many if both threads of a
    core forward), and 16,384 without cards."""
    buffer_size: int | None = Field(default=None, ge=512, le=65_535, multiple_of=64)
    """Bytes of data in a packet buffer. Default: VPP's 2048."""
    statseg_size: MemorySize | None = None
    """Size of its statistics segment. Default: 3G with cards or more than 200,000 routes, as in CSIT; otherwise 64M."""
    statseg_page_size: PageSize = "default"
    """Page size of that segment; CSIT has ``2M``."""
    vm_kernel: (
        Annotated[
            str, Like(r"^/\S+/vmlinuz-\S+$", "the path of a kernel, such as /boot/vmlinuz-6.1", 300)
        ]
        | None
    ) = None
    """Kernel of the virtual machines that run beside it; the modules are in ``lib/modules`` beside the kernel's
    directory. Default: the newest ``/boot/vmlinuz-*``."""
    vm_emulated: bool = False
    """Whether QEMU emulates the CPUs of these machines, for nodes without KVM. That is slow: only measure that frames
    pass."""
    startup: dict[
        Annotated[str, Like(r"^[a-z0-9][a-z0-9_-]*$", "the name of a section, such as dpdk", 100)],
        SectionLines,
    ] = Field(default_factory=dict)
    """Further lines of its startup.conf, by section, e.g. ``{dpdk: "dev default { devargs llq_policy=2 }"}``."""

    @model_validator(mode="after")
    def _leaves_ours(self) -> "VppStart":
        for section, lines in self.startup.items():
            for line in lines:
                word = line.split()[0]
                if word in _OURS.get(section, ()):
                    raise ValueError(
                        f"lossratio sets {word!r} in the section {section!r} itself: leave out this line"
                    )
        return self
