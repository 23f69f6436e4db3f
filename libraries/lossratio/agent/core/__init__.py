# SPDX-License-Identifier: Apache-2.0
"""The common parts of all generators: protocol, configuration, ports, the pace of sending."""
