"""Every way a run can get in beside hooks: files, streams, telemetry, a wrapper."""
