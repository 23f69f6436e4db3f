"""What all generators share: protocol, configuration, ports, the pace of sending."""
