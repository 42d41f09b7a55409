// What the pages do better with a script; all of them work without.
