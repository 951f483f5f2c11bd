"""The OTLP receiver: spans, log records and metrics of agents become lines of the journal, and so traces and steps.

From the outside in: `server` binds and stops, `app` (HTTP) and `rpc` (gRPC) take requests, `writer` decodes them, maps them and writes journal lines before
anything is acknowledged. `decode_json` and `decode_protobuf` give `records`; `spans`, `logs` and `metrics` make parts of traces of them
(guardhook.store.parts). The server keeps nothing that a restart would lose: what belongs together, and what came twice, the store tells from the journal.
"""
