# SPDX-License-Identifier: Apache-2.0
"""The program of the generator inside the kernel. It needs nothing but Python, and rights for BPF."""

from ..core.generator import made_with_keywords
from .generator import XdpGenerator

make_generator = made_with_keywords(XdpGenerator)
