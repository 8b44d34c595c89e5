# A Ray node whose jobs are `python -m trainer job`. For GPUs, build on a machine whose package index has the CUDA torch.
FROM python:3.11-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TOUCHSTONE_VAR=/data
RUN useradd --system --uid 10001 --create-home touchstone && install -d -o touchstone /data /scratch
WORKDIR /app
COPY requirements.lock requirements-torch.lock requirements.sha256 requirements.facts.json docker/tools-only.txt ./
COPY scripts/digests.py scripts/digests.py
ARG TORCH_INDEX=
# Without what only tests and style checks need. pip takes no file whose digest is not in the list; torch and what its build brings
# along are compared after
RUN sed 's/.*/^&==/' tools-only.txt > patterns && grep -vf patterns requirements.sha256 > trainer.sha256 \
    && grep '^setuptools==' trainer.sha256 > first.sha256 && pip install --no-cache-dir --no-deps --require-hashes -r first.sha256 \
    && pip install --no-cache-dir --no-deps --no-build-isolation --use-pep517 -r trainer.sha256 \
    && rm patterns trainer.sha256 first.sha256 \
    && pip install --no-cache-dir --report torch.json -c requirements.lock $(grep '^torch==' requirements.lock) \
       $(if [ "$TORCH_INDEX" ]; then echo "--extra-index-url $TORCH_INDEX"; else echo "-c requirements-torch.lock"; fi) \
    && python -I -S scripts/digests.py torch.json ${TORCH_INDEX:+--index-named} && rm -r torch.json scripts requirements.facts.json
COPY trainer trainer
USER touchstone
VOLUME /data
EXPOSE 8265
CMD ["python", "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats", \
     "--dashboard-host", "0.0.0.0", "--temp-dir", "/scratch/ray"]
