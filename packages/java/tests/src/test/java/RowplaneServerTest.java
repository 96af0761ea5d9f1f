import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.rowplane.RowplaneServer;
import io.rowplane.RowplaneStartException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** RowplaneServer itself. The folder of temporary files is this test's alone (`packages/java/test`). */
class RowplaneServerTest {
    @TempDir
    Path folder;

    private static String widgets(String plural) {
        return String.join("\n",
                "apiVersion: apiextensions.k8s.io/v1",
                "kind: CustomResourceDefinition",
                "metadata: {name: " + plural + ".example.com}",
                "spec:",
                "  group: example.com",
                "  names: {plural: " + plural + ", kind: " + plural.toUpperCase() + "}",
                "  scope: Namespaced",
                "  versions:",
                "  - {name: v1, served: true, storage: true,",
                "     schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
                "");
    }

    private static KubernetesClient client(RowplaneServer server) {
        return new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(server.kubeconfig().toFile())).build();
    }

    private static int port(RowplaneServer server) {
        return URI.create(server.url()).getPort();
    }

    private static List<Path> folders() throws IOException {
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return files.filter(file -> file.getFileName().toString().startsWith("rowplane-")).collect(Collectors.toList());
        }
    }

    @Test
    void members() throws IOException {
        List<Path> before = folders();
        RowplaneServer server = RowplaneServer.start();
        assertTrue(server.getKubeConfigYaml().contains(server.url()));
        assertTrue(Files.readString(server.ca()).startsWith("-----BEGIN CERTIFICATE-----"));
        try (KubernetesClient client = client(server)) {
            client.resource(new ConfigMapBuilder().withNewMetadata().withName("a").endMetadata().build()).inNamespace("default").create();
            assertEquals("a", client.configMaps().inNamespace("default").withName("a").get().getMetadata().getName());
        }
        server.stop();
        server.stop();
        assertEquals(before, folders());
        assertThrows(ConnectException.class, () -> new Socket("127.0.0.1", port(server)).close());
    }

    @Test
    void definitionsAreFilesFoldersAndTexts() throws IOException {
        Files.writeString(Files.createDirectory(folder.resolve("crds")).resolve("two.yaml"), widgets("as") + "---\n" + widgets("bs"));
        Path file = Files.writeString(folder.resolve("c.yaml"), widgets("cs"));
        RowplaneServer.Builder builder = RowplaneServer.builder().crds(folder.resolve("crds"), file).crds(widgets("ds"));
        try (RowplaneServer server = builder.start(); KubernetesClient client = client(server)) {
            for (String kind : List.of("AS", "BS", "CS", "DS")) {
                assertEquals(List.of(), client.genericKubernetesResources("example.com/v1", kind).inNamespace("default").list().getItems());
            }
            GenericKubernetesResource one = new GenericKubernetesResource();
            one.setApiVersion("example.com/v1");
            one.setKind("AS");
            one.setMetadata(new ObjectMetaBuilder().withName("one").build());
            assertFalse(client.resource(one).inNamespace("default").create().getMetadata().getUid().isEmpty());
        }
    }

    @Test
    void flagsGoBeforeWhatIsSetHereAndServersRunSideBySide() {
        // None of those that are given to who asks for a free one.
        long port = 26000 + ProcessHandle.current().pid() % 1000;
        RowplaneServer.Builder builder = RowplaneServer.builder().flags("--secure-port=" + port);
        try (RowplaneServer first = builder.start(); RowplaneServer second = RowplaneServer.start()) {
            assertEquals("https://127.0.0.1:" + port, first.url());
            assertFalse(first.url().equals(second.url()));
            String message = assertThrows(RowplaneStartException.class, builder::start).getMessage();
            assertTrue(message.matches(".*" + port + ".*in use.*"), message);
        }
    }

    @Test
    void badInputIsOneLineAndLeavesNothing() throws IOException {
        List<Path> before = folders();
        Object[][] cases = {
            {"unexpected argument '--wrong'.*", RowplaneServer.builder().flags("--wrong")},
            {".*no-such-folder.*No such file.*", RowplaneServer.builder().crds(Path.of("no-such-folder"))},
            {".*must be spec.names.plural\\+\"\\.\"\\+spec.group.*",
                RowplaneServer.builder().crds(widgets("as").replace("as.example.com", "other.example.com"))},
        };
        for (Object[] one : cases) {
            String message = assertThrows(RowplaneStartException.class, ((RowplaneServer.Builder) one[1])::start).getMessage();
            assertTrue(message.matches((String) one[0]), message);
            assertEquals(before, folders());
        }
    }

    @Test
    void aProgramThatCannotRun() throws IOException {
        Path program = folder.resolve("program");
        System.setProperty("rowplane.program", program.toString());
        try {
            String message = assertThrows(RowplaneStartException.class, RowplaneServer::start).getMessage();
            assertTrue(message.matches("cannot run .*program: .*No such file.*"), message);
            String said = "rowplane: /lib/libc.so.6: version 'GLIBC_2.39' not found (required by rowplane)";
            Files.writeString(program, "#!/bin/sh\necho \"" + said + "\" >&2; exit 1");
            assertTrue(program.toFile().setExecutable(true));
            message = assertThrows(RowplaneStartException.class, RowplaneServer::start).getMessage();
            assertTrue(message.matches(".*C library of this machine is too old.*GLIBC_2.39.*"), message);
        } finally {
            System.clearProperty("rowplane.program");
        }
    }

    @Test
    void anotherPlatformIsToldWhatToDo() {
        String machine = System.setProperty("os.arch", "s390x");
        try {
            String message = assertThrows(RowplaneStartException.class, RowplaneServer::start).getMessage();
            assertTrue(message.matches("there is no program for linux-s390x: .*classifier linux-s390x.*rowplane.program"), message);
        } finally {
            System.setProperty("os.arch", machine);
        }
    }

    /** A process of its own, which is killed. */
    public static final class Main {
        public static void main(String[] arguments) throws IOException {
            System.out.println(port(RowplaneServer.start()));
            System.in.read();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"SIGKILL", "exit"})
    void aServerEndsWithItsProcess(String end) throws IOException, InterruptedException {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        // What a process that is killed leaves behind.
        String files = "-Djava.io.tmpdir=" + folder;
        ProcessBuilder builder = new ProcessBuilder(java.toString(), files, "-cp", classes, Main.class.getName());
        Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        int port = Integer.parseInt(new BufferedReader(new InputStreamReader(process.getInputStream())).readLine());
        // Open until the server is gone, which ends it.
        try (Socket connection = new Socket("127.0.0.1", port)) {
            if (end.equals("SIGKILL")) {
                process.destroyForcibly();
            }
            process.getOutputStream().close();
            process.waitFor();
            try {
                assertEquals(-1, connection.getInputStream().read());
            } catch (IOException reset) {
                assertTrue(reset.getMessage().contains("reset"), reset.getMessage());
            }
        }
        assertThrows(ConnectException.class, () -> new Socket("127.0.0.1", port).close());
    }
}
