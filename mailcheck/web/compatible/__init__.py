"""The APIs of other mail testers: their clients work unchanged with the inboxes of mailcheck.

Such an API is a facade: requests, responses and routes over the operations that REST and MCP call.
It has no rule and no storage of its own. Add one in four steps:

1. A package or module named after it: one Struct for the parameters and the body of each request,
   response functions, a class whose methods handle the routes, and one `Facade` that declares
   each route: the same, close, or not offered with the reason.
2. Its line in ``catalogue.py``; the reference page follows from the declarations.
3. Its site or path in ``assembly/doors/compatible.py``, its segment in ``late.py`` there, and its
   routes in ``assembly/reachable.toml``.
4. A test of each route, and its clients in ``tests/interop/``.

``application.py`` does the rest for all: keys, scopes, rate limits, parsing, errors and body
limits. ``hold.py`` holds a request without results until mail arrives.
"""
