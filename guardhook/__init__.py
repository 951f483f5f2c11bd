"""guardhook: a gate and a flight recorder between a coding agent and the machine."""

__version__ = "0.1.0"
