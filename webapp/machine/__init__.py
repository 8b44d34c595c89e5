"""The machine on which the services run: folders, sockets and facts of the services, and the lock of `manage.py up`. Imports no Django."""
