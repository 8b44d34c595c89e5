"""How quickly the pages of runs show new steps and open long runs, beside MLflow and Trackio: `make bench-live`."""
