"""The dashboard: server-rendered pages at ``<public_url>/``, on the same operations as the API.

To add pages:

1. Write ``<thing>_pages.py`` here with a class that takes its operations and a
   `Renderer`, and has ``pages()`` that lists each `Page`: method, path, handler.
   A handler is ``async def show(self, visit: Visit) -> Reply``. A page is for
   who is signed in, unless it says ``is_open=True``: then ``visit.owner`` may
   be ``None``. ``visit.account`` is who is signed in, ``visit.query`` and
   ``visit.form`` are the parameters, ``visit.path`` the variables of the path.
2. Render with ``renderer.page(visit, "<thing>.html", key=value)``; the template
   extends ``layout.html`` and writes each address as ``{{ link("/path") }}``,
   each file as ``{{ static("name.js") }}``. After a POST, redirect:
   ``redirect(visit, "/path", done="<word>")``, the word from ``notices.py``.
3. A form is ``<form method="post">`` with ``{{ form_token() }}`` in it. A POST
   without the token is refused before its handler runs; a script sends what
   stands in ``<meta name="form-token">`` as ``X-Form-Token``.
4. An expected failure that is raised becomes a page with its status (JSON for a
   client that does not ask for HTML); nothing has to be caught.
5. What goes on (events) is a `Stream` instead of a `Reply`. A reply with headers
   of its own, a ``Content-Security-Policy`` for one, keeps them.
6. Put ``*ThingPages(...).pages()`` into ``assembly/web.py``, and a row into
   ``navigation.py`` where the page belongs into the menu.

There is no inline script and no inline style: the policy forbids both. Files in
``static/`` are served under an address that changes with their content.

The scripts use no library. Three were tried on the list of the inbox, in the same
browser, with rows as the templates write them; what each adds to a page is compressed:

=====================  ========  ==========  ============  ==============================
The list kept by       adds      50 rows     1,000 rows    beside
=====================  ========  ==========  ============  ==============================
``reconcile``, ours    0.4 kB    12 ms       163 ms        22 lines
htmx 4.0, its morph    13.3 kB   12 ms       246 ms        2.6 kB more for live events
Preact 11.2 and htm    5.7 kB    6 ms        218 ms        rows once more, in JavaScript
lit-html 3.3           4.1 kB    5 ms        124 ms        rows once more, in JavaScript
=====================  ========  ==========  ============  ==============================

All of them keep focus and selection where they are. The time is that of one new row on top.
A list has 50 rows, 500 where it is asked for so many: no library is felt there, and one
that renders by itself would need the row as a second template beside the one that works
without a script. So the server writes rows, in pages and in live events alike, and a
script puts them in their places.
"""
