"""DNS: questions over Twisted datagrams and TCP to the resolvers that the operator trusts.

From the outside in: `caching_resolver` (merges lookups, caches answers), `resolver` (queue, lookups
under way, TCP, whether any server answers), `resolution` (what to do next, without I/O),
`exchange` (datagrams), `wire_format` (bytes and values, without I/O), `servers`.
"""
