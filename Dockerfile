# Overread as a container: not root, nothing but its own files, a root file system that may be read-only.
#
#     docker build --tag overread .
#
# It writes to /data (a volume: SQLite files, studies.toml, backups) and to /tmp (uploads while they are imported, what runs print).

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
# The pinned packages first: they change less often than the program. Wheels alone, each with the hash that the lock has of it.
COPY requirements.lock ./
RUN sed '/^# For the tests only/,$d' requirements.lock > run.lock \
    && python -m venv --without-pip /opt/overread \
    && pip --python /opt/overread/bin/python install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes --requirement run.lock
COPY . .
# hatchling, which builds the wheel, is among the pinned packages.
RUN pip --python /opt/overread/bin/python install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
RUN groupadd --system --gid 10001 overread \
    && useradd --system --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin overread \
    && install --directory --owner 10001 --group 10001 --mode 0700 /data /data/backups
COPY --from=build /opt/overread /opt/overread
ENV PATH=/opt/overread/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
ENTRYPOINT ["overread"]
CMD ["serve", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
