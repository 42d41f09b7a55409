# One daemon, with all of its data in one volume. See docs/how-to/run-in-containers.md.
#     docker build --tag mailcheck .
# With the content filter of deliverability tests, SpamAssassin:
#     docker build --tag mailcheck --build-arg PACKAGES="spamassassin spamd" .
# BASE is a Debian with Python, pip and venv.

ARG BASE=python:3.13-slim

FROM $BASE AS build
ARG PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY setup.cfg pyproject.toml README.md LICENSE ./
ARG VERSION=""
RUN test -z "$VERSION" || sed -i "s/^version = .*/version = $VERSION/" setup.cfg
COPY etc etc
COPY systemd systemd
COPY twisted twisted
COPY mailcheck mailcheck
RUN python -m pip wheel --no-deps --wheel-dir /wheels .

FROM $BASE
ARG PIP_NO_CACHE_DIR=1
ARG PACKAGES=""
RUN test -z "$PACKAGES" || { \
        apt-get update && \
        apt-get install --yes --no-install-recommends $PACKAGES && \
        rm -rf /var/lib/apt/lists/*; \
    }
RUN useradd --system --user-group --uid 10001 --home-dir /var/lib/mailcheck --no-create-home mailcheck
RUN install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/mailcheck
COPY requirements.lock /wheels/
COPY --from=build /wheels /wheels
# twistd caches its list of plugins now, while the files can still be written.
RUN python -m venv --without-pip /opt/mailcheck && \
    pip="python -m pip --python /opt/mailcheck/bin/python install" && \
    $pip --require-hashes --requirement /wheels/requirements.lock && \
    $pip --no-deps /wheels/*.whl && \
    /opt/mailcheck/bin/twistd --help > /dev/null

# The daemon listens on all addresses of the container. Publish the ports when you start it.
ENV PATH=/opt/mailcheck/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOME=/var/lib/mailcheck \
    MAILCHECK_STORAGE_URL=sqlite:/var/lib/mailcheck/mailcheck.db \
    MAILCHECK_STORAGE_STATE_DIRECTORY=/var/lib/mailcheck \
    MAILCHECK_SMTP_LISTEN=0.0.0.0:2525 \
    MAILCHECK_SMTP_SUBMISSION_LISTEN=0.0.0.0:2587 \
    MAILCHECK_IMAP_LISTEN=0.0.0.0:1143 \
    MAILCHECK_POP3_LISTEN=0.0.0.0:1110 \
    MAILCHECK_WEB_LISTEN=0.0.0.0:8080
WORKDIR /var/lib/mailcheck
USER 10001:10001
VOLUME /var/lib/mailcheck
EXPOSE 1110 1143 2525 2587 8080

# /readyz returns 503 when the store accepts no mail. Proxy settings in the environment are ignored.
# A new version may have to upgrade a large store before it answers.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10m --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8080/readyz', timeout=4)"]

ENTRYPOINT ["mailcheck"]
CMD ["serve"]
