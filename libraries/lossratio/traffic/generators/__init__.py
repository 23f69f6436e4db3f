"""Generators on the controller's side, one module each."""
