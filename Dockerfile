# The image from source. Releases make the same one of their program, without a network: docker/release.Dockerfile.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# The cache is not part of the layer, so the program is taken out of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked && docker/root target/release/rowplane /image

FROM scratch
COPY --from=build /image/root/ /
COPY --from=build --chown=65532:65532 /image/data/ /var/lib/
USER 65532:65532
ENV ROWPLANE_DATA_DIR=/var/lib/rowplane ROWPLANE_BIND_ADDRESS=0.0.0.0
VOLUME /var/lib/rowplane
EXPOSE 6443
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s CMD ["/rowplane", "healthcheck"]
ENTRYPOINT ["/rowplane"]
