"""Devices, nights and real frames for `soak.py`."""
