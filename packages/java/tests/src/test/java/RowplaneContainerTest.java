import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.rowplane.RowplaneContainer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** RowplaneContainer with the image that ROWPLANE_IMAGE names. */
@EnabledIfEnvironmentVariable(named = "ROWPLANE_IMAGE", matches = ".+")
class RowplaneContainerTest {
    @Test
    void reachesItsFirstObject() {
        try (RowplaneContainer container = new RowplaneContainer(System.getenv("ROWPLANE_IMAGE"))) {
            container.start();
            assertTrue(container.ca().startsWith("-----BEGIN CERTIFICATE-----"));
            Config config = Config.fromKubeconfig(container.getKubeConfigYaml());
            assertEquals(container.url() + "/", config.getMasterUrl());
            try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
                client.resource(new ConfigMapBuilder().withNewMetadata().withName("a").endMetadata().build()).inNamespace("default").create();
                assertEquals(1, client.configMaps().inNamespace("default").withField("metadata.name", "a").list().getItems().size());
            }
        }
    }
}
