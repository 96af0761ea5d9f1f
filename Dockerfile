FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# The cache is not part of the layer, so the program is taken out of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked && install target/release/rowplane /usr/local/bin/

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends curl \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 rowplane \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/rowplane --shell /usr/sbin/nologin rowplane \
    && install -d -m 0700 -o 10001 -g 10001 /var/lib/rowplane
COPY --from=build /usr/local/bin/rowplane /usr/local/bin/
COPY docker/entrypoint /usr/local/bin/
ENV ROWPLANE_DATA_DIR=/var/lib/rowplane ROWPLANE_BIND_ADDRESS=0.0.0.0
VOLUME /var/lib/rowplane
EXPOSE 6443
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s \
    CMD curl -fsS --cacert /var/lib/rowplane/pki/ca.crt https://127.0.0.1:6443/readyz
ENTRYPOINT ["entrypoint"]
