"""DNS lookups over UDP and TCP, through the resolvers that the operator trusts.

From the outside in: `caching_resolver` (merges lookups, caches answers), `resolver` (queue, running
lookups, TCP, liveness of the servers), `resolution` (next step of a lookup, without I/O),
`exchange` (datagrams), `wire_format` (bytes and values, without I/O), `servers`.
"""
