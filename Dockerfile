# Needs no BuildKit.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY streamd ./streamd
# The versions of the lock file, without what only development needs.
RUN sed -n 's/^\([A-Za-z0-9_.-]*==[^ ;\\]*\).*/\1/p' requirements.lock > /tmp/constraints.txt \
    && python -m venv /opt/streamd \
    && PIP_CONSTRAINT=/tmp/constraints.txt /opt/streamd/bin/pip install \
       --quiet --no-cache-dir --disable-pip-version-check . \
    && /opt/streamd/bin/pip --disable-pip-version-check uninstall --quiet --yes pip setuptools

FROM python:3.11-slim-bookworm
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="streamd" \
      org.opencontainers.image.description="Real-time video under congestion control, with L4S" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/streamd /opt/streamd
ENV PATH="/opt/streamd/bin:${PATH}" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    STREAMD_REVISION="${REVISION}"
USER 10001:10001
WORKDIR /tmp
STOPSIGNAL SIGTERM
ENTRYPOINT ["streamd"]
CMD ["--help"]
