"""The dashboard: server-rendered pages at ``<public_url>/``, on the same operations as the API.

To add pages:

1. Write a class in ``<topic>/<thing>_pages.py`` that takes its operations and a
   `Renderer`. Its method ``pages()`` lists each `Page`: method, path, handler, cost.
   A handler is ``async def show(self, visit: Visit) -> Reply``. A page is of a
   project unless its guard is `ANYONE` (then ``visit.person`` may be ``None``) or
   `PERSON`. Its path is that in the project: a page with ``/inbox`` has
   the address ``/p/<project>/inbox``, and ``visit.account`` is the project that the
   URL names. The guard says which members may use it, such as `OWNERS`. ``visit.query``,
   ``visit.form`` and ``visit.path`` contain the parameters. A path variable with the
   id of an object is a row of `HELD` in ``door.py``.
2. Render with ``renderer.page(visit, "<thing>.html", key=value)``. The template
   extends ``layout.html`` and writes each address as ``{{ link("/path") }}``, which
   adds the project, and each file as ``{{ static("name.js") }}``. After a POST, redirect:
   ``redirect(visit, "/path", done="<key>")``, with a key of `NOTICES`.
3. A form is ``<form method="post">`` with ``{{ form_token() }}`` in it. A POST
   without the token is rejected before its handler runs. A script sends the
   content of ``<meta name="form-token">`` in the header ``X-Form-Token``.
4. A handler need not catch expected failures: each becomes a page with its status
   (JSON for a client that does not accept HTML).
5. A handler returns a `Stream` instead of a `Reply` for server-sent events. The
   headers of a reply, such as ``Content-Security-Policy``, replace the common ones.
6. ``{{ icon("mail") }}`` shows an icon of ``icon_sprite.html``; import `icon` from
   ``icons.html``. An element with an ``id`` and ``data-live-part`` is updated when
   data of the account changes (`FollowAccount`). ``aria-keyshortcuts="c"`` makes
   the key click its element; the inbox has its own keys.
7. Add ``*ThingPages(...).pages()`` to ``assembly/doors/pages.py``. If the page belongs in
   the menu, add it to `MENU` in ``rendering.py``.

Inline scripts and inline styles are not used: the content security policy forbids
both. The addresses of the files in ``static/`` change with their content.

The scripts use no library. Three were tried for the list of the inbox, in the same
browser and with the rows of the templates. The sizes are compressed:

=====================  ========  ==========  ============  ==============================
The list updated by    adds      50 rows     1,000 rows    in addition
=====================  ========  ==========  ============  ==============================
``reconcile``, own     0.4 kB    12 ms       163 ms        22 lines
htmx 4.0, its morph    13.3 kB   12 ms       246 ms        2.6 kB more for live events
Preact 11.2 and htm    5.7 kB    6 ms        218 ms        the row again, in JavaScript
lit-html 3.3           4.1 kB    5 ms        124 ms        the row again, in JavaScript
=====================  ========  ==========  ============  ==============================

All of them keep focus and selection. The time is that of one new row at the top. A
list has 50 rows by default and 500 at most, so users would not notice a difference.
A library that renders rows itself would need a second template for the row, because
the pages work without scripts too. The server therefore renders the rows of pages and
of live events, and a script inserts them.
"""
