"""Work that needs weights outside training, as a job of the cluster: generating, scoring, exporting."""
