/**
 * Kubernetes API servers for tests: {@link io.rowplane.RowplaneServer} is a process on this machine, {@link
 * io.rowplane.RowplaneExtension} hands it to tests of JUnit 5, and {@link io.rowplane.RowplaneContainer} is a container of
 * Testcontainers.
 */
package io.rowplane;
