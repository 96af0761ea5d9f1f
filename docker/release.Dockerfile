# The image of a release, of what docker/root has laid out in the context. It needs no network.
FROM scratch
ARG VERSION
LABEL org.opencontainers.image.title="rowplane" \
    org.opencontainers.image.description="The Kubernetes API on SQL" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$VERSION"
ARG SOURCE
ARG REVISION
LABEL org.opencontainers.image.source="$SOURCE" org.opencontainers.image.revision="$REVISION"
COPY root/ /
COPY --chown=65532:65532 data/ /var/lib/
USER 65532:65532
ENV ROWPLANE_DATA_DIR=/var/lib/rowplane ROWPLANE_BIND_ADDRESS=0.0.0.0
VOLUME /var/lib/rowplane
EXPOSE 6443
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s CMD ["/rowplane", "healthcheck"]
ENTRYPOINT ["/rowplane"]
