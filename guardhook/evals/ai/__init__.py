"""Models as judges. Nothing here is imported by evaluations that need no model; httpx only when a request is about to be sent.

- `settings`: which provider, model and key. `provider`, `anthropic`, `google`, `openai`: one small interface, three forms of it. `transport`: sending,
  with deadlines, retries and caps. `prices`: what it costs.
- `summary`: a run as a short text without secrets. `framing`: that text as data a model must not obey. `reply`: reading what comes back.
- `presets`, `judging`: the four judgements, and putting them to a run within a budget.
"""
