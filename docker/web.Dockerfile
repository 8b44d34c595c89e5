# Web server and Celery: everything but the machine-learning libraries, which these processes must never load.
FROM node:22-slim AS browser
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-progress

FROM python:3.11-slim AS vendor
WORKDIR /src
COPY . .
COPY --from=browser /src/node_modules node_modules
# node_modules is there already; the script only copies, so no npm is needed in this stage
RUN printf '#!/bin/sh\nexit 0\n' > /usr/local/bin/npm && cp /usr/local/bin/npm /usr/local/bin/node \
    && chmod +x /usr/local/bin/npm /usr/local/bin/node && python scripts/vendor.py

FROM python:3.11-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TOUCHSTONE_VAR=/data HOST=0.0.0.0 MALLOC_ARENA_MAX=2
RUN useradd --system --uid 10001 --create-home touchstone && install -d -o touchstone /data /scratch
WORKDIR /app
COPY requirements.sha256 docker/trainer-only.txt docker/tools-only.txt ./
# The lock is complete: --no-deps leaves out exactly what trainer-only.txt and tools-only.txt (tests, style) name. pip takes no file
# whose digest is not in it; setuptools, which builds what has only a source, comes first
RUN sed 's/.*/^&==/' trainer-only.txt tools-only.txt > patterns && grep -vf patterns requirements.sha256 > web.sha256 \
    && grep '^setuptools==' web.sha256 > first.sha256 && pip install --no-cache-dir --no-deps --require-hashes -r first.sha256 \
    && pip install --no-cache-dir --no-deps --no-build-isolation --use-pep517 -r web.sha256 && rm patterns web.sha256 first.sha256
COPY . .
COPY --from=vendor /src/webapp/static/vendor webapp/static/vendor
USER touchstone
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["python", "-m", "uvicorn", "webapp.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--http", "webapp.core.requests.keep_alive:KeepAliveProtocol", "--lifespan", "off", "--no-access-log", "--no-proxy-headers"]
