"""DNS: questions over Twisted datagrams and TCP to the resolvers that the operator trusts.

From the outside in: `caching_resolver` (merges, remembers in `cache`),
`resolver` (whose turn it is), `lookup` (one question under way), `resolution`
(what to do next, pure), `exchange` (datagrams) and `stream` (TCP),
`wire_format` and `positive_answers` (bytes and values, pure), `servers`.
"""
