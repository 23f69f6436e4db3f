"""The controller's side of the agent: the conversation with it, the measurer, the check of the path."""
