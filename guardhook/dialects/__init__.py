"""What each harness sends and how it wants to be answered: a module for each, with four functions of the same names.

`recognise(payload, env)`, `read(payload, env, event_arg)`, `answer(event, verdict)`, `limits()`, and
`fallback(native_event)` for the case that there is no verdict at all. `table` knows which file to load.
"""
