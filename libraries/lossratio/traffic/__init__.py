"""Test traffic: what to send, the agent that sends it on the TG node, and the measurer that asks it for trials."""

from lossratio.traffic.profile import TrafficProfile, load_profile, profile_names

__all__ = ["TrafficProfile", "load_profile", "profile_names"]
