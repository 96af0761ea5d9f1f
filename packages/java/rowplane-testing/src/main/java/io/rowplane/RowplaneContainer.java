package io.rowplane;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** A Kubernetes API server in a container, for those whose tests have one already: it needs no privileges. */
public class RowplaneContainer extends GenericContainer<RowplaneContainer> {
    private static final int PORT = 6443;
    private static final String DATA = "/var/lib/rowplane";

    /**
     * A container of this image.
     *
     * @param image the name of rowplane's image, with the tag
     */
    public RowplaneContainer(String image) {
        this(DockerImageName.parse(image));
    }

    /**
     * A container of this image.
     *
     * @param image the name of rowplane's image, with the tag
     */
    public RowplaneContainer(DockerImageName image) {
        super(image);
        withExposedPorts(PORT);
        withEnv("ROWPLANE_DATASTORE", "memory:");
        withEnv("ROWPLANE_DATA_DIR", DATA);
        withEnv("ROWPLANE_BIND_ADDRESS", "0.0.0.0");
        withEnv("ROWPLANE_SECURE_PORT", String.valueOf(PORT));
        withEnv("ROWPLANE_SHUTDOWN_GRACE_PERIOD", "0s");
        waitingFor(Wait.forLogMessage("^  url .*\\n", 1));
    }

    @Override
    protected void configure() {
        super.configure();
        // Its certificate has the name by which tests reach the container.
        withEnv("ROWPLANE_TLS_SAN", org.testcontainers.DockerClientFactory.instance().dockerHostIpAddress());
    }

    /**
     * The address of the API, as tests reach it.
     *
     * @return {@code https://HOST:PORT}
     */
    public String url() {
        return "https://" + getHost() + ":" + getMappedPort(PORT);
    }

    /**
     * The administrator's kubeconfig for tests, as K3sContainer has it.
     *
     * @return YAML, with the address of {@link #url}
     */
    public String getKubeConfigYaml() {
        Matcher server = java.util.regex.Pattern.compile("(?m)^(\\s*server: ).*$").matcher(file("admin.kubeconfig"));
        return server.replaceAll("$1" + Matcher.quoteReplacement(url()));
    }

    /**
     * The certificate (PEM) that vouches for the server's.
     *
     * @return PEM
     */
    public String ca() {
        return file("pki/ca.crt");
    }

    private String file(String name) {
        return copyFileFromContainer(DATA + "/" + name, content -> new String(content.readAllBytes(), StandardCharsets.UTF_8));
    }
}
