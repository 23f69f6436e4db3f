# SPDX-License-Identifier: Apache-2.0
"""The program of an XDP device on its node. It needs nothing but Python 3.8, and rights for BPF."""
