"""The common parts of all generators: protocol, configuration, ports, the pace of sending."""
