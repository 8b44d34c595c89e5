# Caddy without root and without the capability that its program carries: it listens on ports above 1024, which compose maps.
FROM caddy:2
RUN setcap -r /usr/bin/caddy && install -d -o 10002 -g 10002 /data /data/caddy
COPY deploy/Caddyfile /etc/caddy/Caddyfile
USER 10002:10002
EXPOSE 8080 8443
