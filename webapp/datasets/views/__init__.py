"""Pages of datasets. Reading needs the role reviewer, changing anything researcher; foreign rows are 404."""
