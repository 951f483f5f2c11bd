"""Rendering for terminals. Functions of their arguments: width, colour and time are passed in."""
