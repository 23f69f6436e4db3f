"""Studies: search algorithms side by side on simulated SUTs with a known truth."""
