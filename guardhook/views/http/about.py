"""The interface about itself."""

from __future__ import annotations

from guardhook import __version__
from guardhook.views.http.answers import Answer
from guardhook.views.http.call import Call


def health(call: Call) -> Answer:
    return Answer({"ok": True, "version": __version__})


def openapi(call: Call) -> Answer:
    from guardhook.views.http import openapi, routes

    return Answer(openapi.document(routes.TABLE))
