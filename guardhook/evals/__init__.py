"""Evaluations: presets, rubrics and judges over recorded traces."""
