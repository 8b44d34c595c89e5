# The Celery worker is the web image with another command: same code, same libraries.
ARG WEB_IMAGE=touchstone-web
FROM ${WEB_IMAGE}
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s \
    CMD ["python", "-m", "celery", "-A", "webapp", "inspect", "ping", "--timeout", "5"]
CMD ["python", "-m", "celery", "-A", "webapp", "worker", "--pool", "threads", "--concurrency", "8", \
     "--without-gossip", "--without-mingle"]
