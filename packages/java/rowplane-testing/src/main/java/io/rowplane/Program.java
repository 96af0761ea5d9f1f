package io.rowplane;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;
import java.util.Optional;

/** The program `rowplane` of this machine. */
final class Program {
    private Program() {}

    /**
     * The program that the property {@code rowplane.program} or the variable {@code ROWPLANE_PROGRAM} names, the one of the jar
     * for this platform, or the one on the {@code PATH}.
     */
    static Path find() {
        String named = System.getProperty("rowplane.program", System.getenv("ROWPLANE_PROGRAM"));
        if (named != null) {
            return Path.of(named);
        }
        return bundled().or(Program::onPath).orElseThrow(() -> new RowplaneStartException(
                "there is no program for " + classifier() + ": the dependency io.rowplane:rowplane-program with the classifier "
                        + classifier() + " brings one where there is one, or name one in the property rowplane.program"));
    }

    /** The name of this platform, as os-maven-plugin and the classifiers of many artefacts have it. */
    static String classifier() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String name = system.startsWith("mac") ? "osx" : system.startsWith("windows") ? "windows" : system;
        String machine = System.getProperty("os.arch");
        return name + "-" + (machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch_64" : machine.replace("aarch64", "aarch_64"));
    }

    private static String fileName() {
        return File.separatorChar == '\\' ? "rowplane.exe" : "rowplane";
    }

    private static Optional<Path> onPath() {
        for (String folder : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path program = Path.of(folder, fileName());
            if (Files.isExecutable(program)) {
                return Optional.of(program);
            }
        }
        return Optional.empty();
    }

    /** Unpacks the jar's program, once for a user: the folder has the program's checksum in its name. */
    private static synchronized Optional<Path> bundled() {
        String place = "/io/rowplane/program/" + classifier() + "/";
        try (InputStream checksum = Program.class.getResourceAsStream(place + "sha256")) {
            if (checksum == null) {
                return Optional.empty();
            }
            Path folder = cache().resolve(new String(checksum.readAllBytes(), StandardCharsets.US_ASCII).trim());
            Path program = folder.resolve(fileName());
            if (!Files.isExecutable(program)) {
                unpack(place + fileName(), program);
            }
            return Optional.of(program);
        } catch (IOException | UncheckedIOException error) {
            throw new RowplaneStartException("cannot unpack the program: " + error
                    + " (XDG_CACHE_HOME names another folder, the property rowplane.program a program)", error);
        }
    }

    private static void unpack(String resource, Path program) throws IOException {
        Files.createDirectories(program.getParent());
        // Under another name until it is whole, since other processes may look for it.
        Path part = Files.createTempFile(program.getParent(), "rowplane", ".part");
        try (InputStream packed = Program.class.getResourceAsStream(resource)) {
            Files.copy(packed, part, StandardCopyOption.REPLACE_EXISTING);
            if (!part.toFile().setExecutable(true)) {
                throw new IOException(part + " cannot be made executable");
            }
            Files.move(part, program, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(part);
        }
    }

    private static Path cache() {
        String named = System.getenv("XDG_CACHE_HOME");
        Path caches = named != null && !named.isEmpty() ? Path.of(named) : Path.of(System.getProperty("user.home"), ".cache");
        return caches.resolve("rowplane").resolve("java");
    }
}
