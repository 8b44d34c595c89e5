# A Ray node whose jobs are `python -m trainer job`. For GPUs, build on a machine whose package index has the CUDA torch.
FROM python:3.11-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TOUCHSTONE_VAR=/data
RUN useradd --system --uid 10001 --create-home touchstone && install -d -o touchstone /data /scratch
WORKDIR /app
COPY requirements.lock docker/tools-only.txt ./
# Without what only tests and style checks need
RUN sed 's/.*/^&==/' tools-only.txt > patterns && grep -vf patterns requirements.lock > trainer.lock \
    && pip install --no-cache-dir --no-deps -r trainer.lock && rm patterns trainer.lock \
    && pip install --no-cache-dir -c requirements.lock $(grep '^torch==' requirements.lock)
COPY trainer trainer
USER touchstone
VOLUME /data
EXPOSE 8265
CMD ["python", "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats", \
     "--dashboard-host", "0.0.0.0", "--temp-dir", "/scratch/ray"]
