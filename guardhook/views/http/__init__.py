"""The HTTP interface of `guardhook serve`: what was recorded, read-only, and replaying of rollout files. For this machine's own programs.

- `app.app(context)` is the ASGI application; `server.run` serves it on the loopback interface.
- `routes.TABLE` lists every path with its handler; a new area is one module with functions `handler(call) -> Answer`, and its rows there.
- `guard` stands before all handlers: Host, Origin, token, sizes, times. `openapi` describes the same table to programs.
"""
