"""Contract suites for people who write backends and storages."""
