# One image for web, workers and beat; docker-compose.yml says which command each runs.
FROM python:3.13-slim

# Compiled once here, not at every start of a container whose files cannot be written.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY requirements.lock .
RUN pip install --no-cache-dir --compile --require-hashes --no-deps --only-binary :all: \
    -r requirements.lock
COPY manage.py pyproject.toml ./
COPY debateweb debateweb
COPY runs runs
COPY audits audits
COPY templates templates
COPY static static
# A fixed number, so that a volume filled by one image belongs to the same account in the next.
RUN python -m compileall -q debateweb runs audits \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin debateweb \
    && install -d -o debateweb -g debateweb -m 0700 /data
USER 10001
ENV DEBATEWEB_DATA_DIR=/data/debateweb DEBATEWEB_ENV=production DEBATEWEB_HOST=0.0.0.0
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
