"""The APIs of other mail testers: their clients work unchanged with the inboxes of mailcheck.

Such an API is a facade: requests, responses and routes over the operations that REST and MCP call.
It has no rule and no storage of its own. Add one in four steps:

1. A package or module named after it: one Struct for the parameters and the body of each request,
   response functions, a class whose methods handle the routes, and one door (`make_facade`) that
   declares each `Route` with its cost: the same, close, or `not_offered` with the reason.
2. Its line in ``FACADES`` of ``assembly/doors/compatible.py``, with its operations. The reference
   page follows from the declarations.
3. Its first path segment in ``assembly/doors/late.py``.
4. A test of each route, and its clients in ``tests/interop/``.

``web/site/application.py`` does the rest as for all doors: keys, scopes, rate limits, errors and
body limits. ``facade.py`` reads requests as the products do. ``hold.py`` holds a request without
results until mail arrives.
"""
