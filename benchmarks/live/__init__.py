"""How live and how fast the pages of runs are, beside MLflow and Trackio: `make bench-live`."""
