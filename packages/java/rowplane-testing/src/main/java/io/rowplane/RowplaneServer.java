package io.rowplane;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A Kubernetes API server in memory, which serves on a free port of 127.0.0.1 until it is stopped.
 *
 * <p>Any number of servers run side by side. A server ends with the process that started it, also when that is killed.
 */
public final class RowplaneServer implements AutoCloseable {
    /** Seconds that a server may take to end after its standard input has, before it is killed. */
    private static final long STOP_TIMEOUT = 15;

    /** In the environment, so that flags can say otherwise. Clients that are still connected at the end are not waited for. */
    private static final Map<String, String> DEFAULTS = Map.of(
            "ROWPLANE_DATASTORE", "memory:", "ROWPLANE_SECURE_PORT", "0", "ROWPLANE_SHUTDOWN_GRACE_PERIOD", "0s");

    private final Path folder;
    private final Process process;
    private final String url;
    private final Thread atExit;

    private RowplaneServer(Path folder, Process process, String url) {
        this.folder = folder;
        this.process = process;
        this.url = url;
        this.atExit = new Thread(this::end, "rowplane-exit");
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    /**
     * Starts a server, and returns when it is ready.
     *
     * @return the server
     * @throws RowplaneStartException the program is missing or for another machine
     */
    public static RowplaneServer start() {
        return builder().start();
    }

    /**
     * Begins a server that has definitions or flags.
     *
     * @return a builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * The administrator's kubeconfig.
     *
     * @return its path
     */
    public Path kubeconfig() {
        return folder.resolve("admin.kubeconfig");
    }

    /**
     * The administrator's kubeconfig as text, by the name that K3sContainer of Testcontainers has for it.
     *
     * @return YAML
     */
    public String getKubeConfigYaml() {
        try {
            return Files.readString(kubeconfig());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /**
     * The address of the API.
     *
     * @return {@code https://127.0.0.1:PORT}
     */
    public String url() {
        return url;
    }

    /**
     * The certificate (PEM) that vouches for the server's.
     *
     * @return its path
     */
    public Path ca() {
        return folder.resolve("pki").resolve("ca.crt");
    }

    /** Ends the server at once, watches and all, and removes its files. Nothing happens the second time. */
    public void stop() {
        end();
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException stopping) {
            // The hook runs, or has run.
        }
    }

    /** {@link #stop}, for try-with-resources. */
    @Override
    public void close() {
        stop();
    }

    private synchronized void end() {
        end(process);
        remove(folder);
    }

    private static void end(Process process) {
        try {
            process.getOutputStream().close();
            if (!process.waitFor(STOP_TIMEOUT, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (IOException error) {
            process.destroyForcibly();
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    private static void remove(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException | UncheckedIOException gone) {
            // Stopped before.
        }
    }

    /** What a server is started with. */
    public static final class Builder {
        private final List<Path> crds = new ArrayList<>();
        private final List<String> documents = new ArrayList<>();
        private final List<String> flags = new ArrayList<>();

        private Builder() {}

        /**
         * Adds CustomResourceDefinitions, which are served once the server has started.
         *
         * @param paths files (YAML or JSON) and folders of them
         * @return this
         */
        public Builder crds(Path... paths) {
            Collections.addAll(crds, paths);
            return this;
        }

        /**
         * Adds CustomResourceDefinitions, which are served once the server has started.
         *
         * @param texts the definitions in YAML or JSON
         * @return this
         */
        public Builder crds(String... texts) {
            Collections.addAll(documents, texts);
            return this;
        }

        /**
         * Adds flags of {@code rowplane serve}, such as {@code --cluster-controllers=false}.
         *
         * @param more the flags
         * @return this
         */
        public Builder flags(String... more) {
            Collections.addAll(flags, more);
            return this;
        }

        /**
         * Starts a server, and returns when it is ready. The builder can start more.
         *
         * @return the server
         * @throws RowplaneStartException a definition is invalid, a flag unknown, a port taken, the program missing or for another
         *     machine
         */
        public RowplaneServer start() {
            Path program = Program.find();
            Path folder = null;
            Process process = null;
            try {
                folder = Files.createTempDirectory("rowplane-");
                process = run(program, folder);
                return new RowplaneServer(folder, process, announced(process, folder));
            } catch (IOException | RuntimeException error) {
                if (process != null) {
                    process.destroyForcibly();
                }
                if (folder != null) {
                    remove(folder);
                }
                if (error instanceof RuntimeException) {
                    throw (RuntimeException) error;
                }
                // Its cause says why, without the program's name and directory.
                String reason = (error.getCause() == null ? error : error.getCause()).getMessage();
                throw new RowplaneStartException("cannot run " + program + ": " + reason, error);
            }
        }

        private Process run(Path program, Path folder) throws IOException {
            List<String> command = new ArrayList<>(List.of(program.toString(), "serve", "--exit-with-stdin", "--data-dir", folder.toString()));
            for (Path path : crds) {
                Collections.addAll(command, "--crds", path.toString());
            }
            for (int number = 0; number < documents.size(); number++) {
                Path file = Files.writeString(folder.resolve("crd-" + number + ".yaml"), documents.get(number));
                Collections.addAll(command, "--crds", file.toString());
            }
            command.addAll(flags);
            ProcessBuilder builder = new ProcessBuilder(command).redirectError(log(folder).toFile());
            builder.environment().putAll(DEFAULTS);
            return builder.start();
        }
    }

    private static Path log(Path folder) {
        return folder.resolve("log");
    }

    /** Waits until the server says where it is. */
    private static String announced(Process process, Path folder) throws IOException {
        BufferedReader output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            String[] words = line.trim().split("\\s+");
            if (words[0].equals("url")) {
                drain(output);
                return words[1];
            }
        }
        int status;
        try {
            status = process.waitFor();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RowplaneStartException("interrupted while the server started", interrupted);
        }
        throw new RowplaneStartException(reason(Files.readAllLines(log(folder)), status));
    }

    /** Reads further output and drops it, since a full pipe would halt the server. */
    private static void drain(BufferedReader output) {
        Thread thread = new Thread(() -> {
            try (output) {
                while (output.readLine() != null) {
                    continue;
                }
            } catch (IOException ended) {
                // With the server.
            }
        }, "rowplane-output");
        thread.setDaemon(true);
        thread.start();
    }

    /** The program's own last words; the dynamic linker's need an explanation. */
    private static String reason(List<String> log, int status) {
        List<String> lines = log.stream().filter(line -> !line.isBlank()).collect(Collectors.toList());
        String last = String.join("\n", lines.subList(Math.max(0, lines.size() - 5), lines.size()));
        String text = lines.stream().filter(line -> line.startsWith("rowplane: ")).reduce((first, second) -> second).orElse(last);
        if (text.contains("GLIBC_")) {
            return "the C library of this machine is too old for this program: " + text;
        }
        return text.isEmpty() ? "rowplane ended with status " + status + " and said nothing" : text.replaceFirst("^rowplane: ", "");
    }
}
