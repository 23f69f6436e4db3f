"""VPP's features, each a class of its own: options, commands, and what VPP must show."""
