"""Real coding-agent clients, started offline against scripted models, to see whether a tool call really runs."""
