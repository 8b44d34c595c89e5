"""Measures the time until pages of runs show new steps and open long runs, beside MLflow and Trackio: `make bench-live`."""
