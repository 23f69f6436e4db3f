"""Public keys in texts, such as a topology file."""


def is_public_key(text: str) -> bool:
    """Whether a text is a public host key, as a topology file has it: ``ssh-ed25519 AAAA...``."""
    # Imported here, as paramiko is.
    from lossratio.nodes.connection import parsed_key

    return parsed_key(f"host {text}") is not None
