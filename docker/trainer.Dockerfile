# A Ray node whose jobs are `python -m trainer job`. With GPU=1 it has torch for CUDA and vLLM; the host needs NVIDIA driver 580 or newer.
FROM python:3.11-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TOUCHSTONE_VAR=/data
RUN useradd --system --uid 10001 --create-home touchstone && install -d -o touchstone /data /scratch
WORKDIR /app
COPY requirements.lock requirements-torch.lock requirements.sha256 requirements-gpu.sha256 requirements.facts.json docker/tools-only.txt ./
COPY scripts/digests.py scripts/digests.py
ARG TORCH_INDEX=
ARG GPU=
# Without what only tests and style checks need; some of that vLLM needs as well. pip takes no file whose digest is not in the list; torch
# and what its build brings along are compared after, but for GPUs, where one list has the digests of all. There, ninja has a folder of its
# own, as with `make gpu`: its Python package has the name of django-ninja's package and would replace it
RUN sed 's/.*/^&==/' tools-only.txt > patterns && if [ "$GPU" ]; then : > patterns; fi \
    && grep -vf patterns requirements.sha256 > trainer.sha256 \
    && grep '^setuptools==' trainer.sha256 > first.sha256 && pip install --no-cache-dir --no-deps --require-hashes -r first.sha256 \
    && pip install --no-cache-dir --no-deps --no-build-isolation --use-pep517 -r trainer.sha256 \
    && if [ "$GPU" ]; then \
       grep '^ninja==' requirements-gpu.sha256 > apart.sha256 && grep -v '^ninja==' requirements-gpu.sha256 > gpu.sha256 \
       && pip install --no-cache-dir --no-deps -r gpu.sha256 \
       && pip install --no-cache-dir --no-deps --target /opt/ninja -r apart.sha256 && ln -s /opt/ninja/bin/ninja /usr/local/bin/ninja; else \
       pip install --no-cache-dir --report torch.json -c requirements.lock $(grep '^torch==' requirements.lock) \
       $(if [ "$TORCH_INDEX" ]; then echo "--extra-index-url $TORCH_INDEX"; else echo "-c requirements-torch.lock"; fi) \
       && python -I -S scripts/digests.py torch.json ${TORCH_INDEX:+--index-named}; fi \
    && rm -rf patterns trainer.sha256 first.sha256 apart.sha256 gpu.sha256 torch.json scripts requirements.facts.json
COPY trainer trainer
USER touchstone
VOLUME /data
EXPOSE 8265
CMD ["python", "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats", \
     "--dashboard-host", "0.0.0.0", "--temp-dir", "/scratch/ray"]
