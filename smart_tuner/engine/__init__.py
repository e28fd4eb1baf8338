"""BUILT: the backend and runner protocols, the build request, the engine, the child process."""
