# SPDX-License-Identifier: Apache-2.0
"""numpy, or on a node without it a stand-in, with which modules load and whose use is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .protocol import AgentError

WITHOUT_NUMPY = (
    "The Python of this node has no numpy, which this needs. Install it (Debian: apt install python3-numpy), or name "
    "another Python in the topology file."
)


class _Missing:
    def __getattr__(self, name: str) -> _Missing:
        return self

    def __getitem__(self, item: object) -> _Missing:
        return self

    def __call__(self, *_: object, **__: object) -> None:
        raise AgentError("missing_module", WITHOUT_NUMPY)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    HAS_NUMPY: bool
else:
    try:
        import numpy as np
        from numpy.typing import NDArray

        HAS_NUMPY = True
    except ImportError:
        np = NDArray = _Missing()
        HAS_NUMPY = False

__all__ = ["HAS_NUMPY", "WITHOUT_NUMPY", "NDArray", "np"]
