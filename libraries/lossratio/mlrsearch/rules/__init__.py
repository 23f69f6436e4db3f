"""The rules that choose the next trial of one goal, each in a module with its name."""
