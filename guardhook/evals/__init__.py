"""Evaluations: what a recorded run is worth, by fixed criteria, by rubrics of the user's own, and by models asked to judge.

- `presets` and `rubric` read a run once, step by step, and need nothing but the store. `safety` does the same with the gate's verdicts.
- `ai` asks a model (Anthropic, Google, OpenAI, or a server that speaks like the last one). Nothing of it is imported unless asked for.
- `running` puts evaluators to a run and stores what they say as `eval.result` lines of the journal; `batch` adds many runs up.
"""
